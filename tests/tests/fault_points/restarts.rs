//! Faults while a job is restarted: the launch ends with one line and changes nothing of the epoch; the next one is right.

use std::fs;
use std::os::unix::fs::MetadataExt;

use stillpoint_tests::{Failed, ensure, reason};

use crate::case::{Case, How, PATIENCE};

pub fn struck(case: &Case, how: How) -> Result<(), Failed> {
    if case.point.can_fail() {
        ends(case, "fail", how)?;
    }
    ends(case, "die", how)?;
    case.restarts_well()
}

/// A fault while a fast tier is taken into use is no obstacle to a restart, unless a process dies of it.
pub fn struck_on_tiers(case: &Case) -> Result<(), Failed> {
    let running = case.start(&case.fault("fail"), How::OnTiers)?;
    case.struck(&running, 1)?;
    case.ends_well(running)?;
    ends(case, "die", How::OnTiers)?;
    case.restarts_well()
}

/// Checks that the restart fails or dies, and leaves the epoch as it was.
fn ends(case: &Case, action: &str, how: How) -> Result<(), Failed> {
    let before = epoch(case)?;
    let running = case.launch(&case.fault(action), how)?;
    let struck = case.struck(&running, 1);
    let ended = running.job.end(PATIENCE)?;
    let show = |failed: Failed| format!("{action}: {failed}\n{}", ended.show());
    struck.map_err(show)?;
    ensure!(ended.status != 0, "{}", show("it ended well".to_owned()));
    if action == "fail" {
        reason::one(&ended.stderr, &[case.point.name()]).map_err(show)?;
    }
    ensure!(
        !ended.stderr.contains("panicked") && !ended.stderr.contains("WRONG"),
        "{}",
        show("not in words".to_owned())
    );
    ensure!(
        epoch(case)? == before,
        "{}",
        show("the epoch has changed".to_owned())
    );
    Ok(())
}

/// Returns every file of the newest epoch: name, inode, length, and time of its change.
fn epoch(case: &Case) -> Result<Vec<(String, u64, u64, i64)>, Failed> {
    let newest = format!("epoch-{:06}", case.newest());
    let path = case.trial.epochs_at().join(newest);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut files = vec![];
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let about = entry.metadata().map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, about.ino(), about.len(), about.mtime_nsec()));
    }
    files.sort();
    Ok(files)
}
