//! Arrays of handles on their way to the lower half.

use core::cell::UnsafeCell;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::abi::{self, Handle, ListOf};
use crate::ground::object::Object;

/// An array of handles with room for their words. The words are read again whenever they are used, for a
/// restart changes them.
pub struct Words {
    kind: HandleKind,
    objects: Box<[*mut Object]>,
    words: Box<[UnsafeCell<Word>]>,
    null: bool,
}

impl Words {
    /// The first `count` handles of an array of the application's.
    ///
    /// # Safety
    /// `handles` must be null or have `count` elements.
    pub unsafe fn new<H: Handle>(kind: HandleKind, handles: ListOf<H>, count: usize) -> Self {
        let count = if handles.is_null() { 0 } else { count };
        // SAFETY: the array is not null if `count` is not 0, and has so many handles, by the caller's promise.
        let objects: Box<[*mut Object]> = unsafe { handles.objects(count) }.collect();
        let words = objects.iter().map(|_| UnsafeCell::new(0)).collect();
        Self {
            kind,
            objects,
            words,
            null: handles.is_null(),
        }
    }

    /// The objects.
    pub fn objects(&self) -> &[*mut Object] {
        &self.objects
    }

    /// The current words, at an address that stays.
    ///
    /// # Safety
    /// One thread at a time; the handles must be alive or freed ones.
    pub unsafe fn refreshed(&self) -> *const Word {
        if self.null {
            return core::ptr::null();
        }
        for (object, word) in self.objects.iter().zip(&self.words) {
            // SAFETY: the array is this thread's now.
            unsafe { *word.get() = abi::word(self.kind, *object) };
        }
        self.words.as_ptr().cast()
    }
}
