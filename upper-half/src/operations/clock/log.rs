//! What each clock remembers of the newest blocking operations, for members that come late (`stillpoint_clock::absent`).
//!
//! A stub notes an operation before it counts it; the direct way does both in assembly (`arch::collective`).

use core::sync::atomic::Ordering;

use stillpoint_clock::absent::{Kind, Operation, REMEMBERED};

use super::cells;
use crate::ground::abi;
use crate::ground::arch;
use crate::ground::hooks::HOOKS;
use crate::ground::object::Object;

/// What is noted of an operation.
#[derive(Clone, Copy)]
pub struct Note {
    pub kind: Kind,
    pub count: i32,
    /// As the application has it.
    pub root: i32,
    pub datatype: *mut Object,
}

impl Note {
    /// Of an operation that cannot be carried out in advance.
    pub const NOTHING: Note = Note {
        kind: Kind::Unknown,
        count: 0,
        root: 0,
        datatype: core::ptr::null_mut(),
    };

    /// Notes the operation that is about to be counted on a clock.
    #[inline]
    pub fn write(&self, index: u32) {
        let room = cells::room(index);
        let (log, place) = (&room.log, room.cell.count.seq() as usize % REMEMBERED);
        if self.kind != Kind::Unknown {
            log.counts[place].store(self.count, Ordering::Relaxed);
            log.roots[place].store(self.root, Ordering::Relaxed);
            log.types[place].store(self.datatype as u64, Ordering::Relaxed);
        }
        log.kinds[place].store(self.kind as u8, Ordering::Release);
    }
}

/// `UpperHooks::remembered`.
///
/// Only predefined datatypes are told of: any other one may have been freed since, and its place may be another one's.
///
/// # Safety
/// `result` must be writable.
pub unsafe extern "C" fn remembered(index: u32, number: u64, result: *mut Operation) -> u32 {
    if index >= HOOKS.clock_count.load(Ordering::SeqCst) {
        return 0;
    }
    let room = cells::room(index);
    let there = |seq: u64| number <= seq && number + REMEMBERED as u64 > seq + 1;
    if number <= room.cell.count.tentative() || !there(room.cell.count.seq()) {
        return 0;
    }
    let (log, place) = (&room.log, (number - 1) as usize % REMEMBERED);
    let kind = Kind::from_word(u32::from(log.kinds[place].load(Ordering::Acquire)));
    let datatype = log.types[place].load(Ordering::Acquire) as *const Object;
    if kind == Kind::Unknown || !arch::is_address(datatype.cast_mut()) {
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
    // SAFETY: the caller's place.
    unsafe { result.write(operation) };
    1
}
