//! The figures as tables and JSON, and a check of the paper's claims.

use super::figures::{Figures, GPUS, Summary, summarise};
use super::{SCHEDULERS, SnapshotOutcome};
use crate::units::{show_bytes, show_seconds};
use serde::Serialize;
use std::fmt::Write;

/// The output of `--json`: stable names, no results of single snapshots.
#[derive(Serialize)]
struct Document<'a> {
    seed: u64,
    rtm: &'a crate::trace::Statistics,
    synthetic: &'a crate::trace::Statistics,
    cases: Vec<CaseDocument>,
    scales: Vec<ScaleDocument>,
}

#[derive(Serialize)]
struct CaseDocument {
    trace: &'static str,
    free: u64,
    schedulers: Vec<Summary>,
}

#[derive(Serialize)]
struct ScaleDocument {
    machine: &'static str,
    gpus: usize,
    schedulers: Vec<Summary>,
}

impl Figures {
    /// Returns averages, medians and extremes as JSON.
    pub fn to_json(&self) -> String {
        let case = |case: &super::Case| CaseDocument {
            trace: case.trace,
            free: case.free,
            schedulers: summarise(&case.outcomes),
        };
        let scale = |scale: &super::Scale| ScaleDocument {
            machine: scale.machine,
            gpus: scale.gpus,
            schedulers: summarise(&scale.outcomes),
        };
        let document = Document {
            seed: self.seed,
            rtm: &self.rtm,
            synthetic: &self.synthetic,
            cases: self.cases.iter().map(case).collect(),
            scales: self.scales.iter().map(scale).collect(),
        };
        serde_json::to_string_pretty(&document).expect("numbers and words")
    }

    /// Returns tables in Markdown.
    pub fn to_tables(&self) -> String {
        let mut text =
            String::from("Overhead over the optimal blocking time (Figures 6 and 7)\n\n");
        text += "| trace | free | scheduler | mean | median | 95th percentile | largest | largest over min-time | mean blocking time |\n";
        text += "|---|---|---|---|---|---|---|---|---|\n";
        for case in &self.cases {
            let place = format!("{} | {}", case.trace, show_bytes(case.free));
            for summary in summarise(&case.outcomes) {
                overhead_row(&mut text, &place, &summary);
            }
        }
        text += "\nTime to decide (Figures 8 and 9)\n\n";
        text += "| trace | free | scheduler | mean | median | 95th percentile | largest |\n|---|---|---|---|---|---|---|\n";
        for case in &self.cases {
            let place = format!("{} | {}", case.trace, show_bytes(case.free));
            for summary in summarise(&case.outcomes) {
                time_row(&mut text, &place, &summary);
            }
        }
        text += "\nMore GPUs, 160 MB free (Figure 10)\n\n";
        text += "| machine | GPUs | scheduler | mean overhead | median | 95th percentile | largest | largest over min-time | mean blocking time |\n";
        text += "|---|---|---|---|---|---|---|---|---|\n";
        for scale in &self.scales {
            for summary in summarise(&scale.outcomes) {
                overhead_row(
                    &mut text,
                    &format!("{} | {}", scale.machine, scale.gpus),
                    &summary,
                );
            }
        }
        text += "\n| machine | GPUs | scheduler | mean time to decide | median | 95th percentile | largest |\n";
        text += "|---|---|---|---|---|---|---|\n";
        for scale in &self.scales {
            for summary in summarise(&scale.outcomes) {
                time_row(
                    &mut text,
                    &format!("{} | {}", scale.machine, scale.gpus),
                    &summary,
                );
            }
        }
        text
    }

    /// Compares the paper's claims with the results here.
    pub fn to_claims(&self) -> String {
        let mut text = String::from(
            "| trace | free | scheduler | at most, over Algorithm 2 | the paper's | snapshots that peers help | of these within the paper's |\n",
        );
        text += "|---|---|---|---|---|---|---|\n";
        for case in &self.cases {
            for (scheduler, bound) in [(1, case.paper.greedy), (0, case.paper.baseline)] {
                let over = |outcome: &SnapshotOutcome| outcome.overhead_over_min_time(scheduler);
                let largest = case.outcomes.iter().filter_map(over).fold(0.0, f64::max);
                let helped = || case.outcomes.iter().filter(|outcome| outcome.peers_help());
                let within = helped().filter(|outcome| over(outcome).is_some_and(|o| o <= bound));
                writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {} | {} |",
                    case.trace,
                    show_bytes(case.free),
                    SCHEDULERS[scheduler],
                    percent(largest),
                    percent(bound),
                    helped().count(),
                    within.count()
                )
                .expect("a string");
            }
        }
        text.push('\n');
        for machine in ["pairwise links", "switch ports"] {
            for scheduler in [0, 1] {
                let points = self.scale_series(machine, scheduler, true).points;
                let (name, values) = (
                    SCHEDULERS[scheduler],
                    points.iter().map(|point| format!("{:.0} %", point.1)),
                );
                let values: Vec<String> = values.collect();
                writeln!(
                    text,
                    "{machine}, {GPUS:?} GPUs: {name} {}",
                    values.join(", ")
                )
                .expect("a string");
            }
        }
        text
    }
}

fn overhead_row(text: &mut String, place: &str, summary: &Summary) {
    let spread = summary.overhead;
    let cells = [
        spread.mean,
        spread.median,
        spread.percentile_95,
        spread.largest,
        summary.overhead_over_min_time.largest,
    ]
    .map(percent)
    .join(" | ");
    let blocking = show_seconds(summary.blocking.mean);
    writeln!(
        text,
        "| {place} | {} | {cells} | {blocking} |",
        summary.scheduler
    )
    .expect("a string");
}

fn time_row(text: &mut String, place: &str, summary: &Summary) {
    let spread = summary.run_time;
    let cells = [
        spread.mean,
        spread.median,
        spread.percentile_95,
        spread.largest,
    ]
    .map(show_seconds)
    .join(" | ");
    writeln!(text, "| {place} | {} | {cells} |", summary.scheduler).expect("a string");
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 0.005 {
        "0 %".to_owned()
    } else if percent < 10.0 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::FREE;
    use super::*;

    #[test]
    fn tables_json_and_drawings_agree_on_what_there_is() {
        let figures = Figures::run(1, &|| 0.0, &mut || {}).expect("host memory has room");
        let tables = figures.to_tables();
        assert_eq!(
            tables
                .lines()
                .filter(|line| line.contains("| exact |"))
                .count(),
            2 * (2 * FREE.len() + 2 * GPUS.len())
        );
        let json: serde_json::Value = serde_json::from_str(&figures.to_json()).expect("JSON");
        assert_eq!(json["cases"].as_array().map(Vec::len), Some(6));
        assert_eq!(json["cases"][0]["schedulers"][3]["scheduler"], "exact");
        assert_eq!(json["scales"][7]["gpus"], 128);
        let drawings = figures.to_drawings();
        assert_eq!(drawings.len(), 16);
        assert!(
            drawings
                .iter()
                .all(|(_, svg)| svg.starts_with("<svg") && svg.ends_with("</svg>\n"))
        );
        // The shape of Figures 6, 7 and 10.
        let mean = |at: usize, scheduler: usize| {
            summarise(&figures.cases[at].outcomes)[scheduler]
                .overhead
                .mean
        };
        for at in 0..6 {
            assert!(
                mean(at, 0) > mean(at, 1) && mean(at, 1) > mean(at, 3),
                "{at}"
            );
        }
        let claims = figures.to_claims();
        assert!(
            claims.contains("| RTM | 80 MB | baseline | 1152 % | 200 % | "),
            "{claims}"
        );
        // Behind ports the baseline reaches the machine's limit from the start: (144 + 12) / 12.
        for (machine, scheduler) in [
            ("pairwise links", 0),
            ("pairwise links", 1),
            ("switch ports", 1),
        ] {
            let points = figures.scale_series(machine, scheduler, true).points;
            assert!(
                points.is_sorted_by(|a, b| a.1 < b.1),
                "{machine}: {points:?}"
            );
        }
    }
}
