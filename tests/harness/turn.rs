//! Turns on the machine: as many `mpirun` jobs at once as it can bear, over all tests and all test
//! processes. A turn is a locked file, so that it ends with the process that holds it.

use std::env;
use std::fs::{self, File};
use std::thread;
use std::time::Duration;

use crate::{Failed, place};

/// Held while a test has jobs.
#[derive(Debug)]
pub struct Turn {
    _files: Vec<File>,
}

fn places() -> usize {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    env::var("STILLPOINT_TEST_JOBS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or((cores / 2).max(2))
}

fn open(number: usize) -> Result<File, Failed> {
    let directory = place::target().join("trials");
    fs::create_dir_all(&directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    let path = directory.join(format!("turn-{number}"));
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| format!("cannot open {}: {error}", path.display()))
}

impl Turn {
    /// Waits for a place.
    pub fn take() -> Result<Turn, Failed> {
        let files = (0..places()).map(open).collect::<Result<Vec<_>, _>>()?;
        loop {
            if let Some(mine) = files.iter().position(|file| file.try_lock().is_ok()) {
                return Ok(Turn {
                    _files: files.into_iter().skip(mine).take(1).collect(),
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nobody else has one: for tests that look at the time.
    pub fn alone() -> Result<Turn, Failed> {
        let files = (0..places()).map(open).collect::<Result<Vec<_>, _>>()?;
        for file in &files {
            file.lock()
                .map_err(|error| format!("cannot lock a turn: {error}"))?;
        }
        Ok(Turn { _files: files })
    }
}
