//! Plans with simple numbers, and rules that every plan keeps.

use super::*;
use crate::node::{Host, Node};
use proptest::prelude::*;
use stillpoint_ids::Rank;
use stillpoint_multilevel::Topology;
use stillpoint_multilevel::placement::{Member, Rules, TierRoom, place};

const MB: u64 = 1_000_000;

fn dgx1(free: [u64; 8]) -> Node {
    let host = Host {
        room: 1 << 40,
        bandwidth: None,
    };
    let mut node = Node::of(&Topology::dgx1(), host, 0).expect("GPUs and a host");
    for (gpu, free) in node.gpus.iter_mut().zip(free) {
        gpu.free = free;
    }
    node
}

fn source(rank: u32, gpu: usize, bytes: u64) -> Source {
    Source {
        rank: Rank(rank),
        gpu,
        address: 0,
        bytes,
    }
}

/// Checks that every byte is placed once, in order, and that no place is overfilled.
fn check(node: &Node, sources: &[Source], staging: &Staging) {
    let mut parts = staging.parts.iter().peekable();
    for (number, source) in sources.iter().enumerate() {
        let mut next = 0;
        while let Some(part) = parts.next_if(|part| part.source == number) {
            assert_eq!(part.offset, next);
            assert!(part.bytes > 0);
            next += part.bytes;
        }
        assert_eq!(next, source.bytes, "source {number}");
    }
    assert_eq!(parts.next(), None);
    for &(place, taken) in &staging.taken {
        assert!(taken <= node.room(place), "{place:?}: {taken}");
        let mut there: Vec<(u64, u64)> = staging
            .parts
            .iter()
            .filter(|part| part.place == place)
            .map(|part| (part.at, part.bytes))
            .collect();
        there.sort_unstable();
        let end = there.iter().fold(0, |end, (at, bytes)| {
            assert_eq!(*at, end, "{place:?}");
            end + bytes
        });
        assert_eq!(end, taken);
    }
    for &(way, load) in &staging.loads {
        let own = |part: &&StagedPart| part.place == way.to && sources[part.source].gpu == way.from;
        let parts: u64 = staging
            .parts
            .iter()
            .filter(own)
            .map(|part| part.bytes)
            .sum();
        assert_eq!(parts, load, "{way:?}");
        assert_ne!(node.bandwidth(way), Some(0), "{way:?}");
    }
}

#[test]
fn the_papers_example_is_staged_in_its_time() {
    // 480 MB left over on GPU 0 and 240 MB on GPU 6; room for 137 MB on GPU 1 and 480 MB on GPU 4.
    let mut free = [0; 8];
    (free[1], free[4]) = (137 * MB, 480 * MB);
    let node = dgx1(free);
    let sources = [source(0, 0, 480 * MB), source(6, 6, 240 * MB)];
    let times = Scheduling::ALL.map(|scheduling| {
        let staging = plan(&node, &sources, scheduling).expect("fits");
        check(&node, &sources, &staging);
        (scheduling.name(), staging.blocking.as_secs_f64() * 1e3)
    });
    let near = |at: usize, wanted: f64| (times[at].1 / wanted - 1.0).abs() < 0.005;
    assert!(
        near(0, 40.0) && near(1, 20.0) && near(2, 6.67) && near(3, 6.667),
        "{times:?}"
    );
}

#[test]
fn ranks_that_share_a_gpu_share_its_room_and_cut_its_ways_between_them() {
    let mut free = [0; 8];
    (free[0], free[4]) = (100 * GRANULE, 1000 * GRANULE);
    let node = dgx1(free);
    // The second rank has memory on two GPUs.
    let sources = [
        source(0, 0, 60 * GRANULE),
        source(1, 0, 30 * GRANULE + 5),
        source(1, 2, GRANULE),
        source(2, 0, 50 * GRANULE),
    ];
    let staging = plan(&node, &sources, Scheduling::Exact).expect("fits");
    check(&node, &sources, &staging);
    let own = |source: usize| -> u64 {
        let own = |part: &&StagedPart| part.source == source && part.place == StagingPlace::Gpu(0);
        staging
            .parts
            .iter()
            .filter(own)
            .map(|part| part.bytes)
            .sum()
    };
    assert_eq!(own(0), 60 * GRANULE);
    assert_eq!(own(1), 30 * GRANULE + 5);
    assert_eq!(own(3), 10 * GRANULE - 5);
    // 40 granules are left over: at 48 GB/s to GPU 4 and 12 GB/s to the host.
    assert_eq!(staging.host_bytes(&sources, Rank(2)), 8 * GRANULE);
    assert_eq!(staging.host_bytes(&sources, Rank(0)), 0);
}

#[test]
fn more_than_all_places_hold_is_refused_in_words() {
    let mut node = dgx1([0; 8]);
    node.host.room = MB;
    let error = plan(&node, &[source(0, 3, 2 * MB)], Scheduling::Exact).expect_err("too much");
    let said = error.to_string();
    assert!(said.contains("GPU 3 has 2 MB that does not fit"), "{said}");
    let error = plan(&node, &[source(0, 8, 1)], Scheduling::Exact).expect_err("no such");
    assert_eq!(error.to_string(), "source 0 is on GPU 8, of 8");
}

#[test]
fn what_goes_to_host_memory_joins_the_plan_of_the_job() {
    // Two nodes with one rank each. Memory without room on GPUs counts as ordinary memory of the rank.
    let node = dgx1([0; 8]);
    let sources = [source(0, 0, 120 * MB)];
    let staging = plan(&node, &sources, Scheduling::Exact).expect("fits");
    let member = |node, bytes| Member {
        node,
        bytes,
        fast: None,
        slow: Some(20 * MB),
        peers: Some(60 * MB),
    };
    let members = [
        member(0, staging.host_bytes(&sources, Rank(0))),
        member(1, 20 * MB),
    ];
    let room = TierRoom {
        fast: vec![40 * MB, 200 * MB],
        slow: 10_000 * MB,
    };
    let placement = place(&members, &room, Rules::default()).expect("fits");
    let share = &placement.shares[0];
    assert_eq!(
        (share.local, share.slow, share.peers[0]),
        (40 * MB, 20 * MB, (1, 60 * MB))
    );
}

proptest! {
    #[test]
    fn no_plan_loses_a_byte_or_overfills_a_place(
        sizes in proptest::collection::vec((0u32..6, 0usize..8, 0u64..5_000_000), 0..14),
        free in proptest::array::uniform8(0u64..6_000_000),
        shared: bool,
    ) {
        let machine = if shared { Topology::dgx1_shared_pcie() } else { Topology::dgx1() };
        let host = Host { room: 1 << 30, bandwidth: None };
        let mut node = Node::of(&machine, host, 0).expect("GPUs and a host");
        node.gpus.iter_mut().zip(free).for_each(|(gpu, free)| gpu.free = free);
        let sources: Vec<Source> = sizes.iter().map(|&(rank, gpu, bytes)| source(rank, gpu, bytes)).collect();
        let mut exact = None;
        for scheduling in Scheduling::ALL.into_iter().rev() {
            let staging = plan(&node, &sources, scheduling).expect("the host has room");
            check(&node, &sources, &staging);
            // The exact scheduler counts whole granules on each of a GPU's ways, at most seven; the others count bytes.
            let time = staging.blocking.as_secs_f64();
            let best = *exact.get_or_insert(time);
            prop_assert!(time >= best - 7.0 * GRANULE as f64 / 12e9, "{scheduling:?}: {time} and {best}");
        }
    }
}
