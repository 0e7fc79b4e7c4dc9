//! Reports on all jobs, for people and for scripts.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};

use super::messages::{Action, End, Job};
use super::resume_command::ResumeCommand;
use super::supervise::JobResults;
use crate::units::bytes;
use crate::{CommandResult, Failure, print, print_json};
use stillpoint_coordinator::names::name_of;
use stillpoint_protocol::safe_text::line;

fn named(user: u32, job: &Job) -> String {
    let place = match job.directory.is_empty() {
        true => String::new(),
        false => format!(", {}", job.directory),
    };
    let named = format!("{} ({}{place})", job.name, name_of(user));
    line(&named).into_owned()
}

fn no_job_of_slurm(again: &ResumeCommand) -> String {
    format!(
        "it is not a Slurm job, so start it yourself: {}",
        again.command()
    )
}

/// The result of a job, in one line.
fn what_came(user: u32, job: &Job, end: &End) -> String {
    let what = match end {
        End::Epoch {
            epoch,
            bytes: stored,
            seconds,
            suspended,
        } => {
            let done = if *suspended { "suspended" } else { "committed" };
            format!(
                "{done}, epoch {epoch}, {} in {seconds:.1} s",
                bytes(*stored)
            )
        }
        End::Stays { why, left, .. } => {
            let left = left
                .as_ref()
                .map_or(String::new(), |left| format!("; {left}"));
            format!("stays: {why}{left}")
        }
        End::Signalled { ranks: 1 } => "ended: its rank got SIGUSR1".to_owned(),
        End::Signalled { ranks } => format!("ended: its {ranks} ranks got SIGUSR1"),
        End::Carries { again, done } => match done {
            true => format!("resumed: {}", again.command()),
            false => again.command(),
        },
        End::ByHand(again) => format!("stays: {}", no_job_of_slurm(again)),
        End::Shown(_) => String::new(),
    };
    format!("{}: {}", named(user, job), line(&what))
}

/// Prints one line for each job as it ends. On a terminal, the current state stands below them.
pub struct Progress {
    quiet: bool,
    terminal: bool,
    found: usize,
    ended: usize,
}

impl Progress {
    pub fn new(quiet: bool) -> Progress {
        Progress {
            quiet,
            terminal: std::io::stderr().is_terminal(),
            found: 0,
            ended: 0,
        }
    }

    pub fn found(&mut self) {
        self.found += 1;
    }

    /// Takes back a job that was none.
    pub fn lost(&mut self) {
        self.found -= 1;
    }

    pub fn phase(&self, job: &Job, text: &str) {
        if self.terminal && !self.quiet {
            let (ended, found) = (self.ended, self.found);
            let text = format!("{ended} of {found} jobs; {}: {text}", job.name);
            self.show(&format!("\r\x1b[K{}", line(&text)));
        }
    }

    pub fn ended(&mut self, user: u32, job: &Job, end: &End) {
        self.ended += 1;
        if !self.quiet {
            self.end();
            // A reader that has gone misses the line.
            let _ = print(&(what_came(user, job, end) + "\n"));
        }
    }

    pub fn end(&self) {
        if self.terminal && !self.quiet {
            self.show("\r\x1b[K");
        }
    }

    fn show(&self, text: &str) {
        // Progress that cannot be shown is no reason to stop.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Prints the final report: JSON, a table of the running jobs, or nothing. Returns a failure if a job stays.
pub fn all(deed: Action, heard: &JobResults, as_json: bool) -> CommandResult {
    if as_json {
        let jobs: Vec<Value> = heard.iter().map(in_json).collect();
        let stay = heard.iter().filter(|(_, _, end)| !end.is_good()).count();
        let done = heard.len() - stay;
        print_json(&json!({ "jobs": jobs, "done": done, "stay": stay }))?;
    } else if deed == Action::Status {
        table(heard)?;
    } else if heard.is_empty() {
        let what = match deed {
            Action::Resume { .. } => "no job is suspended here\n",
            _ => "no job is running here\n",
        };
        print(what)?;
    }
    let stay: Vec<String> = heard
        .iter()
        .filter(|(_, _, end)| !end.is_good())
        .map(|(user, job, _)| named(*user, job))
        .collect();
    // The table has shown the jobs that could not be looked at.
    match stay.is_empty() || deed == Action::Status {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "{} of {} jobs stay: {}",
            stay.len(),
            heard.len(),
            stay.join(", ")
        ))),
    }
}

fn in_json((user, job, end): &(u32, Job, End)) -> Value {
    let mut about = match end {
        End::Shown(shown) => (**shown).clone(),
        _ => json!({ "name": job.name, "directory": job.directory }),
    };
    let outcome = match end {
        End::Shown(_) => json!({}),
        End::Epoch {
            epoch,
            bytes,
            seconds,
            suspended,
        } => json!({
            "outcome": if *suspended { "suspended" } else { "committed" },
            "epoch": epoch, "bytes": bytes, "seconds": seconds,
        }),
        End::Stays {
            why,
            codes,
            status,
            left,
        } => json!({
            "outcome": "stays", "why": why, "codes": codes, "status": status, "left": left,
        }),
        End::Signalled { ranks } => json!({ "outcome": "signalled", "ranks": ranks }),
        End::Carries { again, done } => json!({
            "outcome": if *done { "resumed" } else { "waits" }, "command": again.command(),
        }),
        End::ByHand(again) => json!({
            "outcome": "stays", "why": no_job_of_slurm(again), "codes": [], "status": Failure::FAILED, "left": null,
        }),
    };
    let who = json!({ "uid": user, "user": name_of(*user) });
    if let Value::Object(about) = &mut about {
        for more in [who, outcome] {
            if let Value::Object(more) = more {
                about.extend(more);
            }
        }
    }
    about
}

fn table(heard: &JobResults) -> CommandResult {
    if heard.is_empty() {
        return print("no job is running here\n");
    }
    let mut text = format!(
        "{:<12} {:<20} {:<10} {:>6} {:>6}  DIRECTORY\n",
        "USER", "NAME", "STATE", "RANKS", "EPOCH"
    );
    for (user, job, end) in heard {
        let shown = |field: &str| match end {
            End::Shown(shown) => match &shown[field] {
                Value::String(text) => line(text).into_owned(),
                Value::Number(number) => number.to_string(),
                _ => "-".to_owned(),
            },
            _ => "-".to_owned(),
        };
        let (user, name) = (name_of(*user), line(&job.name));
        let (state, ranks, epoch) = (shown("state"), shown("ranks"), shown("epoch"));
        let place = match end {
            End::Stays { why, .. } => line(why),
            _ => line(&job.directory),
        };
        text.push_str(&format!(
            "{user:<12} {name:<20} {state:<10} {ranks:>6} {epoch:>6}  {place}\n"
        ));
    }
    print(&text)
}
