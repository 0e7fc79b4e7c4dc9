//! Kernel state of the application that cannot be carried, and that the kernel does not report afterwards: so it is counted when it is made. A checkpoint
//! refuses as long as there is any, and names it.
//!
//! Rules of this place: runs in the trap's handler. Holdings that outlive an `execve` go into the next program's environment.

use core::sync::atomic::{AtomicU32, Ordering};

use stillpoint_refusals::{Code, Refusal};

use super::call::Call;
use super::{descriptors, naming, short_switch, single_threaded};
use crate::arch::syscall::failed;
use crate::gate::exit;
use crate::threads::registry::Thread;

/// The kinds; for each, whether a program that the process executes still has it, the code of the refusal, and a description for people: "it has ...".
macro_rules! holdings {
    ($($name:ident, $outlives_exec:literal, $code:ident, $words:literal;)+) => {
        /// A kind of state that a process can hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Holding {
            $($name,)+
        }

        impl Holding {
            const ALL: [Holding; [$($words),+].len()] = [$(Holding::$name),+];

            fn outlives_exec(self) -> bool {
                match self {
                    $(Holding::$name => $outlives_exec,)+
                }
            }

            fn code(self) -> Code {
                match self {
                    $(Holding::$name => Code::$code,)+
                }
            }

            fn words(self) -> &'static str {
                match self {
                    $(Holding::$name => $words,)+
                }
            }
        }
    };
}

holdings! {
    AsynchronousIo, false, AsynchronousIo, "contexts of asynchronous I/O (io_setup): destroy them before a checkpoint";
    DescriptorTable, false, ThreadsOwn, "a thread with descriptors or a directory of its own (clone without CLONE_FILES or CLONE_FS, unshare)";
    DirectoryNotices, false, DirectoryNotices, "asked to be told of changes in a directory (F_NOTIFY)";
    Keys, true, KeyRings, "used the kernel's key rings (add_key, request_key, keyctl)";
    Landlock, true, Landlock, "restricted itself (landlock_restrict_self)";
    LocalDescriptorTable, false, LocalSegments, "segments of its own (modify_ldt)";
    Namespace, true, OwnNamespace, "entered namespaces of its own (unshare, setns)";
    Ports, true, IoPorts, "access to I/O ports (iopl, ioperm)";
    ProcessSetting, false, ProcessSettings, "chosen settings by prctl or arch_prctl that cannot be carried";
    ProtectionKeys, false, ProtectionKeys, "memory protection keys (pkey_alloc): free them before a checkpoint";
    Root, true, RootDirectory, "another root directory (chroot, pivot_root)";
    Seals, false, SealedMemory, "sealed memory (mseal)";
    SecurityLabel, true, SecurityLabel, "another security label (lsm_set_self_attr)";
    SystemCallFilter, true, OwnFilter, "a system call filter of its own (seccomp)";
    Tracing, false, TracesProcess, "another process that it traces (ptrace): detach from it before a checkpoint";
}

use Holding::*;

impl Holding {
    /// Whether this state lets the application observe or filter every system call.
    fn looks_at_calls(self) -> bool {
        matches!(self, SystemCallFilter | ProcessSetting)
    }
}

static HELD: [AtomicU32; Holding::ALL.len()] = [const { AtomicU32::new(0) }; Holding::ALL.len()];

fn count(holding: Holding) -> Option<&'static AtomicU32> {
    HELD.get(holding as usize)
}

/// A forked child is not saved, so its holdings do not count.
fn elsewhere() -> bool {
    exit::forked() || Thread::current().is_some_and(Thread::shares_memory)
}

/// Counts one more.
pub fn add(holding: Holding) {
    if let Some(count) = count(holding).filter(|_| !elsewhere()) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts one less.
pub fn remove(holding: Holding) {
    if let Some(count) = count(holding).filter(|_| !elsewhere()) {
        let less = |count: u32| count.checked_sub(1);
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .ok();
    }
}

/// Makes the call; if it succeeds, counts one more.
pub fn held(call: &Call, holding: Holding) -> isize {
    if holding.looks_at_calls() {
        short_switch::close();
    }
    noted(holding, call.make())
}

/// Counts a holding that was made, unless the result is an error.
fn noted(holding: Holding, result: isize) -> isize {
    if !failed(result) {
        add(holding);
    }
    result
}

/// Makes the call; if it succeeds, counts one less.
pub fn released(call: &Call, holding: Holding) -> isize {
    let_go(holding, call.make())
}

/// A call with this result ends a hold, if it succeeded.
fn let_go(holding: Holding, result: isize) -> isize {
    if !failed(result) {
        remove(holding);
    }
    result
}

/// Operations of `keyctl` that only read: an id, a description, a key's contents, its label, the supported features.
pub const KEYS_ASKED: &[u32] = &[0, 6, 11, 17, 24, 31];

/// Answers `ptrace`. A child that shares its parent's memory may ask to be traced by it. It would stop at its next trapped call, and its parent, which waits
/// for its `execve`, could not continue it. Natively there is no signal in between, so the child is traced from that `execve` on.
pub fn on_ptrace(call: &mut Call) -> isize {
    const ATTACH: usize = libc::PTRACE_ATTACH as usize;
    const SEIZE: usize = libc::PTRACE_SEIZE as usize;
    const DETACH: usize = libc::PTRACE_DETACH as usize;
    const TRACE_ME: usize = libc::PTRACE_TRACEME as usize;
    match call.argument(0) {
        TRACE_ME if Thread::current().is_some_and(Thread::traced_from_exec) => 0,
        ATTACH | SEIZE => noted(Tracing, naming::on_traced(call)),
        DETACH => let_go(Tracing, naming::on_traced(call)),
        _ => naming::on_traced(call),
    }
}

/// Answers a `modify_ldt` that writes: its result has 32 bits, so its errors look like success.
pub fn on_segments(call: &mut Call) -> isize {
    let result = call.make();
    if result as i32 >= 0 {
        add(LocalDescriptorTable);
    }
    result
}

/// Flags that only a single-threaded process may give to `unshare`.
const ALONE: usize =
    (libc::CLONE_NEWUSER | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM) as usize;

/// `unshare`.
pub fn on_unshare(call: &mut Call) -> isize {
    const OWN: i32 = libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_SYSVSEM;
    let flags = call.argument(0);
    let own = flags as i32 & OWN != 0;
    entered(
        call,
        flags & ALONE != 0,
        if own { DescriptorTable } else { Namespace },
    )
}

/// Answers `setns`: without a kind, it enters whatever namespace the descriptor leads to.
pub fn on_setns(call: &mut Call) -> isize {
    let kinds = call.argument(1);
    entered(call, kinds == 0 || kinds & ALONE != 0, Namespace)
}

fn entered(call: &mut Call, alone: bool, holding: Holding) -> isize {
    let made = match alone {
        true => single_threaded::make(call),
        false => Some(call.make()),
    };
    made.map_or(0, |result| noted(holding, result))
}

/// Answers a `seccomp` that sets a mode; with a listener, its result is a descriptor.
pub fn on_seccomp(call: &mut Call) -> isize {
    const NEW_LISTENER: usize = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as usize;
    let result = held(call, SystemCallFilter);
    if call.argument(1) & NEW_LISTENER != 0 {
        descriptors::noted(result)
    } else {
        result
    }
}

/// Returns why a checkpoint must refuse, for people.
pub fn refusals() -> Vec<Refusal> {
    let held = Holding::ALL
        .into_iter()
        .filter(|holding| count(*holding).is_some_and(|count| count.load(Ordering::Relaxed) != 0));
    held.map(|holding| {
        let words = holding.words();
        let details = format!("it has {words}, which cannot be carried over a restart");
        Refusal::new(holding.code(), details)
    })
    .collect()
}

/// The variable that tells the process's next program what it holds, one letter each.
const VARIABLE: &str = "STILLPOINT_HOLDS";
static LETTERS: [u8; VARIABLE.len() + 1 + Holding::ALL.len() + 1] = {
    let mut text = [0; VARIABLE.len() + 1 + Holding::ALL.len() + 1];
    let mut at = 0;
    while at < VARIABLE.len() {
        text[at] = VARIABLE.as_bytes()[at];
        at += 1;
    }
    text[at] = b'=';
    text
};

const FIRST_LETTER: u8 = b'a';

/// Returns that variable, NUL-terminated, or `None` if there is nothing to tell.
pub fn variable() -> Option<[u8; LETTERS.len()]> {
    let mut text = LETTERS;
    let mut at = VARIABLE.len() + 1;
    for holding in Holding::ALL.into_iter().filter(|one| one.outlives_exec()) {
        if count(holding).is_some_and(|count| count.load(Ordering::Relaxed) != 0) {
            *text.get_mut(at)? = FIRST_LETTER + holding as u8;
            at += 1;
        }
    }
    (at > VARIABLE.len() + 1).then_some(text)
}

/// Takes over the holdings of the program before this one.
pub fn inherit() {
    for letter in std::env::var(VARIABLE).unwrap_or_default().bytes() {
        if let Some(count) = HELD.get(usize::from(letter.wrapping_sub(FIRST_LETTER))) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    if count(SystemCallFilter).is_some_and(|count| count.load(Ordering::Relaxed) != 0) {
        short_switch::close();
    }
}
