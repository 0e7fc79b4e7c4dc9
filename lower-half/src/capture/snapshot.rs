//! The memory of this process as it is now, to be read while the application changes it.
//!
//! A child process, made by `clone`, shares every page until one of the two writes to it; the kernel then gives the writer a copy, whoever it is
//! that writes: the application, a system call on its behalf, another rank's process. The child does nothing but copy out what it is asked for. It
//! is no child of the application's: it ends without a signal, and `wait` does not see it unless asked for all kinds (`__WALL`).
//!
//! In the child only what is written here runs: it allocates nothing, takes no lock and touches none of its parent's descriptors, which are its own too,
//! since other threads may have been anywhere in between.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use stillpoint_image::format::CHUNK_BYTES;
use stillpoint_image::pages::Pages;

use super::access::Access;
use crate::arch::syscall::{self, syscall3, syscall6};
use crate::ground::children;

/// How long the parent sleeps before it looks whether the child is still there.
const LOOK_NANOSECONDS: u64 = 100_000_000;
/// Whoever is short of memory is to have the child's rather than the application's.
const FIRST_TO_GO: &[u8] = b"1000";
/// The child works for nobody who waits.
pub const NICE: i32 = 10;

/// What a thread asks for.
#[repr(C)]
struct Slot {
    /// One of [`FREE`], [`ASKED`], [`DONE`].
    state: AtomicU32,
    length: AtomicU32,
    from: AtomicU64,
}

const FREE: u32 = 0;
const ASKED: u32 = 1;
const DONE: u32 = 2;

/// At the start of the memory that both processes have.
#[repr(C)]
struct Head {
    /// Counts what has been asked; the child sleeps on it.
    asked: AtomicU32,
    /// The child does what it is there for.
    ready: AtomicU32,
}

const HEAD_BYTES: usize = 4096;
const MOST_SLOTS: usize = (HEAD_BYTES - size_of::<Head>()) / size_of::<Slot>();

/// The memory that both processes have: head, slots, and room for each slot's bytes.
#[derive(Clone, Copy)]
struct Room {
    start: usize,
    slots: usize,
}

impl Room {
    fn head(&self) -> &Head {
        // SAFETY: mapped as long as the snapshot, aligned, and made of atomics.
        unsafe { &*(self.start as *const Head) }
    }

    fn slot(&self, index: usize) -> &Slot {
        let at = self.start + size_of::<Head>() + index * size_of::<Slot>();
        // SAFETY: as above; `index` is below `slots`, which is at most MOST_SLOTS.
        unsafe { &*(at as *const Slot) }
    }

    fn bytes(&self, index: usize) -> *mut u8 {
        (self.start + HEAD_BYTES + index * CHUNK_BYTES) as *mut u8
    }
}

impl Room {
    fn map(slots: usize) -> io::Result<Room> {
        // SAFETY: new memory, at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Room::bytes_of(slots),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Room {
                start: start as usize,
                slots,
            }),
        }
    }

    const fn bytes_of(slots: usize) -> usize {
        HEAD_BYTES + slots * CHUNK_BYTES
    }

    /// # Safety
    /// Nobody may use it any more.
    unsafe fn unmap(self) {
        // SAFETY: exactly what was mapped.
        unsafe { libc::munmap(self.start as *mut _, Room::bytes_of(self.slots)) };
    }
}

/// Memory as it was.
pub struct Snapshot<'a> {
    access: &'a Access,
    room: Room,
    pid: libc::pid_t,
    free: Mutex<Vec<usize>>,
    given_back: Condvar,
}

impl<'a> Snapshot<'a> {
    /// Takes it, for so many threads that read it. `without` is memory that nobody is going to ask for.
    ///
    /// # Errors
    /// Where the kernel makes no process.
    pub fn take(
        access: &'a Access,
        threads: usize,
        without: &[Range<usize>],
    ) -> io::Result<Snapshot<'a>> {
        let slots = threads.clamp(1, MOST_SLOTS);
        let room = Room::map(slots)?;
        let parent = syscall::getpid();
        // Descriptors are shared, so that the child holds none of its own: nobody's pipe or connection stays open because of it, and its end closes
        // nothing, which some file systems answer by writing down what they have of the file.
        let flags = libc::CLONE_FILES as usize;
        // SAFETY: no stack: a process with a copy of all memory, which goes on here. No signal tells of its end.
        let pid = unsafe { syscall6(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]) };
        if pid == 0 {
            // SAFETY: this is the new process, which has one thread.
            unsafe { serve(room, parent, without) }
        }
        if syscall::failed(pid) {
            // SAFETY: there is no child.
            unsafe { room.unmap() };
            return Err(io::Error::from_raw_os_error(-pid as i32));
        }
        children::add(pid as u32);
        let snapshot = Snapshot {
            access,
            room,
            pid: pid as libc::pid_t,
            free: Mutex::new((0..slots).collect()),
            given_back: Condvar::new(),
        };
        snapshot.until(&room.head().ready, 0)?;
        Ok(snapshot)
    }

    /// Waits until the word is another one.
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
        // SAFETY: the kernel fills the structure.
        let result = unsafe {
            libc::waitid(
                libc::P_PID,
                self.pid as libc::id_t,
                &raw mut information,
                ways,
            )
        };
        // SAFETY: waitid has filled it, or left its zeros.
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

    fn copy_part(&self, index: usize, from: u64, into: &mut [u8]) -> io::Result<()> {
        let slot = self.room.slot(index);
        slot.from.store(from, Ordering::Relaxed);
        slot.length.store(into.len() as u32, Ordering::Relaxed);
        slot.state.store(ASKED, Ordering::Release);
        let asked = &self.room.head().asked;
        asked.fetch_add(1, Ordering::SeqCst);
        syscall::futex_wake_shared(asked);
        self.until(&slot.state, ASKED)?;
        // SAFETY: the child has filled as many bytes of the slot's room, and leaves it alone until it is asked again.
        unsafe {
            std::ptr::copy_nonoverlapping(self.room.bytes(index), into.as_mut_ptr(), into.len());
        }
        slot.state.store(FREE, Ordering::Release);
        Ok(())
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
        // SAFETY: the child has ended, and whoever reads holds a reference.
        unsafe { self.room.unmap() };
    }
}

impl Pages for Snapshot<'_> {
    fn copy(&self, from: u64, into: &mut [u8]) -> io::Result<()> {
        let mut at = from;
        for part in into.chunks_mut(CHUNK_BYTES) {
            if self.access.given_up() {
                return Err(io::Error::other("the checkpoint was given up"));
            }
            let slot = self.take_slot();
            let copied = self.copy_part(slot, at, part);
            if copied.is_ok() {
                // One that the child may still fill is not used again.
                self.free().push(slot);
            }
            self.given_back.notify_one();
            copied?;
            at += part.len() as u64;
        }
        Ok(())
    }
}

/// The child's life. Everything here is system calls by hand and memory that is there.
///
/// # Safety
/// To be called in a process of its own, which has one thread.
unsafe fn serve(room: Room, parent: u32, without: &[Range<usize>]) -> ! {
    // SAFETY: of each call, that it concerns this process alone, and touches no memory but the strings here.
    unsafe {
        let kill = libc::SIGKILL as usize;
        syscall3(libc::SYS_prctl, libc::PR_SET_PDEATHSIG as usize, kill, 0);
        if syscall3(libc::SYS_getppid, 0, 0, 0) as u32 != parent {
            leave();
        }
        let nice = NICE as usize;
        syscall3(libc::SYS_setpriority, libc::PRIO_PROCESS as usize, 0, nice);
        syscall3(
            libc::SYS_prctl,
            libc::PR_SET_NAME as usize,
            c"stillpoint-copy".as_ptr() as usize,
            0,
        );
        let adjust = syscall::syscall4(
            libc::SYS_openat,
            libc::AT_FDCWD as usize,
            c"/proc/self/oom_score_adj".as_ptr() as usize,
            (libc::O_WRONLY | libc::O_CLOEXEC) as usize,
            0,
        );
        if !syscall::failed(adjust) {
            let text = FIRST_TO_GO;
            syscall3(
                libc::SYS_write,
                adjust as usize,
                text.as_ptr() as usize,
                text.len(),
            );
            syscall3(libc::SYS_close, adjust as usize, 0, 0);
        }
        syscall3(libc::SYS_prctl, libc::PR_SET_DUMPABLE as usize, 0, 0);
        for range in without {
            syscall3(libc::SYS_munmap, range.start, range.len(), 0);
        }
    }
    let head = room.head();
    head.ready.store(1, Ordering::Release);
    syscall::futex_wake_shared(&head.ready);
    loop {
        let seen = head.asked.load(Ordering::SeqCst);
        let mut found = false;
        for index in 0..room.slots {
            let slot = room.slot(index);
            if slot.state.load(Ordering::Acquire) != ASKED {
                continue;
            }
            found = true;
            let from = slot.from.load(Ordering::Relaxed) as *const u8;
            let length = slot.length.load(Ordering::Relaxed) as usize;
            // SAFETY: whoever asks knows the memory to be readable when the snapshot was taken; nobody changes it here.
            unsafe { std::ptr::copy_nonoverlapping(from, room.bytes(index), length) };
            slot.state.store(DONE, Ordering::Release);
            syscall::futex_wake_shared(&slot.state);
        }
        if !found {
            syscall::futex_wait_shared(&head.asked, seen, 0);
        }
    }
}

fn leave() -> ! {
    loop {
        // SAFETY: ends this process.
        unsafe { syscall3(libc::SYS_exit_group, 0, 0, 0) };
    }
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;

    use super::*;

    #[test]
    fn it_keeps_what_was_there_while_that_is_changed() {
        let mut memory = MmapMut::map_anon(8 * CHUNK_BYTES).unwrap();
        for (index, byte) in memory.iter_mut().enumerate() {
            *byte = (index / 4096) as u8;
        }
        let before = memory.to_vec();
        let from = memory.as_ptr() as u64;
        let hole = MmapMut::map_anon(4096).unwrap();
        let without = hole.as_ptr() as usize..hole.as_ptr() as usize + 4096;
        let access = Access::default();
        let snapshot = Snapshot::take(&access, 2, std::slice::from_ref(&without)).unwrap();
        let pid = snapshot.pid as u32;
        assert!(children::started().contains(&pid));
        memory.fill(0xee);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut read = vec![0; before.len()];
                    snapshot.copy(from, &mut read).unwrap();
                    assert!(read == before);
                });
            }
        });
        // What was left out is not there.
        let gone = snapshot.copy(without.start as u64, &mut [0; 10]);
        assert!(gone.unwrap_err().to_string().contains("has ended"));
        drop(snapshot);
        assert!(!children::started().contains(&pid));
    }

    #[test]
    fn it_gives_no_more_when_the_checkpoint_is_given_up() {
        let access = Access::default();
        let text = *b"here";
        let snapshot = Snapshot::take(&access, 1, &[]).unwrap();
        let mut read = [0; 4];
        snapshot.copy(text.as_ptr() as u64, &mut read).unwrap();
        assert_eq!(read, text);
        access.let_go();
        snapshot.copy(text.as_ptr() as u64, &mut read).unwrap();
        access.revoke();
        assert!(snapshot.copy(text.as_ptr() as u64, &mut read).is_err());
    }
}
