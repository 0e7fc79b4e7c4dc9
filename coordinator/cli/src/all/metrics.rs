//! `status --all --metrics`: the numbers of all jobs, in the text format of Prometheus, which node_exporter's textfile collector reads.
//!
//! The numbers are those of the running launches, so counters begin again with each restart.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;
use stillpoint_protocol::safe_text;

use super::messages::{Action, End};
use super::supervise::JobResults;
use super::{Asking, Everybody};
use crate::{CommandResult, Failure, print};
use stillpoint_coordinator::names::name_of;

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;
type Counters = Family<Labels, Counter<f64, AtomicU64>>;

impl Everybody {
    /// Looks at all jobs and prints their metrics.
    pub fn measure(&self, timeout: Option<Duration>) -> CommandResult {
        let asking = Asking {
            timeout,
            ..Asking::default()
        };
        let heard = self.hear(Action::Status, &asking)?;
        let text = text(&heard);
        let failed = |error| Failure::failed(format!("cannot write metrics: {error}"));
        print(&text.map_err(failed)?)
    }
}

/// Escapes a label's value. The encoder does not do so, and users choose the names of their jobs.
fn escaped(text: &str) -> String {
    safe_text::line(text)
        .replace('\\', r"\\")
        .replace('"', "\\\"")
}

fn text(heard: &JobResults) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("stillpoint");
    let gauges = |registry: &mut Registry, name: &str, help: &str| {
        let family = Gauges::default();
        registry.register(name, help, family.clone());
        family
    };
    let jobs = gauges(
        &mut registry,
        "jobs",
        "Jobs on this host, by user and state",
    );
    let info = gauges(
        &mut registry,
        "job_info",
        "1 for each job and its state, on each of its hosts",
    );
    let ranks = gauges(&mut registry, "job_ranks", "Ranks of a job");
    let epoch = gauges(
        &mut registry,
        "job_epoch",
        "The newest committed epoch, 0 if there is none",
    );
    let reachable = gauges(
        &mut registry,
        "job_reachable",
        "Whether the job's coordinator answers",
    );
    let counters = |registry: &mut Registry, name: &str, help: &str| {
        let family = Counters::default();
        registry.register(name, help, family.clone());
        family
    };
    let seconds = |registry: &mut Registry, name: &str, help: &str| {
        let family = Counters::default();
        registry.register_with_unit(name, help, Unit::Seconds, family.clone());
        family
    };
    let committed = counters(&mut registry, "epochs", "Epochs committed by this launch");
    let given_up = counters(
        &mut registry,
        "refusals",
        "Checkpoints of this launch that were refused or given up, by reason",
    );
    let phases = seconds(
        &mut registry,
        "checkpoint_phase",
        "Time in each phase of committed epochs",
    );
    let stopped = seconds(
        &mut registry,
        "stopped",
        "Time that the application stood still for committed epochs",
    );
    let stored = Counters::default();
    registry.register_with_unit(
        "stored",
        "Written for committed epochs",
        Unit::Bytes,
        stored.clone(),
    );
    let mut states: BTreeMap<(String, String), u32> = BTreeMap::new();
    for (user, job, end) in heard {
        let user = escaped(&name_of(*user));
        let End::Shown(shown) = end else {
            *states.entry((user, "unreadable".into())).or_default() += 1;
            continue;
        };
        let word = |value: &Value| escaped(value.as_str().unwrap_or_default());
        *states
            .entry((user.clone(), word(&shown["state"])))
            .or_default() += 1;
        let labels: Labels = vec![
            ("user", user),
            ("name", escaped(&job.name)),
            // `job` is Prometheus's own label.
            ("job_id", word(&shown["job"])),
            ("directory", escaped(&job.directory)),
        ];
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        let mut with_state = labels.clone();
        with_state.push(("state", word(&shown["state"])));
        info.get_or_create(&with_state).set(1.0);
        ranks.get_or_create(&labels).set(number(&shown["ranks"]));
        epoch.get_or_create(&labels).set(number(&shown["epoch"]));
        let answers = shown["coordinator"]["reachable"] == true;
        reachable.get_or_create(&labels).set(f64::from(answers));
        let live = &shown["live"];
        if live.is_null() {
            continue;
        }
        let count = |family: &Counters, labels: &Labels, value: &Value| {
            family.get_or_create(labels).inc_by(number(value).max(0.0));
        };
        count(&committed, &labels, &live["committed"]);
        let tally = &live["tally"];
        count(&stored, &labels, &tally["stored_bytes"]);
        count(&stopped, &labels, &tally["stopped_seconds"]);
        for (family, name, values) in [
            (&phases, "phase", &tally["phase_seconds"]),
            (&given_up, "reason", &tally["refusals"]),
        ] {
            for (key, value) in values.as_object().into_iter().flatten() {
                let mut labels = labels.clone();
                labels.push((name, escaped(key)));
                count(family, &labels, value);
            }
        }
    }
    for ((user, state), count) in states {
        let labels = vec![("user", user), ("state", state)];
        jobs.get_or_create(&labels).set(count.into());
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(as_prometheus_reads_it(&text))
}

/// Turns OpenMetrics into the text format of Prometheus. There the lines about a counter have its whole name, with `_total`; otherwise its help is lost.
fn as_prometheus_reads_it(text: &str) -> String {
    let is_counter = |name: &str| {
        let line = format!("# TYPE {name} counter");
        text.lines().any(|other| other == line)
    };
    let mut told = String::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (mark, what, name) = (words.next(), words.next(), words.next());
        match (mark, what, name) {
            (Some("#"), Some("EOF" | "UNIT"), _) => {}
            (Some("#"), Some(what), Some(name)) if is_counter(name) => {
                let rest = words.next().unwrap_or_default();
                told.push_str(&format!("# {what} {name}_total {rest}\n"));
            }
            _ => told.push_str(&format!("{line}\n")),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all::messages::Job;
    use serde_json::json;

    #[test]
    fn jobs_epochs_phases_bytes_and_refusals_are_there_and_nothing_breaks_a_line() {
        let job = |name: &str| Job {
            key: name.into(),
            name: name.into(),
            directory: "/d".into(),
        };
        let shown = json!({
            "state": "running", "job": "j", "ranks": 4, "epoch": 3, "coordinator": {"reachable": true},
            "live": {"committed": 2, "tally": {
                "stored_bytes": 1000, "stopped_seconds": 0.5,
                "phase_seconds": {"write": 1.5}, "refusals": {"a socket is open": 2},
            }},
        });
        let stays = End::Stays {
            why: "broken".into(),
            codes: vec![],
            status: 1,
            left: None,
        };
        let heard = vec![
            (u32::MAX - 7, job("a\"b\nc\\"), End::Shown(Box::new(shown))),
            (u32::MAX - 7, job("x"), stays),
        ];
        let text = text(&heard).unwrap();
        for line in [
            "stillpoint_jobs{user=\"user 4294967288\",state=\"running\"} 1",
            "stillpoint_jobs{user=\"user 4294967288\",state=\"unreadable\"} 1",
            "job_id=\"j\",directory=\"/d\"} 3",
            "job_id=\"j\",directory=\"/d\",state=\"running\"} 1",
            "stillpoint_epochs_total{",
            "stillpoint_stored_bytes_total{",
            "stillpoint_stopped_seconds_total{",
            "phase=\"write\"} 1.5",
            "reason=\"a socket is open\"} 2",
        ] {
            assert!(text.contains(line), "no {line}:\n{text}");
        }
        assert!(text.contains("name=\"a\\\"b\\\\u{a}c\\\\\""), "{text}");
        // Each sample belongs to a family of the same name, with its help and its type.
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            for about in ["HELP", "TYPE"] {
                let head = format!("# {about} {name} ");
                assert!(
                    text.lines().any(|line| line.starts_with(&head)),
                    "{head}: {text}"
                );
            }
        }
        for name in [
            "epochs_total",
            "refusals_total",
            "stored_bytes_total",
            "stopped_seconds_total",
            "checkpoint_phase_seconds_total",
        ] {
            assert!(
                text.contains(&format!("# TYPE stillpoint_{name} counter\n")),
                "{text}"
            );
        }
        assert!(
            !text.contains("# UNIT") && !text.contains("# EOF"),
            "{text}"
        );
        for line in text.lines() {
            assert!(
                line.starts_with('#') || line.starts_with("stillpoint_"),
                "{line}"
            );
        }
    }
}
