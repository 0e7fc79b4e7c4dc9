//! The record of each thread in an image: the place where it stands, and the state that the kernel and the gate keep for it.

use core::sync::atomic::Ordering;

use stillpoint_image::Thread as Record;
use stillpoint_image::tables::thread_flags;
use stillpoint_refusals::refusal;

use super::CaptureError;
use super::signals::Waiting;
use crate::arch::syscall::syscall3;
use crate::gate::{identity, memory, signals};
use crate::threads::{self, Thread};

/// Returns the upper half's threads, the main one first.
pub fn main_first() -> Result<Vec<Thread>, CaptureError> {
    let main = identity::real_pid();
    let mut list = threads::list();
    list.sort_by_key(|thread| thread.real_tid() != main);
    if list.first().is_none_or(|first| first.real_tid() != main) {
        return Err(CaptureError::Refused(refusal!(
            MainThreadEnded,
            "its main thread has ended while others run on, which cannot be restarted"
        )));
    }
    Ok(list)
}

/// Makes the records of stopped threads.
pub fn of(list: &[Thread], waiting: &Waiting) -> Result<Vec<Record>, CaptureError> {
    list.iter()
        .map(|&thread| {
            if thread.stop_frame() == 0 {
                let tid = thread.virtual_tid();
                return Err(CaptureError::Refused(refusal!(
                    NoAnswer,
                    "its thread {tid} does not stand still: try again"
                )));
            }
            Ok(record(thread, waiting))
        })
        .collect()
}

fn record(thread: Thread, waiting: &Waiting) -> Record {
    let (known, virtual_tid) = (thread.record(), thread.virtual_tid());
    let [believes_sigsys, believes_stop] = signals::beliefs(thread);
    let flags = [
        (
            thread_flags::MAIN,
            thread.real_tid() == identity::real_pid(),
        ),
        (thread_flags::DRIVER, thread.is_driver()),
        (thread_flags::BELIEVES_SIGSYS, believes_sigsys),
        (thread_flags::BELIEVES_STOP, believes_stop),
    ];
    let flags = flags.iter().filter(|(_, set)| *set);
    let (robust_list, robust_list_bytes) = robust_list(thread.real_tid());
    Record {
        virtual_tid,
        flags: flags.fold(0, |all, (flag, _)| all | flag),
        stop_frame: thread.stop_frame() as u64,
        thread_pointer: thread.fs_upper(),
        clear_child_tid: thread.notes().clear_tid.load(Ordering::Relaxed),
        robust_list,
        robust_list_bytes,
        pending_signals: waiting.numbers_of_thread(virtual_tid),
        sent: known.sent.load(Ordering::Relaxed),
        received: known.received.load(Ordering::Relaxed),
        name: name(thread.real_tid()),
    }
}

/// Returns the head of a thread's robust futex list, and its length.
fn robust_list(tid: u32) -> (u64, u64) {
    let (mut head, mut bytes) = (0u64, 0u64);
    // SAFETY: the kernel writes one word to each place; both places live on this stack.
    unsafe {
        syscall3(
            libc::SYS_get_robust_list,
            tid as usize,
            &raw mut head as usize,
            &raw mut bytes as usize,
        )
    };
    if !memory::owns(head as usize) {
        head = 0;
    }
    (head, bytes)
}

/// Returns the name of a thread, which may have any bytes but NUL.
fn name(tid: u32) -> [u8; 16] {
    let told = std::fs::read(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
    let mut name = [0; 16];
    for (to, from) in name
        .iter_mut()
        .take(15)
        .zip(told.strip_suffix(b"\n").unwrap_or(&told))
    {
        *to = *from;
    }
    name
}
