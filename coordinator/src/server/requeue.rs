//! Asks a batch system to start the job again.

use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::timeout;

/// The time that the batch system may take for one answer. Ranks that stand still wait for it.
const PATIENCE: Duration = Duration::from_secs(15);

/// A job of Slurm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchJob {
    /// The id in the form of `scontrol`: `17`, or `17_3` for one of an array.
    pub id: String,
}

impl BatchJob {
    /// Requeues the job. Returns a description, or the reason why it failed.
    pub async fn requeue(&self) -> Result<String, String> {
        let id = &self.id;
        // `scancel` sends SIGTERM, which the ranks may have taken for a request to suspend. But the user wanted the job to end.
        if self.is_cancelled().await {
            return Err(format!("a user cancelled job {id}"));
        }
        scontrol(&["requeue", id]).await?;
        Ok(format!("scontrol requeue {id}"))
    }

    /// Whether a user has cancelled it. Without an answer of Slurm, it counts as not cancelled.
    async fn is_cancelled(&self) -> bool {
        let shown = scontrol(&["--oneliner", "show", "job", &self.id]).await;
        cancelled(&shown.unwrap_or_default())
    }
}

/// Whether the output of `scontrol show job` is that of a cancelled job. A cancelled job is about to end, but not because of its time limit or of another
/// job. Slurm calls it `COMPLETING` until its last process has gone, whatever the reason.
fn cancelled(shown: &str) -> bool {
    let field = |name: &str| {
        let mut words = shown.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    matches!(field("JobState"), Some("CANCELLED" | "COMPLETING"))
        && field("Reason") == Some("None")
        && field("PreemptTime").is_none_or(|time| time == "None")
}

/// Runs `scontrol`, and returns its output or the reason why it failed.
async fn scontrol(words: &[&str]) -> Result<String, String> {
    let shown = || format!("scontrol {}", words.join(" "));
    let output = Command::new("scontrol")
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match timeout(PATIENCE, output).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(format!("{}: {error}", shown())),
        Err(_) => {
            let seconds = PATIENCE.as_secs();
            return Err(format!("{}: no answer within {seconds} s", shown()));
        }
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().collect();
    Err(format!("{}: {}", shown(), said.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of Slurm 22.05, shortened.
    fn shown(state: &str, reason: &str, preempted: &str) -> String {
        format!(
            "JobId=6 JobName=t.sh JobState={state} Reason={reason} Dependency=(null) Requeue=1 RunTime=00:00:04 TimeLimit=00:08:00 \
             PreemptEligibleTime=2026-11-22T22:15:28 PreemptTime={preempted} SuspendTime=None"
        )
    }

    #[test]
    fn who_cancels_a_job_does_not_want_it_back() {
        assert!(cancelled(&shown("COMPLETING", "None", "None")));
        assert!(cancelled(&shown("CANCELLED", "None", "None")));
    }

    #[test]
    fn time_limits_preemption_and_warnings_are_no_wish_to_end() {
        assert!(!cancelled(&shown("RUNNING", "None", "None")));
        assert!(!cancelled(&shown("COMPLETING", "TimeLimit", "None")));
        assert!(!cancelled(&shown(
            "COMPLETING",
            "None",
            "2026-11-22T22:16:00"
        )));
        assert!(!cancelled(""));
    }
}
