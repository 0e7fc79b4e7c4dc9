//! Placements with simple numbers.

use super::*;

const MB: u64 = 1_000_000;

fn member(node: usize, megabytes: u64) -> Member {
    Member {
        node,
        bytes: megabytes * MB,
        fast: Some(1000 * MB),
        slow: Some(20 * MB),
        peers: Some(60 * MB),
    }
}

fn room(fast: &[u64]) -> TierRoom {
    TierRoom {
        fast: fast.iter().map(|megabytes| megabytes * MB).collect(),
        slow: 10_000 * MB,
    }
}

#[test]
fn what_fits_stays_on_its_node() {
    let members = [member(0, 50), member(0, 40), member(1, 100)];
    let placement = place(&members, &room(&[100, 100]), Rules::default()).unwrap();
    let local: Vec<u64> = placement
        .shares
        .iter()
        .map(|share| share.local / MB)
        .collect();
    assert_eq!(local, [50, 40, 100]);
    assert!(
        placement
            .shares
            .iter()
            .all(|share| share.slow == 0 && share.peers.is_empty())
    );
    assert_eq!(placement.blocking, 0.1);
    assert_eq!(placement.hosts, [0, 2]);
    let slack: Vec<u64> = placement
        .shares
        .iter()
        .map(|share| share.slack / MB)
        .collect();
    assert_eq!(slack, [2, 2, 0], "half of the ten that are left on node 0");
}

#[test]
fn a_remainder_is_shared_by_peers_and_the_slow_tier_as_their_bandwidths_are() {
    let members = [member(0, 120), member(1, 20)];
    let placement = place(&members, &room(&[40, 200]), Rules::default()).unwrap();
    assert_eq!(
        placement.shares[0],
        Share {
            local: 40 * MB,
            slack: 0,
            peers: vec![(1, 60 * MB)],
            slow: 20 * MB
        }
    );
    assert_eq!(placement.blocking, 1.0);
    let local_only = Rules {
        local_only: true,
        ..Rules::default()
    };
    let alone = place(&members, &room(&[40, 200]), local_only).unwrap();
    assert_eq!((alone.shares[0].slow, alone.blocking), (80 * MB, 4.0));
}

#[test]
fn with_partners_every_node_has_room_for_what_it_keeps_twice() {
    let members = [member(0, 120), member(1, 20), member(2, 70)];
    let capacities = [100, 160, 90];
    let rules = Rules {
        partners: true,
        ..Rules::default()
    };
    let placement = place(&members, &room(&capacities), rules).unwrap();
    assert_eq!(placement.partners, [1, 2, 0]);
    let mut held = [0; 3];
    for (member, share) in members.iter().zip(&placement.shares) {
        let own = [(member.node, share.local)];
        for (node, bytes) in own.iter().chain(&share.peers) {
            held[*node] += bytes;
            held[placement.partners[*node]] += bytes;
        }
        let placed = share.local + share.slow + share.peers.iter().map(|(_, b)| b).sum::<u64>();
        assert_eq!(placed, member.bytes);
    }
    for (held, capacity) in held.iter().zip(capacities) {
        assert!(*held <= capacity * MB, "{held} of {capacity} MB");
    }
    let one = place(&members[..1], &room(&[100]), rules);
    assert_eq!(one, Err(PlacementError::NoPartner));
}

#[test]
fn copies_are_weighed_against_the_slow_tier() {
    // Everything would fit twice; but sending 100 MB of copies takes 1.67 s, and meanwhile the slow tier would be idle.
    let members = [member(0, 100), member(1, 0)];
    let rules = Rules {
        partners: true,
        ..Rules::default()
    };
    let placement = place(&members, &room(&[200, 200]), rules).unwrap();
    assert_eq!(placement.shares[0].slow, 25 * MB);
    assert_eq!(placement.blocking, 1.25);
    // Without a way to the slow tier, everything stays on the fast ones.
    let mut cut_off = members;
    cut_off[0].slow = None;
    let placement = place(&cut_off, &room(&[200, 200]), rules).unwrap();
    assert_eq!(placement.shares[0].local, 100 * MB);
}

#[test]
fn what_fits_nowhere_is_refused_in_words() {
    let members = [member(0, 120), member(1, 20)];
    let mut small = room(&[40, 200]);
    small.slow = 100 * MB;
    let error = place(&members, &small, Rules::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("140 MB, but the slow tier has room for 100 MB"),
        "{error}"
    );
    // If nothing gets through to the slow tier and peers have no room, there is a separate error.
    let mut cut_off = members;
    cut_off[0].slow = None;
    let error = place(&cut_off, &room(&[40, 50]), Rules::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("rank 0 has 80 MB that does not fit"),
        "{error}"
    );
    let mut nowhere = members;
    nowhere[0].slow = Some(0);
    assert!(place(&nowhere, &room(&[40, 50]), Rules::default()).is_err());
}

#[test]
fn an_unreachable_peer_gets_nothing() {
    let mut members = [member(0, 120), member(1, 20)];
    members[1].peers = None;
    let placement = place(&members, &room(&[40, 200]), Rules::default()).unwrap();
    assert_eq!(
        (placement.shares[0].slow, placement.blocking),
        (80 * MB, 4.0)
    );
}
