//! The planner's input from users: topologies, traces, samples, quantities; and records of copies.

use stillpoint_gpu_plan::Record;
use stillpoint_multilevel::interval::{fit, parse_samples};
use stillpoint_multilevel::topology::read_topology;
use stillpoint_multilevel::trace::Trace;
use stillpoint_multilevel::units::{
    parse_bandwidth, parse_bytes, parse_seconds, show_bandwidth, show_bytes, show_seconds,
};

/// The first byte selects the kind of the text.
pub fn plans(input: &[u8]) -> bool {
    let Some((kind, rest)) = input.split_first() else {
        return false;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return false;
    };
    match kind % 5 {
        0 => read_topology(text).is_ok(),
        1 => trace(text),
        2 => parse_samples(text).is_ok_and(|samples| {
            let _ = fit(&samples);
            true
        }),
        3 => quantity(text),
        _ => record(text),
    }
}

/// Measurements of a node's GPUs by epochs. Accepted ones can be fitted and written again.
fn record(text: &str) -> bool {
    let Ok(record) = Record::parse(text.as_bytes()) else {
        return false;
    };
    for gpu in &record.gpus {
        for way in gpu.copied.keys() {
            let (copies, _) = record.choose(&gpu.uuid, &gpu.driver, way, 1 << 30);
            assert!(copies.streams > 0 && copies.slot > 0);
        }
    }
    assert!(record.text().is_ok());
    true
}

fn trace(text: &str) -> bool {
    let Ok(trace) = Trace::parse(text) else {
        return false;
    };
    let statistics = trace.statistics();
    assert_eq!(statistics.snapshots, trace.snapshots().len());
    for (sizes, average) in trace.snapshots().iter().zip(trace.averages()) {
        let most = sizes.iter().copied().max().unwrap_or(0) as f64;
        assert!(average <= most * 1.001, "{average} of {sizes:?}");
    }
    assert_eq!(Trace::parse(&trace.to_text()), Ok(trace));
    true
}

fn quantity(text: &str) -> bool {
    let shown = [
        parse_bytes(text).map(show_bytes),
        parse_bandwidth(text).map(show_bandwidth),
        parse_seconds(text).map(show_seconds),
    ];
    shown.iter().any(Result::is_ok)
}
