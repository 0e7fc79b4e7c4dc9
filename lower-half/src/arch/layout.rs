//! The memory layout: the parts of the gate region, and the rooms of the arena.
//!
//! A stopped application's stack may lead to a restorer, a trampoline or a call under way. The next launch must find these at the same address, so they lie in
//! the gate region, at addresses that never change. Every launch makes the gate region anew; images hold the arena.

use core::ops::Range;

use stillpoint_wrappers::gate::{
    ARENA_END, ARENA_START, CODE_END, GATE_ADDRESS, GATE_BYTES, GatePage, LOW_END,
};

/// Words that the springboard reads: see [`Slot`].
pub const SLOTS: usize = GATE_ADDRESS + 0x1000;
/// The springboard: code at fixed addresses (`arch::springboard`).
pub const SPRINGBOARD: usize = GATE_ADDRESS + 0x2000;
pub const SPRINGBOARD_BYTES: usize = 0x1000;
/// The short way of system calls: code whose first address never changes, a page (`arch::short`).
pub const SHORT_WAY: usize = GATE_ADDRESS + 0x3000;
/// One bit for each descriptor, set if it belongs to the upper half (`gate::descriptors`).
pub const DESCRIPTORS: usize = GATE_ADDRESS + 0x4000;
/// The number of descriptors that have a bit; higher ones always belong to the upper half.
pub const DESCRIPTOR_LIMIT: usize = 0x1_0000;
/// The path of the application's executable, NUL-terminated.
pub const EXE_PATH: usize = GATE_ADDRESS + 0x6000;
pub const EXE_PATH_BYTES: usize = 0x1000;

const _: () = assert!(size_of::<GatePage>() <= 0x1000);
const _: () = assert!(EXE_PATH + EXE_PATH_BYTES <= GATE_ADDRESS + GATE_BYTES);
const _: () = assert!(DESCRIPTORS + DESCRIPTOR_LIMIT / 8 <= EXE_PATH);

/// The size of a thread's stack for handlers (space for a few signal frames, of up to 16 KB each, and for the handlers themselves), and the offset from GS at
/// which its address lies.
pub const HANDLER_STACK_BYTES: usize = 96 * 1024;
pub const HANDLER_STACK_AT: usize = 200;
/// A thread's flag: it is a child process that shares its parent's memory until it execs.
pub const SHARES_MEMORY: u64 = 2;

/// Indexes of the words at [`SLOTS`].
#[repr(usize)]
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// `signals::enter` and `signals::leave`, for the trampoline.
    EnterHandler = 0,
    LeaveHandler = 1,
    /// The process's id in the kernel, and the stop signal.
    RealPid = 2,
    StopSignal = 3,
    /// The kernel's vDSO functions, or the springboard's own system calls in their place.
    ClockGettime = 4,
    Gettimeofday = 5,
    Time = 6,
    Getcpu = 7,
    /// The process's id as the application knows it.
    KnownPid = 8,
    /// Of the short way: a word that is not 0 while it is closed; the function that answers; the pieces of the springboard that note a descriptor, close one,
    /// and make a call unchanged.
    ShortOff = 9,
    ShortAnswer = 10,
    ShortNoting = 11,
    ShortClose = 12,
    ShortPlain = 13,
    /// The short way's data about large mappings.
    ShortLarge = 14,
    /// The calls that go the short way from the C library's `syscall`, a bit each.
    ShortNumbers = 15,
    /// The signals of which the kernel has another action than the application, although that handles none of them: a bit each.
    ShortOtherActions = 16,
}

/// The address of a word at [`SLOTS`].
pub const fn slot(slot: Slot) -> usize {
    SLOTS + 8 * slot as usize
}

/// Rooms of the arena, from low to high addresses; then the rooms that are used when those are full.
///
/// ```text
///  0x5501_0000_0000  vDSO image
///  0x5501_405f_0000  islands of the executable's calls
///  0x5501_4060_0000  executable (position-independent ones)
///  0x5510_0006_0000  stack of the main thread, growing down from STACK_TOP
///  0x5511_0009_0000  program break
///  0x5531_0180_0000  mappings smaller than 2 MiB
///  0x5539_00c0_0000  mappings of 2 MiB and more
///
///  0x0300_0000_0000  files and code, when theirs are
///  0x1200_0000_0000  mappings smaller than 2 MiB, when their room is full
///  0x1400_0000_0000  mappings of 2 MiB and more, when theirs is
/// ```
///
/// Each has a shade of its own. Some processors look a cache line up by a hash of its linear address (AMD's families 17h and 19h, Software Optimization Guide
/// 2.6.2, "microtag"). They confuse two lines with the same hash at the same place of their pages, and miss. With a heap at `0x1010_0000_0000` and a stack
/// below `0x100f_0000_0000`, the second pages of both have the same hash, and `MPI_Bcast` of 1 KB from there takes 12 % longer. With random addresses, as the
/// kernel gives them, this happens once in 256 times.
pub const VDSO: usize = ARENA_START;
pub const EXECUTABLE: usize = ARENA_START + 0x4060_0000;
/// Islands of the executable's calls (`gate::sites`).
pub const ISLANDS: Range<usize> = EXECUTABLE - 0x1_0000..EXECUTABLE;
pub const STACK_TOP: usize = ARENA_START + 0x0f_0006_0000;
/// The size that a stack without a limit counts as. There are 58 GiB below its top.
pub const STACK_MOST: usize = 0x4_0000_0000;
pub const BREAK_START: usize = ARENA_START + 0x10_0009_0000;
pub const BREAK_END: usize = ARENA_START + 0x30_0000_0000;
pub const SMALL: Range<usize> = ARENA_START + 0x30_0180_0000..ARENA_START + 0x38_0000_0000;
pub const LARGE: Range<usize> = SMALL.end + 0x00c0_0000..ARENA_END;
pub const MORE_CODE: Range<usize> = 0x0300_0000_0000..CODE_END;
pub const MORE_SMALL: Range<usize> = 0x1200_0000_0000..0x1400_0000_0000;
pub const MORE_LARGE: Range<usize> = MORE_SMALL.end..LOW_END;

const _: () = assert!(GATE_ADDRESS + GATE_BYTES <= ARENA_START);

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits 12 to 27 of an address, folded in two as the processors' microtags fold them (Lipp and others, "Take A Way", 2020,
    /// section 4.1).
    fn shade(address: usize) -> usize {
        const PAIRS: [(u32, u32); 8] = [
            (12, 27),
            (13, 26),
            (14, 25),
            (15, 20),
            (16, 21),
            (17, 22),
            (18, 23),
            (19, 24),
        ];
        let bit = |(low, high)| (address >> low ^ address >> high) & 1;
        PAIRS
            .into_iter()
            .rev()
            .fold(0, |shade, pair| shade << 1 | bit(pair))
    }

    /// The pages of a room that nearly every program uses.
    const OFTEN: usize = 16;

    #[test]
    fn pages_that_are_used_often_share_no_shade() {
        let page = |start: usize| (0..OFTEN).map(move |page| start + page * 0x1000);
        let rooms = [VDSO, EXECUTABLE, BREAK_START, SMALL.start, LARGE.start];
        let mut shades: Vec<usize> = rooms
            .iter()
            .flat_map(|room| page(*room))
            .map(shade)
            .collect();
        shades.extend(page(STACK_TOP - OFTEN * 0x1000).map(shade));
        let all = shades.len();
        shades.sort_unstable();
        shades.dedup();
        assert_eq!(shades.len(), all);
    }

    #[test]
    fn an_address_and_its_mirror_have_one_shade() {
        assert_eq!(shade(0x1010_0000_1000), shade(0x100e_ffff_e000));
        assert_ne!(shade(BREAK_START + 0x1000), shade(STACK_TOP - 0x2000));
    }
}
