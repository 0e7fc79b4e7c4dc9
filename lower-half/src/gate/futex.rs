//! Priority-inheriting and robust futexes after a restart. Their words name the owner by the application's thread id, which the kernel no longer knows. So the
//! calls in which the kernel would look for the owner are carried out here.
//!
//! A lock is taken, waited for and released by the kernel's own protocol for the word (futex(2), "Priority-inheritance futexes"), so the C library's fast path
//! without the kernel still works. Only the inheritance itself is lost: the owner does not run with the waiter's priority.
//!
//! Rules of this place: runs in the trap's handler, after a restart only. A thread that has to wait does so in the springboard, and then makes its call once
//! more.

use core::sync::atomic::{AtomicU32, Ordering};

use super::call::{Call, errno};
use super::user;
use crate::arch::springboard::Piece;
use crate::arch::syscall::{failed, syscall3, syscall6};
use crate::threads::registry::{self, Thread};

const LOCK_PI: u32 = 6;
const UNLOCK_PI: u32 = 7;
const TRYLOCK_PI: u32 = 8;
const WAIT_BITSET: u32 = 9;
const WAIT_REQUEUE_PI: u32 = 11;
const CMP_REQUEUE_PI: u32 = 12;
const LOCK_PI2: u32 = 13;
const PRIVATE: u32 = 128;
const REALTIME: u32 = 256;

/// The operations with a relative timeout, with every flag that they may have.
pub const WAITS: &[u32] = &[0, PRIVATE, REALTIME, PRIVATE | REALTIME];

/// The operations that look for an owner, with every flag that they may have.
pub const OPERATIONS: &[u32] = &with_flags();

const fn with_flags() -> [u32; 24] {
    let plain = [
        LOCK_PI,
        UNLOCK_PI,
        TRYLOCK_PI,
        WAIT_REQUEUE_PI,
        CMP_REQUEUE_PI,
        LOCK_PI2,
    ];
    let mut all = [0; 24];
    let mut index = 0;
    while index < all.len() {
        all[index] = plain[index / 4] | ((index as u32 % 4) * PRIVATE);
        index += 1;
    }
    all
}

/// Bits of the word: the owner's id, that the owner has ended, that the kernel knows of waiters.
const OWNER: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;

/// The consequence of a word for a thread that wants the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Store this value: the lock is taken.
    Take(u32),
    /// Store this value, and wait until the word changes.
    Wait(u32),
    /// The caller has the lock already.
    Own,
}

fn step(word: u32, me: u32) -> Step {
    match word & OWNER {
        // It is not known here whether others wait too, so the unlocking thread asks the kernel.
        0 => Step::Take(me | word & OWNER_DIED | WAITERS),
        owner if owner == me => Step::Own,
        _ => Step::Wait(word | WAITERS),
    }
}

/// `futex`, one of [`OPERATIONS`].
pub fn on_futex(call: &mut Call) -> isize {
    let (address, operation) = (call.argument(0), call.argument(1) as u32);
    let Some(me) = Thread::current().map(Thread::virtual_tid) else {
        return errno(libc::ENOSYS);
    };
    // The kernel reads the word to be unlocked before it checks its alignment.
    let aligned = address.is_multiple_of(size_of::<u32>());
    if !aligned && operation & !(PRIVATE | REALTIME) != UNLOCK_PI {
        return errno(libc::EINVAL);
    }
    if let Err(error) = user::read::<u32>(address) {
        return error;
    }
    if !aligned {
        return errno(libc::EINVAL);
    }
    // SAFETY: the word is aligned and can be read, and all threads of the application change it atomically.
    let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
    match operation & !(PRIVATE | REALTIME) {
        LOCK_PI => lock(call, word, me, operation & PRIVATE | REALTIME, true),
        LOCK_PI2 => lock(call, word, me, operation & (PRIVATE | REALTIME), true),
        TRYLOCK_PI => lock(call, word, me, 0, false),
        UNLOCK_PI => unlock(word, me, operation & PRIVATE),
        _ => errno(libc::ENOSYS),
    }
}

fn lock(call: &mut Call, word: &AtomicU32, me: u32, flags: u32, waits: bool) -> isize {
    loop {
        let seen = word.load(Ordering::Relaxed);
        let put = |new| word.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed);
        match step(seen, me) {
            Step::Own => return errno(libc::EDEADLK),
            Step::Take(new) => {
                if put(new).is_ok() {
                    return 0;
                }
            }
            Step::Wait(_) if !waits => return errno(libc::EAGAIN),
            Step::Wait(new) => {
                if !registry::each().any(|thread| thread.virtual_tid() == seen & OWNER) {
                    return errno(libc::ESRCH);
                }
                if let Err(error) = in_time(call.argument(3), flags) {
                    return error;
                }
                if put(new).is_ok() {
                    let wait = u64::from(WAIT_BITSET | flags) << 32 | u64::from(new);
                    return call.redirect(Piece::CallFutexAgain, wait as usize);
                }
            }
        }
    }
}

/// Whether there is time left until a limit, if there is one.
fn in_time(limit: usize, flags: u32) -> Result<(), isize> {
    if limit == 0 {
        return Ok(());
    }
    let [seconds, nanoseconds] = user::read::<[usize; 2]>(limit)?;
    if nanoseconds >= 1_000_000_000 || (seconds as isize) < 0 {
        return Err(errno(libc::EINVAL));
    }
    let clock = if flags & REALTIME == 0 {
        libc::CLOCK_MONOTONIC
    } else {
        libc::CLOCK_REALTIME
    };
    let mut now = [0usize; 2];
    // SAFETY: the kernel writes two words, which live on this stack.
    unsafe {
        syscall3(
            libc::SYS_clock_gettime,
            clock as usize,
            now.as_mut_ptr() as usize,
            0,
        )
    };
    if now < [seconds, nanoseconds] {
        Ok(())
    } else {
        Err(errno(libc::ETIMEDOUT))
    }
}

fn unlock(word: &AtomicU32, me: u32, private: u32) -> isize {
    loop {
        let seen = word.load(Ordering::Relaxed);
        if seen & OWNER != me {
            return errno(libc::EPERM);
        }
        if give(word, seen, 0, private) {
            return 0;
        }
    }
}

/// Replaces the word if its value is still `seen`, and wakes one waiter.
fn give(word: &AtomicU32, seen: u32, new: u32, private: u32) -> bool {
    let given = word.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed);
    if given.is_ok() && seen & WAITERS != 0 {
        let (address, wake) = (word.as_ptr() as usize, libc::FUTEX_WAKE as u32 | private);
        // SAFETY: the call wakes a thread and changes no memory; the word's address is only looked up.
        unsafe { syscall6(libc::SYS_futex, [address, wake as usize, 1, 0, 0, 0]) };
    }
    given.is_ok()
}

/// Called at the calling thread's end: wakes the waiters of its robust mutexes, which the kernel does not find by the id in them.
pub fn owner_ends(thread: Thread) {
    /// The length to which the kernel follows the list (ROBUST_LIST_LIMIT).
    const LONGEST: usize = 2048;
    let me = thread.virtual_tid();
    if me == thread.real_tid() {
        return;
    }
    let (mut head, mut bytes) = (0usize, 0usize);
    // SAFETY: the kernel writes one word to each place; both places live on this stack.
    let told = unsafe {
        syscall3(
            libc::SYS_get_robust_list,
            0,
            &raw mut head as usize,
            &raw mut bytes as usize,
        )
    };
    if failed(told) || head == 0 {
        return;
    }
    // The first entry, the offset of the word in each, and the entry that is being locked or unlocked.
    let Ok([first, offset, pending]) = user::read::<[usize; 3]>(head) else {
        return;
    };
    let mut entry = first;
    for _ in 0..LONGEST {
        // The lowest bit marks an entry with priority inheritance.
        let at = entry & !1;
        if at == head {
            break;
        }
        let Ok([next]) = user::read::<[usize; 1]>(at) else {
            break;
        };
        owner_of_ends(at.wrapping_add(offset), me);
        entry = next;
    }
    if pending & !1 != 0 {
        owner_of_ends((pending & !1).wrapping_add(offset), me);
    }
}

fn owner_of_ends(address: usize, me: u32) {
    if !address.is_multiple_of(size_of::<u32>()) || user::read::<u32>(address).is_err() {
        return;
    }
    // SAFETY: the word is aligned and can be read, and all threads of the application change it atomically.
    let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
    loop {
        let seen = word.load(Ordering::Relaxed);
        if seen & OWNER != me || give(word, seen, seen & WAITERS | OWNER_DIED, 0) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_to_do() {
        assert_eq!(step(0, 7), Step::Take(7 | WAITERS));
        assert_eq!(step(WAITERS, 7), Step::Take(7 | WAITERS));
        assert_eq!(step(OWNER_DIED, 7), Step::Take(7 | WAITERS | OWNER_DIED));
        assert_eq!(step(9, 7), Step::Wait(9 | WAITERS));
        assert_eq!(step(7 | WAITERS, 7), Step::Own);
    }

    #[test]
    fn only_the_owner_gives_it_back() {
        let word = AtomicU32::new(9 | WAITERS);
        assert_eq!(unlock(&word, 7, PRIVATE), errno(libc::EPERM));
        assert_eq!(unlock(&word, 9, PRIVATE), 0);
        assert_eq!(word.load(Ordering::Relaxed), 0);
        word.store(9 | WAITERS, Ordering::Relaxed);
        owner_of_ends(word.as_ptr() as usize, 9);
        assert_eq!(word.load(Ordering::Relaxed), OWNER_DIED | WAITERS);
    }

    #[test]
    fn every_flag_of_every_operation_is_trapped() {
        for operation in [LOCK_PI, UNLOCK_PI, TRYLOCK_PI, LOCK_PI2] {
            for flags in [0, PRIVATE, REALTIME, PRIVATE | REALTIME] {
                assert!(OPERATIONS.contains(&(operation | flags)));
            }
        }
        assert!(!OPERATIONS.contains(&0) && !OPERATIONS.contains(&(PRIVATE | 1)));
    }
}
