//! The locked processes: each of them will either ask for its memory to be staged, or give up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Default)]
pub struct Locked(Arc<Mutex<BTreeSet<i32>>>);

impl Locked {
    fn all(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, pid: i32) {
        self.all().insert(pid);
    }

    /// Removes a process that is checkpointed, unlocked, or gone.
    pub fn remove(&self, pid: i32) {
        self.all().remove(&pid);
    }

    /// Tells whether all locked processes are known.
    pub fn are(&self, known: impl Fn(i32) -> bool) -> bool {
        self.all().iter().all(|pid| known(*pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_locked_is_waited_for() {
        let locked = Locked::default();
        locked.add(1);
        locked.add(2);
        assert!(!locked.are(|pid| pid == 1) && locked.are(|pid| pid < 3));
        locked.remove(2);
        locked.remove(2);
        assert!(locked.are(|pid| pid == 1));
    }
}
