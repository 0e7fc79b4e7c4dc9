//! The paper's Figures 6 to 8 again: the same snapshots and schedulers, but GPUs in virtual time copy every byte.
//!
//! Sizes and room are a sixteenth of the paper's, so that a run takes seconds; bandwidths and the cost of a copy are those of a
//! DGX-1.

use std::collections::BTreeMap;

use stillpoint_gpu_plan::Record;
use stillpoint_gpu_plan::node::GRANULE;
use stillpoint_gpu_plan::streams::{SLOTS, probes};
use stillpoint_gpu_plan::{Copies, CopyRoute, Host, Node, Scheduling, StagingPlace};
use stillpoint_gpu_staging::{Measured, Probe, Settings, probe, stage};
use stillpoint_multilevel::Topology;
use stillpoint_multilevel::trace::Trace;

use super::virtual_device::Machine;

/// The divisor of sizes.
pub const SCALE: u64 = 16;

const DRIVER: &str = "virtual";

/// Makes a DGX-1 with so many bytes free on every GPU. One stream fills a link to three quarters, and a copy takes ten microseconds to
/// begin, scaled like sizes.
pub fn dgx1(free: u64) -> Node {
    let host = Host {
        room: 1 << 30,
        bandwidth: None,
    };
    Node::of(&Topology::dgx1().with_free(free), host, 0).expect("GPUs and a host")
}

fn machine(
    node: &Node,
    sizes: &[(u32, usize, u64)],
) -> (Machine, Vec<stillpoint_gpu_plan::Source>) {
    let (mut machine, sources) = Machine::new(node, sizes);
    machine.one_stream = 0.75;
    machine.to_begin = 10e-6 / SCALE as f64;
    (machine, sources)
}

/// Makes a dozen probes of every way, scaled like everything else.
pub fn probed() -> Record {
    let node = dgx1((256 << 20) / SCALE);
    let (mut machine, _) = machine(&node, &[]);
    let mut record = Record::default();
    let to_all = |from| {
        (0..8)
            .map(StagingPlace::Gpu)
            .chain([StagingPlace::Host])
            .map(move |to| CopyRoute { from, to })
    };
    for way in (0..8).flat_map(to_all) {
        if node.bandwidth(way) == Some(0) {
            continue;
        }
        let scaled = probes().map(|(bytes, copies)| (bytes / SCALE, scaled(copies, SCALE)));
        for probe in
            probe(&mut machine, (StagingPlace::Gpu(way.from), way.to), scaled).expect("probed")
        {
            // The probe is scaled to the paper's sizes.
            let probe = Probe {
                bytes: probe.bytes * SCALE,
                copies: Copies {
                    slot: probe.copies.slot * SCALE,
                    ..probe.copies
                },
                ..probe
            };
            let uuid = &node.gpus[way.from].uuid;
            record.add(uuid, DRIVER, node.way_name(way), probe.copied());
        }
    }
    record
}

fn scaled(copies: Copies, by: u64) -> Copies {
    Copies {
        slot: copies.slot / by,
        ..copies
    }
}

/// Stages a snapshot of sizes, and returns the measured and predicted times.
pub fn staged(record: &Record, free: u64, sizes: &[u64], scheduling: Scheduling) -> Measured {
    let node = dgx1(free / SCALE);
    let sizes: Vec<(u32, usize, u64)> = (0..8)
        .map(|gpu| (gpu as u32, gpu, sizes[gpu] / SCALE))
        .collect();
    let (mut machine, sources) = machine(&node, &sizes);
    let unscaled = record.choice(&node, DRIVER);
    let choice = |way: CopyRoute, bytes: u64| {
        let (copies, predicted) = unscaled(way, bytes * SCALE);
        (scaled(copies, SCALE), predicted)
    };
    let settings = Settings {
        scheduling,
        choice: &choice,
        drain: Copies {
            streams: 1,
            slot: SLOTS[SLOTS.len() - 1] / SCALE,
        },
    };
    let staged = stage(&mut machine, &node, &sources, &settings).expect("the host has room");
    let all: u64 = staged.pieces().iter().map(|piece| piece.bytes).sum();
    assert_eq!(all, sizes.iter().map(|(_, _, bytes)| bytes).sum::<u64>());
    let measured = staged.measured.clone();
    staged.give_back(&mut machine);
    assert!(machine.nothing_is_reserved());
    measured
}

/// One scheduler in one case: the predicted and measured seconds of every snapshot that blocks.
pub type Times = BTreeMap<&'static str, Vec<(f64, f64)>>;

/// Runs every `step`th snapshot of a trace, with every scheduler.
pub fn case(record: &Record, trace: &Trace, free: u64, step: usize) -> Times {
    let mut times = Times::new();
    for sizes in trace.snapshots().iter().step_by(step) {
        let all = Scheduling::ALL.map(|scheduling| staged(record, free, sizes, scheduling));
        // The time for a few granules does not count as blocking.
        if all
            .iter()
            .any(|measured| measured.seconds < 20.0 * GRANULE as f64 / 12e9)
        {
            continue;
        }
        for (scheduling, measured) in Scheduling::ALL.into_iter().zip(all) {
            let list = times.entry(scheduling.name()).or_default();
            list.push((measured.predicted, measured.seconds));
        }
    }
    times
}
