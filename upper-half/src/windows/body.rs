//! The data of a window.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::memory::Memory;
use crate::ground::lock::SpinLock;
use crate::ground::object::{Object, Win};
use crate::objects::communicator::Identity;
use crate::objects::group;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, live};

/// Standard-ABI values for the real MPI.
pub const RMA_SYNC: i32 = 50;
pub const NO_CHECK: i32 = 1024;
pub const NO_SUCCEED: i32 = 16384;

/// The origin of a window's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    Create,
    /// Each member has memory of the window's.
    Allocate,
    Dynamic,
    /// All members have the same memory, each a part of it as its own.
    Shared,
}

impl Flavor {
    /// The flavor's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Allocate => "allocate",
            Self::Dynamic => "dynamic",
            Self::Shared => "shared",
        }
    }
}

/// One member's part of memory that all members share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberPart {
    pub bytes: isize,
    pub unit: i32,
    /// The address in this process, or 0 if it has none.
    pub at: usize,
}

impl MemberPart {
    /// The same at another address.
    pub fn moved(self, to: impl FnOnce(usize) -> usize) -> MemberPart {
        MemberPart {
            at: to(self.at),
            ..self
        }
    }
}

/// Bits of [`Body::open`]: the states in which this process may access others.
pub mod open {
    /// After a fence that does not say `MPI_MODE_NOSUCCEED`.
    pub const FENCE: u32 = 1;
    /// Between `MPI_Win_start` and `MPI_Win_complete`.
    pub const STARTED: u32 = 2;
    /// Not all of those have posted yet.
    pub const AWAITS: u32 = 4;
    /// It holds the locks of some processes.
    pub const LOCKED: u32 = 8;
    /// `MPI_Win_lock_all`.
    pub const ALL: u32 = 16;
    pub const PASSIVE: u32 = LOCKED | ALL;
}

/// The data of a window. The window's word in the lower half is that of the window with the application's data.
pub struct Body {
    pub identity: Identity,
    /// World ranks, in the order of the window's ranks.
    pub members: Arc<[i32]>,
    pub flavor: Flavor,
    pub base: usize,
    pub size: isize,
    pub unit: i32,
    /// The part of each member in memory that all share, as the application was told.
    pub parts: Vec<MemberPart>,
    /// The memory that is freed at the window's end.
    pub memory: Memory,
    /// Clock cells: the window's own, that of the set of its members, and that of this process alone.
    pub clock: u32,
    pub group_clock: u32,
    pub own_clock: u32,
    /// The lower half's words: a communicator of the members, and the window that is locked.
    pub communicator: AtomicU64,
    pub locks: AtomicU64,
    /// Bits of [`open`]. Written with the notes taken.
    pub open: AtomicU32,
    /// Operations have been begun since the last flush of all.
    pub touched: AtomicBool,
    pub notes: SpinLock<Notes>,
}

/// A lock that this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub rank: i32,
    /// Neutral, like the assertion.
    pub kind: i32,
    pub assertion: i32,
}

/// The part of a window that changes in its life.
#[derive(Default)]
pub struct Notes {
    pub name: Option<Vec<u8>>,
    /// Keys and values of the application's.
    pub hints: Pairs,
    pub held: Vec<Held>,
    /// The assertion of `MPI_Win_lock_all`.
    pub all: Option<i32>,
    /// Ranks of the window: those that were started, and those that were posted to.
    pub started: Option<Vec<i32>>,
    pub posted: Option<Vec<i32>>,
    /// Messages that no call has waited for yet, by the rank that sent them.
    pub posts: Vec<u32>,
    pub completes: Vec<u32>,
    /// Memory that is attached to a dynamic window: address and bytes.
    pub attached: Vec<(usize, isize)>,
}

impl Body {
    pub fn is_open(&self, bits: u32) -> bool {
        self.open.load(Ordering::Relaxed) & bits != 0
    }

    pub fn begin(&self, bits: u32) {
        self.open.fetch_or(bits, Ordering::Relaxed);
    }

    pub fn end(&self, bits: u32) {
        self.open.fetch_and(!bits, Ordering::Relaxed);
    }

    /// This process's rank in the window.
    pub fn own_place(&self) -> Option<usize> {
        let me = group::world_rank();
        self.members.iter().position(|rank| *rank == me)
    }

    /// The epochs that are open, by the calls that have opened them.
    pub fn epochs(&self) -> Vec<&'static str> {
        let posted = self.notes.lock().posted.is_some();
        let known = [
            (self.is_open(open::FENCE), "fence"),
            (self.is_open(open::STARTED), "start"),
            (posted, "post"),
            (self.is_open(open::LOCKED), "lock"),
            (self.is_open(open::ALL), "lock_all"),
        ];
        let open = known.into_iter().filter(|(open, _)| *open);
        open.map(|(_, name)| name).collect()
    }

    pub fn communicator(&self) -> Word {
        self.communicator.load(Ordering::Relaxed)
    }

    pub fn locks(&self) -> Word {
        self.locks.load(Ordering::Relaxed)
    }
}

/// The body of a live window, or `None` for one that is the real MPI's alone, and for the null one.
///
/// # Safety
/// `window` must be a live window.
pub unsafe fn body<'a>(window: Win) -> Option<&'a Body> {
    // SAFETY: the body is a box of `make`.
    unsafe { (*window).body.cast::<Body>().as_ref() }
}

/// A window that a function may be given.
///
/// # Safety
/// `window` must be null or a handle.
pub unsafe fn usable<'a>(window: Win) -> MpiResult<(*mut Object, Option<&'a Body>)> {
    // SAFETY: `window` is null or a handle, by the caller's promise, and `live` looks at it before its body is read.
    unsafe {
        let window = live(window, HandleKind::Window)?;
        Ok((window, body(window)))
    }
}
