//! The gate page: the only place through which the two halves of the process know each other.
//!
//! The lower half maps it at [`GATE_ADDRESS`] before the application's first instruction and fills it anew in every launch. It lies outside of the upper half's
//! ranges, so no image ever holds it. The upper half reaches the lower half only through this page.
//!
//! ```text
//!  0x0000_0000_0000                  the upper half's, wherever it asks for an address here ...
//!  0x0500_0000_0000  CODE_END        ... its code up to here ...
//!  0x2a00_0000_0000  LOW_END         ... up to here
//!  0x5500_0000_0000  GatePage        written by the lower half (and, where said, by the upper half)
//!  0x5501_0000_0000  ARENA_START     everything of the upper half that asks for no address goes here ...
//!  0x5555_0000_0000  ARENA_END       ... up to here
//! ```
//!
//! The kernel puts position-independent executables at `0x5555_5555_4000` and above, and mappings without a requested address near `0x7fff_ffff_ffff`: so the
//! lower half lies in none of these ranges. If the stack has no limit, older kernels put mappings at `0x2aaa_aaaa_a000` and above, and newer ones below
//! `0x1555_5555_5000`, minus a random distance of up to 16 TiB with the largest `vm.mmap_rnd_bits`. In that case the lower half executes itself again at other
//! addresses (`ground::stack_limit`). Programs that the application starts inherit the filter and do not do that: so calls from code between `CODE_END` and
//! `LOW_END` are not trapped, and the upper half has no code there.
//! ThreadSanitizer wants programs at `0x5500_0000_0000` or below `0x80_0000_0000`, AddressSanitizer wants all of `0x7fff_8000 .. 0x1000_7fff_8000` for itself.
//!
//! Every field that changes while threads run is atomic. The layout is `repr(C)`; an image records the version of the contract
//! ([`crate::contract`]) that its upper half was built with.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use stillpoint_clock::absent::Operation;

pub use crate::clocks::{CLOCK_NAME, ClockCell, ClockRoom, Log};
use crate::neutral::Word;

/// The address of the gate page, in every launch.
pub const GATE_ADDRESS: usize = 0x5500_0000_0000;
/// The number of bytes mapped for the gate page.
pub const GATE_BYTES: usize = 0x1_0000;
/// First address of the range where the upper half is placed.
pub const ARENA_START: usize = 0x5501_0000_0000;
/// First address past that range.
pub const ARENA_END: usize = 0x5555_0000_0000;
/// First address below `LOW_END` whose code is not the upper half's: the kernel puts programs without a limit on their stack there.
pub const CODE_END: usize = 0x0500_0000_0000;
/// Everything below this address belongs to the upper half: its mappings at requested addresses, and non-PIE executables.
pub const LOW_END: usize = 0x2a00_0000_0000;

/// First word of a filled gate page: `"STILLPNT"`.
pub const GATE_MAGIC: u64 = u64::from_le_bytes(*b"STILLPNT");

/// A variable of the environment in which the application's loader begins. This variable and all behind it are for the loader alone; their number is even. The
/// upper half's constructor removes them, so that the environment is the same as without Stillpoint.
pub const FOR_LOADER: &core::ffi::CStr = c"STILLPOINT_FOR_LOADER=";

/// Whether an address belongs to the upper half, whatever is mapped there. Other addresses that the application has asked for belong to it too; the lower half
/// notes them.
pub const fn is_upper(address: usize) -> bool {
    address < LOW_END || (address >= ARENA_START && address < ARENA_END)
}

/// Whether system calls of code at an address are the upper half's.
pub const fn is_upper_code(address: usize) -> bool {
    is_upper(address) && (address < CODE_END || address >= LOW_END)
}

/// The agent's commands to the upper half's driver thread (the thread that started MPI).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// No checkpoint is under way: run.
    Run = 0,
    /// Run on until every target is reached, then park and keep pulling messages in.
    Reach = 1,
    /// Parked: report the reasons against a checkpoint, if any (see [`UpperHooks::refusal`]).
    Check = 2,
    /// Parked: pull messages in and test requests until the next command.
    Drain = 3,
    /// Parked and drained: bring MPI objects into the form that a restart starts from.
    Seal = 4,
    /// Memory is being written: change nothing, sleep.
    Hold = 5,
    /// Not at the still point yet: carry out the operations at [`GatePage::absent`], and stop.
    CarryOut = 6,
}

/// The driver thread's reports, in answer to a [`Command`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverState {
    /// In the application or in an MPI call that will return by itself.
    Running = 0,
    /// Blocked in a receive, probe or completion call, a target not yet reached; pulls messages in.
    Waiting = 1,
    /// Every target is reached; pulls messages in.
    Parked = 2,
    /// Answer to [`Command::Check`].
    Checked = 3,
    /// Answer to [`Command::Drain`]: one more round of progress was made (see [`GatePage::rounds`]).
    Draining = 4,
    /// Answer to [`Command::Seal`].
    Sealed = 5,
    /// Answer to [`Command::Hold`].
    Held = 6,
    /// Answer to [`Command::CarryOut`].
    CarriedOut = 7,
}

/// The page itself.
#[repr(C)]
pub struct GatePage {
    pub magic: u64,
    pub version: u32,
    /// 1 if user code may use `rdfsbase`/`wrfsbase` (AT_HWCAP2 bit 1), else 0.
    pub fsgsbase: u32,
    /// The dispatch table (`crate::dispatch::Dispatch`) of the current lower half.
    pub dispatch: u64,
    /// The lower half's other functions for the upper half.
    pub services: Services,

    /// Tested by every stub: non-zero from the moment a checkpoint is requested until its end. A `stillpoint_clock::rank::Pending`, set by the agent. 1,
    /// `Asked`: the cells' targets are not valid yet, no thread parks, and a stub about to begin a collective operation waits at the bell. 2, `Targeted`: the
    /// cells hold this checkpoint's targets.
    pub pending: AtomicU32,
    /// A [`Command`].
    pub command: AtomicU32,
    /// A [`DriverState`], written by the upper half.
    pub driver_state: AtomicU32,
    /// Rounds of progress that the driver thread has made since the request (upper half writes).
    pub rounds: AtomicU32,
    /// Park points that the driver thread may pass although its targets are reached: raised by the agent if the job cannot get on otherwise, used up by the
    /// upper half.
    pub advances: AtomicU32,
    /// Futex word: bumped by the agent whenever `command`, a target or `advances` changes.
    pub bell: AtomicU32,
    /// The answer to [`Command::Check`]: non-zero if the upper half found a reason (see `refusal`).
    pub refused: AtomicU32,
    /// Set by the upper half when `MPI_Init` has returned, cleared when `MPI_Finalize` has.
    pub mpi_active: AtomicU32,
    /// Point-to-point messages sent / received by threads that have ended.
    pub sent_before: AtomicU64,
    pub received_before: AtomicU64,

    /// World rank and size from the launcher (-1 until known).
    pub rank: AtomicI32,
    pub size: AtomicI32,
    /// 1 in a launch that restores an image, set before memory is mapped.
    pub restarted: AtomicU32,
    /// 1 if a fresh start uses two-phase commit (`--safe-state barrier`) instead of the clock. Read when MPI starts; a restarted program keeps its original
    /// choice.
    pub two_phase: AtomicU32,

    /// `*const UpperHooks`, registered by the upper half's constructor; 0 before.
    pub hooks: AtomicU64,
    /// The table for blocking collective operations that convert only handles: the real MPI's own functions (`*const `[`Direct`](crate::direct::Direct)), and
    /// while a checkpoint is pending [`UpperHooks::again`]. So a stub needs no test of `pending` between its increment and the call.
    pub direct: AtomicU64,
    /// Set by the agent to learn which call the driver thread is inside ([`UpperHooks::call`]); cleared when that has been looked up.
    pub asked: AtomicU32,
    /// For [`Command::CarryOut`]: the number of operations at `absent` (`*const` [`Operation`](stillpoint_clock::absent::Operation)).
    pub absent_count: AtomicU32,
    pub absent: AtomicU64,
}

const _: () = assert!(core::mem::size_of::<GatePage>() <= GATE_BYTES);

/// The lower half's services besides MPI. All are called with the *lower* FS in place, except those marked "any FS", which use neither thread-local storage nor
/// a libc.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Services {
    /// `(ggid, seq)`: this rank went past a target; tells the other members. Does not block.
    pub raise: Option<unsafe extern "C" fn(u64, u64)>,
    /// Any FS. Gives the calling thread's [`ThreadRecord`] an `fs_lower` of its own.
    pub borrow_thread_area: Option<unsafe extern "C" fn(*mut ThreadRecord)>,
    /// Lower FS. Sets the calling thread's [`ThreadRecord::reach`].
    pub come_near: Option<unsafe extern "C" fn(*const Room)>,
    /// Any FS. Stops the calling thread by the stop signal, so that it parks in a signal frame from which it can be restarted; returns when the checkpoint lets
    /// it continue.
    pub park_self: Option<unsafe extern "C" fn()>,
    /// Any FS. `(word, expected, nanoseconds)`: `futex(FUTEX_WAIT)`; 0 ns waits for ever.
    pub futex_wait: Option<unsafe extern "C" fn(*const AtomicU32, u32, u64)>,
    /// Any FS. Writes bytes to stderr.
    pub print: Option<unsafe extern "C" fn(*const u8, usize)>,
    /// Returns a pointer in the lower half's text that calls the upper half's `UserOp` with `context`: `(kind, context) -> function pointer` (see
    /// [`Callback`]); freed with `free_callback`.
    pub make_callback: Option<unsafe extern "C" fn(u32, u64) -> u64>,
    pub free_callback: Option<unsafe extern "C" fn(u64)>,
    /// Any FS. Returns the lower half's word for a predefined handle, by [`HandleKind`] and standard-ABI value; the null handle of that kind if the lower half
    /// has no such object.
    pub predefined: Option<unsafe extern "C" fn(u32, i32) -> Word>,
    /// Lower FS, MPI running. Returns the address of the real MPI's own `MPI_Recv`, if that calls [`UpperHooks::waiting`] while it waits; else 0.
    pub receive: Option<unsafe extern "C" fn() -> u64>,
}

/// Kinds of upper-half function that the lower half may have to call.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    /// `MPI_User_function`: `UpperHooks::call_op(context, in, inout, *len, datatype word)`.
    Operator = 0,
    /// `MPI_Grequest_query_function`.
    GrequestQuery = 1,
    /// `MPI_Grequest_free_function`.
    GrequestFree = 2,
    /// `MPI_Grequest_cancel_function`.
    GrequestCancel = 3,
}

/// Kinds of MPI handle.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HandleKind {
    Communicator = 1,
    Group = 2,
    Datatype = 3,
    Operator = 4,
    Request = 5,
    Errhandler = 6,
    Info = 7,
    Message = 8,
    Window = 9,
    File = 10,
    Session = 11,
}

/// The upper half's functions and data for the lower half. They lie in the arena, so they are the same before and after a restart. All functions are called
/// with the *upper* FS of the thread they run on.
#[repr(C)]
pub struct UpperHooks {
    pub version: u32,
    /// Bytes of this structure; 0 if `hindrances` is its last field.
    pub reserved: u32,
    /// `*const ClockCell`, each `clock_stride` bytes behind the previous one: never moves.
    pub clock_cells: u64,
    /// Cells in use.
    pub clock_count: AtomicU32,
    /// Bytes of text at `refusal`.
    pub refusal_bytes: AtomicU32,
    /// UTF-8: the reasons against a checkpoint, for people (`[u8; 4096]`).
    pub refusal: u64,
    /// Parked: called by the stop handler on the driver thread; returns when the thread may continue.
    pub park: Option<unsafe extern "C" fn()>,
    /// Called once in a restarted process on the driver thread, memory in place, MPI started:
    /// rebuilds every MPI object. 0, or an MPI-independent error number with text at `refusal`.
    pub rebuild: Option<unsafe extern "C" fn() -> i32>,
    /// `(context, in, inout, len, datatype word)`.
    pub call_op: Option<unsafe extern "C" fn(u64, *mut u8, *mut u8, *mut i32, Word)>,
    /// `(kind, context, status or flag) -> MPI error`.
    pub call_grequest: Option<unsafe extern "C" fn(u32, u64, u64) -> i32>,
    /// Called when a checkpoint is pending and the real MPI waits on this thread. Any FS; may return to the caller of the real MPI.
    pub waiting: Option<unsafe extern "C" fn()>,
    /// UTF-8 JSON describing the MPI objects alive (for `inspect`), and its length; refreshed by
    /// [`Command::Seal`].
    pub inventory: AtomicU64,
    pub inventory_bytes: AtomicU64,
    /// The thread level with which a restart must start MPI.
    pub mpi_thread_level: AtomicI32,
    pub reserved2: u32,
    /// `*const [AtomicU32; HINDRANCES.len()]`: the number of each.
    pub hindrances: u64,
    /// A table with the layout of [`Direct`](crate::direct::Direct), all of whose functions do nothing and return [`AGAIN`].
    pub again: u64,
    /// Called when a checkpoint is pending and the real MPI waits on this thread in a blocking collective operation ([`ThreadRecord::inside`]): whether the
    /// thread should stop there. Any FS.
    pub stands: Option<unsafe extern "C" fn() -> u32>,
    /// Stops the thread: returns when it may continue with the operation. In a restarted process, the real MPI's function returns instead, with [`AGAIN`], to
    /// the [`Caller`]. Any FS.
    pub stand: Option<unsafe extern "C" fn(*const Caller)>,
    /// `*const [[u8; CLOCK_NAME]; _]`: the name of each clock of `clock_cells` for people, UTF-8, filled up with 0.
    pub clock_names: u64,
    /// Called on a thread inside a collective operation of this caller's: notes its name at `call`. Any FS.
    pub look_up: Option<unsafe extern "C" fn(*const Caller)>,
    /// `*const c_char`: the name of the collective operation that the driver thread was in when it was asked; 0: not known.
    pub call: AtomicU64,
    /// Code in which a thread must not be stopped, whatever its record says: the first address, and the first one past it. It is all of the library's code: a
    /// stub's decisions for this launch must be carried out in this launch. System calls are an exception: there, threads can be stopped.
    pub closed: [u64; 2],
    /// Bytes of a [`ClockRoom`]; without this field 64.
    pub clock_stride: u32,
    /// The number of reasons for which blocking collective operations go the long way, even if no checkpoint is pending.
    pub long_way: AtomicU32,
    /// `(place of a clock in the table, number, result)`: returns this rank's memory of an operation; 0: none. May be called at any time by any thread, with
    /// any FS: it reads memory that never goes away.
    pub remembered: Option<unsafe extern "C" fn(u32, u64, *mut Operation) -> u32>,
}

impl UpperHooks {
    /// Whether the upper half that filled this in knew all fields of this build's.
    pub const fn is_whole(&self) -> bool {
        self.reserved as usize >= core::mem::size_of::<Self>()
    }
}

/// The result of a function of the lower half that asks the upper half to begin the operation anew: not an error code of any MPI.
pub const AGAIN: i32 = i32::MIN + 7;

/// The place in the upper half to which a function of the lower half returns, and the registers that it preserves.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The address behind the call.
    pub pc: u64,
    /// The stack pointer there.
    pub sp: u64,
    /// The registers that a function preserves, in the order of `arch`.
    pub kept: [u64; 16],
}

/// Reasons that forbid a checkpoint as long as they exist: MPI state that no image holds.
pub const HINDRANCES: [&str; 5] = [
    "RMA window(s) are open (MPI_Win_*)",
    "MPI file(s) are open (MPI_File_*)",
    "connection(s) to spawned or joined processes are open (MPI_Comm_spawn, accept, connect, join)",
    "nonblocking operation(s) on a window or file are pending",
    "handle(s) of the tools interface are open (MPI_T_*)",
];

/// The data of a thread of the upper half behind GS. Not saved: at every restart, the lower half makes it anew for every thread.
#[repr(C, align(64))]
pub struct ThreadRecord {
    /// This record's address.
    pub this: u64,
    /// Thread area that this one borrows from a thread of the lower half; 0: none yet.
    pub fs_lower: u64,
    /// Thread area of the upper half (kept by the crossing).
    pub fs_upper: u64,
    /// An [`Inside`]; in a blocking collective operation that is begun again after a restart, the lower half of its [`ClockCell`]'s address. The
    /// stop handler parks a thread only at 0.
    pub inside: AtomicU32,
    /// A [`Reach`] in its first byte, and [`SHUT`]. Right behind `inside`: both are read as one word.
    pub reach: AtomicU32,
    /// Point-to-point messages this thread has sent (blocking or not, when begun).
    pub sent: AtomicU64,
    /// Messages received: receives completed with a message, and messages pulled in.
    pub received: AtomicU64,
    /// Thread id that the application sees, also after restarts.
    pub virtual_tid: AtomicU32,
    /// Thread id in the kernel in this launch.
    pub real_tid: AtomicU32,
    /// Stack pointer at the stop handler's entry while stopped, else 0: the signal frame
    /// (return address, ucontext, siginfo, vector state) starts there.
    pub stop_frame: AtomicU64,
    /// The lower half's own notes (a record of its thread table).
    pub private: [u64; 11],
    /// Non-zero on the driver thread.
    pub driver: AtomicU32,
    pub reserved: u32,
    /// The real MPI's own `MPI_Recv`, if the thread may call it ([`Services::receive`]), else 0.
    pub receive: AtomicU64,
}

/// Defines [`record!`], which names a field of the calling thread's [`ThreadRecord`] in assembly: `record!(inside)` is `gs:[24]`. Assembly takes text, and
/// text cannot hold `offset_of!`; so this is the one place with numbers, and each is compared.
macro_rules! fields {
    ($($field:ident $offset:literal),* $(,)?) => {
        #[macro_export]
        macro_rules! record {
            $(($field) => { concat!("gs:[", $offset, "]") };)*
        }
        const _: () = {
            $(assert!(core::mem::offset_of!(ThreadRecord, $field) == $offset);)*
        };
    };
}
fields! {
    this 0x00,
    fs_lower 0x08,
    fs_upper 0x10,
    inside 0x18,
    reach 0x1c,
    sent 0x20,
    received 0x28,
    real_tid 0x34,
    private 0x40,
    driver 0x98,
    receive 0xa0,
}

/// Values of [`ThreadRecord::reach`]: how the thread reaches the lower half.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// As [`Near`](Self::Near); in addition the real MPI has the application's ABI, and no other thread calls MPI: frequent calls go to its own functions
    /// ([`crate::direct::Direct`]). 0, so that one comparison shows that a thread is in the application and may call them.
    Direct = 0,
    /// Its own thread area has space for the lower half's storage (see [`Room`]): frequent calls leave FS unchanged.
    Near = 1,
    /// It has not been determined yet whether it is near.
    Unknown = 2,
    /// FS is switched for each call.
    Far = 3,
}

/// A flag beside a [`Reach`], from the moment a checkpoint is requested until its end: no call takes the shortest way then. So a call that has taken it need
/// not check for a checkpoint when it ends; the next one parks.
pub const SHUT: u32 = 0x100;

/// The part of a thread's static thread-local storage that the upper half leaves to the lower one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The address of the calling thread's part.
    pub start: u64,
    pub bytes: u64,
    /// The release of the upper half's libc (`gnu_get_libc_version`): a string that ends in NUL.
    pub libc: u64,
}

/// Values of [`ThreadRecord::inside`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// In the application.
    No = 0,
    /// In a stub or below it.
    Stub = 1,
    /// In a stub that is in, or about to enter, a blocking collective operation.
    Collective = 2,
}

/// Returns the page, for callers that know that it is mapped.
///
/// # Safety
/// The gate page must be mapped (it is, wherever the lower half has started an application).
pub unsafe fn page() -> &'static GatePage {
    // SAFETY: the caller says that the page is mapped; every mutable field is atomic.
    unsafe { &*(GATE_ADDRESS as *const GatePage) }
}
