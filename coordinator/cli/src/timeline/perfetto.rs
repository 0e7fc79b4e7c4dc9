//! Chrome's trace format ("Trace Event Format"), which ui.perfetto.dev and chrome://tracing show: complete events with a begin and a length in microseconds.

use serde_json::{Value, json};
use stillpoint_ids::Rank;

use super::recorded::RecordedEpoch;

/// The trace of some epochs. Each rank has a track with its work in each phase and its waits for others; the first track is the coordinator's.
pub fn trace(epochs: &[RecordedEpoch]) -> String {
    let start = epochs.iter().map(begin).fold(f64::INFINITY, f64::min);
    let mut events = vec![json!({
        "ph": "M", "pid": 1, "name": "process_name", "args": {"name": "stillpoint"},
    })];
    events.push(name(0, "coordinator"));
    if let Some(epoch) = epochs.iter().max_by_key(|epoch| epoch.hosts.len()) {
        let ranks = Rank::of_each(&epoch.hosts);
        let named = |(rank, host)| name(track(rank), &format!("rank {rank} on {host}"));
        events.extend(ranks.map(named));
    }
    for epoch in epochs {
        let began = begin(epoch) - start;
        let slice = |track: usize, name: &str, from: f64, to: f64, args: Value| {
            json!({
                "ph": "X", "pid": 1, "tid": track, "cat": "checkpoint", "name": name, "args": args,
                "ts": ((began + from) * 1e6).round(), "dur": ((to - from).max(0.0) * 1e6).round(),
            })
        };
        let what = format!("epoch {}", epoch.epoch);
        let about =
            json!({"suspend": epoch.suspend, "stop": epoch.stop.as_ref().map(|stop| stop.seconds)});
        events.push(slice(0, &what, 0.0, epoch.seconds, about));
        for phase in &epoch.phases {
            events.push(slice(0, &phase.name, phase.began, phase.ended, json!({})));
            let last = super::waited_for(epoch, phase).map(|(rank, _)| rank);
            for (rank, at) in Rank::of_each(&phase.ranks) {
                let Some(at) = *at else { continue };
                let written = epoch.written.get(rank.index()).and_then(Option::as_ref);
                let args = match written.filter(|_| phase.name == "write") {
                    Some(written) => json!({
                        "stored_bytes": written.stored_bytes,
                        "memory_bytes": written.bytes,
                        "bytes_per_second": (written.stored_bytes as f64 / written.seconds.max(1e-9)).round(),
                    }),
                    None => json!({}),
                };
                events.push(slice(track(rank), &phase.name, phase.began, at, args));
                if let Some(last) = last.filter(|last| *last != rank) {
                    let wait = format!("waits for rank {last}");
                    events.push(slice(
                        track(rank),
                        &wait,
                        at,
                        phase.ended,
                        json!({"phase": phase.name}),
                    ));
                }
            }
        }
        if let Some(flush) = epoch.flush {
            events.push(slice(
                0,
                "flush",
                epoch.seconds,
                epoch.seconds + flush,
                json!({}),
            ));
        }
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events}).to_string() + "\n"
}

/// When the attempt began, in seconds since 1970.
fn begin(epoch: &RecordedEpoch) -> f64 {
    epoch.at - epoch.seconds
}

/// The track of a rank.
fn track(rank: Rank) -> usize {
    1 + rank.index()
}

fn name(track: usize, name: &str) -> Value {
    json!({"ph": "M", "pid": 1, "tid": track, "name": "thread_name", "args": {"name": name}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::recorded::tests::epoch;

    #[test]
    fn ranks_have_tracks_with_work_and_waits() {
        let text = trace(&[epoch(), epoch()]);
        let shown: Value = serde_json::from_str(&text).unwrap();
        let events = shown["traceEvents"].as_array().unwrap();
        let wait = events
            .iter()
            .find(|event| event["args"]["phase"] == "write")
            .unwrap();
        assert_eq!(wait["name"], "waits for rank 1");
        assert_eq!(
            (wait["tid"].clone(), wait["ts"].clone(), wait["dur"].clone()),
            (json!(1), json!(400_000.0), json!(1_500_000.0))
        );
        let write = |event: &&Value| event["name"] == "write" && event["tid"] == 2;
        let write = events.iter().find(write).unwrap();
        assert_eq!(write["args"]["stored_bytes"], 1_000_000);
        for event in events {
            assert!(
                event["ph"] == "M" || event["dur"].as_f64().unwrap() >= 0.0,
                "{event}"
            );
        }
    }
}
