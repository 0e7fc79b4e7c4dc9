//! System V semaphores with `SEM_UNDO`: the kernel undoes these operations when the process ends. It does not show them, and a suspend would trigger the undo.
//! So a checkpoint is refused as long as some operation would be undone.
//!
//! Rules of this place: runs in the trap's handler. Operations that succeed at once are counted. The result of one that has to wait is not known here, so its
//! set counts as having operations to undo for as long as it exists.

use super::call::{Call, errno};
use super::ipc;
use super::sleep;
use super::user;
use crate::arch::syscall::{self, failed, syscall4};
use crate::ground::lock::Lock;

/// `SEM_UNDO`, as it stands in `sem_flg`.
const UNDO: i16 = 0x1000;
/// The number of operations that the kernel accepts at once (SEMOPM is 500).
const MOST_OPERATIONS: usize = 500;
/// The number of semaphores that can be noted.
const MOST: usize = 256;

/// `struct sembuf`: which of a set, what is added, flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operation {
    number: u16,
    change: i16,
    flags: i16,
}

// SAFETY: it consists of integers without padding, for which any bits are valid.
unsafe impl user::Plain for Operation {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    set: i32,
    number: u16,
    /// The sum of the changes with `SEM_UNDO`.
    sum: i64,
    /// An operation had to wait, and may have been carried out.
    unknown: bool,
}

#[repr(C)]
struct Accounts {
    /// Whether an operation has ever been noted.
    any: bool,
    /// There were more semaphores than fit.
    full: bool,
    list: [Option<Account>; MOST],
}

impl Accounts {
    const NONE: Accounts = Accounts {
        any: false,
        full: false,
        list: [None; MOST],
    };

    fn note(&mut self, set: i32, operation: Operation, carried_out: bool) {
        if operation.flags & UNDO == 0 {
            return;
        }
        self.any = true;
        let (number, change) = (operation.number, i64::from(operation.change));
        let same = |account: &Option<Account>| {
            account.is_some_and(|account| (account.set, account.number) == (set, number))
        };
        let place = self.list.iter().position(same);
        let Some(place) = place.or_else(|| self.list.iter().position(Option::is_none)) else {
            self.full = true;
            return;
        };
        let Some(slot) = self.list.get_mut(place) else {
            return;
        };
        let mut account = slot.unwrap_or(Account {
            set,
            number,
            sum: 0,
            unknown: false,
        });
        if carried_out {
            account.sum += change;
        } else {
            account.unknown = true;
        }
        let settled = account.sum == 0 && !account.unknown;
        *slot = (!settled).then_some(account);
    }
}

static ACCOUNTS: Lock<Accounts> = Lock::new(Accounts::NONE);

/// `semop`, `semtimedop`.
pub fn on_operations(call: &mut Call) -> isize {
    let [set, list, count, ..] = call.arguments();
    ipc::note(ipc::Object::Semaphores, set as i32);
    if count == 0 || count > MOST_OPERATIONS {
        return wait(call);
    }
    let mut undo = false;
    for index in 0..count {
        match user::read::<Operation>(list.wrapping_add(index * size_of::<Operation>())) {
            Ok(operation) => undo |= operation.flags & UNDO != 0,
            Err(_) => return wait(call),
        }
    }
    if !undo {
        return wait(call);
    }
    let at_once = [0usize; 2];
    // SAFETY: the kernel checks the application's list itself; the timeout lives on this stack and is zero, so the call does not wait.
    let result = unsafe {
        syscall4(
            libc::SYS_semtimedop,
            set,
            list,
            count,
            at_once.as_ptr() as usize,
        )
    };
    let waits = result == errno(libc::EAGAIN) && !refuses_to_wait(list, count);
    if !failed(result) || waits {
        let mut accounts = ACCOUNTS.lock();
        for index in 0..count {
            let at = list + index * size_of::<Operation>();
            if let Ok(operation) = user::read::<Operation>(at) {
                accounts.note(set as i32, operation, !waits);
            }
        }
    }
    if waits {
        return wait(call);
    }
    result
}

/// Has the call made, which may wait; `semop` has no timeout.
fn wait(call: &mut Call) -> isize {
    match call.number() {
        libc::SYS_semtimedop => sleep::on_interval(call, 3),
        _ => call.redirect_plain(),
    }
}

/// Whether an operation of the list must not wait.
fn refuses_to_wait(list: usize, count: usize) -> bool {
    (0..count).any(|index| {
        let at = list + index * size_of::<Operation>();
        user::read::<Operation>(at)
            .is_ok_and(|operation| operation.flags & libc::IPC_NOWAIT as i16 != 0)
    })
}

/// Forgets everything: a forked child has nothing to undo.
pub fn start_forked() {
    let mut accounts = ACCOUNTS.lock();
    // Empty pages stay shared with the parent.
    if accounts.any {
        *accounts = Accounts::NONE;
    }
}

/// Runs an action while the accounts cannot change.
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    let _still = ACCOUNTS.lock();
    action()
}

/// Returns the sets with operations that the kernel would undo, without those that have been removed.
pub fn to_take_back() -> Vec<i32> {
    let mask = syscall::set_mask(u64::MAX);
    let list = ACCOUNTS.lock().list;
    syscall::set_mask(mask);
    let mut sets: Vec<i32> = list.iter().flatten().map(|account| account.set).collect();
    sets.sort_unstable();
    sets.dedup();
    sets.retain(|set| exists(*set));
    sets
}

/// Whether there were more semaphores than can be noted.
pub fn lost_count() -> bool {
    let mask = syscall::set_mask(u64::MAX);
    let full = ACCOUNTS.lock().full;
    syscall::set_mask(mask);
    full
}

fn exists(set: i32) -> bool {
    // SAFETY: GETVAL takes numbers and touches no memory.
    let value = unsafe { libc::semctl(set, 0, libc::GETVAL) };
    let gone = [Some(libc::EINVAL), Some(libc::EIDRM)];
    value >= 0 || !gone.contains(&std::io::Error::last_os_error().raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_not_to_be_taken_back() {
        let operation = |change, flags| Operation {
            number: 3,
            change,
            flags,
        };
        let mut accounts = Accounts::NONE;
        accounts.note(7, operation(-1, UNDO), true);
        assert!(
            accounts
                .list
                .iter()
                .flatten()
                .any(|account| account.sum == -1)
        );
        accounts.note(7, operation(1, 0), true);
        assert_eq!(accounts.list.iter().flatten().count(), 1);
        accounts.note(7, operation(1, UNDO), true);
        assert_eq!(accounts.list.iter().flatten().count(), 0);
        // It is not known whether this operation was carried out.
        accounts.note(7, operation(-1, UNDO), false);
        accounts.note(7, operation(-1, UNDO), true);
        accounts.note(7, operation(1, UNDO), true);
        assert_eq!(accounts.list.iter().flatten().count(), 1);
    }
}
