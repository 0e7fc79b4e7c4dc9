//! A staging plan in words and as JSON, beside the results of the other schedulers.

use crate::compare::{self, Budget, Comparisons};
use crate::exact::Exact;
use crate::plan::DescribedTransfer;
use crate::problem::{Problem, ScheduleError};
use crate::units::{show_bytes, show_seconds};
use serde::Serialize;
use std::fmt::{self, Write};

/// The plan for one checkpoint on one machine. Field names are those of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    pub topology: String,
    /// Seconds until the application goes on.
    pub blocking_seconds: f64,
    /// The lower bound of the seconds for every plan, even with fractions of bytes.
    pub optimum_seconds: f64,
    pub peer_bytes: u64,
    pub slow_tier_bytes: u64,
    pub transfers: Vec<DescribedTransfer>,
    pub bottleneck: Option<Bottleneck>,
    /// Blocking times of the other schedulers that find a plan.
    pub others: Vec<OtherResult>,
    /// The other schedulers that would have taken too long.
    pub left_out: Vec<LeftOut>,
    /// Each process's share of the checkpoint.
    pub processes: Vec<Share>,
}

/// The reason why no plan is faster.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bottleneck {
    pub senders: Vec<String>,
    /// Places that are full in every plan this fast.
    pub full: Vec<String>,
    /// Links, switches and tiers that the rest has to cross.
    pub shared: Vec<String>,
    pub bytes: u64,
    pub bandwidth: u64,
    pub explanation: String,
}

/// Another scheduler's result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OtherResult {
    pub scheduler: &'static str,
    pub blocking_seconds: f64,
}

/// A scheduler that took too long.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LeftOut {
    pub scheduler: &'static str,
    pub reason: String,
}

/// The remainder or the spare capacity of a process.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Share {
    pub name: String,
    pub remainder: u64,
    pub spare: u64,
}

impl Report {
    /// Plans with chunks of `chunk` bytes, without comparisons.
    pub fn of(problem: &Problem<'_>, chunk: u64) -> Result<Report, ScheduleError> {
        let topology = problem.topology();
        let optimum = Exact { chunk }.solve(problem)?;
        let bottleneck = optimum.bottleneck.as_ref().map(|found| Bottleneck {
            senders: found
                .senders
                .iter()
                .map(|&at| topology.processes()[at].name.clone())
                .collect(),
            full: found
                .full
                .iter()
                .map(|&place| topology.end_name(place).to_owned())
                .collect(),
            shared: found
                .shared
                .iter()
                .map(|shared| shared.name(problem))
                .collect(),
            bytes: found.remainder - found.room,
            bandwidth: found.bandwidth,
            explanation: found.explain(problem),
        });
        let shares = topology
            .processes()
            .iter()
            .enumerate()
            .map(|(at, process)| Share {
                name: process.name.clone(),
                remainder: problem.remainder()[at],
                spare: problem.spare()[at],
            });
        let peer_bytes = optimum.plan.peer_traffic();
        Ok(Report {
            topology: topology.name().to_owned(),
            blocking_seconds: optimum.plan.blocking_time().as_secs_f64(),
            optimum_seconds: optimum.time.as_secs_f64(),
            peer_bytes,
            slow_tier_bytes: problem.total_remainder() - peer_bytes,
            transfers: optimum.plan.describe(problem),
            bottleneck,
            others: Vec::new(),
            left_out: Vec::new(),
            processes: shares.collect(),
        })
    }

    /// Adds the other schedulers' results for the same problem. Algorithm 2 uses at least the paper's chunk.
    pub fn compare(&mut self, problem: &Problem<'_>, chunk: u64, comparisons: Comparisons) {
        let Some(mut budget) = Budget::of(comparisons) else {
            return;
        };
        // Algorithm 2 takes one round for each chunk, and some thousands of them tell as much as millions.
        let chunk = chunk.max(1_000_000).max(problem.total_remainder() / 4096);
        for other in [
            compare::OtherScheduler::Baseline,
            compare::OtherScheduler::Greedy,
            compare::OtherScheduler::MinTime { chunk },
        ] {
            let scheduler = other.name();
            match other.schedule(problem, &mut budget) {
                Ok(Some(plan)) => self.others.push(OtherResult {
                    scheduler,
                    blocking_seconds: plan.blocking_time().as_secs_f64(),
                }),
                Ok(None) => self.left_out.push(LeftOut {
                    scheduler,
                    reason: format!("would take more than {} steps", compare::STEPS),
                }),
                // One scheduler may fail where another finds a plan.
                Err(_) => {}
            }
        }
    }

    /// Describes the comparisons in words.
    pub fn comparisons(&self) -> String {
        let mut text = String::new();
        for other in &self.others {
            let time = show_seconds(other.blocking_seconds);
            let times = other.blocking_seconds / self.optimum_seconds;
            let factor = if times.is_finite() {
                format!(" ({times:.2} times the optimum)")
            } else {
                String::new()
            };
            text += &format!("{:<10} {time}{factor}\n", other.scheduler);
        }
        for LeftOut { scheduler, reason } in &self.left_out {
            text += &format!("{scheduler:<10} left out: {reason}\n");
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "staging on {}: blocking time {}",
            self.topology,
            show_seconds(self.blocking_seconds)
        )?;
        if self.transfers.is_empty() {
            writeln!(
                f,
                "  every checkpoint fits on its own fast tier; nothing has to be sent"
            )?;
        }
        let width = |of: fn(&DescribedTransfer) -> &str| {
            self.transfers
                .iter()
                .map(|t| of(t).len())
                .max()
                .unwrap_or(0)
        };
        let (from, to) = (
            width(|transfer| &transfer.from),
            width(|transfer| &transfer.to),
        );
        for transfer in &self.transfers {
            let mut line = format!(
                "  {:<from$} -> {:<to$}  {:>8}",
                transfer.from,
                transfer.to,
                show_bytes(transfer.bytes)
            );
            if !transfer.via.is_empty() {
                write!(line, "  via {}", transfer.via.join(", "))?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        if !self.transfers.is_empty() {
            let (peers, slow) = (
                show_bytes(self.peer_bytes),
                show_bytes(self.slow_tier_bytes),
            );
            writeln!(f, "to peers {peers}, to slow tiers {slow}")?;
        }
        match &self.bottleneck {
            Some(bottleneck) => writeln!(f, "bottleneck: {}", bottleneck.explanation)?,
            None if self.blocking_seconds > 0.0 => writeln!(
                f,
                "bottleneck: the largest write to a process's own fast tier"
            )?,
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    const MB: u64 = 1_000_000;

    #[test]
    fn the_papers_example_reads_as_a_plan() {
        let dgx1 = Topology::dgx1();
        let (mut remainder, mut spare) = (vec![0; 8], vec![0; 8]);
        (remainder[0], remainder[6]) = (480 * MB, 240 * MB);
        (spare[4], spare[1]) = (480 * MB, 137 * MB);
        let problem = Problem::from_remainders(&dgx1, remainder, spare).expect("example");
        let mut report = Report::of(&problem, MB).expect("plan");
        report.compare(&problem, MB, Comparisons::Limited);
        let text = report.to_string() + &report.comparisons();
        assert!(
            text.starts_with("staging on dgx1: blocking time 6.67 ms\n"),
            "{text}"
        );
        for line in [
            "  G6 -> G4      160 MB\n",
            "  G6 -> host     80 MB\n",
            "  G0 -> host     80 MB\n",
            "bottleneck: G6 has 240 MB to send, and the only ways for it are link G6 -> G4 and link G6 -> host",
            "baseline   40 ms (6.00 times the optimum)\n",
            "greedy     20 ms (3.00 times the optimum)\n",
            "min-time   6.67 ms (1.00 times the optimum)\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(json["bottleneck"]["shared"][0], "link G6 -> G4");
        assert_eq!(
            json["transfers"].as_array().map(Vec::len),
            Some(report.transfers.len())
        );
        assert_eq!(json["processes"][4]["spare"], 480 * MB);
    }

    #[test]
    fn what_is_not_compared_is_said() {
        let machine = Topology::all_to_all(512).with_free(80 * MB);
        let sizes: Vec<u64> = (0..512).map(|gpu| (gpu % 16) * 10 * MB).collect();
        let problem = Problem::new(&machine, &sizes).expect("sizes");
        let mut report = Report::of(&problem, 1).expect("plan");
        report.compare(&problem, 1, Comparisons::None);
        assert_eq!(report.comparisons(), "");
        report.compare(&problem, 1, Comparisons::Limited);
        let text = report.comparisons();
        assert!(
            text.contains("\nmin-time   left out: would take more than 10000000 steps\n"),
            "{text}"
        );
        assert_eq!((report.others.len(), report.left_out.len()), (2, 1));
    }

    #[test]
    fn nothing_to_send_is_said_in_words() {
        let dgx1 = Topology::dgx1();
        let problem = Problem::new(&dgx1, &[MB; 8]).expect("sizes");
        let text = Report::of(&problem, 1).expect("plan").to_string();
        assert!(
            text.contains("nothing has to be sent") && text.contains("blocking time 0 s"),
            "{text}"
        );
    }
}
