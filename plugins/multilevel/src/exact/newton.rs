//! The searches on the blocking time. See the module above.

use super::Optimum;
use super::certificate::Cut;
use crate::graph::{Limit, Meaning, SINK, SOURCE, StagingGraph};
use crate::problem::{Problem, ScheduleError};
use crate::ratio::Seconds;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) fn solve(problem: &Problem<'_>, chunk: u64) -> Result<Optimum, ScheduleError> {
    let mut graph = StagingGraph::new(problem, 1);
    let (time, cut) = optimum(problem, &mut graph)?;
    let bottleneck = cut.map(|cut| cut.bottleneck(&graph, problem));
    if chunk > 1 {
        graph = StagingGraph::new(problem, chunk);
    }
    let whole = whole_pieces(problem, &mut graph, time)?;
    least_peer_traffic(&mut graph, whole);
    Ok(Optimum {
        time,
        bottleneck,
        plan: graph.plan(problem),
    })
}

/// Finds the shortest time in which everything can be sent, and the cut that proves it.
fn optimum(
    problem: &Problem<'_>,
    graph: &mut StagingGraph,
) -> Result<(Seconds, Option<Cut>), ScheduleError> {
    let (mut time, mut proof) = (problem.local_time().0, None);
    if let Some((longer, sender)) = slowest_sender(graph).filter(|&(longer, _)| longer > time) {
        let mut inside = vec![false; graph.network.vertices()];
        inside[SOURCE as usize] = true;
        inside[sender as usize] = true;
        (time, proof) = (longer, Some(inside));
    }
    let mut sent = 0;
    loop {
        graph.set_time(time);
        sent += graph.augment();
        if sent == graph.demand {
            break;
        }
        let mut cut = minimum_cut(graph, |vertex| graph.network.inside(vertex));
        let mut later = reached(problem, graph, &cut)?;
        if later <= time {
            // Whole bytes fall short by less than one byte a link, so fractions decide whether more time is needed.
            let Some(finer) = cut_of_fractions(graph, time) else {
                break;
            };
            cut = finer;
            later = reached(problem, graph, &cut)?;
        }
        debug_assert!(later > time);
        (time, proof) = (later, Some(cut.inside));
    }
    Ok((time, proof.map(|inside| Cut::around(graph, inside))))
}

/// Finds the sender whose links together take longest. The search starts with its time.
fn slowest_sender(graph: &StagingGraph) -> Option<(Seconds, u32)> {
    let mut slowest: Option<(Seconds, u32)> = None;
    for (edge, &meaning) in graph.meanings.iter().enumerate() {
        let (Meaning::Remainder(_), Limit::Pieces(bytes)) = (meaning, graph.limits[edge]) else {
            continue;
        };
        let sender = graph.network.ends(edge).1;
        let mut bandwidth = 0;
        for (arc, _) in graph.network.arcs(sender) {
            if let Limit::Bandwidth(more) = graph.limits[arc / 2] {
                bandwidth += more;
            }
        }
        if bandwidth > 0 {
            let time = Seconds::new(bytes, bandwidth);
            if slowest.is_none_or(|(longest, _)| time > longest) {
                slowest = Some((time, sender));
            }
        }
    }
    slowest
}

fn minimum_cut(graph: &StagingGraph, inside: impl Fn(u32) -> bool) -> Cut {
    Cut::around(
        graph,
        (0..graph.network.vertices() as u32).map(inside).collect(),
    )
}

/// Returns the time at which the cut is wide enough for all data that has to cross it.
fn reached(
    problem: &Problem<'_>,
    graph: &StagingGraph,
    cut: &Cut,
) -> Result<Seconds, ScheduleError> {
    let missing = graph.demand.saturating_sub(cut.pieces);
    if cut.bandwidth == 0 && missing > 0 {
        let found = cut.bottleneck(graph, problem);
        return Err(problem.does_not_fit(&found.senders, found.room));
    }
    Ok(if missing == 0 {
        Seconds::ZERO
    } else {
        Seconds::new(missing, cut.bandwidth)
    })
}

/// Returns the cut that shows that the time is too short even for fractions of bytes, if it is.
fn cut_of_fractions(graph: &StagingGraph, time: Seconds) -> Option<Cut> {
    let (bytes, fraction) = (u128::from(time.numerator()), time.denominator());
    let capacity = |edge: usize| match graph.limits[edge] {
        Limit::Pieces(pieces) => u128::from(pieces) * u128::from(fraction),
        Limit::Bandwidth(bandwidth) => u128::from(bandwidth) * bytes,
    };
    let mut fine = graph.network.finer(fraction, capacity);
    fine.augment(SOURCE, SINK);
    let sent: u128 = fine.arcs(SOURCE).map(|(arc, _)| fine.flow(arc / 2)).sum();
    let all = sent == u128::from(graph.demand) * u128::from(fraction);
    (!all).then(|| minimum_cut(graph, |vertex| fine.inside(vertex)))
}

/// Finds the shortest time from `time` on in which everything can be sent in whole pieces.
fn whole_pieces(
    problem: &Problem<'_>,
    graph: &mut StagingGraph,
    time: Seconds,
) -> Result<Seconds, ScheduleError> {
    let mut time = time;
    let mut sent = (graph.network.arcs(SOURCE))
        .map(|(arc, _)| graph.network.flow(arc / 2))
        .sum::<u64>();
    loop {
        graph.set_time(time);
        sent += graph.augment();
        if sent == graph.demand {
            return Ok(time);
        }
        let cut = minimum_cut(graph, |vertex| graph.network.inside(vertex));
        time = reached_in_whole_pieces(problem, graph, &cut, time)?;
    }
}

/// Returns the first time after `time` at which whole pieces on each link of the cut suffice for all data that has to
/// cross it.
fn reached_in_whole_pieces(
    problem: &Problem<'_>,
    graph: &StagingGraph,
    cut: &Cut,
    time: Seconds,
) -> Result<Seconds, ScheduleError> {
    // In pieces, `reached` is the time of as many bytes: a piece takes that many times as long.
    let bytes = reached(problem, graph, cut)?;
    let wide = u128::from(bytes.numerator()) * u128::from(graph.piece);
    let start = match u64::try_from(wide) {
        Ok(bytes_in_all) => time.max(Seconds::new(bytes_in_all, bytes.denominator())),
        Err(_) => time,
    };
    let mut missing = graph.demand - cut.pieces;
    // The times at which each link has carried one piece more than by `start`.
    let mut next = BinaryHeap::new();
    for edge in cut.edges(graph) {
        if let Limit::Bandwidth(bandwidth) = graph.limits[edge] {
            let pieces = start.pieces_at(bandwidth, graph.piece);
            missing = missing.saturating_sub(pieces);
            next.push(Reverse((
                piece_done(graph, pieces, bandwidth),
                pieces,
                bandwidth,
            )));
        }
    }
    let mut time = start;
    while missing > 0 {
        let Some(Reverse((then, pieces, bandwidth))) = next.pop() else {
            break;
        };
        time = then;
        missing -= 1;
        next.push(Reverse((
            piece_done(graph, pieces + 1, bandwidth),
            pieces + 1,
            bandwidth,
        )));
    }
    Ok(time)
}

/// Returns the time at which a link has carried one piece more than `pieces`.
fn piece_done(graph: &StagingGraph, pieces: u64, bandwidth: u64) -> Seconds {
    Seconds::new(
        pieces.saturating_add(1).saturating_mul(graph.piece),
        bandwidth,
    )
}

/// Fills the graph again for `time`, the slow tiers first.
fn least_peer_traffic(graph: &mut StagingGraph, time: Seconds) {
    graph.clear();
    graph.open(time, |meaning| !matches!(meaning, Meaning::Spare(_)));
    graph.augment();
    graph.set_time(time);
    graph.augment();
}
