//! Through rsmpi: derived communicators, datatypes, attributes and operators that are closures are there afterwards; a
//! reduction with such an operator, receives of a scope and a receive into a future are pending.
//! trial: ranks=2,4

use std::process::ExitCode;

use mpi::collective::UserOperation;
use mpi::datatype::{MutView, UserDatatype, View};
use mpi::request;
use mpi::topology::{CartesianCommunicator, Color, CommunicatorRelation};
use mpi::traits::*;
use trial::{Trial, check};

/// An affine map x -> a*x + b over the integers mod a prime: composing them depends on the order.
#[derive(Clone, Copy, Debug, Default, Equivalence, PartialEq)]
struct Map {
    known: bool,
    a: u64,
    b: u64,
}

const PRIME: u64 = 1_000_003;
const MAPS: usize = 10;

impl Map {
    fn of(rank: i32, number: usize) -> Map {
        let (rank, number) = (rank as u64, number as u64);
        Map {
            known: true,
            a: 3 + rank * 7 + number,
            b: 11 + rank * 13 + number,
        }
    }

    fn then(self, next: Map) -> Map {
        Map {
            known: self.known && next.known,
            a: self.a * next.a % PRIME,
            b: (next.a * self.b + next.b) % PRIME,
        }
    }

    /// The maps of one rank.
    fn all(rank: i32) -> [Map; MAPS] {
        std::array::from_fn(|number| Map::of(rank, number))
    }

    /// Returns the composition of the maps of the first ranks, one after the other.
    fn composed(ranks: i32) -> [Map; MAPS] {
        std::array::from_fn(|number| {
            (1..ranks).fold(Map::of(0, number), |first, rank| {
                first.then(Map::of(rank, number))
            })
        })
    }
}

fn composition<'a>() -> UserOperation<'a> {
    UserOperation::associative(|first, then| {
        let first = first.downcast::<Map>().expect("maps come in");
        let then = then.downcast::<Map>().expect("maps go out");
        for (first, then) in first.iter().zip(then) {
            *then = first.then(*then);
        }
    })
}

/// An attribute; a duplicate gets a changed copy of it.
#[derive(Debug, PartialEq)]
struct Generation(Vec<u32>);

impl CommAttribute for Generation {
    const CLONE_ON_DUP: bool = true;
}

impl Clone for Generation {
    fn clone(&self) -> Generation {
        Generation(self.0.iter().map(|value| value + 1).collect())
    }
}

fn check_communicators(
    trial: &Trial,
    half: &impl Communicator,
    copy: &impl Communicator,
    ring: &CartesianCommunicator,
) {
    check!(
        trial,
        half.rank() == trial.rank / 2,
        "rank {} in its half",
        half.rank()
    );
    let relation = copy.compare(half);
    check!(
        trial,
        relation == CommunicatorRelation::Congruent,
        "copy and half: {relation:?}"
    );
    let generation = copy.get_attr::<Generation>();
    check!(
        trial,
        generation == Some(&Generation(vec![8, 9])),
        "the copy has {generation:?}"
    );
    let (below, above) = ring.shift(0, 1);
    let expected = (Some(trial.neighbour(-1)), Some(trial.neighbour(1)));
    check!(
        trial,
        (below, above) == expected,
        "neighbours {below:?} and {above:?}"
    );
    let mut sum = 0;
    copy.all_reduce_into(
        &trial.rank,
        &mut sum,
        mpi::collective::SystemOperation::sum(),
    );
    let expected: i32 = (trial.rank % 2..trial.size).step_by(2).sum();
    check!(trial, sum == expected, "{sum} over the copy");
}

/// Sends every third element, and receives them as one block.
fn check_datatype(trial: &Trial, every_third: &UserDatatype) {
    let out: Vec<i32> = (0..30).map(|i| trial.rank * 100 + i).collect();
    let mut got = [0; 10];
    let world = trial.world();
    // SAFETY: ten blocks of one element, three apart, are 28 of the 30 elements.
    let out = unsafe { View::with_count_and_datatype(&out[..], 1, every_third) };
    let next = world.process_at_rank(trial.neighbour(1));
    let previous = world.process_at_rank(trial.neighbour(-1));
    mpi::point_to_point::send_receive_into(&out, &next, &mut got[..], &previous);
    let expected: [i32; 10] = std::array::from_fn(|i| previous.rank() * 100 + 3 * i as i32);
    check!(
        trial,
        got == expected,
        "every third of {}: {got:?}",
        previous.rank()
    );
    // SAFETY: as above.
    let mut back = [0; 30];
    let mut spread = unsafe { MutView::with_count_and_datatype(&mut back[..], 1, every_third) };
    mpi::point_to_point::send_receive_into(&got[..], &previous, &mut spread, &next);
    let right =
        (0..30).all(|i| back[i as usize] == if i % 3 == 0 { trial.rank * 100 + i } else { 0 });
    check!(trial, right, "came back as {back:?}");
}

/// Sends maps round the ring, one of them into a future, and lets all ranks compose them: the reduction is under way at a
/// checkpoint.
fn check_requests(trial: &Trial, compose: &UserOperation) {
    let world = trial.world();
    let next = world.process_at_rank(trial.neighbour(1));
    let previous = world.process_at_rank(trial.neighbour(-1));
    let mine = Map::all(trial.rank);
    let (mut all, mut received) = ([Map::default(); MAPS], [Map::default(); MAPS]);
    let answer = previous.immediate_receive_with_tag::<Map>(2);
    request::scope(|scope| {
        let maps = previous.immediate_receive_into_with_tag(scope, &mut received[..], 1);
        // Rank 0 comes to the reduction only after the checkpoint.
        if trial.rank == 0 {
            trial.hold();
        }
        let reduction = world.immediate_all_reduce_into(scope, &mine[..], &mut all[..], compose);
        if trial.rank != 0 {
            trial.hold();
        }
        next.send_with_tag(&mine[..], 1);
        next.send_with_tag(&mine[3], 2);
        let status = maps.wait();
        check!(
            trial,
            status.source_rank() == previous.rank(),
            "maps of {}",
            status.source_rank()
        );
        check!(
            trial,
            status.count(Map::equivalent_datatype()) == MAPS as i32,
            "not all maps"
        );
        reduction.wait();
    });
    let (answer, status) = answer.get();
    check!(
        trial,
        answer == Map::of(previous.rank(), 3),
        "the future is {answer:?}"
    );
    check!(
        trial,
        status.tag() == 2,
        "the future has tag {}",
        status.tag()
    );
    check!(
        trial,
        received == Map::all(previous.rank()),
        "received {received:?}"
    );
    check!(
        trial,
        all == Map::composed(trial.size),
        "all together are {all:?}"
    );
}

/// Checks an operation from before the checkpoint, and a new one that captures a value.
fn check_operations(trial: &Trial, compose: &UserOperation) {
    let world = trial.world();
    let mut first = [Map::default(); MAPS];
    world.scan_into(&Map::all(trial.rank)[..], &mut first[..], compose);
    check!(
        trial,
        first == Map::composed(trial.rank + 1),
        "up to here they are {first:?}"
    );
    let scale = trial.size as i64;
    let farthest = UserOperation::commutative(move |one, other| {
        let one = one.downcast::<i64>().expect("numbers come in");
        let other = other.downcast::<i64>().expect("numbers go out");
        for (one, other) in one.iter().zip(other) {
            *other = *[*one, *other]
                .iter()
                .max_by_key(|value| (*value * scale).abs())
                .expect("two");
        }
    });
    let mut far = 0;
    world.all_reduce_into(&(-1 - i64::from(trial.rank)), &mut far, &farthest);
    check!(
        trial,
        far == -i64::from(trial.size),
        "the farthest is {far}"
    );
}

/// Makes objects that end before MPI does.
fn objects(trial: &Trial) {
    let world = trial.world();
    let mut half = world
        .split_by_color(Color::with_value(trial.rank % 2))
        .expect("everybody has a half");
    half.set_attr(Generation(vec![7, 8]));
    let copy = half.duplicate();
    let ring = world
        .create_cartesian_communicator(&[trial.size], &[true], false)
        .expect("everybody is in the ring");
    let every_third = UserDatatype::vector(10, 1, 3, &i32::equivalent_datatype());
    let compose = composition();
    check_requests(trial, &compose);
    check_operations(trial, &compose);
    check_communicators(trial, &half, &copy, &ring);
    check_datatype(trial, &every_third);
}

fn main() -> ExitCode {
    let trial = Trial::start();
    objects(&trial);
    trial.finish()
}
