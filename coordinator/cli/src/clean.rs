//! `stillpoint clean`: removes data that killed jobs have left on a fast tier of this host.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use stillpoint_protocol::job_file::host_name;
use stillpoint_protocol::safe_text::line;

use super::leftovers::{CleanedPart, Verdict, clean};
use super::units::bytes;
use super::{CommandResult, Failure, print, print_json};

/// Remove data that no restart needs from a fast tier of this host
///
/// Keeps blocks of a staged epoch that is not durable yet, data whose checkpoint directory cannot be found, and data of running
/// jobs. `run` and `restart` do the same on their own fast tier before they start.
#[derive(Debug, Args)]
pub struct Clean {
    /// Directory of the fast tier, as in --tier fast=PATH
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Print the result as JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

impl Clean {
    pub fn execute(self) -> CommandResult {
        let shown = self.path.display();
        let found = clean(&self.path, None).map_err(|error| {
            let status = match error.kind() {
                std::io::ErrorKind::NotFound => Failure::MISSING,
                std::io::ErrorKind::PermissionDenied => Failure::NOT_ALLOWED,
                _ => Failure::FAILED,
            };
            Failure::new(
                status,
                format!(
                    "{shown} on {}: cannot read this directory: {error}",
                    host_name()
                ),
            )
        })?;
        if self.json {
            let found: Vec<_> = found.iter().map(as_json).collect();
            return print_json(&json!({ "host": host_name(), "jobs": found }));
        }
        found.iter().try_for_each(|found| print(&in_words(found)))
    }
}

fn as_json(found: &CleanedPart) -> serde_json::Value {
    let (kept, reason) = match &found.verdict {
        Verdict::Remove => (None, None),
        Verdict::KeepOnly(epoch) => (Some(*epoch), None),
        Verdict::Keep(reason) => (None, Some(reason)),
    };
    json!({
        "job": found.job,
        "directory": found.directory,
        "removed_bytes": found.removed,
        "kept_epoch": kept,
        "left_alone": reason,
    })
}

fn in_words(found: &CleanedPart) -> String {
    let whose = format!("job {} ({})", found.job, found.directory.display());
    let whose = line(&whose);
    let removed = bytes(found.removed);
    match &found.verdict {
        Verdict::Remove => format!("{whose}: {removed} removed\n"),
        Verdict::KeepOnly(epoch) => {
            format!("{whose}: {removed} removed; a restart needs epoch {epoch}\n")
        }
        Verdict::Keep(reason) => format!("{whose}: left alone: {}\n", line(reason)),
    }
}
