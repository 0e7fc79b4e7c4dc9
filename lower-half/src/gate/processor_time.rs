//! Processor time: the time that earlier launches have used is added to the kernel's count in this one, so that no clock goes back.
//!
//! Rules of this place: handlers run in the trap, after a restart only; [`save`] and [`restore`] run on threads of the lower half while the application is
//! stopped.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI64, Ordering};

use super::call::Call;
use super::{SavedStateError, errand, identity, naming, user};
use crate::arch::syscall::{failed, syscall3};
use crate::threads::registry::{self, Thread};

const SECOND: i64 = 1_000_000_000;

/// Nanoseconds: in all, in the program itself, and in the kernel on its behalf.
pub type Time = [i64; 3];

/// The time that is added for the process, and for its children that have been waited for.
static PROCESS: [AtomicI64; 3] = [const { AtomicI64::new(0) }; 3];
static CHILDREN: [AtomicI64; 3] = [const { AtomicI64::new(0) }; 3];

fn load(words: &[AtomicI64; 3]) -> Time {
    [0, 1, 2].map(|at| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed)))
}

fn store(words: &[AtomicI64; 3], time: Time) {
    for (word, value) in words.iter().zip(time) {
        word.store(value, Ordering::Relaxed);
    }
}

/// A forked child has used nothing yet.
pub fn start_forked() {
    for words in [&PROCESS, &CHILDREN] {
        store(words, [0; 3]);
    }
    for thread in registry::each() {
        store(thread.used(), [0; 3]);
    }
}

/// Returns the time that is added to a clock, or `None` if it is not a clock of this process's processor time.
fn added(clock: i32) -> Option<i64> {
    const OF_THREAD: i32 = 4;
    const COUNTED: i32 = 3;
    let own = || Thread::current().map(|thread| load(thread.used()));
    let (time, counted) = match clock {
        libc::CLOCK_PROCESS_CPUTIME_ID => (Some(load(&PROCESS)), 2),
        libc::CLOCK_THREAD_CPUTIME_ID => (own(), 2),
        0.. => return None,
        named => {
            let (id, counted) = (!(named >> 3) as u32, named & COUNTED);
            let time = match named & OF_THREAD {
                0 if id == 0 || id == identity::virtual_pid() => Some(load(&PROCESS)),
                0 => None,
                _ if id == 0 => own(),
                _ => registry::each()
                    .find(|thread| thread.virtual_tid() == id)
                    .map(|thread| load(thread.used())),
            };
            (time, counted)
        }
    };
    let [all, user, system] = time?;
    match counted {
        0 => Some(user + system),
        1 => Some(user),
        2 => Some(all),
        _ => None,
    }
}

/// `clock_gettime` of a clock of processor time.
pub fn on_clock(call: &mut Call) -> isize {
    let result = naming::on_clock(call);
    let place = call.argument(1);
    if let Some(more) = added(call.argument(0) as i32).filter(|_| !failed(result))
        && let Ok([seconds, nanoseconds]) = user::read::<[usize; 2]>(place)
    {
        let time = (seconds as i64 * SECOND + nanoseconds as i64 + more).max(0);
        let time = [time / SECOND, time % SECOND].map(|word| word as usize);
        return user::write(place, time).map_or_else(|error| error, |()| result);
    }
    result
}

/// `getrusage`.
pub fn on_rusage(call: &mut Call) -> isize {
    let result = call.make();
    let more = match call.argument(0) as i32 {
        libc::RUSAGE_SELF => Some(load(&PROCESS)),
        libc::RUSAGE_CHILDREN => Some(load(&CHILDREN)),
        libc::RUSAGE_THREAD => Thread::current().map(|thread| load(thread.used())),
        _ => None,
    };
    let place = call.argument(1);
    if let Some([_, user, system]) = more.filter(|_| !failed(result))
        && let Ok(times) = user::read::<[usize; 4]>(place)
    {
        let [a, b] = later([times[0], times[1]], user);
        let [c, d] = later([times[2], times[3]], system);
        return user::write(place, [a, b, c, d]).map_or_else(|error| error, |()| result);
    }
    result
}

/// Returns a `timeval` plus so many nanoseconds.
fn later([seconds, microseconds]: [usize; 2], more: i64) -> [usize; 2] {
    let time = (seconds as i64 * 1_000_000 + microseconds as i64 + more / 1000).max(0);
    [time / 1_000_000, time % 1_000_000].map(|word| word as usize)
}

/// `times`.
pub fn on_times(call: &mut Call) -> isize {
    /// Nanoseconds: `sysconf(_SC_CLK_TCK)` is 100 for every program.
    const TICK: i64 = SECOND / 100;
    let result = call.make();
    let place = call.argument(0);
    if place != 0
        && !failed(result)
        && let Ok(times) = user::read::<[usize; 4]>(place)
    {
        let ([_, user, system], [_, of_children, for_children]) = (load(&PROCESS), load(&CHILDREN));
        let more = [user, system, of_children, for_children];
        let later = |at: usize| {
            let (ticks, more) = (times.get(at).copied(), more.get(at).copied());
            (ticks.unwrap_or(0) as i64 + more.unwrap_or(0) / TICK).max(0) as usize
        };
        return user::write(place, [0, 1, 2, 3].map(later)).map_or_else(|error| error, |()| result);
    }
    result
}

/// Reads one clock and one `getrusage` from the kernel.
fn counted(clock: i32, whose: i32) -> Time {
    let mut time = [0i64; 2];
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills both structures, which live on this stack; zeros are values of them too.
    let usage = unsafe {
        syscall3(
            libc::SYS_clock_gettime,
            clock as usize,
            time.as_mut_ptr() as usize,
            0,
        );
        syscall3(
            libc::SYS_getrusage,
            whose as usize,
            usage.as_mut_ptr() as usize,
            0,
        );
        usage.assume_init()
    };
    let of = |time: libc::timeval| time.tv_sec * SECOND + time.tv_usec * 1000;
    [
        time[0] * SECOND + time[1],
        of(usage.ru_utime),
        of(usage.ru_stime),
    ]
}

fn of_process() -> Time {
    counted(libc::CLOCK_PROCESS_CPUTIME_ID, libc::RUSAGE_SELF)
}

fn of_children() -> Time {
    let [_, user, system] = counted(libc::CLOCK_PROCESS_CPUTIME_ID, libc::RUSAGE_CHILDREN);
    [user + system, user, system]
}

/// An errand that reads the thread's used time: only the thread itself can.
///
/// # Safety
/// `place` must lead to a `Time` that nothing else uses until this returns.
unsafe fn tell(place: usize) -> isize {
    // SAFETY: the errand's sender gave a pointer to its own `Time`, waits until this ends, and does not touch it before.
    unsafe { *(place as *mut Time) = counted(libc::CLOCK_THREAD_CPUTIME_ID, libc::RUSAGE_THREAD) };
    0
}

fn sum(one: Time, other: Time) -> Time {
    [0, 1, 2]
        .map(|at: usize| one.get(at).copied().unwrap_or(0) + other.get(at).copied().unwrap_or(0))
}

/// Returns what an image must hold: the process's time, its children's, and each thread's behind its id.
pub fn save() -> Vec<u8> {
    let mut words = Vec::new();
    words.extend(sum(of_process(), load(&PROCESS)));
    words.extend(sum(of_children(), load(&CHILDREN)));
    for thread in registry::each() {
        let mut time = Time::default();
        // SAFETY: the threads stand still while an image is made; `tell` expects a pointer to a `Time`, which lives on this stack until `send` returns.
        if unsafe { errand::send(thread, tell, &raw mut time as usize) }.is_some() {
            words.push(i64::from(thread.virtual_tid()));
            words.extend(sum(time, load(thread.used())));
        }
    }
    words.into_iter().flat_map(i64::to_le_bytes).collect()
}

/// Takes over the state from [`save`] in another launch, on the main thread; the launch's own time so far does not count.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let words = super::words(saved, "processor time", saved.len() / 8)?;
    let words: Vec<i64> = words.into_iter().map(|word| word as i64).collect();
    let time = |at: usize| -> Option<Time> { words.get(at..at + 3)?.try_into().ok() };
    let less = |saved: Time, now: Time| sum(saved, now.map(|time| -time));
    let wrong = SavedStateError::Value {
        part: "processor time",
    };
    let (Some(process), Some(children)) = (time(0), time(3)) else {
        return Err(wrong);
    };
    store(&PROCESS, less(process, of_process()));
    store(&CHILDREN, less(children, of_children()));
    let own = Thread::current();
    for at in (6..words.len()).step_by(4) {
        let (Some(id), Some(used)) = (words.get(at), time(at + 1)) else {
            return Err(wrong);
        };
        let thread = registry::each().find(|thread| i64::from(thread.virtual_tid()) == *id);
        let now = match thread {
            Some(thread) if Some(thread) == own => {
                counted(libc::CLOCK_THREAD_CPUTIME_ID, libc::RUSAGE_THREAD)
            }
            // The other threads have only just been made.
            _ => Time::default(),
        };
        if let Some(thread) = thread {
            store(thread.used(), less(used, now));
        }
    }
    Ok(())
}
