//! Having a batch system start the job again.

use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::timeout;

/// How long the batch system may take for one answer. Ranks that stand still wait for it.
const PATIENCE: Duration = Duration::from_secs(15);

/// A job of Slurm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchJob {
    /// As `scontrol` takes it: `17`, or `17_3` for one of an array.
    pub id: String,
}

impl BatchJob {
    /// Puts the job into the queue again; says what was done, or why nothing was.
    pub async fn requeue(&self) -> Result<String, String> {
        let id = &self.id;
        // `scancel` sends SIGTERM, and the ranks may have taken that for a wish to be suspended. The user's wish was an end.
        if self.is_cancelled().await {
            return Err(format!("job {id} was cancelled"));
        }
        scontrol(&["requeue", id]).await?;
        Ok(format!("scontrol requeue {id}"))
    }

    /// Whether somebody has cancelled it. If Slurm does not say, nobody has.
    async fn is_cancelled(&self) -> bool {
        let shown = scontrol(&["--oneliner", "show", "job", &self.id]).await;
        cancelled(&shown.unwrap_or_default())
    }
}

/// What `scontrol show job` says of a job that was cancelled: it is about to end, and neither for its time nor for another job. Until
/// its last process has gone Slurm calls that `COMPLETING`, whatever the reason.
fn cancelled(shown: &str) -> bool {
    let field = |name: &str| {
        let mut words = shown.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    matches!(field("JobState"), Some("CANCELLED" | "COMPLETING"))
        && field("Reason") == Some("None")
        && field("PreemptTime").is_none_or(|time| time == "None")
}

/// What `scontrol` prints, or why it failed.
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

    /// As Slurm 22.05 prints it, shortened.
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
