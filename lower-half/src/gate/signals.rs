//! Signals: the application's handlers, and the masks that must never hold back SIGSYS or the stop signal.
//!
//! Rules of this place: runs in handlers, with the application's FS (in `enter`, either).
//!
//! The application's dispositions are kept in a table of our own. Where it ignores a signal or leaves it at its
//! default, the kernel is told so; where it has a handler, the kernel gets the springboard's trampoline, which
//! looks the handler up and calls it under the upper FS.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::layout::{SLOTS, Slot};
use super::lock::Lock;
use super::trap::{Call, errno};
use super::{SavedStateError, identity};
use crate::agent::wake;
use crate::arch::frame::Frame;
use crate::arch::registers;
use crate::arch::springboard::Piece;
use crate::arch::syscall::{self, failed, syscall4};
use crate::threads::beneath;
use crate::threads::registry::Thread;
use stillpoint_protocol::launch::Launch;

/// Signals are numbered 1 to 64.
pub const MOST_SIGNALS: usize = 64;
const SA_RESTORER: u64 = 0x0400_0000;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

impl Action {
    pub const DEFAULT: Action = Action {
        handler: SIG_DFL,
        flags: 0,
        restorer: 0,
        mask: 0,
    };

    fn handles(&self) -> bool {
        self.handler != SIG_DFL && self.handler != SIG_IGN
    }
}

static ACTIONS: Lock<[Action; MOST_SIGNALS]> = Lock::new([Action::DEFAULT; MOST_SIGNALS]);
static STOP_SIGNAL: AtomicI32 = AtomicI32::new(62);

/// The signal that stops a thread.
pub fn stop_signal() -> i32 {
    STOP_SIGNAL.load(Ordering::Relaxed)
}

/// Chooses the stop signal, before anything is installed.
pub fn set_stop_signal(signal: i32) {
    STOP_SIGNAL.store(signal, Ordering::Relaxed);
}

const fn bit(signal: i32) -> u64 {
    1u64 << ((signal - 1) & 63)
}

/// Signals that the application can neither block nor take over.
pub fn ours() -> u64 {
    bit(libc::SIGSYS) | bit(stop_signal())
}

fn is_ours(signal: i32) -> bool {
    signal == libc::SIGSYS || signal == stop_signal()
}

/// `rt_sigaction` as the kernel takes it.
fn kernel_action(signal: i32, new: Option<&Action>, old: Option<&mut Action>) -> isize {
    let new = new.map_or(0, |action| action as *const Action as usize);
    let old = old.map_or(0, |action| action as *mut Action as usize);
    // SAFETY: both are absent or alive; what is installed are our own handlers or none.
    unsafe { syscall4(libc::SYS_rt_sigaction, signal as usize, new, old, 8) }
}

/// Signals that ask for a suspend where the application leaves them at their default.
static SUSPENDING: AtomicU64 = AtomicU64::new(0);

/// Notes which signals ask for a suspend in this launch.
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
}

/// A signal asks for a suspend. Runs with any FS, on any thread.
unsafe extern "C" fn on_suspend(
    signal: i32,
    _info: *mut libc::siginfo_t,
    _context: *mut libc::ucontext_t,
) {
    wake::suspend_wanted(signal);
}

/// What the kernel is told where the application's own action on `signal` is `action`.
fn kernel_view(signal: i32, action: &Action) -> Action {
    if action.handler == SIG_DFL && SUSPENDING.load(Ordering::Relaxed) & bit(signal) != 0 {
        return Action {
            handler: on_suspend as *const () as usize,
            flags: SA_RESTORER | (libc::SA_SIGINFO | libc::SA_RESTART) as u64,
            restorer: Piece::Restorer.address(),
            mask: 0,
        };
    }
    if !action.handles() {
        return Action {
            restorer: Piece::Restorer.address(),
            flags: action.flags | SA_RESTORER,
            ..*action
        };
    }
    Action {
        handler: Piece::Trampoline.address(),
        flags: action.flags | SA_RESTORER | libc::SA_SIGINFO as u64,
        restorer: Piece::Restorer.address(),
        mask: action.mask & !ours(),
    }
}

/// Installs a handler of our own for SIGSYS or the stop signal.
pub fn install_own(signal: i32, handler: usize, blocked_meanwhile: u64) -> std::io::Result<()> {
    let action = Action {
        handler,
        flags: SA_RESTORER | (libc::SA_SIGINFO | libc::SA_RESTART) as u64,
        restorer: Piece::Restorer.address(),
        mask: blocked_meanwhile,
    };
    match kernel_action(signal, Some(&action), None) {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(-error as i32)),
    }
}

/// Gives the application the dispositions that the process was started with: a signal whose bit is set was ignored.
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
            kernel_action(signal, Some(&kernel_view(signal, &action)), None);
        }
    }
}

/// `rt_sigaction`.
pub fn on_sigaction(call: &mut Call) -> isize {
    let [signal, new, old, size, ..] = call.arguments();
    let signal = signal as i32;
    if size != 8 || !(1..=MOST_SIGNALS as i32).contains(&signal) {
        return errno(libc::EINVAL);
    }
    if new != 0 && (signal == libc::SIGKILL || signal == libc::SIGSTOP) {
        return errno(libc::EINVAL);
    }
    // SAFETY: the application gives a structure, or null.
    let wanted = (new != 0).then(|| unsafe { (new as *const Action).read_unaligned() });
    let shares_memory = Thread::current().is_some_and(Thread::shares_memory);
    let mut actions = ACTIONS.lock();
    let Some(slot) = actions.get_mut(signal as usize - 1) else {
        return errno(libc::EINVAL);
    };
    let before = *slot;
    if let Some(wanted) = wanted {
        if !is_ours(signal) {
            let result = kernel_action(signal, Some(&kernel_view(signal, &wanted)), None);
            if failed(result) {
                return result;
            }
        }
        // A child that shares our memory has signal actions of its own in the kernel, but this table is its parent's.
        if !shares_memory {
            *slot = Action {
                mask: wanted.mask & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP)),
                ..wanted
            };
        }
    }
    drop(actions);
    if old != 0 {
        // SAFETY: the application gives room for the structure.
        unsafe { (old as *mut Action).write_unaligned(before) };
    }
    0
}

/// `rt_sigprocmask` with a new mask: the frame's mask is what the thread returns to.
pub fn on_sigprocmask(call: &mut Call) -> isize {
    let [how, new, old, size, ..] = call.arguments();
    if size != 8 {
        return errno(libc::EINVAL);
    }
    let frame = call.frame();
    let before = frame.mask();
    // SAFETY: the filter lets only calls with a new mask come here; the application gives 8 bytes.
    let set = unsafe { (new as *const u64).read_unaligned() };
    let after = match how as i32 {
        libc::SIG_BLOCK => before | set,
        libc::SIG_UNBLOCK => before & !set,
        libc::SIG_SETMASK => set,
        _ => return errno(libc::EINVAL),
    };
    frame.set_mask(after & !(ours() | bit(libc::SIGKILL) | bit(libc::SIGSTOP)));
    if old != 0 {
        // SAFETY: the application gives room for 8 bytes.
        unsafe { (old as *mut u64).write_unaligned(before) };
    }
    0
}

/// A call that has a signal mask as an argument: it is made with our signals taken out of the mask.
pub fn on_mask_argument(call: &mut Call, argument: usize, piece: Piece) -> isize {
    let address = call.argument(argument);
    if address == 0 {
        return call.redirect_plain();
    }
    // SAFETY: the application gives 8 bytes.
    let mask = unsafe { (address as *const u64).read_unaligned() };
    call.redirect(piece, (mask & !ours()) as usize)
}

/// `pselect6`, whose mask is behind one more pointer.
pub fn on_pselect(call: &mut Call) -> isize {
    let address = call.argument(5);
    // SAFETY: the filter lets only calls with the structure come here: a pointer and a size.
    let mask = unsafe { (address as *const usize).read_unaligned() };
    if mask == 0 {
        return call.redirect_plain();
    }
    // SAFETY: the application gives 8 bytes.
    let mask = unsafe { (mask as *const u64).read_unaligned() };
    call.redirect(Piece::CallMaskR9, (mask & !ours()) as usize)
}

/// What [`enter`] tells the trampoline.
#[repr(C)]
pub struct Entered {
    /// The application's handler; 0: none, return.
    handler: usize,
    /// For [`leave`]: the FS to put back after the handler (0: it was not changed), and [`ON_TOP`].
    way_back: u64,
}

impl Entered {
    const NONE: Entered = Entered {
        handler: 0,
        way_back: 0,
    };
}

/// In a way back: the handler lies on top of code that a restart finds elsewhere. (No FS is odd.)
const ON_TOP: u64 = 1;

/// Called by the trampoline before the application's handler: finds it, and puts the upper FS in place.
unsafe extern "C" fn enter(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) -> Entered {
    let Some(thread) = Thread::current() else {
        // A thread of the lower half has crashed: not the application's business.
        kernel_action(signal, Some(&Action::DEFAULT), None);
        return Entered::NONE;
    };
    let handler = take_handler(signal);
    if handler == 0 {
        return Entered::NONE;
    }
    identity::virtualise_sender(info);
    // SAFETY: the kernel's own argument.
    let frame = unsafe { Frame::new(context) };
    let on_top = if beneath::entered(thread, frame) {
        ON_TOP
    } else {
        0
    };
    let fs = registers::fs();
    if fs != 0 && fs == thread.fs_lower() {
        // SAFETY: the thread was in the lower half, and its upper thread area was noted when it went there;
        // the application's handler belongs to that area.
        unsafe { registers::set_fs(thread.fs_upper()) };
        return Entered {
            handler,
            way_back: fs | on_top,
        };
    }
    Entered {
        handler,
        way_back: on_top,
    }
}

/// Called by the trampoline after the application's handler.
unsafe extern "C" fn leave(way_back: u64) {
    let fs = way_back & !ON_TOP;
    if way_back & ON_TOP != 0
        && let Some(thread) = Thread::current()
    {
        beneath::left(thread);
    }
    if fs != 0 {
        // SAFETY: what `enter` found there; the lower half carries on.
        unsafe { registers::set_fs(fs) };
    }
}

/// The application's handler for a signal that has arrived (0: none), reset where it wants that.
fn take_handler(signal: i32) -> usize {
    // Every signal must stay away while the table's lock is held.
    let mask = syscall::set_mask(u64::MAX);
    let mut handler = 0;
    {
        let mut actions = ACTIONS.lock();
        if let Some(action) = actions.get_mut((signal as usize).wrapping_sub(1))
            && action.handles()
        {
            handler = action.handler;
            if action.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
                action.handler = SIG_DFL;
            }
        }
    }
    syscall::set_mask(mask);
    handler
}

/// One of our signals has come from elsewhere: does what the application wants done with it.
pub fn deliver_here(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let action = ACTIONS
        .lock()
        .get((signal as usize).wrapping_sub(1))
        .copied()
        .unwrap_or(Action::DEFAULT);
    if action.handles() {
        // SAFETY: the application says that this is a handler; it runs here with the upper FS in place, or the
        // lower half's where it was interrupted there, which `enter` sees to.
        unsafe {
            let entered = enter(signal, info, context);
            if entered.handler != 0 {
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t) =
                    core::mem::transmute(entered.handler);
                handler(signal, info, context);
            }
            leave(entered.way_back);
        }
    } else if action.handler == SIG_DFL {
        // The default of both is to end the process.
        kernel_action(signal, Some(&Action::DEFAULT), None);
        // SAFETY: the frame is the kernel's, of the handler that called us.
        let frame = unsafe { Frame::new(context) };
        frame.set_mask(frame.mask() & !bit(signal));
        syscall::tgkill(syscall::getpid(), syscall::gettid(), signal);
    }
}

/// Fills the springboard's words. Part of filling the gate region.
pub fn fill_slots() {
    let slots = SLOTS as *mut u64;
    // SAFETY: the gate region is mapped and writable while it is being filled.
    unsafe {
        slots
            .add(Slot::EnterHandler as usize)
            .write(enter as *const () as u64);
        slots
            .add(Slot::LeaveHandler as usize)
            .write(leave as *const () as u64);
        slots
            .add(Slot::StopSignal as usize)
            .write(stop_signal() as u64);
    }
}

/// What an image must hold: the application's dispositions.
pub fn save() -> Vec<u8> {
    let mask = syscall::set_mask(u64::MAX);
    let actions = *ACTIONS.lock();
    syscall::set_mask(mask);
    actions
        .iter()
        .flat_map(|action| {
            [
                action.handler as u64,
                action.flags,
                action.restorer as u64,
                action.mask,
            ]
        })
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Takes up what [`save`] gave, in another launch; the kernel is told too.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let words = super::words(saved, "signals", 4 * MOST_SIGNALS)?;
    let mask = syscall::set_mask(u64::MAX);
    let mut actions = ACTIONS.lock();
    for (index, (slot, saved)) in actions.iter_mut().zip(words.chunks_exact(4)).enumerate() {
        *slot = Action {
            handler: saved[0] as usize,
            flags: saved[1],
            restorer: saved[2] as usize,
            mask: saved[3],
        };
        let signal = index as i32 + 1;
        if !is_ours(signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP {
            kernel_action(signal, Some(&kernel_view(signal, slot)), None);
        }
    }
    drop(actions);
    syscall::set_mask(mask);
    Ok(())
}
