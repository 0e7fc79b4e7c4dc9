//! Keeps interrupted threads out of the short way: a thread that a signal has interrupted there is moved to before the call, or behind it.

use core::sync::atomic::Ordering;

use super::{
    DEPTH, Kept, Large, SITE, TARGET_AT, stillpoint_short_answered, stillpoint_short_blocked,
    stillpoint_short_end, stillpoint_short_general, stillpoint_short_keeps, stillpoint_short_kept,
    stillpoint_short_leaves, stillpoint_short_noted, stillpoint_short_opened,
    stillpoint_short_placed, stillpoint_short_returned, stillpoint_short_returns,
    stillpoint_short_start,
};
use crate::arch::frame::{ARGUMENTS, BEHIND, Frame, PC, RESULT, SP, WORD};
use crate::arch::layout::{SHORT_WAY, Slot, slot};
use crate::arch::syscall::failed;

/// Moves a thread that a signal has interrupted in this code out of it: to before its call, or behind it.
pub fn settle(frame: Frame) {
    let start = &raw const stillpoint_short_start as usize;
    let place = |symbol: *const u8| SHORT_WAY + (symbol as usize - start);
    let rip = frame.register(PC);
    if !(SHORT_WAY..place(&raw const stillpoint_short_end)).contains(&rip) {
        return;
    }
    let within = |from: *const u8, to: *const u8| (place(from)..place(to)).contains(&rip);
    let stack = frame.register(SP);
    if within(
        &raw const stillpoint_short_keeps,
        &raw const stillpoint_short_kept,
    ) {
        frame.set_register(SP, stack + DEPTH);
        return to_before(frame);
    }
    let kept = |at: usize| {
        // SAFETY: between these labels the interrupted code has filled a `Kept` there, on the thread's own stack, and does not go on before the handler
        // returns.
        unsafe { &*(at as *const Kept) }
    };
    if within(
        &raw const stillpoint_short_placed,
        &raw const stillpoint_short_leaves,
    ) && !failed(frame.register(RESULT) as isize)
    {
        // The place is the call's result, on every kernel that runs an application.
        if rip < place(&raw const stillpoint_short_noted) {
            count_large();
        }
        let kept = kept(stack);
        put_back(frame, kept);
        frame.set_register(PC, kept.behind);
        frame.set_register(SP, stack + DEPTH);
        return;
    }
    if rip == place(&raw const stillpoint_short_leaves) {
        frame.set_register(PC, frame.register(BEHIND));
        return;
    }
    let opens = within(
        &raw const stillpoint_short_kept,
        &raw const stillpoint_short_opened,
    );
    if opens
        || within(
            &raw const stillpoint_short_general,
            &raw const stillpoint_short_blocked,
        )
    {
        let kept = kept(stack);
        put_back(frame, kept);
        // The number: not all calling code sets it anew.
        frame.set_register(RESULT, kept.result);
        frame.set_register(SP, stack + DEPTH);
        return to_before(frame);
    }
    if within(
        &raw const stillpoint_short_blocked,
        &raw const stillpoint_short_answered,
    ) {
        return;
    }
    if within(
        &raw const stillpoint_short_answered,
        &raw const stillpoint_short_returned,
    ) {
        let base = match rip == place(&raw const stillpoint_short_returns) {
            true => stack - TARGET_AT,
            false => stack,
        };
        let kept = kept(base);
        put_back(frame, kept);
        frame.set_register(RESULT, kept.result);
        frame.set_register(WORD, kept.word);
        frame.set_register(PC, kept.target);
        frame.set_register(SP, base + DEPTH);
        return;
    }
    to_before(frame);
}

fn count_large() {
    // SAFETY: the gate region is mapped and filled: the code has run.
    unsafe { &*(*(slot(Slot::ShortLarge) as *const *const Large)) }
        .changes
        .fetch_add(1, Ordering::SeqCst);
}

fn put_back(frame: Frame, kept: &Kept) {
    frame.set_register(BEHIND, kept.behind);
    for (register, argument) in ARGUMENTS.into_iter().zip(kept.first) {
        frame.set_register(register, argument);
    }
}

/// Makes the call begin anew.
fn to_before(frame: Frame) {
    frame.set_register(PC, frame.register(BEHIND).wrapping_sub(SITE));
}
