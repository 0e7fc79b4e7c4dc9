//! POSIX timers: the application keeps its timers' ids, whatever the kernel's ids are in this launch.
//!
//! An id is the kernel's own, because a timer's signal contains it; a restart makes the kernel give the same ids again. If that fails, ids are translated here
//! and on the way into a handler.
//!
//! Rules of this place: runs in the trap's handler. (`setitimer`'s timers have no ids and can be read from
//! the kernel: they are not trapped, and saved by `capture::process`.)

use super::call::{Call, errno};
use super::{SavedStateError, identity, naming, user};
use crate::arch::syscall::{self, failed, syscall3, syscall4};
use crate::ground::lock::Lock;

/// The number of timers that an application may have at once.
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
    /// The application's id.
    known: i32,
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
const NO_EVENT_BUT_ALARM: Event = Event {
    signal: libc::SIGALRM,
    notify: libc::SIGEV_SIGNAL,
    ..NO_EVENT
};
const NO_TIMER: Timer = Timer {
    used: false,
    known: 0,
    id: 0,
    clock: 0,
    event: NO_EVENT,
};

/// The entries that have ever been used come first, so that unused pages are never read, above all in a forked child.
#[repr(C)]
struct Timers {
    ever_used: usize,
    all: [Timer; MOST_TIMERS],
}

impl Timers {
    const NONE: Timers = Timers {
        ever_used: 0,
        all: [NO_TIMER; MOST_TIMERS],
    };

    fn used(&self) -> impl Iterator<Item = &Timer> {
        let first = self.all.iter().take(self.ever_used);
        first.filter(|timer| timer.used)
    }

    /// Returns the timer that the application knows by this id.
    fn find(&mut self, known: i32) -> Option<&mut Timer> {
        let first = self.all.iter_mut().take(self.ever_used);
        first
            .filter(|timer| timer.used)
            .find(|timer| timer.known == known)
    }

    /// Returns a free entry.
    fn free(&mut self) -> Option<&mut Timer> {
        let place = self.all.iter().position(|timer| !timer.used)?;
        self.ever_used = self.ever_used.max(place + 1);
        self.all.get_mut(place)
    }

    fn forget_all(&mut self) {
        let first = self.all.iter_mut().take(self.ever_used);
        first.for_each(|timer| timer.used = false);
        self.ever_used = 0;
    }
}

static TIMERS: Lock<Timers> = Lock::new(Timers::NONE);

/// Makes a timer in the kernel; returns its id there, or an error.
fn create(clock: i32, event: &Event) -> Result<i32, isize> {
    let mut event = *event;
    if event.notify == libc::SIGEV_THREAD_ID {
        event.thread = identity::real_thread(event.thread as u32) as i32;
    }
    let mut id = 0i32;
    // SAFETY: the kernel reads the event and writes the id, which both live on this stack.
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
    let known = match make(clock as i32, event) {
        Ok(known) => known,
        Err(error) => return error,
    };
    match user::write(id, known) {
        Ok(()) => 0,
        Err(error) => {
            delete(known);
            error
        }
    }
}

/// Makes a timer and returns the application's id of it.
fn make(clock: i32, event: Option<Event>) -> Result<i32, isize> {
    let mut timers = TIMERS.lock();
    if timers.used().count() == MOST_TIMERS {
        return Err(errno(libc::EAGAIN));
    }
    // The default: SIGALRM with the timer's id as its value, which is not known yet.
    let id = create(clock, &event.unwrap_or(NO_EVENT_BUT_ALARM))?;
    let taken = |known| timers.used().any(|timer| timer.known == known);
    let known = (id..).find(|known| !taken(*known)).unwrap_or(id);
    let timer = timers.free().ok_or(errno(libc::EAGAIN))?;
    *timer = Timer {
        used: true,
        known,
        id,
        clock,
        event: event.unwrap_or(Event {
            value: known as u64,
            ..NO_EVENT_BUT_ALARM
        }),
    };
    if event.is_none() && known != id {
        // The kernel's own choice names the timer by another id.
        kernel_delete(id);
        timer.id = create(clock, &timer.event).inspect_err(|_| timer.used = false)?;
    }
    Ok(known)
}

fn kernel_delete(id: i32) {
    // SAFETY: the call takes the kernel's id of a timer that was made here, and touches no memory.
    unsafe { syscall3(libc::SYS_timer_delete, id as usize, 0, 0) };
}

/// Deletes a timer that the application has not learned of.
fn delete(known: i32) {
    if let Some(timer) = TIMERS.lock().find(known) {
        kernel_delete(timer.id);
        timer.used = false;
    }
}

/// The first argument is a timer's id.
pub fn on_use(call: &mut Call) -> isize {
    let id = TIMERS
        .lock()
        .find(call.argument(0) as i32)
        .map(|timer| timer.id);
    let Some(id) = id else {
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
        && let Some(timer) = TIMERS.lock().find(call.argument(0) as i32)
    {
        timer.used = false;
    }
    result
}

/// Returns the application's id of a timer for the kernel's id. Runs in handlers too.
pub fn known(id: i32) -> i32 {
    let mask = syscall::set_mask(u64::MAX);
    let timers = TIMERS.lock();
    let timer = timers.used().find(|timer| timer.id == id);
    let known = timer.map_or(id, |timer| timer.known);
    drop(timers);
    syscall::set_mask(mask);
    known
}

/// Has a timer that has ended send its signal once more, at once, because its expiry was pending and has been taken. Returns `false` if the timer continues by
/// itself, or is gone.
pub fn expire_again(known: i32) -> bool {
    let mask = syscall::set_mask(u64::MAX);
    let id = TIMERS.lock().find(known).map(|timer| timer.id);
    let again = id.is_some_and(|id| {
        // `struct itimerspec`: interval, value.
        let mut value = [0i64; 4];
        // SAFETY: the kernel writes a `struct itimerspec`, which is four words; the array has four.
        unsafe {
            syscall3(
                libc::SYS_timer_gettime,
                id as usize,
                value.as_mut_ptr() as usize,
                0,
            );
            if value[..2] != [0, 0] {
                return false;
            }
            value[3] = 1;
            let set = syscall4(
                libc::SYS_timer_settime,
                id as usize,
                0,
                value.as_ptr() as usize,
                0,
            );
            !failed(set)
        }
    });
    syscall::set_mask(mask);
    again
}

/// Runs an action while the table cannot change.
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    let _still = TIMERS.lock();
    action()
}

/// A forked child has none of its parent's timers.
pub fn start_forked() {
    TIMERS.lock().forget_all();
}

const WORDS: usize = 14;

/// Returns what an image must hold: every timer with its remaining time.
pub fn save() -> Vec<u8> {
    let mut words = vec![];
    let mask = syscall::set_mask(u64::MAX);
    let timers = TIMERS.lock();
    for timer in timers.used() {
        let mut value = [0i64; 4];
        // SAFETY: the kernel writes a `struct itimerspec`, which is four words; the array has four.
        unsafe {
            syscall3(
                libc::SYS_timer_gettime,
                timer.id as usize,
                value.as_mut_ptr() as usize,
                0,
            )
        };
        // SAFETY: an event is 64 bytes of integers without padding, as long as eight words.
        let event: [u64; 8] = unsafe { core::mem::transmute(timer.event) };
        words.extend([timer.known as u32 as u64, timer.clock as u32 as u64]);
        words.extend(event);
        words.extend(value.map(|word| word as u64));
    }
    drop(timers);
    syscall::set_mask(mask);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The number of ids that may be skipped to reach the id that a timer had.
const MOST_PASSED_OVER: usize = 1 << 16;

/// Makes a timer with the id that it had. The kernel counts ids up; if that does not lead to the id, the timer gets another one.
fn create_as(known: i32, clock: i32, event: &Event, passed: &mut usize) -> Result<i32, isize> {
    loop {
        let id = create(clock, event)?;
        if id >= known || *passed == MOST_PASSED_OVER {
            return Ok(id);
        }
        *passed += 1;
        kernel_delete(id);
    }
}

/// Takes over the state from [`save`] in another launch, after the threads have got their ids.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let count = saved.len() / 8;
    if !count.is_multiple_of(WORDS) {
        return Err(SavedStateError::Length {
            part: "timers",
            bytes: saved.len(),
        });
    }
    let words = super::words(saved, "timers", count)?;
    let mut timers: Vec<&[u64]> = words.chunks_exact(WORDS).collect();
    timers.sort_by_key(|timer| timer[0]);
    let mut passed = 0;
    for timer in timers {
        let (known, clock) = (timer[0] as u32 as i32, timer[1] as u32 as i32);
        let mut event = [0u64; 8];
        event.copy_from_slice(&timer[2..10]);
        // SAFETY: an event is 64 bytes of integers, for which any bits are valid.
        let event: Event = unsafe { core::mem::transmute(event) };
        let mask = syscall::set_mask(u64::MAX);
        let made = create_as(known, clock, &event, &mut passed);
        if let (Ok(id), Some(slot)) = (made, TIMERS.lock().free()) {
            *slot = Timer {
                used: true,
                known,
                id,
                clock,
                event,
            };
        }
        syscall::set_mask(mask);
        let id = made.map_err(|_| SavedStateError::Value { part: "timers" })?;
        // SAFETY: the kernel reads a `struct itimerspec`, which is four words; the array has four.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_found_where_they_were_put_and_forgotten_all_at_once() {
        let mut timers = Timers::NONE;
        let mut put = |known| {
            let place = timers.free().unwrap();
            *place = Timer {
                used: true,
                known,
                ..NO_TIMER
            };
        };
        (7..10).for_each(&mut put);
        assert_eq!((timers.used().count(), timers.ever_used), (3, 3));
        timers.find(8).unwrap().used = false;
        assert!(timers.find(8).is_none() && timers.find(9).is_some());
        // The next timer takes its place.
        let place = timers.free().unwrap();
        (place.used, place.known) = (true, 11);
        assert_eq!((timers.find(11).is_some(), timers.ever_used), (true, 3));
        timers.forget_all();
        assert_eq!((timers.used().count(), timers.ever_used), (0, 0));
        assert!(timers.all.iter().all(|timer| !timer.used));
        for _ in 0..MOST_TIMERS {
            timers.free().unwrap().used = true;
        }
        assert!(timers.free().is_none());
    }
}
