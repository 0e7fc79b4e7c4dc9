//! Checks of a command's message on stderr: one line for people, and the remedy.

use crate::Failed;
use crate::command::Answer;
use crate::ensure;

/// The longest line that a person reads.
const LONGEST: usize = 1200;

/// Returns Stillpoint's own lines, without those that show a checkpoint's progress and those that `mpirun` adds.
pub fn lines(stderr: &str) -> Vec<&str> {
    stderr
        .lines()
        .filter(|line| line.starts_with("stillpoint: "))
        .collect()
}

/// Checks that `stderr` holds one reason, which contains all `words`.
pub fn one(stderr: &str, words: &[&str]) -> Result<(), Failed> {
    ensure!(
        !stderr.contains("panicked") && !stderr.contains("RUST_BACKTRACE"),
        "a panic is no reason:\n{stderr}"
    );
    let lines = lines(stderr);
    ensure!(
        lines.len() == 1,
        "{} reasons instead of one:\n{stderr}",
        lines.len()
    );
    let line = lines[0];
    ensure!(line.len() <= LONGEST, "too long to read: {line}");
    for word in words {
        ensure!(
            line.to_lowercase().contains(&word.to_lowercase()),
            "the reason does not speak of '{word}': {line}"
        );
    }
    Ok(())
}

impl Answer {
    /// Fails unless it ended with `status` and gave one reason that contains all `words`.
    pub fn expect_one_reason(self, status: i32, words: &[&str]) -> Result<Answer, Failed> {
        let answer = self.expect(status)?;
        one(&answer.stderr, words).map_err(|failed| format!("{failed}\n{}", answer.show()))?;
        Ok(answer)
    }
}
