//! Random programs, random interleavings, checkpoints at random moments: the safe state is found, it is
//! safe, nothing is lost, and every program comes to its end.

mod rank;
mod world;

use proptest::prelude::*;
use world::{Mutation, Op, World};

/// A number that follows from another (SplitMix64, Steele, Lea and Flood 2014).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What happens in a job, in an order that would be a correct execution; each rank's program is what
/// concerns it, so that the program as a whole cannot deadlock.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Collective(usize),
    Nonblocking(usize),
    Message(usize, usize),
    Compute(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (0usize..4).prop_map(Happening::Collective),
        2 => (0usize..4).prop_map(Happening::Nonblocking),
        3 => (0usize..8, 0usize..8).prop_map(|(from, to)| Happening::Message(from, to)),
        1 => (0usize..8).prop_map(Happening::Compute),
    ]
}

/// Groups as sets of bits, never empty.
fn groups(bits: &[u8], ranks: usize) -> Vec<Vec<usize>> {
    bits.iter()
        .map(|bits| {
            let members: Vec<usize> = (0..ranks).filter(|rank| bits >> rank & 1 == 1).collect();
            match members.is_empty() {
                true => (0..ranks).collect(),
                false => members,
            }
        })
        .collect()
}

/// Each rank's part. Nonblocking operations are waited for some happenings later, or at the end.
fn programs(happenings: &[Happening], groups: &[Vec<usize>], ranks: usize) -> Vec<Vec<Op>> {
    let mut programs = vec![vec![]; ranks];
    let mut seq = vec![0; groups.len()];
    let mut outstanding: Vec<(usize, usize, u64)> = vec![];
    for (index, happening) in happenings.iter().enumerate() {
        outstanding.retain(|(due, group, number)| {
            if *due <= index {
                groups[*group]
                    .iter()
                    .for_each(|rank| programs[*rank].push(Op::Wait(*group, *number)));
            }
            *due > index
        });
        match *happening {
            Happening::Collective(group) => {
                seq[group] += 1;
                groups[group]
                    .iter()
                    .for_each(|rank| programs[*rank].push(Op::Collective(group)));
            }
            Happening::Nonblocking(group) => {
                seq[group] += 1;
                groups[group]
                    .iter()
                    .for_each(|rank| programs[*rank].push(Op::Start(group)));
                outstanding.push((index + 3, group, seq[group]));
            }
            Happening::Message(from, to) => {
                let (from, to) = (from % ranks, to % ranks);
                programs[from].push(Op::Send(to));
                programs[to].push(Op::Receive(from));
            }
            Happening::Compute(rank) => programs[rank % ranks].push(Op::Compute),
        }
    }
    for (_, group, number) in outstanding {
        groups[group]
            .iter()
            .for_each(|rank| programs[*rank].push(Op::Wait(group, number)));
    }
    programs
}

/// Far more than any of these jobs needs.
const MAX_STEPS: u64 = 400_000;

fn run(
    happenings: &[Happening],
    bits: &[u8],
    ranks: usize,
    mut seed: u64,
    mutation: Mutation,
) -> Result<(), String> {
    let groups = groups(bits, ranks);
    let programs = programs(happenings, &groups, ranks);
    let mut world = World::new(programs, &groups, 2, mutation);
    // Some actors sleep for a while, so that the others get far ahead of them.
    let mut asleep = 0;
    for step in 0..MAX_STEPS {
        if world.ended() {
            return Ok(());
        }
        if step % 64 == 0 {
            asleep = mix(&mut seed) & mix(&mut seed);
        }
        let choice = mix(&mut seed);
        world
            .step(choice, asleep)
            .map_err(|error| format!("{error}\n{}", world.in_words()))?;
    }
    Err(format!(
        "no end after {MAX_STEPS} steps, {} done\n{}",
        world.done,
        world.in_words()
    ))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_still_point_is_found_and_is_one(
        ranks in 1usize..6,
        bits in proptest::array::uniform4(any::<u8>()),
        happenings in proptest::collection::vec(happening(), 0..30),
        seed in any::<u64>(),
    ) {
        let outcome = run(&happenings, &bits, ranks, seed, Mutation::None);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

/// Runs that a mutation survives say that the simulation does not bite.
fn is_caught(mutation: Mutation) {
    let mut seed = 1;
    for _ in 0..3000 {
        let ranks = 2 + (mix(&mut seed) % 4) as usize;
        let bits = mix(&mut seed).to_le_bytes();
        let happenings: Vec<Happening> = (0..20)
            .map(|_| {
                let (what, a, b) = (
                    mix(&mut seed),
                    mix(&mut seed) as usize,
                    mix(&mut seed) as usize,
                );
                match what % 8 {
                    0..3 => Happening::Collective(a % 4),
                    3 | 4 => Happening::Nonblocking(a % 4),
                    5 | 6 => Happening::Message(a % 8, b % 8),
                    _ => Happening::Compute(a % 8),
                }
            })
            .collect();
        if run(&happenings, &bits[..4], ranks, seed, mutation).is_err() {
            return;
        }
    }
    panic!("{mutation:?} was not noticed");
}

#[test]
fn without_raises_it_goes_wrong() {
    is_caught(Mutation::NoRaise);
}

#[test]
fn without_advances_it_goes_wrong() {
    is_caught(Mutation::NoAdvance);
}

#[test]
fn an_agent_that_looks_once_is_wrong() {
    is_caught(Mutation::LooksOnce);
}

#[test]
fn reports_that_crossed_an_order_are_wrong() {
    is_caught(Mutation::StaleReports);
}

#[test]
fn clocks_read_before_the_flag_is_set_are_wrong() {
    is_caught(Mutation::ReadsBeforeFlag);
}

#[test]
fn reports_that_overtake_a_raise_are_wrong() {
    is_caught(Mutation::RaisesLate);
}
