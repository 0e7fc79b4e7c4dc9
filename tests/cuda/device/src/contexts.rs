//! Contexts: each takes some of its device's memory, and belongs to a process. The programs' drivers know their contents; the device only counts
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::Account;
use crate::node::code;

/// The number of contexts, by process and device.
#[derive(Default)]
pub struct Contexts {
    counted: Mutex<BTreeMap<(i32, u32), u64>>,
}

/// A context, which exists until this is dropped.
pub struct Context {
    pub device: u32,
    pid: i32,
    bytes: u64,
    account: Arc<Account>,
    of: Arc<Contexts>,
}

impl Contexts {
    fn hold(&self) -> MutexGuard<'_, BTreeMap<(i32, u32), u64>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a context of a process on a device, which takes so many bytes.
    pub fn make(
        self: &Arc<Contexts>,
        (pid, device): (i32, u32),
        account: &Arc<Account>,
        bytes: u64,
    ) -> Result<Context, u32> {
        if !account.take(bytes) {
            return Err(code::OUT_OF_MEMORY);
        }
        *self.hold().entry((pid, device)).or_default() += 1;
        Ok(Context {
            device,
            pid,
            bytes,
            account: Arc::clone(account),
            of: Arc::clone(self),
        })
    }

    /// Returns all contexts, as lines.
    pub fn report(&self) -> Vec<String> {
        let counted = self.hold();
        let line = |(&(pid, device), count): (&(i32, u32), &u64)| {
            format!("contexts {pid} {device} {count}")
        };
        counted.iter().map(line).collect()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
        let mut counted = self.of.hold();
        let key = (self.pid, self.device);
        match counted.get_mut(&key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counted.remove(&key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_takes_memory_for_as_long_as_it_is_there() {
        let account = Arc::new(Account::new(100));
        let contexts = Arc::new(Contexts::default());
        let one = contexts.make((7, 0), &account, 40).unwrap();
        let other = contexts.make((7, 0), &account, 40).unwrap();
        assert_eq!(contexts.report(), ["contexts 7 0 2"]);
        assert!(contexts.make((8, 0), &account, 40).is_err());
        drop(one);
        assert_eq!((account.free(), contexts.report().len()), (60, 1));
        drop(other);
        assert_eq!((account.free(), contexts.report().len()), (100, 0));
    }
}
