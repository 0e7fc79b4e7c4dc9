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

    /// Whether somebody has cancelled it. If Slurm does not know, or does not say, nobody has.
    async fn is_cancelled(&self) -> bool {
        let shown = scontrol(&["--oneliner", "show", "job", &self.id]).await;
        let shown = shown.unwrap_or_default();
        let mut words = shown.split_whitespace();
        words.any(|word| word == "JobState=CANCELLED")
    }
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
