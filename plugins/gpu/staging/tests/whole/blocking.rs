//! The blocking time of staging, in virtual time, beside the predicted time: the paper's example, and its Figures 6 and
//! 7.

use std::path::Path;

use stillpoint_gpu_plan::Scheduling;
use stillpoint_multilevel::simulate::Spread;
use stillpoint_multilevel::trace::Trace;

use super::figures::{SCALE, Times, case, probed, staged};

const MB: u64 = 1_000_000;

#[test]
fn the_papers_example_blocks_as_long_as_every_plan_says() {
    // 480 MB do not fit on GPU 0 and 240 MB on GPU 6; the free memory elsewhere is nearly that of the paper's Figure 1.
    let record = probed();
    let sizes = [560, 0, 80, 80, 0, 80, 320, 80].map(|megabytes| megabytes * MB);
    let times = Scheduling::ALL.map(|scheduling| {
        let measured = staged(&record, 80 * MB, &sizes, scheduling);
        let off = measured.seconds / measured.predicted - 1.0;
        assert!(off.abs() < 0.15, "{scheduling:?}: {off:+.3}");
        measured.seconds
    });
    assert!(times[3] * 1.2 < times[0], "peers help: {times:?}");
}

/// The claims of the paper's section V.D, checked with real copies. `bench/results` contains this table.
#[test]
fn schedulers_are_to_each_other_as_their_plans_say() {
    let record = probed();
    let rtm = Trace::rtm(1);
    let synthetic = Trace::synthetic(8, rtm.snapshots().len(), 1);
    let mut table = Vec::new();
    for (name, trace, step) in [("RTM", &rtm, 31), ("synthetic", &synthetic, 77)] {
        for free in [80, 128, 160] {
            let times = case(&record, trace, free * MB, step);
            rows(name, free, &times, &mut table);
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../bench/results/simulated-2026-11/gpu-staging.md");
    let page = std::fs::read_to_string(page).expect("the page of results");
    let table = table.join("\n") + "\n";
    assert!(
        page.contains(&table),
        "bench/results/simulated-2026-11/gpu-staging.md should have:\n{table}"
    );
}

/// Checks one case, and adds a row for each scheduler.
fn rows(name: &str, free: u64, times: &Times, table: &mut Vec<String>) {
    let exact = times.get("exact").expect("something blocks");
    for scheduling in Scheduling::ALL {
        let scheduler = scheduling.name();
        let pairs = &times[scheduler];
        let mut farthest = 0.0f64;
        for (predicted, measured) in pairs {
            let off = measured / predicted - 1.0;
            assert!(
                off.abs() < 0.15,
                "{name}, {free} MB, {scheduler}: {off:+.3} of {predicted}"
            );
            farthest = farthest.max(off.abs());
        }
        let over = |which: fn(&(f64, f64)) -> f64| {
            let over = pairs.iter().zip(exact);
            Spread::of(over.map(|(of, exact)| which(of) / which(exact))).mean
        };
        let (said, came) = (over(|pair| pair.0), over(|pair| pair.1));
        assert!(
            (came / said - 1.0).abs() < 0.15,
            "{name}, {free} MB: {said} and {came}"
        );
        assert!(came > 0.95, "nobody beats the exact one");
        let mean = |which: fn(&(f64, f64)) -> f64| {
            1e3 * SCALE as f64 * Spread::of(pairs.iter().map(which)).mean
        };
        table.push(format!(
            "| {name} | {free} MB | {} | {scheduler} | {:.2} ms | {:.2} ms | {:.0} % | {:.2} | {:.2} |",
            pairs.len(),
            mean(|pair| pair.0),
            mean(|pair| pair.1),
            100.0 * farthest,
            said,
            came
        ));
    }
}
