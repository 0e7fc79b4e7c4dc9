//! Processes that the lower half itself has started: a rank without a launcher starts Open MPI's daemon, for one. They are
//! none of the application's children, end with the lower half, and a restart's lower half starts its own.

use std::sync::{Mutex, PoisonError};

static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Runs what starts the real MPI: whatever this thread has as a new child after it, the lower half has started, because no
/// code of the application runs on this thread meanwhile.
pub fn while_mpi_starts<R>(start: impl FnOnce() -> R) -> R {
    let before = of_this_thread();
    let result = start();
    let new = of_this_thread().into_iter();
    let new = new.filter(|child| !before.contains(child));
    STARTED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(new);
    result
}

/// One of the lower half's own has been started.
pub fn add(pid: u32) {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.push(pid);
}

/// It has ended, and been waited for.
pub fn remove(pid: u32) {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.retain(|one| *one != pid);
}

/// Those processes.
pub fn started() -> Vec<u32> {
    STARTED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// As the kernel lists them. Where it does not (CONFIG_PROC_CHILDREN), a checkpoint names them as children like any other.
fn of_this_thread() -> Vec<u32> {
    let listed = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let numbers = listed.split_whitespace();
    numbers.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_started_meanwhile_is_its_own_and_nothing_else() {
        let sleep = || Command::new("sleep").arg("60").spawn().unwrap();
        let mut earlier = sleep();
        let mut own = while_mpi_starts(sleep);
        let mut later = sleep();
        let started = started();
        for child in [&mut earlier, &mut own, &mut later] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(started, [own.id()]);
    }
}
