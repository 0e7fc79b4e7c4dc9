//! The application's signal dispositions.
//!
//! They are kept in a table of our own. For a signal that the application ignores or leaves at its default, the kernel has the same disposition. For a handler,
//! the kernel gets the springboard's trampoline, which looks the handler up and calls it under the upper FS.

use core::sync::atomic::{AtomicU64, Ordering};

use stillpoint_protocol::launch::Launch;

use super::{MOST_SIGNALS, bit, is_ours, ours};
use crate::arch::frame::Frame;
use crate::arch::layout::{Slot, slot};
use crate::arch::springboard::Piece;
use crate::arch::syscall::{self, failed, syscall4};
use crate::gate::call::{Call, errno};
use crate::gate::{SavedStateError, user};
use crate::ground::lock::Lock;
use crate::ground::wake;
use crate::threads::registry::Thread;
use crate::threads::{interrupted, lower};

const SA_RESTORER: u64 = 0x0400_0000;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

impl Action {
    const DEFAULT: Action = Action {
        handler: SIG_DFL,
        flags: 0,
        restorer: 0,
        mask: 0,
    };

    pub(super) fn handles(&self) -> bool {
        self.handler != SIG_DFL && self.handler != SIG_IGN
    }

    /// Returns the words in the kernel's order.
    fn words(&self) -> [usize; 4] {
        [
            self.handler,
            self.flags as usize,
            self.restorer,
            self.mask as usize,
        ]
    }

    fn from_words([handler, flags, restorer, mask]: [usize; 4]) -> Action {
        Action {
            handler,
            flags: flags as u64,
            restorer,
            mask: mask as u64,
        }
    }

    pub(super) fn restarts(&self) -> bool {
        self.flags & libc::SA_RESTART as u64 != 0
    }

    pub(super) fn is_default(&self) -> bool {
        self.handler == SIG_DFL
    }
}

static ACTIONS: Lock<[Action; MOST_SIGNALS]> = Lock::new([Action::DEFAULT; MOST_SIGNALS]);

/// `rt_sigaction` as the kernel takes it.
fn kernel_action(signal: i32, new: Option<&Action>, old: Option<&mut Action>) -> isize {
    let new = new.map_or(0, |action| action as *const Action as usize);
    let old = old.map_or(0, |action| action as *mut Action as usize);
    // SAFETY: both pointers are null or lead to an action that is alive; only handlers of our own, or none, are installed.
    unsafe { syscall4(libc::SYS_rt_sigaction, signal as usize, new, old, 8) }
}

/// Signals that request a suspend if the application leaves them at their default.
static SUSPENDING: AtomicU64 = AtomicU64::new(0);

/// Notes which signals request a suspend in this launch.
pub fn suspend_by(launch: &Launch) {
    let on_term = if launch.suspend_on_term {
        bit(libc::SIGTERM)
    } else {
        0
    };
    let signal = launch.suspend_signal;
    let asked = if (1..=MOST_SIGNALS as i32).contains(&signal) {
        bit(signal)
    } else {
        0
    };
    SUSPENDING.store((asked | on_term) & !ours(), Ordering::Relaxed);
    tell_short_way();
}

/// Tells the short way the signals of which the kernel has another action than the application.
pub(super) fn tell_short_way() {
    let place = slot(Slot::ShortOtherActions) as *const AtomicU64;
    // SAFETY: the gate region is mapped and writable, and the word is aligned and changed atomically only.
    unsafe { &*place }.store(
        ours() | SUSPENDING.load(Ordering::Relaxed),
        Ordering::Release,
    );
}

/// Whether a signal requests a suspend when a thread that does not block it takes it.
pub fn asks_for_suspend(signal: i32) -> bool {
    SUSPENDING.load(Ordering::Relaxed) & bit(signal) != 0 && leaves_at_default(signal)
}

/// Returns all signals that now request a suspend, as a mask.
pub fn suspending() -> u64 {
    let asked = SUSPENDING.load(Ordering::Relaxed);
    let all = (1..=MOST_SIGNALS as i32).filter(|signal| asked & bit(*signal) != 0);
    all.filter(|signal| leaves_at_default(*signal))
        .fold(0, |mask, signal| mask | bit(signal))
}

/// Whether the application leaves a signal at its default.
pub fn leaves_at_default(signal: i32) -> bool {
    let mask = syscall::set_mask(u64::MAX);
    let action = of(signal);
    syscall::set_mask(mask);
    action.is_default()
}

/// The [`origin`] of each signal that an image had pending and that this launch has made pending again, until it comes. 0: none.
static GIVEN_BACK: [AtomicU64; MOST_SIGNALS] = [const { AtomicU64::new(0) }; MOST_SIGNALS];

/// Encodes how a signal was sent, and by which process; never 0.
fn origin(code: i32, sender: i32) -> u64 {
    // Codes are small numbers of either sign, so setting the highest bit keeps them distinct.
    1 << 63 | u64::from(code as u32) << 32 | u64::from(sender as u32)
}

/// Notes that a signal is pending as it was in an image. If the application takes it, it is the application's. If only Stillpoint gets it, it requested the
/// suspend of an earlier launch, and does not request one now. Atomics only.
pub fn given_back(signal: i32, code: i32, sender: i32) {
    if let Some(noted) = GIVEN_BACK.get((signal as usize).wrapping_sub(1)) {
        noted.store(origin(code, sender), Ordering::SeqCst);
    }
}

/// Whether a signal that has come is the one that was made pending again; true only once.
fn was_given_back(signal: i32, code: i32, sender: i32) -> bool {
    let noted = GIVEN_BACK.get((signal as usize).wrapping_sub(1));
    noted.is_some_and(|noted| {
        let this = origin(code, sender);
        let swapped = noted.compare_exchange(this, 0, Ordering::SeqCst, Ordering::SeqCst);
        swapped.is_ok()
    })
}

/// Notes that a forked child is not part of the job: signals that request a suspend have their usual effect on it.
pub fn start_forked() {
    let suspending = SUSPENDING.swap(0, Ordering::Relaxed);
    for signal in (1..=MOST_SIGNALS as i32).filter(|signal| suspending & bit(*signal) != 0) {
        if of(signal).is_default() {
            reset_in_kernel(signal);
        }
    }
}

/// Runs an action while the table cannot change.
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    let _still = ACTIONS.lock();
    action()
}

/// Flags of our own handlers: on the alternate stack, if the thread has one, since the other may be too small.
const OWN_FLAGS: u64 =
    SA_RESTORER | (libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK) as u64;

/// Handles a signal that requests a suspend. Runs with any FS, on any thread.
unsafe extern "C" fn on_suspend(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    if let Some(thread) = Thread::current() {
        // SAFETY: the kernel passes this handler a structure that stays until the handler returns.
        interrupted::make_again(thread, unsafe { Frame::new(context) });
    }
    // SAFETY: the kernel passes this handler a structure that stays until the handler returns.
    let (code, sender) = unsafe { ((*info).si_code, (*info).si_pid()) };
    if !was_given_back(signal, code, sender) {
        wake::suspend_wanted(signal);
    }
}

/// Returns the kernel's action for the application's `action` on `signal`.
fn kernel_view(signal: i32, action: &Action) -> Action {
    if action.handler == SIG_DFL && SUSPENDING.load(Ordering::Relaxed) & bit(signal) != 0 {
        return Action {
            handler: on_suspend as *const () as usize,
            flags: OWN_FLAGS,
            restorer: Piece::Restorer.address(),
            mask: 0,
        };
    }
    if !action.handles() {
        // As it is: the short way has the kernel answer what such an action is (`arch::short`).
        return *action;
    }
    Action {
        handler: Piece::Trampoline.address(),
        flags: action.flags | SA_RESTORER | libc::SA_SIGINFO as u64,
        restorer: Piece::Restorer.address(),
        mask: action.mask & !ours(),
    }
}

/// Tells the kernel the application's action.
fn tell(signal: i32, action: &Action) -> isize {
    kernel_action(signal, Some(&kernel_view(signal, action)), None)
}

/// Sets the kernel's action once more: the kernel resets a handler that is to run once.
pub(super) fn tell_again(signal: i32) {
    let mask = syscall::set_mask(u64::MAX);
    if let Some(action) = ACTIONS.lock().get((signal as usize).wrapping_sub(1)) {
        tell(signal, action);
    }
    syscall::set_mask(mask);
}

/// Installs a handler of our own for SIGSYS or the stop signal.
pub fn install_own(signal: i32, handler: usize, blocked_meanwhile: u64) -> std::io::Result<()> {
    let action = Action {
        handler,
        flags: OWN_FLAGS,
        restorer: Piece::Restorer.address(),
        mask: blocked_meanwhile,
    };
    match kernel_action(signal, Some(&action), None) {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(-error as i32)),
    }
}

/// Sets the dispositions that the process was started with: a signal whose bit is set was ignored.
pub fn start_with(ignored: u64) {
    let mut actions = ACTIONS.lock();
    for signal in 1..=MOST_SIGNALS as i32 {
        let handler = if ignored & bit(signal) != 0 {
            SIG_IGN
        } else {
            SIG_DFL
        };
        let action = Action {
            handler,
            ..Action::DEFAULT
        };
        if let Some(slot) = actions.get_mut(signal as usize - 1) {
            *slot = action;
        }
        if !is_ours(signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP {
            tell(signal, &action);
            lower::handles(signal, false);
        }
    }
}

/// `rt_sigaction`.
pub fn on_sigaction(call: &mut Call) -> isize {
    let [signal, new, old, size, ..] = call.arguments();
    if size != 8 {
        return errno(libc::EINVAL);
    }
    let wanted = match new {
        0 => None,
        new => match user::read::<[usize; 4]>(new) {
            Ok(words) => Some(Action::from_words(words)),
            Err(error) => return error,
        },
    };
    let before = match exchange(signal as i32, wanted) {
        Ok(before) => before,
        Err(error) => return error,
    };
    if old != 0
        && let Err(error) = user::write(old, before.words())
    {
        return error;
    }
    0
}

/// Changes an action, if one is wanted; returns the action before.
fn exchange(signal: i32, wanted: Option<Action>) -> Result<Action, isize> {
    let mut actions = ACTIONS.lock();
    let Some(slot) = actions.get_mut((signal as usize).wrapping_sub(1)) else {
        return Err(errno(libc::EINVAL));
    };
    // A child that shares our memory has signal actions of its own in the kernel, but this table is its parent's.
    let shared = Thread::current().is_some_and(Thread::shares_memory);
    let mut before = *slot;
    if shared && !is_ours(signal) {
        let mut own = Action::DEFAULT;
        let known = !failed(kernel_action(signal, None, Some(&mut own)));
        // Our handler of a signal that asks for a suspend stands where the child has the default.
        if known && own.handler == on_suspend as *const () as usize {
            before = Action::DEFAULT;
        } else if known && !own.handles() {
            before = own;
        }
    }
    let Some(wanted) = wanted else {
        return Ok(before);
    };
    if signal == libc::SIGKILL || signal == libc::SIGSTOP {
        return Err(errno(libc::EINVAL));
    }
    if !is_ours(signal) {
        let result = tell(signal, &wanted);
        if failed(result) {
            return Err(result);
        }
    }
    if !shared {
        lower::handles(signal, wanted.handles());
        *slot = Action {
            mask: wanted.mask & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP)),
            ..wanted
        };
    }
    Ok(before)
}

/// Returns the application's own action on a signal.
pub(super) fn of(signal: i32) -> Action {
    ACTIONS
        .lock()
        .get((signal as usize).wrapping_sub(1))
        .copied()
        .unwrap_or(Action::DEFAULT)
}

/// Returns the application's handler of a signal that has arrived; resets the action if it is to run once.
pub(super) fn take(signal: i32) -> Option<Action> {
    // No signal may arrive while the table's lock is held.
    let mask = syscall::set_mask(u64::MAX);
    let mut taken = None;
    if let Some(action) = ACTIONS.lock().get_mut((signal as usize).wrapping_sub(1))
        && action.handles()
    {
        taken = Some(*action);
        if action.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
            action.handler = SIG_DFL;
            // The kernel has reset the handler alone: flags and mask are still those of ours.
            tell(signal, action);
        }
    }
    syscall::set_mask(mask);
    taken
}

/// Sets the kernel's action to the default.
pub(super) fn reset_in_kernel(signal: i32) {
    kernel_action(signal, Some(&Action::DEFAULT), None);
}

/// Returns what an image must hold: the application's dispositions.
pub fn save() -> Vec<u8> {
    let mask = syscall::set_mask(u64::MAX);
    let actions = *ACTIONS.lock();
    syscall::set_mask(mask);
    actions
        .iter()
        .flat_map(Action::words)
        .flat_map(usize::to_le_bytes)
        .collect()
}

/// Takes over the state from [`save`] in another launch, and sets the kernel's actions.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let words = crate::gate::words(saved, "signals", 4 * MOST_SIGNALS)?;
    let mask = syscall::set_mask(u64::MAX);
    let mut actions = ACTIONS.lock();
    let saved = words.as_chunks::<4>().0;
    for (index, (slot, saved)) in actions.iter_mut().zip(saved).enumerate() {
        *slot = Action::from_words(saved.map(|word| word as usize));
        let signal = index as i32 + 1;
        if !is_ours(signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP {
            tell(signal, slot);
            lower::handles(signal, slot.handles());
        }
    }
    drop(actions);
    syscall::set_mask(mask);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_was_given_back_is_told_from_a_new_one_and_counts_once() {
        let signal = libc::SIGUSR2;
        assert!(!was_given_back(signal, libc::SI_USER, 0), "none was");
        given_back(signal, libc::SI_USER, 17);
        assert!(!was_given_back(signal, libc::SI_USER, 18), "another sender");
        assert!(!was_given_back(signal, libc::SI_TKILL, 17), "another way");
        assert!(!was_given_back(libc::SIGUSR1, libc::SI_USER, 17), "another");
        assert!(was_given_back(signal, libc::SI_USER, 17));
        assert!(!was_given_back(signal, libc::SI_USER, 17), "twice");
    }
}
