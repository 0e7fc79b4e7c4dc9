//! System V semaphore sets and message queues that the application uses: objects of the system that no file of the process leads to. Their ids are noted in
//! calls that return or use one, so that an image can hold their state.
//!
//! Rules of this place: [`on_get`] and [`on_use`] run in the trap's handler.

use super::call::{Call, errno};
use crate::arch::syscall::{self, failed, syscall3, syscall4};
use crate::ground::lock::Lock;

/// The kind of object that an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Semaphores,
    Queue,
}

/// The number of objects that can be noted.
const MOST: usize = 512;

struct Known {
    list: [Option<(Object, i32)>; MOST],
    /// There were more objects than fit.
    full: bool,
}

static KNOWN: Lock<Known> = Lock::new(Known {
    list: [None; MOST],
    full: false,
});

impl Known {
    fn note(&mut self, one: (Object, i32)) {
        if self.list.contains(&Some(one)) {
            return;
        }
        if self.list.iter().all(Option::is_some) {
            self.forget(|(object, id)| !exists(object, id));
        }
        match self.list.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(one),
            None => self.full = true,
        }
    }

    fn forget(&mut self, gone: impl Fn((Object, i32)) -> bool) {
        for place in &mut self.list {
            if place.is_some_and(&gone) {
                *place = None;
            }
        }
    }
}

/// Whether an object has not been removed. A direct system call, because the trap calls this too.
fn exists(object: Object, id: i32) -> bool {
    // More than the kernel's structures have.
    let mut status = [0u64; 32];
    let (id, stat, status) = (
        id as usize,
        libc::IPC_STAT as usize,
        status.as_mut_ptr() as usize,
    );
    // SAFETY: the kernel writes at most one status structure, for which the place on this stack has room.
    let result = unsafe {
        match object {
            Object::Semaphores => syscall4(libc::SYS_semctl, id, 0, stat, status),
            Object::Queue => syscall3(libc::SYS_msgctl, id, stat, status),
        }
    };
    ![errno(libc::EINVAL), errno(libc::EIDRM)].contains(&result)
}

/// Notes an object that the application uses.
pub fn note(object: Object, id: i32) {
    KNOWN.lock().note((object, id));
}

/// `semget`, `msgget`.
pub fn on_get(call: &mut Call, object: Object) -> isize {
    let result = call.make();
    if !failed(result) {
        note(object, result as i32);
    }
    result
}

/// Answers `msgsnd` and `msgrcv`: the id may have come from anywhere.
pub fn on_use(call: &mut Call, object: Object) -> isize {
    note(object, call.argument(0) as i32);
    call.redirect_plain()
}

/// Lets the list be changed.
fn with<R>(action: impl FnOnce(&mut Known) -> R) -> R {
    let mask = syscall::set_mask(u64::MAX);
    let result = action(&mut KNOWN.lock());
    syscall::set_mask(mask);
    result
}

/// Returns the objects that have been noted.
pub fn noted() -> Vec<(Object, i32)> {
    let list = with(|known| known.list);
    list.into_iter().flatten().collect()
}

/// Forgets objects that no longer exist.
pub fn forget(gone: &[(Object, i32)]) {
    with(|known| known.forget(|one| gone.contains(&one)));
}

/// Whether there were more objects than can be noted.
pub fn lost_count() -> bool {
    with(|known| known.full)
}

/// Runs an action while the list cannot change.
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    let _still = KNOWN.lock();
    action()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_noted_once() {
        let mut known = Known {
            list: [None; MOST],
            full: false,
        };
        known.note((Object::Semaphores, 3));
        known.note((Object::Queue, 3));
        known.note((Object::Queue, 3));
        assert_eq!(known.list.iter().flatten().count(), 2);
        assert!(!known.full);
    }

    #[test]
    fn what_has_been_removed_makes_room() {
        // SAFETY: the call takes numbers and makes a queue, which is this test's own.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
        let mut known = Known {
            // Negative ids do not exist.
            list: core::array::from_fn(|at| Some((Object::Semaphores, -1 - at as i32))),
            full: false,
        };
        known.note((Object::Queue, id));
        known.note((Object::Queue, id));
        assert_eq!(known.list.iter().flatten().count(), 1);
        let mut full = Known {
            list: [Some((Object::Queue, id)); MOST],
            full: false,
        };
        full.note((Object::Semaphores, 0));
        assert!(full.full);
        // SAFETY: the queue is this test's own; IPC_RMID ignores the pointer.
        unsafe { libc::msgctl(id, libc::IPC_RMID, core::ptr::null_mut()) };
    }
}
