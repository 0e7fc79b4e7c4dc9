//! Asks a batch system to start the job again.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

/// The time that the batch system may take for one answer. Ranks that stand still wait for it.
const PATIENCE: Duration = Duration::from_secs(15);
/// The pauses between two requests to one that cannot be reached.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The time after which no more requests are begun. A batch job usually reaches its limit before.
const LONGEST: Duration = Duration::from_secs(600);

/// A job of Slurm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchJob {
    /// The id in the form of `scontrol`: `17`, or `17_3` for one of an array.
    pub id: String,
}

impl BatchJob {
    /// Requeues the job. Returns a description, or the reason why it failed. While the batch system cannot be reached, it is asked again, and `waits` hears
    /// why: its controller may just be starting anew, and an answer that never comes would leave the job out of its queue.
    pub async fn requeue(&self, mut waits: impl FnMut(String)) -> Result<String, String> {
        let since = Instant::now();
        let (mut sent, mut pause, mut told) = (false, FIRST_PAUSE, None);
        loop {
            let why = match self.ask(&mut sent).await {
                Ok(done) => return Ok(done),
                Err(Unanswered::No(why)) => return Err(why),
                Err(Unanswered::NotYet(why)) => why,
            };
            if since.elapsed() >= LONGEST {
                let minutes = LONGEST.as_secs() / 60;
                return Err(format!("no answer for {minutes} minutes: {why}"));
            }
            if told.as_ref() != Some(&why) {
                waits(why.clone());
                told = Some(why);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks once. `sent`: whether a request has been sent whose fate is unknown.
    async fn ask(&self, sent: &mut bool) -> Result<String, Unanswered> {
        let id = &self.id;
        let done = || Ok(format!("scontrol requeue {id}"));
        match scontrol(&["--oneliner", "show", "job", id]).await {
            // `scancel` sends SIGTERM, which the ranks may have taken for a request to suspend. But the user wanted the job to end.
            Ok(shown) if cancelled(&shown) => {
                return Err(Unanswered::No(format!("a user cancelled job {id}")));
            }
            Ok(shown) if *sent && field(&shown, "JobState") == Some("PENDING") => return done(),
            Err(Unanswered::NotYet(why)) => return Err(Unanswered::NotYet(why)),
            // Without an answer about the job, it counts as not cancelled.
            Ok(_) | Err(Unanswered::No(_)) => {}
        }
        *sent = true;
        scontrol(&["requeue", id]).await?;
        done()
    }
}

/// The reason why a request has no answer that was wished for.
#[derive(Debug, PartialEq, Eq)]
enum Unanswered {
    /// The batch system cannot be reached now.
    NotYet(String),
    No(String),
}

/// Words in which Slurm's commands say that its controller did not answer.
const AWAY: [&str; 6] = [
    "Unable to contact slurm controller",
    "standby mode",
    "timed out",
    "Connection refused",
    "connection failure",
    "temporarily unable",
];

/// Whether the output of `scontrol show job` is that of a cancelled job. A cancelled job is about to end, but not because of its time limit or of another
/// job. Slurm calls it `COMPLETING` until its last process has gone, whatever the reason.
fn cancelled(shown: &str) -> bool {
    matches!(field(shown, "JobState"), Some("CANCELLED" | "COMPLETING"))
        && field(shown, "Reason") == Some("None")
        && field(shown, "PreemptTime").is_none_or(|time| time == "None")
}

/// The value of a field in that output.
fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    let mut words = shown.split_whitespace();
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// Runs `scontrol`, and returns its output or the reason why it failed.
async fn scontrol(words: &[&str]) -> Result<String, Unanswered> {
    let shown = || format!("scontrol {}", words.join(" "));
    let output = Command::new("scontrol")
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match timeout(PATIENCE, output).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(Unanswered::No(format!("{}: {error}", shown()))),
        Err(_) => {
            let seconds = PATIENCE.as_secs();
            let why = format!("{}: no answer within {seconds} s", shown());
            return Err(Unanswered::NotYet(why));
        }
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().collect();
    let why = format!("{}: {}", shown(), said.join(" "));
    Err(match AWAY.iter().any(|away| why.contains(away)) {
        true => Unanswered::NotYet(why),
        false => Unanswered::No(why),
    })
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
    fn a_job_that_waits_again_has_been_requeued() {
        let pending = shown("PENDING", "BeginTime", "None");
        assert_eq!(field(&pending, "JobState"), Some("PENDING"));
        assert!(!cancelled(&pending));
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
