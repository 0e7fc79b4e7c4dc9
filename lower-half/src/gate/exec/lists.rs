//! The arguments and the environment of a new program, in memory of their own.
//!
//! Rules of this place: those of `gate::exec`.

use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering;

use super::{KEPT, KEPT_COUNT, LIBRARY, LOWER, give_back};
use crate::arch::syscall::{failed, syscall6};
use crate::gate::{holdings, user};
use crate::ground::environment::{AUDIT, PRELOAD, keeper};
use crate::ground::inherited;
use crate::threads::registry::Thread;

/// Memory for the lists that are passed to an `execve`.
pub struct ExecLists {
    start: usize,
    bytes: usize,
    used: usize,
}

/// Whether the kernel could read the list and every string in it.
pub fn sound(list: usize) -> bool {
    let mut known = user::NO_PAGE;
    let mut can_be_read = |index| user::text_of_many(entry(list, index), &mut known).is_some();
    user::list_length(list).is_some_and(|entries| (0..entries).all(&mut can_be_read))
}

/// Whether an environment may name libraries to preload, so that ours may be among them. One that cannot be read is the kernel's to refuse.
pub fn preloads(list: usize) -> bool {
    let mut known = user::NO_PAGE;
    let mut names_some = |index| user::begins(entry(list, index), PRELOAD, &mut known);
    let entries = user::list_length(list).unwrap_or(0);
    (0..entries).any(|index| names_some(index) == Some(true))
}

/// Entries of a NULL-terminated list of pointers that is [`sound`].
fn count(list: usize) -> usize {
    user::list_length(list).unwrap_or(0)
}

fn entry(list: usize, index: usize) -> usize {
    // SAFETY: every caller's list can be read up to its NULL, and its index is below the list's length (`count`), so the entry can be read.
    unsafe { (list as *const usize).add(index).read_unaligned() }
}

fn text(pointer: usize) -> &'static [u8] {
    // SAFETY: every caller passes a string of a list that is `sound`, or one of the launch's own, which end in NUL.
    unsafe { CStr::from_ptr(pointer as *const c_char) }.to_bytes()
}

impl ExecLists {
    pub fn map(path: usize, arguments: usize, environment: usize) -> Option<ExecLists> {
        let variables = count(environment);
        let preload: usize = (0..variables)
            .map(|index| text(entry(environment, index)))
            .filter(|variable| variable.starts_with(PRELOAD) || variable.starts_with(AUDIT))
            .map(|variable| variable.len() + keeper(PRELOAD).len() + 16)
            .sum();
        let pointers = count(arguments) + variables + KEPT_COUNT.load(Ordering::Relaxed) + 24;
        let bytes = (8 * pointers + preload + 4096 + usize::from(path != 0)) & !4095;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        // SAFETY: the kernel chooses a free address for this memory.
        let start =
            unsafe { syscall6(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) };
        if failed(start) {
            return None;
        }
        if let Some(thread) = Thread::current().filter(|thread| thread.shares_memory()) {
            // The parent unmaps it when this child has gone.
            thread
                .notes()
                .scratch
                .store(start as u64, Ordering::Relaxed);
            thread
                .notes()
                .scratch_bytes
                .store(bytes as u64, Ordering::Relaxed);
        }
        Some(ExecLists {
            start: start as usize,
            bytes,
            used: 0,
        })
    }

    pub fn unmap(self) {
        if let Some(thread) = Thread::current().filter(|thread| thread.shares_memory()) {
            thread.notes().scratch.store(0, Ordering::Relaxed);
        }
        give_back(self.start, self.bytes);
    }

    fn push(&mut self, pointer: usize) {
        if self.used + 8 <= self.bytes {
            // SAFETY: the eight bytes lie in the room's own mapping, as was just checked.
            unsafe { ((self.start + self.used) as *mut usize).write_unaligned(pointer) };
            self.used += 8;
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        if self.used + bytes.len() <= self.bytes {
            // SAFETY: the bytes lie in the room's own mapping, as was just checked, and their source lies elsewhere.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    (self.start + self.used) as *mut u8,
                    bytes.len(),
                );
            }
            self.used += bytes.len();
        }
    }

    fn list(&self) -> usize {
        self.start + self.used
    }

    /// `lower VERB PATH -- ARGUMENTS`.
    pub fn arguments(&mut self, verb: &'static CStr, path: usize, arguments: usize) -> usize {
        let list = self.list();
        self.push(LOWER.load(Ordering::Relaxed) as usize);
        self.push(verb.as_ptr() as usize);
        self.push(path);
        self.push(c"--".as_ptr() as usize);
        let given = count(arguments);
        if given == 0 {
            self.push(path);
        }
        (0..given).for_each(|index| self.push(entry(arguments, index)));
        self.push(0);
        list
    }

    /// Builds the environment without the upper half's library; if the lower half takes over, with the variables that it needs. `split`: the lower half takes
    /// over, with these signals held, which the application does not block.
    pub fn environment(&mut self, environment: usize, split: Option<u64>) -> usize {
        let (split, held) = (split.is_some(), split.unwrap_or(0));
        let variables = count(environment);
        let (mut preload, mut audit) = (0, 0);
        for variable in (0..variables).map(|index| text(entry(environment, index))) {
            if variable.starts_with(PRELOAD) {
                preload = self.without_library(variable, split);
            }
            if let Some(value) = variable.strip_prefix(AUDIT)
                && split
            {
                audit = self.list();
                for part in [keeper(AUDIT), value, b"\0"] {
                    self.push_bytes(part);
                }
            }
        }
        let holds = self.list();
        let holds = match holdings::variable().filter(|_| split) {
            Some(variable) => {
                self.push_bytes(&variable);
                holds
            }
            None => 0,
        };
        let blocked = self.list();
        let blocked = match held {
            0 => 0,
            held => {
                self.push_bytes(&inherited::held_variable(held));
                blocked
            }
        };
        self.used = (self.used + 7) & !7;
        let list = self.list();
        for index in 0..variables {
            let variable = entry(environment, index);
            let replaced = text(variable).starts_with(PRELOAD)
                || (audit != 0 && text(variable).starts_with(AUDIT));
            if !replaced {
                self.push(variable);
            }
        }
        for replacement in [preload, audit] {
            if replacement != 0 {
                self.push(replacement);
            }
        }
        if split {
            let kept = KEPT.load(Ordering::Relaxed) as usize;
            (0..KEPT_COUNT.load(Ordering::Relaxed)).for_each(|index| self.push(entry(kept, index)));
            for variable in [holds, blocked] {
                if variable != 0 {
                    self.push(variable);
                }
            }
        }
        self.push(0);
        list
    }

    /// Builds `LD_PRELOAD=...` without our library, under the lower half's name if the lower half takes over; returns 0 if the list is empty.
    fn without_library(&mut self, variable: &[u8], split: bool) -> usize {
        let library = LIBRARY.load(Ordering::Relaxed) as usize;
        let library = if library == 0 { &[][..] } else { text(library) };
        let at = self.list();
        self.push_bytes(if split { keeper(PRELOAD) } else { PRELOAD });
        let empty = self.used;
        let others = variable
            .get(PRELOAD.len()..)
            .unwrap_or(&[])
            .split(|byte| *byte == b':' || *byte == b' ');
        for other in others.filter(|other| !other.is_empty() && *other != library) {
            if self.used > empty {
                self.push_bytes(b":");
            }
            self.push_bytes(other);
        }
        if self.used == empty {
            return 0;
        }
        self.push_bytes(b"\0");
        at
    }
}
