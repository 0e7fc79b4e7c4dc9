//! Messages as plain bytes: pulled in by the drain, and received once more by the application.
//!
//! The drain finds messages by `MPI_Iprobe` and takes them by receives of their source and tag. Matched probes would have the same effect, but not every
//! library implements them correctly: Open MPI 4.1 over libfabric (pml cm, mtl ofi) cannot receive a matched message. No other receive can take such a message:
//! all receives wait for their turn in the upper half.
//!
//! Over libfabric's `sockets` a probe finds a message again that a receive has been posted for. The first drained message tells whether the library does so.

use core::ffi::c_void;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use stillpoint_wrappers::found;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word, constants};
use stillpoint_wrappers::standard::ERRORS_RETURN;

use super::library::{abi, error_to_neutral, ffi};
use super::predefined::predefined;
use super::{convert, table};

/// Makes what the drain needs, when MPI has started. The drain may run on a thread that waits in a collective operation of the real MPI, and may call nothing
/// there that waits: with threads, Open MPI lets a second wait sleep until the first one is over, which lies below it on the same stack.
pub fn prepare() {
    finds_again();
}

/// The message that [`pull`] has found last, for the next call of [`receive_bytes`]: communicator, source and tag as the real MPI has them.
static FOUND: Mutex<Option<(Word, i32, i32)>> = Mutex::new(None);

/// Returns the word that stands for that message in place of a word of the real MPI.
fn found_word() -> Word {
    (&raw const FOUND).addr() as Word
}

/// Implements `Extra::pull`.
///
/// # Safety
/// As for `MPI_Improbe`; no place may be null.
pub unsafe extern "C" fn pull(
    comm: Word,
    found: *mut i32,
    message: *mut Word,
    status: *mut Status,
) -> i32 {
    // SAFETY: the upper half gives a communicator, and places that can be read and written to, none of them null.
    unsafe {
        let mut own = convert::status(status);
        let code = ffi::MPI_Iprobe(
            abi::rank_from_neutral(constants::ANY_SOURCE),
            abi::tag_from_neutral(constants::ANY_TAG),
            convert::handle(comm),
            found,
            own.place(),
        );
        own.give(status);
        if code == 0 && *found != 0 {
            let source = abi::rank_from_neutral((*status).source);
            let tag = abi::tag_from_neutral((*status).tag);
            *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = Some((comm, source, tag));
            *message = found_word();
            if finds_again() {
                *found = found::ALONE;
            }
        }
        error_to_neutral(code)
    }
}

/// The tag of a message that is sent to try the library; messages that are delivered have 0.
const TRIAL: i32 = 1;
/// How long that message may take.
const LATEST: Duration = Duration::from_secs(5);

/// Whether `MPI_Iprobe` finds a message again whose receive has been posted and is not over: tried once, with a message of this process to itself. If that
/// message does not come, the answer is the careful one.
fn finds_again() -> bool {
    static FINDS: OnceLock<bool> = OnceLock::new();
    *FINDS.get_or_init(|| {
        let own = own_communicator()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The real MPI may use them longer than this function runs.
        let [sent, received] = Box::leak(Box::new([1u8, 0]));
        // SAFETY: MPI is running; the bytes stay, and the requests are over before their places go, or are not used again. No other code uses the communicator.
        unsafe {
            let on = convert::handle(*own);
            let form = Bytes::new(1);
            let mut requests = [core::mem::MaybeUninit::<ffi::MPI_Request>::uninit(); 2];
            let [send, receive] = &mut requests;
            let status = || core::ptr::without_provenance_mut(abi::STATUS_IGNORE);
            let mut found = 0;
            let probe = |found| ffi::MPI_Iprobe(0, TRIAL, on, found, status());
            let (from, to) = ((&raw const *sent).cast(), (&raw mut *received).cast());
            if ffi::MPI_Isend(from, 1, form.datatype, 0, TRIAL, on, send.as_mut_ptr()) != 0 {
                return false;
            }
            let begun = Instant::now();
            while found == 0 && probe(&mut found) == 0 {
                if found == 0 && begun.elapsed() > LATEST {
                    return true;
                }
            }
            if ffi::MPI_Irecv(to, 1, form.datatype, 0, TRIAL, on, receive.as_mut_ptr()) == 0 {
                probe(&mut found);
                ffi::MPI_Wait(receive.as_mut_ptr(), status());
            }
            ffi::MPI_Wait(send.as_mut_ptr(), status());
            found != 0
        }
    })
}

/// `MPI_COMM_SELF` of the standard's ABI.
const SELF: i32 = 258;
/// `MPI_BYTE` of the standard's ABI.
const BYTE: i32 = 583;

/// A number of bytes as count and datatype: a number that exceeds an `int` gets a datatype of its own.
struct Bytes {
    count: i32,
    datatype: ffi::MPI_Datatype,
    own: bool,
}

impl Bytes {
    /// # Safety
    /// MPI must be running.
    unsafe fn new(bytes: u64) -> Self {
        const CHUNK: u64 = 1 << 30;
        // SAFETY: the caller says that MPI runs; the datatype's parts are in bounds of their types, and all places live on this stack.
        unsafe {
            let byte: ffi::MPI_Datatype =
                convert::handle(predefined(HandleKind::Datatype as u32, BYTE));
            if let Ok(count) = i32::try_from(bytes) {
                return Self {
                    count,
                    datatype: byte,
                    own: false,
                };
            }
            let mut chunk = byte;
            ffi::MPI_Type_contiguous(CHUNK as i32, byte, &mut chunk);
            let chunks = bytes / CHUNK;
            let lengths = [chunks as i32, (bytes % CHUNK) as i32];
            let places = [0, (chunks * CHUNK) as ffi::MPI_Aint];
            let parts = [chunk, byte];
            let mut datatype = byte;
            ffi::MPI_Type_create_struct(
                2,
                lengths.as_ptr(),
                places.as_ptr(),
                parts.as_ptr(),
                &mut datatype,
            );
            ffi::MPI_Type_commit(&mut datatype);
            ffi::MPI_Type_free(&mut chunk);
            Self {
                count: 1,
                datatype,
                own: true,
            }
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if self.own {
            // SAFETY: `new` made this datatype, and operations that use it keep it alive themselves.
            unsafe { ffi::MPI_Type_free(&mut self.datatype) };
        }
    }
}

/// Implements `Extra::receive_bytes`.
///
/// # Safety
/// `message` must be a pulled one; `buffer` must have `bytes` bytes until the receive is complete.
pub unsafe extern "C" fn receive_bytes(
    message: *mut Word,
    buffer: *mut c_void,
    bytes: u64,
    request: *mut Word,
) -> i32 {
    // SAFETY: the upper half gives a message that was pulled, a buffer of `bytes` bytes, and a place for the request.
    unsafe {
        let form = Bytes::new(bytes);
        let mut last = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if *message == found_word()
            && let Some((comm, source, tag)) = last.take()
        {
            return error_to_neutral(ffi::MPI_Irecv(
                buffer,
                form.count,
                form.datatype,
                source,
                tag,
                convert::handle(comm),
                request.cast(),
            ));
        }
        error_to_neutral(ffi::MPI_Imrecv(
            buffer,
            form.count,
            form.datatype,
            message.cast(),
            request.cast(),
        ))
    }
}

/// Returns a communicator of this process with itself for this module alone, one thread at a time. It returns its errors: the copy has the handler that
/// `MPI_COMM_SELF` had at that moment.
fn own_communicator() -> &'static Mutex<Word> {
    static OWN: OnceLock<Mutex<Word>> = OnceLock::new();
    OWN.get_or_init(|| {
        let own = predefined(HandleKind::Communicator as u32, SELF);
        let mut word: Word = 0;
        let handler = predefined(HandleKind::Errhandler as u32, ERRORS_RETURN);
        // SAFETY: MPI runs; copying a communicator of one process involves no other process.
        unsafe {
            ffi::MPI_Comm_dup(convert::handle(own), (&raw mut word).cast());
            if let Some(table) = table() {
                (table.comm_set_errhandler)(word, handler);
            }
        }
        Mutex::new(word)
    })
}

/// Implements `Extra::deliver`.
///
/// # Safety
/// `packed` must have `bytes` bytes; the rest as for `MPI_Recv`, where `status` may be null.
pub unsafe extern "C" fn deliver(
    packed: *const c_void,
    bytes: u64,
    buf: *mut c_void,
    count: i32,
    datatype: Word,
    status: *mut Status,
) -> i32 {
    // The message is sent once more, from this process to itself, so that the real MPI handles any datatype and any error of the receive.
    let own = own_communicator()
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the upper half gives `bytes` packed bytes and a status that is null or can be written to; buffer, count and datatype are the application's
    // receive.
    unsafe {
        let form = Bytes::new(bytes);
        let mut place = convert::status(status);
        let mut send = core::mem::MaybeUninit::<ffi::MPI_Request>::uninit();
        // Sent before it is received: only then does Open MPI notice a truncation of a message to itself.
        let code = ffi::MPI_Isend(
            packed,
            form.count,
            form.datatype,
            0,
            0,
            convert::handle(*own),
            send.as_mut_ptr(),
        );
        if code != 0 {
            return error_to_neutral(code);
        }
        let code = ffi::MPI_Recv(
            buf,
            count,
            convert::handle(datatype),
            0,
            0,
            convert::handle(*own),
            place.place(),
        );
        ffi::MPI_Wait(
            send.as_mut_ptr(),
            core::ptr::without_provenance_mut(abi::STATUS_IGNORE),
        );
        place.give(status);
        error_to_neutral(code)
    }
}
