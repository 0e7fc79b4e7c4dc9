//! POSIX timers: the application keeps its timers' ids, whatever the kernel calls them in this launch.
//!
//! Rules of this place: runs in the trap's handler. (`setitimer`'s timers have no ids and can be read from
//! the kernel: they are not trapped, only saved.)

use super::lock::Lock;
use super::trap::{Call, errno};
use super::{SavedStateError, identity, naming, user};
use crate::arch::syscall::{self, failed, syscall3, syscall4};

/// Timers that an application may have at once.
const MOST_TIMERS: usize = 1024;

/// The kernel's `struct sigevent`: value, signal, kind, thread.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    value: u64,
    signal: i32,
    notify: i32,
    thread: i32,
    rest: [i32; 11],
}

const _: () = assert!(size_of::<Event>() == 64);
// SAFETY: integers only, and the sum of their sizes is the structure's.
unsafe impl user::Plain for Event {}

#[derive(Clone, Copy)]
struct Timer {
    used: bool,
    /// The kernel's id in this launch.
    id: i32,
    clock: i32,
    event: Event,
}

const NO_EVENT: Event = Event {
    value: 0,
    signal: 0,
    notify: 0,
    thread: 0,
    rest: [0; 11],
};
const NO_TIMER: Timer = Timer {
    used: false,
    id: 0,
    clock: 0,
    event: NO_EVENT,
};

/// The application's ids are indexes of this table.
static TIMERS: Lock<[Timer; MOST_TIMERS]> = Lock::new([NO_TIMER; MOST_TIMERS]);

/// Makes a timer in the kernel; gives its id there, or an error.
fn create(clock: i32, event: &Event) -> Result<i32, isize> {
    let mut event = *event;
    if event.notify == libc::SIGEV_THREAD_ID {
        event.thread = identity::real_thread(event.thread as u32) as i32;
    }
    let mut id = 0i32;
    // SAFETY: both structures live on this stack.
    let result = unsafe {
        syscall3(
            libc::SYS_timer_create,
            naming::real_clock(clock) as usize,
            &raw const event as usize,
            &raw mut id as usize,
        )
    };
    if failed(result) { Err(result) } else { Ok(id) }
}

/// `timer_create`.
pub fn on_create(call: &mut Call) -> isize {
    let [clock, event, id, ..] = call.arguments();
    let event = match event {
        0 => None,
        event => match user::read::<Event>(event) {
            Ok(event) => Some(event),
            Err(error) => return error,
        },
    };
    let index = match make(clock as i32, event) {
        Ok(index) => index,
        Err(error) => return error,
    };
    match user::write(id, index as i32) {
        Ok(()) => 0,
        Err(error) => {
            delete(index);
            error
        }
    }
}

/// Makes a timer and gives its place in the table.
fn make(clock: i32, event: Option<Event>) -> Result<usize, isize> {
    let mut timers = TIMERS.lock();
    let free = timers.iter_mut().enumerate().find(|(_, timer)| !timer.used);
    let (index, timer) = free.ok_or(errno(libc::EAGAIN))?;
    // The default: SIGALRM with the timer's id as its value.
    let event = event.unwrap_or(Event {
        value: index as u64,
        signal: libc::SIGALRM,
        notify: libc::SIGEV_SIGNAL,
        ..NO_EVENT
    });
    let id = create(clock, &event)?;
    *timer = Timer {
        used: true,
        id,
        clock,
        event,
    };
    Ok(index)
}

/// Deletes a timer that nobody has come to know.
fn delete(index: usize) {
    if let Some(timer) = TIMERS.lock().get_mut(index) {
        // SAFETY: the kernel's id of a timer of ours.
        unsafe { syscall3(libc::SYS_timer_delete, timer.id as usize, 0, 0) };
        timer.used = false;
    }
}

fn kernel_id(call: &Call) -> Option<i32> {
    let timers = TIMERS.lock();
    timers
        .get(call.argument(0) as u32 as usize)
        .filter(|timer| timer.used)
        .map(|timer| timer.id)
}

/// The first argument is a timer's id.
pub fn on_use(call: &mut Call) -> isize {
    let Some(id) = kernel_id(call) else {
        return errno(libc::EINVAL);
    };
    let mut arguments = call.arguments();
    arguments[0] = id as usize;
    call.make_with(arguments)
}

/// `timer_delete`.
pub fn on_delete(call: &mut Call) -> isize {
    let result = on_use(call);
    if !failed(result)
        && let Some(timer) = TIMERS.lock().get_mut(call.argument(0) as u32 as usize)
    {
        timer.used = false;
    }
    result
}

/// Holds the table still.
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    let _still = TIMERS.lock();
    action()
}

/// A forked child has none of its parent's timers.
pub fn start_forked() {
    TIMERS
        .lock()
        .iter_mut()
        .for_each(|timer| timer.used = false);
}

const ITIMERS: [i32; 3] = [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF];
const WORDS: usize = 14;

/// What an image must hold: the interval timers, then every POSIX timer with the time that is left of it.
pub fn save() -> Vec<u8> {
    let mut words = vec![];
    for which in ITIMERS {
        let mut value = [0i64; 4];
        // SAFETY: four words are what `struct itimerval` holds.
        unsafe {
            syscall3(
                libc::SYS_getitimer,
                which as usize,
                value.as_mut_ptr() as usize,
                0,
            )
        };
        words.extend(value.map(|word| word as u64));
    }
    let mask = syscall::set_mask(u64::MAX);
    let timers = TIMERS.lock();
    for (index, timer) in timers.iter().enumerate().filter(|(_, timer)| timer.used) {
        let mut value = [0i64; 4];
        // SAFETY: four words are what `struct itimerspec` holds.
        unsafe {
            syscall3(
                libc::SYS_timer_gettime,
                timer.id as usize,
                value.as_mut_ptr() as usize,
                0,
            )
        };
        // SAFETY: the structure is plain words.
        let event: [u64; 8] = unsafe { core::mem::transmute(timer.event) };
        words.extend([index as u64, timer.clock as u32 as u64]);
        words.extend(event);
        words.extend(value.map(|word| word as u64));
    }
    drop(timers);
    syscall::set_mask(mask);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Takes up what [`save`] gave, in another launch, where the threads have their ids already.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let count = saved.len() / 8;
    if count < 12 || !(count - 12).is_multiple_of(WORDS) {
        return Err(SavedStateError::Length {
            part: "timers",
            bytes: saved.len(),
        });
    }
    let words = super::words(saved, "timers", count)?;
    let (interval, posix) = words.split_at(12);
    for (which, value) in ITIMERS.into_iter().zip(interval.chunks_exact(4)) {
        if value.iter().any(|word| *word != 0) {
            // SAFETY: four words are what `struct itimerval` holds.
            unsafe {
                syscall3(
                    libc::SYS_setitimer,
                    which as usize,
                    value.as_ptr() as usize,
                    0,
                )
            };
        }
    }
    for timer in posix.chunks_exact(WORDS) {
        let (index, clock) = (timer[0] as usize, timer[1] as u32 as i32);
        let mut event = [0u64; 8];
        event.copy_from_slice(&timer[2..10]);
        // SAFETY: the structure is plain words.
        let event: Event = unsafe { core::mem::transmute(event) };
        let mask = syscall::set_mask(u64::MAX);
        let made = create(clock, &event);
        if let (Ok(id), Some(slot)) = (made, TIMERS.lock().get_mut(index)) {
            *slot = Timer {
                used: true,
                id,
                clock,
                event,
            };
        }
        syscall::set_mask(mask);
        let id = made.map_err(|_| SavedStateError::Value { part: "timers" })?;
        // SAFETY: four words are what `struct itimerspec` holds.
        unsafe {
            syscall4(
                libc::SYS_timer_settime,
                id as usize,
                0,
                timer[10..].as_ptr() as usize,
                0,
            )
        };
    }
    Ok(())
}
