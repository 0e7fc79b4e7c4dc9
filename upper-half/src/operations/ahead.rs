//! Operations that are carried out ahead of the application, because others have returned from them while this rank computes (`stillpoint_clock::absent`).
//!
//! The parked driver thread takes part in them by the real MPI, with buffers of this library's, and counts them. The received data is kept, in the image too,
//! until the application comes to the operation. Then its stub serves it ([`serve`]) and counts nothing. As long as something is kept, blocking
//! collective operations go the long way, whose functions look for kept data.

mod serve;

use core::ffi::c_void;
use core::ptr::null;
use core::sync::atomic::Ordering;
use std::collections::VecDeque;

use stillpoint_clock::absent::{Kind, Operation};
use stillpoint_clock::rank::Pending;
use stillpoint_wrappers::gate::{DriverState, HandleKind};
use stillpoint_wrappers::neutral::Word;

pub use serve::{bcast, gather, gatherv, scatter};

use crate::ground::abi;
use crate::ground::crossing::{self, cross, gate};
use crate::ground::description::NEUTRAL_IN_PLACE;
use crate::ground::hooks::HOOKS;
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::objects::communicator;
use crate::objects::outcome::{MpiResult, check, class};
use crate::operations::clock::{collective, points};
use stillpoint_wrappers::standard;

/// An operation that was carried out ahead.
struct Ahead {
    clock: u32,
    kind: Kind,
    root: i32,
    /// The error code that the real MPI returned.
    error: i32,
    parts: Vec<Contribution>,
}

/// The data that one member has given.
struct Contribution {
    /// Its rank in the communicator.
    from: usize,
    bytes: Vec<u8>,
}

/// Operations in the order in which they were carried out.
static KEPT: SpinLock<VecDeque<Ahead>> = SpinLock::new(VecDeque::new());

/// One round of `Command::CarryOut`: carries out the operations that the agent names, if they are new, and says so.
///
/// # Safety
/// On the driver thread, parked or in a call that waits for a message.
pub unsafe fn held() {
    let gate = gate();
    if gate.driver_state.load(Ordering::SeqCst) == DriverState::CarriedOut as u32 {
        return;
    }
    if gate.mpi_active.load(Ordering::SeqCst) != 0 {
        // SAFETY: the caller is on the driver thread, parked or in a call that waits for a message, and MPI runs.
        unsafe { carry_out() };
    }
    points::say(DriverState::CarriedOut);
}

/// Takes part in the operations that the agent names, in their order. An operation that the application has come to by itself is left out.
///
/// # Safety
/// On the driver thread, parked or in a call that waits for a message, MPI running.
unsafe fn carry_out() {
    let gate = gate();
    let (count, first) = (
        gate.absent_count.load(Ordering::SeqCst) as usize,
        gate.absent.load(Ordering::SeqCst) as *const Operation,
    );
    if count == 0 || first.is_null() {
        return;
    }
    // SAFETY: the agent keeps that many there until it is answered.
    let operations = unsafe { core::slice::from_raw_parts(first, count) };
    for told in
        operations.chunk_by(|one, other| (one.ggid, one.number) == (other.ggid, other.number))
    {
        let operation = &told[0];
        let Some(on) = communicator_of(operation.ggid) else {
            return;
        };
        // SAFETY: `communicator_of` gives a live communicator, and the application cannot free it before it has come to this operation on it.
        unsafe {
            let clock = (*on).clock;
            let count = &collective::cell(clock).count;
            if count.seq() >= operation.number {
                continue;
            }
            // Another thread that is about to begin something waits until this is over (`collective::begin`).
            if count.seq() + 1 != operation.number {
                return;
            }
            let (mut parts, mut error) = (vec![], 0);
            match take_part(on, told) {
                Ok(arrived) => parts = arrived,
                Err(code) => error = code,
            }
            HOOKS.long_way.fetch_add(1, Ordering::SeqCst);
            KEPT.lock().push_back(Ahead {
                clock,
                kind: Kind::from_word(operation.kind),
                root: operation.root,
                error,
                parts,
            });
            count.begin_shared();
        }
    }
}

/// The communicator with that clock.
fn communicator_of(ggid: u64) -> Option<*mut Object> {
    let mut found = None;
    communicator::for_each_live(|on| {
        // SAFETY: `for_each_live` gives live communicators only.
        let clock = unsafe { (*on).clock };
        if collective::cell(clock).ggid.load(Ordering::SeqCst) == ggid {
            found = Some(on);
        }
    });
    found
}

/// Takes part in one operation; `told` is what ranks have told of it: in a gather with different counts, the word of every other member.
///
/// # Safety
/// As [`carry_out`].
unsafe fn take_part(on: *mut Object, told: &[Operation]) -> MpiResult<Vec<Contribution>> {
    let operation = &told[0];
    let (root, bytes) = (operation.root, bytes_of(operation)?);
    // SAFETY: the communicator is live, buffers are as large as is said.
    unsafe {
        let (word, size, me) = ((*on).lower, (*on).size as usize, (*on).rank as usize);
        let element = Elements::of(operation.size)?;
        let (count, datatype) = (operation.count, element.0);
        match Kind::from_word(operation.kind) {
            Kind::Unknown => Err(class::INTERN),
            Kind::Bcast => {
                let mut buffer = room(bytes);
                let to = buffer.as_mut_ptr().cast::<c_void>();
                check(cross(|d| (d.bcast)(to, count, datatype, root, word)))?;
                buffer.truncate(bytes);
                Ok(vec![Contribution::new(root as usize, buffer)])
            }
            Kind::Scatter => {
                let mut buffer = room(bytes);
                let to = buffer.as_mut_ptr().cast::<c_void>();
                check(cross(|d| {
                    (d.scatter)(null(), 0, datatype, to, count, datatype, root, word)
                }))?;
                buffer.truncate(bytes);
                Ok(vec![Contribution::new(root as usize, buffer)])
            }
            Kind::Gather => {
                let mut buffer = room(bytes.checked_mul(size).ok_or(class::NO_MEM)?);
                let to = buffer.as_mut_ptr().cast::<c_void>();
                check(cross(|d| {
                    (d.gather)(in_place(), 0, datatype, to, count, datatype, root, word)
                }))?;
                let part = |from: usize| buffer[from * bytes..][..bytes].to_vec();
                let others = (0..size).filter(|from| *from != me);
                Ok(others
                    .map(|from| Contribution::new(from, part(from)))
                    .collect())
            }
            Kind::Gatherv => gatherv_from(on, told),
        }
    }
}

/// [`take_part`] in a gather where members may give different amounts.
///
/// # Safety
/// As [`take_part`].
unsafe fn gatherv_from(on: *mut Object, told: &[Operation]) -> MpiResult<Vec<Contribution>> {
    // SAFETY: `on` is alive, by the caller's promise; both lists have a place for each member, and the buffer has as many bytes as they say in all.
    unsafe {
        let (word, size) = ((*on).lower, (*on).size as usize);
        let (mut counts, mut places, mut all) = (vec![0i32; size], vec![0i32; size], 0usize);
        for member in told {
            let from = member.teller as usize;
            let bytes = bytes_of(member)?;
            *counts.get_mut(from).ok_or(class::INTERN)? = bytes as i32;
            places[from] = all as i32;
            all += bytes;
        }
        if i32::try_from(all).is_err() {
            return Err(class::NO_MEM);
        }
        let mut buffer = room(all);
        let to = buffer.as_mut_ptr().cast::<c_void>();
        let (root, byte) = (told[0].root, byte());
        let (counts, places) = (counts.as_ptr(), places.as_ptr());
        check(cross(|d| {
            (d.gatherv)(in_place(), 0, byte, to, counts, places, byte, root, word)
        }))?;
        let mut rest = buffer.as_slice();
        told.iter()
            .map(|member| {
                let (part, behind) = rest.split_at(bytes_of(member)?);
                rest = behind;
                Ok(Contribution::new(member.teller as usize, part.to_vec()))
            })
            .collect()
    }
}

impl Contribution {
    fn new(from: usize, bytes: Vec<u8>) -> Contribution {
        Contribution { from, bytes }
    }
}

fn bytes_of(operation: &Operation) -> MpiResult<usize> {
    let bytes = i64::from(operation.count) * i64::from(operation.size);
    usize::try_from(bytes).map_err(|_| class::NO_MEM)
}

/// Memory for that many bytes: at least one, because the address of an empty block may be `MPI_IN_PLACE`.
fn room(bytes: usize) -> Vec<u8> {
    vec![0u8; bytes.max(1)]
}

fn in_place() -> *const c_void {
    core::ptr::without_provenance(NEUTRAL_IN_PLACE)
}

fn byte() -> Word {
    // SAFETY: `MPI_BYTE` is a predefined object, which always exists.
    unsafe { (*abi::predefined(HandleKind::Datatype, standard::BYTE)).lower }
}

/// A datatype of the lower half with elements of that many bytes, so that the real MPI divides a buffer as it does on the other ranks.
struct Elements(Word);

impl Elements {
    /// # Safety
    /// Inside, MPI running.
    unsafe fn of(bytes: i32) -> MpiResult<Elements> {
        let mut word = 0;
        let byte = byte();
        // SAFETY: the caller is inside, and MPI runs; `word` is a local variable.
        unsafe {
            check(cross(|d| (d.type_contiguous)(bytes, byte, &raw mut word)))?;
            let elements = Elements(word);
            check(cross(|d| (d.type_commit)(&raw mut word)))?;
            Ok(elements)
        }
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        let mut word = self.0;
        // SAFETY: the datatype is ours, and used no more.
        unsafe { cross(|d| (d.type_free)(&raw mut word)) };
    }
}

/// Takes the parts of an operation that the application has come to on a communicator, or `None` if it was not carried out ahead.
///
/// # Safety
/// Inside a stub; `on` must be null or a handle, alive or freed.
#[inline]
unsafe fn take(on: *mut Object, kind: Kind, root: i32) -> Option<MpiResult<Vec<Contribution>>> {
    if HOOKS.long_way.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // SAFETY: `on` is null or a handle, by the caller's promise.
    unsafe { take_kept(on, kind, root) }
}

/// # Safety
/// As [`take`].
#[cold]
unsafe fn take_kept(
    on: *mut Object,
    kind: Kind,
    root: i32,
) -> Option<MpiResult<Vec<Contribution>>> {
    // SAFETY: `on` is null or a handle, by the caller's promise; its clock is read only if it is usable.
    let clock = unsafe {
        communicator::usable(on).ok()?;
        (*on).clock
    };
    let ahead = {
        let mut kept = KEPT.lock();
        let index = kept.iter().position(|it| it.clock == clock)?;
        kept.remove(index)?
    };
    if HOOKS.long_way.fetch_sub(1, Ordering::SeqCst) == 1 {
        open_direct_way();
    }
    if (ahead.kind, ahead.root) != (kind, root) {
        // The others did something else: an error of the program's, which natively hangs or overwrites something.
        return Some(Err(class::OTHER));
    }
    Some(match ahead.error {
        0 => Ok(ahead.parts),
        code => Err(code),
    })
}

/// Lets blocking operations go the direct way again. An agent that begins a checkpoint meanwhile closes it before or after this. This thread would see at an
/// operation's beginning what it does not see here, and no other thread calls MPI.
fn open_direct_way() {
    if points::pending() != Pending::No {
        return;
    }
    let way = &gate().direct;
    way.store(
        core::ptr::from_ref(&crossing::dispatch().direct) as u64,
        Ordering::SeqCst,
    );
    if points::pending() != Pending::No {
        way.store(HOOKS.again, Ordering::SeqCst);
    }
}

/// Called in a restart: closes the direct way of this launch too, if it was closed.
pub fn restarted() {
    if HOOKS.long_way.load(Ordering::Relaxed) != 0 {
        gate().direct.store(HOOKS.again, Ordering::Relaxed);
    }
}
