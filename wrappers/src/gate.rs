//! The gate page: the one place through which the two halves of the process know each other.
//!
//! The lower half maps it at [`GATE_ADDRESS`] before the application's first instruction and fills
//! it anew in every launch; it lies outside of the upper half's ranges, so no image ever holds it. The upper half
//! reaches the lower half through nothing else.
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
//! The kernel puts position-independent executables at `0x5555_5555_4000` and above, and mappings that ask for no address near
//! `0x7fff_ffff_ffff`: so the lower half lies in none of these ranges. Where the stack has no limit, older kernels put mappings at
//! `0x2aaa_aaaa_a000` and above, and newer ones below `0x1555_5555_5000`, less what is random: up to 16 TiB, with `vm.mmap_rnd_bits` at its most.
//! The lower half begins again elsewhere there (`ground::apart`). What the application starts, which inherits the filter, does not: so calls from
//! code between `CODE_END` and `LOW_END` are nobody's, and the upper half has no code there.
//! ThreadSanitizer wants programs at `0x5500_0000_0000` or below `0x80_0000_0000`, AddressSanitizer wants all of
//! `0x7fff_8000 .. 0x1000_7fff_8000` for itself.
//!
//! Every field that changes while threads run is atomic. The layout is `repr(C)`; an image records the version of the contract
//! ([`crate::contract`]) that its upper half was built with.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use stillpoint_clock::absent::Operation;

pub use crate::clocks::{CLOCK_NAME, ClockCell, ClockRoom, Log};
use crate::neutral::Word;

/// Where the gate page is mapped, in every launch.
pub const GATE_ADDRESS: usize = 0x5500_0000_0000;
/// Bytes mapped for the gate page.
pub const GATE_BYTES: usize = 0x1_0000;
/// First address of the range where the upper half is put.
pub const ARENA_START: usize = 0x5501_0000_0000;
/// First address past that range.
pub const ARENA_END: usize = 0x5555_0000_0000;
/// First address below `LOW_END` whose code is not the upper half's: the kernel puts programs there that have no limit on their stack.
pub const CODE_END: usize = 0x0500_0000_0000;
/// Everything below this address belongs to the upper half: what it asks for by address, and non-PIE executables.
pub const LOW_END: usize = 0x2a00_0000_0000;

/// First word of a filled gate page: `"STILLPNT"`.
pub const GATE_MAGIC: u64 = u64::from_le_bytes(*b"STILLPNT");

/// In the environment that the application's loader begins with, this variable and all behind it are for the loader alone; their number
/// is even. The upper half's constructor takes them away, and the environment is what it would be without Stillpoint.
pub const FOR_LOADER: &core::ffi::CStr = c"STILLPOINT_FOR_LOADER=";

/// Whether an address belongs to the upper half, whatever is there. What the application has asked for at other addresses belongs to it
/// too; that the lower half writes down.
pub const fn is_upper(address: usize) -> bool {
    address < LOW_END || (address >= ARENA_START && address < ARENA_END)
}

/// Whether system calls of code at an address are the upper half's.
pub const fn is_upper_code(address: usize) -> bool {
    is_upper(address) && (address < CODE_END || address >= LOW_END)
}

/// What the agent asks of the upper half's driver thread (the thread that started MPI).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// No checkpoint is going on: run.
    Run = 0,
    /// Run on until every target is reached, then park and keep pulling messages in.
    Reach = 1,
    /// Parked: say what forbids a checkpoint, if anything (see [`UpperHooks::refusal`]).
    Check = 2,
    /// Parked: pull messages in and test requests until told otherwise.
    Drain = 3,
    /// Parked and drained: bring MPI objects into the form that a restart starts from.
    Seal = 4,
    /// Memory is being written: touch nothing, sleep.
    Hold = 5,
    /// Not at the still point yet: carry out what [`GatePage::absent`] says, and stand still.
    CarryOut = 6,
}

/// What the driver thread says about itself, in answer to a [`Command`].
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
    /// 1 where user code may use `rdfsbase`/`wrfsbase` (AT_HWCAP2 bit 1), else 0.
    pub fsgsbase: u32,
    /// The dispatch table (`crate::dispatch::Dispatch`) of the current lower half.
    pub dispatch: u64,
    /// What else the lower half does for the upper half.
    pub services: Services,

    /// Tested by every stub: non-zero from the moment a checkpoint is asked for until its end. A
    /// `stillpoint_clock::rank::Pending`, set by the agent. 1, `Asked`: the cells' targets do not mean anything yet, nobody
    /// parks, and a stub about to begin a collective operation waits at the bell. 2, `Targeted`: the cells hold this
    /// checkpoint's targets.
    pub pending: AtomicU32,
    /// A [`Command`].
    pub command: AtomicU32,
    /// A [`DriverState`], written by the upper half.
    pub driver_state: AtomicU32,
    /// Rounds of progress that the driver thread has made since the request (upper half writes).
    pub rounds: AtomicU32,
    /// Park points that the driver thread may pass although its targets are reached: raised by the
    /// agent when the job cannot get on otherwise, used up by the upper half.
    pub advances: AtomicU32,
    /// Futex word: bumped by the agent whenever `command`, a target or `advances` changes.
    pub bell: AtomicU32,
    /// Ask the *refused* question: non-zero when the upper half found a reason (see `refusal`).
    pub refused: AtomicU32,
    /// Set by the upper half when `MPI_Init` has returned, cleared when `MPI_Finalize` has.
    pub mpi_active: AtomicU32,
    /// MPI point-to-point messages that threads which have ended had sent / received.
    pub sent_before: AtomicU64,
    pub received_before: AtomicU64,

    /// World rank and size as the launcher told (-1 until known).
    pub rank: AtomicI32,
    pub size: AtomicI32,
    /// 1 in a launch that restores an image, from before memory is mapped on.
    pub restarted: AtomicU32,
    /// 1 where a fresh start keeps to two-phase commit (`--safe-state barrier`) instead of the clock. Read when MPI starts; a
    /// restarted program keeps to what it was started with.
    pub two_phase: AtomicU32,

    /// `*const UpperHooks`, registered by the upper half's constructor; 0 before.
    pub hooks: AtomicU64,
    /// Where blocking collective operations go that convert nothing but handles: the real MPI's own functions
    /// (`*const `[`Direct`](crate::direct::Direct)), and while a checkpoint is pending [`UpperHooks::again`]. So a stub needs no test
    /// of `pending` between its increment and the call.
    pub direct: AtomicU64,
    /// Set by the agent where it wants to know which call the driver thread is inside ([`UpperHooks::call`]); cleared when that has been looked up.
    pub asked: AtomicU32,
    /// For [`Command::CarryOut`]: how many operations are at `absent` (`*const` [`Operation`](stillpoint_clock::absent::Operation)).
    pub absent_count: AtomicU32,
    pub absent: AtomicU64,
}

const _: () = assert!(core::mem::size_of::<GatePage>() <= GATE_BYTES);

/// What the lower half offers besides MPI. All are called with the *lower* FS in place, except the
/// ones marked "any FS", which touch neither thread-local storage nor a libc.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Services {
    /// `(ggid, seq)`: this rank went past a target; tell the other members. Does not block.
    pub raise: Option<unsafe extern "C" fn(u64, u64)>,
    /// Any FS. Gives the calling thread's [`ThreadRecord`] an `fs_lower` of its own.
    pub borrow_thread_area: Option<unsafe extern "C" fn(*mut ThreadRecord)>,
    /// Lower FS. Sets the calling thread's [`ThreadRecord::reach`].
    pub come_near: Option<unsafe extern "C" fn(*const Room)>,
    /// Any FS. Stops the calling thread by the stop signal, so that it parks in a signal frame that
    /// it can be restarted from; returns when the checkpoint lets it go on.
    pub park_self: Option<unsafe extern "C" fn()>,
    /// Any FS. `(word, expected, nanoseconds)`: `futex(FUTEX_WAIT)`; 0 ns waits for ever.
    pub futex_wait: Option<unsafe extern "C" fn(*const AtomicU32, u32, u64)>,
    /// Any FS. Writes bytes to stderr.
    pub print: Option<unsafe extern "C" fn(*const u8, usize)>,
    /// A pointer in the lower half's text that calls the upper half's `UserOp` with `context`:
    /// `(kind, context) -> function pointer` (see [`Callback`]); freed with `free_callback`.
    pub make_callback: Option<unsafe extern "C" fn(u32, u64) -> u64>,
    pub free_callback: Option<unsafe extern "C" fn(u64)>,
    /// Any FS. The lower half's word for a predefined handle, by [`HandleKind`] and standard-ABI value;
    /// the lower half's null handle of that kind where it has no such object.
    pub predefined: Option<unsafe extern "C" fn(u32, i32) -> Word>,
    /// Lower FS, MPI running. The address of the real MPI's own `MPI_Recv`, if that calls [`UpperHooks::waiting`] while it waits; else 0.
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

/// What the upper half offers; lives in the arena, so it is the same before and after a restart.
/// All functions are called with the *upper* FS of the thread they run on.
#[repr(C)]
pub struct UpperHooks {
    pub version: u32,
    /// Bytes of this structure; 0 where `hindrances` is its last field.
    pub reserved: u32,
    /// `*const ClockCell`, each `clock_stride` bytes behind the one before: never moves.
    pub clock_cells: u64,
    /// Cells in use.
    pub clock_count: AtomicU32,
    /// Bytes of text at `refusal`.
    pub refusal_bytes: AtomicU32,
    /// UTF-8: what forbids a checkpoint, for people (`[u8; 4096]`).
    pub refusal: u64,
    /// Parked: called by the stop handler on the driver thread; returns when it may go on.
    pub park: Option<unsafe extern "C" fn()>,
    /// Called once in a restarted process on the driver thread, memory in place, MPI started:
    /// rebuilds every MPI object. 0, or an MPI-independent error number with text at `refusal`.
    pub rebuild: Option<unsafe extern "C" fn() -> i32>,
    /// `(context, in, inout, len, datatype word)`.
    pub call_op: Option<unsafe extern "C" fn(u64, *mut u8, *mut u8, *mut i32, Word)>,
    /// `(kind, context, status or flag) -> MPI error`.
    pub call_grequest: Option<unsafe extern "C" fn(u32, u64, u64) -> i32>,
    /// A checkpoint is pending, and the real MPI waits on this thread. Any FS; may return to where the real MPI was called from.
    pub waiting: Option<unsafe extern "C" fn()>,
    /// UTF-8 JSON describing the MPI objects alive (for `inspect`), and its length; refreshed by
    /// [`Command::Seal`].
    pub inventory: AtomicU64,
    pub inventory_bytes: AtomicU64,
    /// What a restart must start MPI with.
    pub mpi_thread_level: AtomicI32,
    pub reserved2: u32,
    /// `*const [AtomicU32; HINDRANCES.len()]`: how many there are of each.
    pub hindrances: u64,
    /// A table with the layout of [`Direct`](crate::direct::Direct) whose every function does nothing and returns [`AGAIN`].
    pub again: u64,
    /// A checkpoint is pending, and the real MPI waits on this thread in a blocking collective operation ([`ThreadRecord::inside`]):
    /// whether the thread is to stand still below it. Any FS.
    pub stands: Option<unsafe extern "C" fn() -> u32>,
    /// It is to: returns when the thread may go on with the operation. In a restarted process the real MPI's function returns instead,
    /// with [`AGAIN`], as the [`Caller`] has it. Any FS.
    pub stand: Option<unsafe extern "C" fn(*const Caller)>,
    /// `*const [[u8; CLOCK_NAME]; _]`: what people call each clock of `clock_cells`, UTF-8, filled up with 0.
    pub clock_names: u64,
    /// The thread that asks is inside a collective operation of this caller's: notes its name at `call`. Any FS.
    pub look_up: Option<unsafe extern "C" fn(*const Caller)>,
    /// `*const c_char`: the name of the collective operation that the driver thread was in when it was asked; 0: not known.
    pub call: AtomicU64,
    /// Code in which no thread may be stopped, whatever it says of where it is: first address, and first one past it. All of the library's: what a
    /// stub has decided by this launch, it carries out in this launch. But for its system calls, at which threads stand aside.
    pub closed: [u64; 2],
    /// Bytes of a [`ClockRoom`]; without this field 64.
    pub clock_stride: u32,
    /// Reasons for which blocking collective operations go the long way, also where no checkpoint is pending.
    pub long_way: AtomicU32,
    /// `(place of a clock in the table, number, result)`: what this rank remembers of an operation; 0: nothing. May be called at any time by any thread, with any
    /// FS: it reads memory that never goes away.
    pub remembered: Option<unsafe extern "C" fn(u32, u64, *mut Operation) -> u32>,
}

impl UpperHooks {
    /// Whether the upper half that filled this in knew all fields of this build's.
    pub const fn is_whole(&self) -> bool {
        self.reserved as usize >= core::mem::size_of::<Self>()
    }
}

/// What a function of the lower half returns to an upper half that is to begin the operation anew: no error code of any MPI.
pub const AGAIN: i32 = i32::MIN + 7;

/// Where a function of the lower half returns to in the upper half, and what it leaves as it was.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The instruction behind the call.
    pub pc: u64,
    /// The stack pointer there.
    pub sp: u64,
    /// The registers that a function keeps, in the order of `arch`.
    pub kept: [u64; 16],
}

/// What forbids a checkpoint as long as it lives, in words: MPI state that no image holds.
pub const HINDRANCES: [&str; 5] = [
    "RMA window(s) are open (MPI_Win_*)",
    "MPI file(s) are open (MPI_File_*)",
    "connection(s) to spawned or joined processes are open (MPI_Comm_spawn, accept, connect, join)",
    "nonblocking operation(s) on a window or file are pending",
    "handle(s) of the tools interface are open (MPI_T_*)",
];

/// What a thread of the upper half keeps behind GS. Not saved: made anew for every thread at every
/// restart by the lower half.
#[repr(C, align(64))]
pub struct ThreadRecord {
    /// `gs:0x00`: this record's address.
    pub this: u64,
    /// `gs:0x08`: thread area of the lower half's thread that this one borrows; 0: none yet.
    pub fs_lower: u64,
    /// `gs:0x10`: thread area of the upper half (kept by the crossing).
    pub fs_upper: u64,
    /// `gs:0x18`: an [`Inside`]; in a blocking collective operation that is begun again after a restart the lower half of its
    /// [`ClockCell`]'s address. The stop handler parks a thread only at 0.
    pub inside: AtomicU32,
    /// `gs:0x1c`: a [`Reach`] in its first byte, and [`SHUT`]. Right behind `inside`: both are read as one word.
    pub reach: AtomicU32,
    /// `gs:0x20`: point-to-point messages this thread has sent (blocking or not, when begun).
    pub sent: AtomicU64,
    /// `gs:0x28`: messages received: receives completed with a message, and messages pulled in.
    pub received: AtomicU64,
    /// `gs:0x30`: thread id that the application sees, for ever.
    pub virtual_tid: AtomicU32,
    /// `gs:0x34`: thread id that the kernel knows in this launch.
    pub real_tid: AtomicU32,
    /// `gs:0x38`: stack pointer at the stop handler's entry while stopped, else 0: the signal frame
    /// (return address, ucontext, siginfo, vector state) starts there.
    pub stop_frame: AtomicU64,
    /// `gs:0x40`: the lower half's own notes (a record of its thread table).
    pub private: [u64; 11],
    /// `gs:0x98`: non-zero on the driver thread.
    pub driver: AtomicU32,
    pub reserved: u32,
    /// `gs:0xa0`: the real MPI's own `MPI_Recv`, if the thread may call it ([`Services::receive`]), else 0.
    pub receive: AtomicU64,
}

/// Values of [`ThreadRecord::reach`]: how the thread gets at the lower half.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// As [`Near`](Self::Near), and the real MPI has the application's ABI, and no other thread calls MPI: frequent calls go
    /// to its own functions ([`crate::direct::Direct`]). 0, so that one comparison tells that a thread is in the
    /// application and may call them.
    Direct = 0,
    /// Its own thread area has room for what the lower half keeps in one (see [`Room`]): frequent calls leave FS as it is.
    Near = 1,
    /// It has not been tried yet whether it is near.
    Unknown = 2,
    /// FS is switched for each call.
    Far = 3,
}

/// Beside a [`Reach`] from the moment a checkpoint is asked for until its end: no call takes the shortest way then. So one that has taken it need not look for a
/// checkpoint when it ends; the next one parks.
pub const SHUT: u32 = 0x100;

/// Room in a thread's static thread-local storage that the upper half leaves to the lower one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Where the calling thread's lies.
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

/// The page, for whoever knows that it is mapped.
///
/// # Safety
/// The gate page must be mapped (it is, wherever the lower half has started an application).
pub unsafe fn page() -> &'static GatePage {
    // SAFETY: the caller says that the page is mapped; every mutable field is atomic.
    unsafe { &*(GATE_ADDRESS as *const GatePage) }
}
