//! Messages on the wire, and the ranks that take them in.

use stillpoint_clock::rank::Activity;

use crate::mutant::Mutant;
use crate::ranks::Ranks;

/// The rank's receive: takes a message that is there, or waits for one.
pub fn receive<S: Mutant>(ranks: &mut Ranks, number: usize, from: usize, busy: bool) {
    let there = ranks[from].sent[number];
    let rank = &mut ranks[number];
    if rank.taken[from] < there {
        rank.taken[from] += 1;
        rank.pulled[from] = rank.pulled[from].max(rank.taken[from]);
        rank.leave();
    } else {
        rank.blocked::<S>(busy);
    }
}

/// Whether a message is on the wire for a rank that pulls.
pub fn can_pull<S: Mutant>(ranks: &Ranks, number: usize) -> bool {
    S::PULL
        && matches!(ranks[number].doing, Activity::Parked | Activity::Waiting)
        && (0..ranks.len()).any(|from| ranks[from].sent[number] > ranks[number].pulled[from])
}

/// Takes in everything on the wire for a rank.
pub fn pull(ranks: &mut Ranks, number: usize) {
    for from in 0..ranks.len() {
        ranks[number].pulled[from] = ranks[from].sent[number];
    }
}
