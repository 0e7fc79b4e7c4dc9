//! Serves an operation that was carried out ahead of the application, when the application comes to it: the received data goes into its buffers.
//!
//! Each function has the arguments of the MPI function of its name, and returns `None` if nothing was carried out ahead: then the stub goes on.

use core::ffi::c_void;

use stillpoint_clock::absent::Kind;
use stillpoint_wrappers::neutral::Status;

use super::{Contribution, room, take};
use crate::ground::abi;
use crate::ground::crossing::cross;
use crate::ground::object::{Comm, Datatype};
use crate::objects::datatype;
use crate::objects::outcome::{MpiResult, check, class};

/// Room for elements in a buffer of the application's.
#[derive(Clone, Copy)]
struct ReceiveBuffer {
    at: *mut c_void,
    count: i32,
    datatype: Datatype,
}

/// Puts received data into a buffer, as a receive does.
///
/// # Safety
/// Inside a stub; the room as for `MPI_Recv`.
unsafe fn put(part: &Contribution, room: ReceiveBuffer) -> MpiResult {
    let mut status = Status::default();
    // SAFETY: the room is as for `MPI_Recv`, by the caller's promise; `usable` has looked at the datatype; the part's bytes are only read.
    unsafe {
        let datatype = (*datatype::usable(room.datatype)?).lower;
        let (packed, bytes) = (part.bytes.as_ptr().cast(), part.bytes.len() as u64);
        check(cross(|d| {
            (d.extra.deliver)(
                packed,
                bytes,
                room.at,
                room.count,
                datatype,
                &raw mut status,
            )
        }))
    }
}

/// The error code, or 0.
fn code(outcome: MpiResult) -> i32 {
    outcome.err().unwrap_or(0)
}

/// # Safety
/// As the MPI function, inside its stub.
#[inline]
pub unsafe fn bcast(
    buffer: *mut c_void,
    count: i32,
    datatype: Datatype,
    root: i32,
    comm: Comm,
) -> Option<i32> {
    // SAFETY: MPI demands a buffer with room for `count` elements; `take` looks at the communicator, `put` at the datatype.
    unsafe {
        let parts = take(comm, Kind::Bcast, abi::rank_to_neutral(root))?;
        Some(code(first(parts, buffer, count, datatype)))
    }
}

/// # Safety
/// As the MPI function, inside its stub.
#[inline]
#[allow(clippy::too_many_arguments, reason = "MPI's own")]
pub unsafe fn scatter(
    _sendbuf: *const c_void,
    _sendcount: i32,
    _sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i32,
    recvtype: Datatype,
    root: i32,
    comm: Comm,
) -> Option<i32> {
    // SAFETY: MPI demands a receive buffer with room for `recvcount` elements; `take` looks at the communicator, `put` at the datatype.
    unsafe {
        let parts = take(comm, Kind::Scatter, abi::rank_to_neutral(root))?;
        Some(code(first(parts, recvbuf, recvcount, recvtype)))
    }
}

/// Puts the only part.
///
/// # Safety
/// Inside a stub; the buffer as for `MPI_Recv`.
#[cold]
unsafe fn first(
    parts: MpiResult<Vec<Contribution>>,
    buffer: *mut c_void,
    count: i32,
    datatype: Datatype,
) -> MpiResult {
    let parts = parts?;
    let into = ReceiveBuffer {
        at: abi::buffer(buffer),
        count,
        datatype,
    };
    // SAFETY: the buffer is as for `MPI_Recv`, by the caller's promise.
    unsafe { put(parts.first().ok_or(class::INTERN)?, into) }
}

/// # Safety
/// As the MPI function, inside its stub.
#[inline]
#[allow(clippy::too_many_arguments, reason = "MPI's own")]
pub unsafe fn gather(
    sendbuf: *const c_void,
    sendcount: i32,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i32,
    recvtype: Datatype,
    root: i32,
    comm: Comm,
) -> Option<i32> {
    // SAFETY: MPI demands that the root's buffer has `recvcount` elements for each member; `take` has found the communicator usable.
    unsafe {
        let parts = take(comm, Kind::Gather, abi::rank_to_neutral(root))?;
        let own = (sendbuf, sendcount, sendtype);
        Some(code(gathered(
            parts,
            own,
            recvbuf,
            recvtype,
            comm,
            |from| (recvcount, from as i64 * i64::from(recvcount)),
        )))
    }
}

/// # Safety
/// As the MPI function, inside its stub.
#[inline]
#[allow(clippy::too_many_arguments, reason = "MPI's own")]
pub unsafe fn gatherv(
    sendbuf: *const c_void,
    sendcount: i32,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i32,
    displs: *const i32,
    recvtype: Datatype,
    root: i32,
    comm: Comm,
) -> Option<i32> {
    // SAFETY: MPI demands that the root's arrays have an element for each member, and no `from` is larger; the buffer has room where they say.
    unsafe {
        let parts = take(comm, Kind::Gatherv, abi::rank_to_neutral(root))?;
        let own = (sendbuf, sendcount, sendtype);
        Some(code(gathered(
            parts,
            own,
            recvbuf,
            recvtype,
            comm,
            |from| (*recvcounts.add(from), i64::from(*displs.add(from))),
        )))
    }
}

/// Puts every member's part at `place` (count, and elements from the buffer's beginning), and the root's own.
///
/// # Safety
/// Inside a stub; `buffer` must have room wherever `place` says, `own` be as for `MPI_Send`, and `comm` a live communicator.
#[cold]
unsafe fn gathered(
    parts: MpiResult<Vec<Contribution>>,
    own: (*const c_void, i32, Datatype),
    buffer: *mut c_void,
    datatype: Datatype,
    comm: Comm,
    place: impl Fn(usize) -> (i32, i64),
) -> MpiResult {
    // SAFETY: the buffer has room wherever `place` says, and `comm` is alive, by the caller's promise; `usable` has looked at the datatype.
    unsafe {
        let word = (*datatype::usable(datatype)?).lower;
        let (mut low, mut extent) = (0, 0);
        check(cross(|d| {
            (d.type_get_extent)(word, &raw mut low, &raw mut extent)
        }))?;
        let buffer = abi::buffer(buffer);
        let place_of = |from: usize| {
            let (count, elements) = place(from);
            ReceiveBuffer {
                at: buffer.wrapping_byte_offset(elements as isize * extent),
                count,
                datatype,
            }
        };
        for part in parts? {
            put(&part, place_of(part.from))?;
        }
        let (from, count, datatype) = own;
        if abi::is_in_place(from) {
            return Ok(());
        }
        let me = (*comm).rank as usize;
        put(
            &packed(me, abi::buffer(from), count, datatype, comm)?,
            place_of(me),
        )
    }
}

/// Packs the root's own part.
///
/// # Safety
/// Inside a stub; the buffer as for `MPI_Send`, and `comm` a live communicator.
unsafe fn packed(
    me: usize,
    from: *const c_void,
    count: i32,
    datatype: Datatype,
    comm: Comm,
) -> MpiResult<Contribution> {
    // SAFETY: `from` holds `count` elements, by the caller's promise; `bytes` is as long as the real MPI says, and `comm` is alive.
    unsafe {
        let (datatype, word) = ((*datatype::usable(datatype)?).lower, (*comm).lower);
        let (mut size, mut position) = (0, 0);
        check(cross(|d| {
            (d.pack_size)(count, datatype, word, &raw mut size)
        }))?;
        let mut bytes = room(size as usize);
        let to = bytes.as_mut_ptr().cast::<c_void>();
        check(cross(|d| {
            (d.pack)(from, count, datatype, to, size, &raw mut position, word)
        }))?;
        bytes.truncate(position as usize);
        Ok(Contribution::new(me, bytes))
    }
}
