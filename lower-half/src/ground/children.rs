//! Processes that the lower half itself has started: for example, a rank without a launcher starts Open MPI's daemon. They are not the application's children
//! and end with the lower half; a restart's lower half starts its own.

use std::sync::{Mutex, PoisonError};

static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Runs the start of the real MPI. New children of this thread afterwards are the lower half's, because this thread runs no code of the application meanwhile.
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

/// Notes a process that the lower half has started.
pub fn add(pid: u32) {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.push(pid);
}

/// Forgets such a process, after it has ended and been waited for.
pub fn remove(pid: u32) {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.retain(|one| *one != pid);
}

/// Returns these processes.
pub fn started() -> Vec<u32> {
    STARTED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Lists this thread's children. If the kernel does not list them (CONFIG_PROC_CHILDREN), a checkpoint names them like the application's children.
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
