//! Access to the stopped upper half, which can be taken back at any moment.
//!
//! A thread that carries out a checkpoint is *inside* while it touches anything of the upper half: its memory, its descriptors,
//! the orders that it gets. It leaves before it waits for a disk or for another process. [`Access::revoke`] keeps others from
//! entering, and returns when every thread has left. Then the upper half may run on, whatever the disk is still busy with.

use std::any::Any;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use stillpoint_image::pages::{Bytes, Pages};

use super::reading::Loadable;
use crate::ground::writing;

/// The error of an access that has been taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the checkpoint was given up")]
pub struct Revoked;

impl From<Revoked> for io::Error {
    fn from(revoked: Revoked) -> io::Error {
        io::Error::other(revoked)
    }
}

/// One attempt's access to the upper half.
#[derive(Default)]
pub struct Access {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    revoked: bool,
    given_up: bool,
    inside: usize,
    /// Changes to the upper half that are undone when these are dropped.
    changes: Vec<Box<dyn Any + Send>>,
    /// Changes that [`Inside::put_back`] does not undo.
    lasting: Vec<Box<dyn Any + Send>>,
}

/// A thread's stay inside.
pub struct Inside<'a>(&'a Access);

impl Access {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes inside until the value is dropped.
    pub fn enter(&self) -> Result<Inside<'_>, Revoked> {
        let mut state = self.state();
        if state.revoked {
            return Err(Revoked);
        }
        state.inside += 1;
        Ok(Inside(self))
    }

    /// Returns whether the access has been taken back.
    pub fn revoked(&self) -> bool {
        self.state().revoked
    }

    /// Returns whether the checkpoint has been given up, or is over.
    pub fn given_up(&self) -> bool {
        self.state().given_up
    }

    /// Takes the access back and ends the checkpoint: when this returns, no thread is inside, and the upper half is as it was.
    pub fn revoke(&self) {
        self.state().given_up = true;
        self.let_go();
    }

    /// Takes the access back while the checkpoint goes on: the rest of it does not need the upper half.
    pub fn let_go(&self) {
        let mut state = self.state();
        state.revoked = true;
        while state.inside > 0 {
            state = self
                .left
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.changes.clear();
        state.lasting.clear();
    }
}

impl Inside<'_> {
    /// Keeps a change to the upper half until the access is taken back.
    pub fn lasts(&self, change: impl Any + Send) {
        self.0.state().lasting.push(Box::new(change));
    }

    /// Keeps a change to the upper half until it is [put back](Inside::put_back), or the access is taken back.
    pub fn changes(&self, change: impl Any + Send) {
        self.0.state().changes.push(Box::new(change));
    }

    /// Undoes the changes of [`Inside::changes`].
    pub fn put_back(&self) {
        self.0.state().changes.clear();
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.inside -= 1;
        if state.inside == 0 {
            self.0.left.notify_all();
        }
    }
}

/// Memory of this process, readable only from inside.
pub struct Memory<'a> {
    access: &'a Access,
    loadable: &'a Loadable,
}

impl<'a> Memory<'a> {
    /// # Safety
    /// Loadable memory must stay so, and nothing may write to what is read through it, as long as the access is not revoked.
    pub unsafe fn through(access: &'a Access, loadable: &'a Loadable) -> Memory<'a> {
        Memory { access, loadable }
    }

    /// Returns the memory at these addresses, to be copied out.
    pub fn bytes(&self, addresses: std::ops::Range<usize>) -> Bytes<'_> {
        Bytes::Elsewhere {
            pages: self,
            from: addresses.start as u64,
            length: addresses.len(),
        }
    }
}

impl Pages for Memory<'_> {
    fn copy(&self, from: u64, into: &mut [u8]) -> io::Result<()> {
        writing::step();
        let _inside = self.access.enter()?;
        // SAFETY: the caller of `through` says that loadable memory stays as long as the access is not revoked, and a revocation waits for this thread, which
        // is inside.
        unsafe { self.loadable.copy(from as usize, into) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_gets_in_when_it_has_been_taken_back() {
        let access = Access::default();
        let text = *b"what is here";
        let loadable = Loadable::default();
        // SAFETY: the text and the list live longer than this memory, and nothing writes to the text.
        let memory = unsafe { Memory::through(&access, &loadable) };
        let start = text.as_ptr() as usize;
        let mut copied = [0; 4];
        let bytes = memory.bytes(start..start + text.len());
        bytes.part(5, 4).copy(&mut copied).unwrap();
        assert_eq!(&copied, b"is h");
        access.revoke();
        assert!(access.revoked() && access.enter().is_err());
        assert!(bytes.part(0, 4).copy(&mut copied).is_err());
        assert_eq!(&copied, b"is h");
    }

    #[test]
    fn it_is_taken_back_when_everybody_has_left_and_changes_are_undone() {
        struct Undone(Arc<AtomicBool>);
        impl Drop for Undone {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let (access, undone) = (Access::default(), Arc::new(AtomicBool::new(false)));
        let (done, revoked) = mpsc::channel();
        thread::scope(|scope| {
            let inside = access.enter().unwrap();
            inside.changes(Undone(Arc::clone(&undone)));
            scope.spawn(|| {
                access.revoke();
                done.send(()).unwrap();
            });
            assert!(revoked.recv_timeout(Duration::from_millis(50)).is_err());
            assert!(!undone.load(Ordering::SeqCst));
            drop(inside);
            revoked.recv_timeout(Duration::from_secs(20)).unwrap();
            assert!(undone.load(Ordering::SeqCst));
        });
    }
}
