//! The memory of this process at one moment, to be read while the application changes it.
//!
//! A child process, made by `clone`, shares every page until one of the two writes to it. The kernel then gives the writer a
//! copy, whether the application writes, a system call on its behalf, or another rank's process. The child only copies out the
//! memory that it is asked for. The application does not see it as a child: it ends without a signal, and `wait` sees it only if
//! asked for all kinds (`__WALL`).
//!
//! * [`shared_slots`] - the memory that both processes share: requests and answers
//! * [`child`] - the code of the child

mod child;
mod shared_slots;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use stillpoint_image::format::CHUNK_BYTES;
use stillpoint_image::pages::Pages;

use super::access::Access;
use super::reading::{self, Loadable};
use crate::arch::syscall::{self, syscall6};
use crate::ground::{children, writing};
use child::serve;
use shared_slots::{ASKED, FAILED, FREE, MOST_SLOTS, MOST_STRETCHES, SharedSlots};

/// How long the parent sleeps before it checks that the child is still alive.
const LOOK_NANOSECONDS: u64 = 100_000_000;

/// The memory at the moment when the snapshot was taken.
pub struct Snapshot<'a> {
    access: &'a Access,
    loadable: &'a Loadable,
    room: SharedSlots,
    pid: libc::pid_t,
    free: Mutex<Vec<usize>>,
    given_back: Condvar,
}

impl<'a> Snapshot<'a> {
    /// Takes a snapshot, for so many threads that read it. `without` is memory that they will not ask for.
    ///
    /// # Errors
    /// The kernel makes no process.
    pub fn take(
        access: &'a Access,
        loadable: &'a Loadable,
        threads: usize,
        without: &[Range<usize>],
    ) -> io::Result<Snapshot<'a>> {
        let slots = threads.clamp(1, MOST_SLOTS);
        let room = SharedSlots::map(slots)?;
        let parent = syscall::getpid();
        // Descriptors are shared, so that the child holds none of its own. No pipe or connection stays open because of it, and its end
        // closes nothing: at a close, some file systems write back what they have of a file.
        let flags = libc::CLONE_FILES as usize;
        // SAFETY: without a stack, this makes a process with a copy of all memory, which continues here. No signal reports its end.
        let pid = unsafe { syscall6(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]) };
        if pid == 0 {
            // SAFETY: this is the new process, which has this one thread and goes on with copies of everything that is passed.
            unsafe { serve(room, parent, without) }
        }
        if syscall::failed(pid) {
            // SAFETY: no child was made, so nothing else uses the room.
            unsafe { room.unmap() };
            return Err(io::Error::from_raw_os_error(-pid as i32));
        }
        children::add(pid as u32);
        let snapshot = Snapshot {
            access,
            loadable,
            room,
            pid: pid as libc::pid_t,
            free: Mutex::new((0..slots).collect()),
            given_back: Condvar::new(),
        };
        snapshot.until(&room.head().ready, 0)?;
        Ok(snapshot)
    }

    /// Waits until the word has another value than `not`.
    fn until(&self, word: &AtomicU32, not: u32) -> io::Result<()> {
        while word.load(Ordering::Acquire) == not {
            syscall::futex_wait_shared(word, not, LOOK_NANOSECONDS);
            if word.load(Ordering::Acquire) != not {
                break;
            }
            if self.access.given_up() {
                return Err(io::Error::other("the checkpoint was given up"));
            }
            if !self.lives() {
                return Err(io::Error::other(
                    "the process that held the memory as it was has ended (is memory short?): --copy off needs none",
                ));
            }
        }
        Ok(())
    }

    fn lives(&self) -> bool {
        // SAFETY: integers only, for which zeros are valid.
        let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let ways = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // SAFETY: the kernel fills the structure, which lives on this stack.
        let result = unsafe {
            libc::waitid(
                libc::P_PID,
                self.pid as libc::id_t,
                &raw mut information,
                ways,
            )
        };
        // SAFETY: waitid has filled the structure for a child, or left its zeros.
        result == 0 && unsafe { information.si_pid() } == 0
    }

    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_slot(&self) -> usize {
        let mut free = self.free();
        loop {
            match free.pop() {
                Some(slot) => return slot,
                None => {
                    free = self
                        .given_back
                        .wait(free)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Asks for at most [`MOST_STRETCHES`], of [`CHUNK_BYTES`] together.
    fn ask(&self, index: usize, stretches: &[Range<u64>], into: &mut [u8]) -> io::Result<()> {
        let slot = self.room.slot(index);
        for (number, range) in stretches.iter().enumerate() {
            let stretch = self.room.stretch(index, number);
            stretch.from.store(range.start, Ordering::Relaxed);
            let length = range.end - range.start;
            stretch.length.store(length, Ordering::Relaxed);
            let loadable = self
                .loadable
                .has(&(range.start as usize..range.end as usize));
            stretch
                .loadable
                .store(u64::from(loadable), Ordering::Relaxed);
        }
        let count = stretches.len() as u32;
        slot.stretches.store(count, Ordering::Relaxed);
        slot.state.store(ASKED, Ordering::Release);
        let asked = &self.room.head().asked;
        asked.fetch_add(1, Ordering::SeqCst);
        syscall::futex_wake_shared(asked);
        writing::step();
        self.until(&slot.state, ASKED)?;
        if slot.state.load(Ordering::Acquire) == FAILED {
            slot.state.store(FREE, Ordering::Release);
            let at = slot.failed_at.load(Ordering::Relaxed) as usize;
            let error = slot.error.load(Ordering::Relaxed) as i32;
            return Err(reading::cannot(at, error));
        }
        // SAFETY: `into` has as many bytes as the stretches, which the child has filled in the slot's room; it leaves them alone until it is asked again.
        unsafe {
            std::ptr::copy_nonoverlapping(self.room.bytes(index), into.as_mut_ptr(), into.len());
        }
        slot.state.store(FREE, Ordering::Release);
        Ok(())
    }

    fn ask_any(&self, stretches: &[Range<u64>], into: &mut [u8]) -> io::Result<()> {
        if self.access.given_up() {
            return Err(io::Error::other("the checkpoint was given up"));
        }
        let slot = self.take_slot();
        let copied = self.ask(slot, stretches, into);
        // A slot that the child may still fill is not used again.
        if self.room.slot(slot).state.load(Ordering::Acquire) == FREE {
            self.free().push(slot);
        }
        self.given_back.notify_one();
        copied
    }

    fn end(&self) {
        // SAFETY: the child has not been waited for, so the number is still its own; the calls touch no memory of ours.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL);
        }
        children::remove(self.pid as u32);
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.end();
        // SAFETY: the child has ended, and every reader borrows this snapshot, so nothing uses the room any more.
        unsafe { self.room.unmap() };
    }
}

impl Pages for Snapshot<'_> {
    fn copy(&self, from: u64, into: &mut [u8]) -> io::Result<()> {
        let whole = from..from + into.len() as u64;
        self.gather(std::slice::from_ref(&whole), into)
    }

    fn gather(&self, from: &[Range<u64>], into: &mut [u8]) -> io::Result<()> {
        let (mut stretches, mut rest) = (from.iter().cloned(), into);
        let mut cut = None;
        while !rest.is_empty() {
            let (mut asked, mut bytes) = (Vec::new(), 0);
            while asked.len() < MOST_STRETCHES
                && bytes < CHUNK_BYTES
                && let Some(mut next) = cut.take().or_else(|| stretches.next())
            {
                let room = (CHUNK_BYTES - bytes) as u64;
                if next.end - next.start > room {
                    cut = Some(next.start + room..next.end);
                    next.end = next.start + room;
                }
                bytes += (next.end - next.start) as usize;
                asked.push(next);
            }
            if bytes == 0 {
                return Err(io::Error::other(
                    "fewer bytes are named than there is room for",
                ));
            }
            let (mine, more) = rest.split_at_mut(bytes);
            self.ask_any(&asked, mine)?;
            rest = more;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
