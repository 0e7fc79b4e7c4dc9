//! Cells on a ring take steps, by rsmpi: halos in derived types, overlapped with the work inside; wandering parcels of unknown
//! length. Every rank also computes the whole ring by itself, and compares its part.
//! trial: ranks=2,4

use std::process::ExitCode;

use mpi::collective::SystemOperation;
use mpi::request;
use mpi::traits::*;
use trial::{Trial, check};

/// The content of a cell, with a hole in the middle.
#[derive(Clone, Copy, Debug, Default, Equivalence, PartialEq)]
struct Cell {
    kind: u8,
    value: u64,
}

/// Cells of one rank.
const PART: usize = 64;

fn step(left: Cell, here: Cell, right: Cell) -> Cell {
    let value = left
        .value
        .rotate_left(u32::from(here.kind))
        .wrapping_add(here.value.wrapping_mul(6_364_136_223_846_793_005))
        .wrapping_add(right.value >> 3);
    Cell {
        kind: left.kind.wrapping_add(right.kind) % 63,
        value,
    }
}

/// Returns the cells between the first and the last one of `cells`, a step later.
fn inside(cells: &[Cell]) -> impl Iterator<Item = Cell> + '_ {
    cells
        .windows(3)
        .map(|three| step(three[0], three[1], three[2]))
}

/// Returns the whole ring a step later.
fn whole(ring: &[Cell]) -> Vec<Cell> {
    let last = ring.len() - 1;
    let mut next = vec![step(ring[last], ring[0], ring[1])];
    next.extend(inside(ring));
    next.push(step(ring[last - 1], ring[last], ring[0]));
    next
}

fn start(cells: usize) -> Vec<Cell> {
    let of = |i: usize| Cell {
        kind: (i % 63) as u8,
        value: (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    (0..cells).map(of).collect()
}

/// Computes a step of this rank's part: the halo comes while the inside is computed.
fn part(trial: &Trial, mine: &[Cell]) -> Vec<Cell> {
    let world = trial.world();
    let left = world.process_at_rank(trial.neighbour(-1));
    let right = world.process_at_rank(trial.neighbour(1));
    let (mut from_left, mut from_right) = (Cell::default(), Cell::default());
    let middle: Vec<Cell> = request::scope(|scope| {
        let requests = [
            left.immediate_receive_into_with_tag(scope, &mut from_left, 1),
            right.immediate_receive_into_with_tag(scope, &mut from_right, 2),
        ];
        let first = left.immediate_send_with_tag(scope, &mine[0], 2);
        let last = right.immediate_synchronous_send_with_tag(scope, &mine[PART - 1], 1);
        let middle = inside(mine).collect();
        for request in requests {
            request.wait();
        }
        first.wait();
        last.wait();
        middle
    });
    let mut next = vec![step(from_left, mine[0], mine[1])];
    next.extend(middle);
    next.push(step(mine[PART - 2], mine[PART - 1], from_right));
    next
}

/// Sends some of the cells round one rank; the receiver does not know their number.
fn parcels(trial: &Trial, round: u64, ring: &[Cell]) {
    let world = trial.world();
    let length = |rank: i32| 1 + (round as usize * 7 + rank as usize * 13) % PART;
    let count = length(trial.rank);
    request::scope(|scope| {
        let sent = world
            .process_at_rank(trial.neighbour(1))
            .immediate_send_with_tag(scope, &ring[..count], 3);
        let (cells, status) = world
            .any_process()
            .matched_probe_with_tag(3)
            .matched_receive_vec::<Cell>();
        let expected = &ring[..length(trial.neighbour(-1))];
        check!(
            trial,
            status.source_rank() == trial.neighbour(-1),
            "round {round}: {status:?}"
        );
        check!(
            trial,
            cells == expected,
            "round {round}: {} cells in the parcel",
            cells.len()
        );
        sent.wait();
    });
}

fn main() -> ExitCode {
    let trial = Trial::start();
    let world = trial.world();
    let mut ring = start(PART * trial.size as usize);
    let place = PART * trial.rank as usize..PART * (trial.rank as usize + 1);
    let mut mine = ring[place.clone()].to_vec();
    for round in 0.. {
        ring = whole(&ring);
        mine = part(&trial, &mine);
        check!(
            trial,
            mine == ring[place.clone()],
            "round {round}: this part differs"
        );
        parcels(&trial, round, &ring);
        let stops = !trial.right() || trial.rank == 0 && !trial.goes_on(round);
        let mut all_stop = false;
        world.all_reduce_into(&stops, &mut all_stop, SystemOperation::logical_or());
        if all_stop {
            break;
        }
    }
    trial.finish()
}
