//! The log of the newest blocking operations on each clock, for members that come late (`stillpoint_clock::absent`).
//!
//! A stub notes an operation before it counts it; the direct way does both in assembly (`arch::collective`).

use core::sync::atomic::Ordering;

use stillpoint_clock::absent::{Kind, Operation, REMEMBERED};

use super::cells;
use crate::ground::abi;
use crate::ground::arch;
use crate::ground::hooks::HOOKS;
use crate::ground::object::Object;

/// The log's entry for an operation.
#[derive(Clone, Copy)]
pub struct Note {
    pub kind: Kind,
    pub count: i32,
    /// The root as the application has it.
    pub root: i32,
    pub datatype: *mut Object,
}

impl Note {
    /// The entry for an operation that cannot be carried out in advance.
    pub const NOTHING: Note = Note {
        kind: Kind::Unknown,
        count: 0,
        root: 0,
        datatype: core::ptr::null_mut(),
    };

    /// Notes the operation that is about to be counted on a clock.
    #[inline]
    pub fn write(&self, index: u32) {
        if self.kind == Kind::Unknown {
            return;
        }
        let room = cells::room(index);
        let (log, number) = (&room.log, room.cell.count.seq());
        let place = number as usize % REMEMBERED;
        log.counts[place].store(self.count, Ordering::Relaxed);
        log.roots[place].store(self.root, Ordering::Relaxed);
        log.types[place].store(self.datatype as u64, Ordering::Relaxed);
        log.numbers[self.kind as usize - 1][place].store(number as u32, Ordering::Release);
    }
}

/// `UpperHooks::remembered`.
///
/// Only predefined datatypes are told: any other one may have been freed since, and its place may be another one's.
///
/// # Safety
/// `result` must be writable.
pub unsafe extern "C" fn remembered(index: u32, number: u64, result: *mut Operation) -> u32 {
    if index >= HOOKS.clock_count.load(Ordering::SeqCst) {
        return 0;
    }
    let room = cells::room(index);
    let there = |seq: u64| 0 < number && number <= seq && number + REMEMBERED as u64 > seq + 1;
    if !there(room.cell.count.seq()) {
        return 0;
    }
    let (log, before) = (&room.log, number - 1);
    let place = before as usize % REMEMBERED;
    let is_of = |kind: &Kind| {
        log.numbers[*kind as usize - 1][place].load(Ordering::Acquire) == before as u32
    };
    let Some(kind) = Kind::REMEMBERED.into_iter().find(is_of) else {
        return 0;
    };
    let datatype = log.types[place].load(Ordering::Acquire) as *const Object;
    if !arch::is_address(datatype.cast_mut()) {
        return 0;
    }
    // SAFETY: objects are never unmapped.
    let (standard, size) = unsafe { ((*datatype).standard, (*datatype).size) };
    let operation = Operation {
        ggid: room.cell.ggid.load(Ordering::SeqCst),
        number,
        kind: kind as u32,
        root: abi::rank_to_neutral(log.roots[place].load(Ordering::Acquire)),
        teller: room.cell.rank.load(Ordering::SeqCst),
        count: log.counts[place].load(Ordering::Acquire),
        size,
        reserved: 0,
    };
    // The application may have gone on meanwhile.
    let valid = standard != 0 && size > 0 && operation.count >= 0 && operation.teller >= 0;
    if !valid || !there(room.cell.count.seq()) {
        return 0;
    }
    // SAFETY: `result` is writable, by the caller's promise.
    unsafe { result.write(operation) };
    1
}
