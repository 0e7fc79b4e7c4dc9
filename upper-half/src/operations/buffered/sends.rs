//! The existing buffers, and the messages that are on their way from them.

use core::ffi::{c_int, c_void};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Status;

use super::PROC_NULL;
use super::space::BufferSpace;
use crate::ground::abi::{self, Count};
use crate::ground::arch;
use crate::ground::crossing::cross;
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Datatype, Object};
use crate::objects::communicator;
use crate::objects::outcome::{MpiResult, check, class};
use crate::operations::request::{self, Arguments, Kind, Request, State};
use stillpoint_wrappers::standard;

/// The owner of a buffer: communicators by their objects' addresses, sessions by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Process,
    Communicator(usize),
    Session(u32),
}

/// A message that a buffer holds.
struct Sent {
    request: *mut Request,
    number: u64,
    /// In the application's buffer: where, and how many bytes.
    place: (usize, usize),
    /// From an automatic buffer: its own memory.
    _copy: Vec<u8>,
}

// SAFETY: a request of ours; only the holder of the list has it.
unsafe impl Send for Sent {}

/// A buffer.
pub struct Buffer {
    /// Absent once the buffer is taken away: it goes with its last message.
    owner: Option<Owner>,
    id: u64,
    address: usize,
    size: Count,
    automatic: bool,
    room: BufferSpace,
    sent: Vec<Sent>,
    /// The index of the message to look at next.
    next: usize,
}

impl Buffer {
    pub fn new(owner: Owner, address: usize, size: Count, automatic: bool) -> Buffer {
        Buffer {
            owner: Some(owner),
            id: 0,
            address,
            size,
            automatic,
            room: BufferSpace::default(),
            sent: Vec::new(),
            next: 0,
        }
    }

    /// Looks at up to that many messages; those that are over go to `over`.
    ///
    /// # Safety
    /// Inside a stub.
    unsafe fn look(&mut self, most: usize, over: &mut Vec<Over>) {
        for _ in 0..most.min(self.sent.len()) {
            if self.next >= self.sent.len() {
                self.next = 0;
            }
            // SAFETY: requests in the list are alive, and `self` is borrowed exclusively, so no other thread completes them.
            if unsafe { is_over(self.sent[self.next].request) } {
                let sent = self.sent.swap_remove(self.next);
                if !self.automatic {
                    self.room.give_back(sent.place.0, sent.place.1);
                }
                over.push(Over(sent.request));
            } else {
                self.next += 1;
            }
        }
    }
}

/// All buffers.
pub struct All {
    buffers: Vec<Buffer>,
    /// Numbers of buffers and of messages, in the order in which they came.
    ids: u64,
    numbers: u64,
}

pub static ALL: SpinLock<All> = SpinLock::new(All {
    buffers: Vec::new(),
    ids: 0,
    numbers: 0,
});

impl All {
    pub fn add(&mut self, buffer: Buffer) {
        self.ids += 1;
        self.buffers.push(Buffer {
            id: self.ids,
            ..buffer
        });
    }

    /// The number of an owner's buffer.
    pub fn buffer_of(&self, owner: Owner) -> Option<u64> {
        let found = self.buffers.iter().find(|it| it.owner == Some(owner));
        found.map(|it| it.id)
    }

    /// Takes a buffer from its owner. Returns its number, address and size.
    pub fn take_away(&mut self, owner: Owner) -> Option<(u64, usize, Count)> {
        let found = self.buffers.iter_mut().find(|it| it.owner == Some(owner))?;
        found.owner = None;
        Some((found.id, found.address, found.size))
    }

    /// The numbers of all buffers.
    pub fn buffers(&self) -> Vec<u64> {
        self.buffers.iter().map(|it| it.id).collect()
    }

    /// The number of the newest message.
    pub fn newest(&self) -> u64 {
        self.numbers
    }

    /// Whether all messages of a buffer up to that number are over, as far as was looked.
    pub fn is_empty(&self, id: u64, newest: u64) -> bool {
        let found = self.buffers.iter().find(|it| it.id == id);
        found.is_none_or(|it| it.sent.iter().all(|sent| sent.number > newest))
    }

    /// Looks at all messages.
    ///
    /// # Safety
    /// Inside a stub.
    #[must_use]
    pub unsafe fn look(&mut self) -> Vec<Over> {
        let mut over = Vec::new();
        for buffer in &mut self.buffers {
            // SAFETY: the caller is inside a stub; the requests in a buffer's list are ours, and `self` is locked.
            unsafe { buffer.look(usize::MAX, &mut over) };
        }
        self.buffers
            .retain(|it| it.owner.is_some() || !it.sent.is_empty());
        over
    }

    /// The buffer that a communicator's sends use: its own, its session's, or the process's.
    ///
    /// # Safety
    /// A live communicator.
    unsafe fn used_by(&mut self, comm: Comm) -> Option<&mut Buffer> {
        // SAFETY: the communicator is alive, by the caller's promise.
        let session = unsafe { communicator::body(comm) }.map_or(0, |body| body.session);
        let owners = [
            Owner::Communicator(comm.addr()),
            Owner::Session(session),
            Owner::Process,
        ];
        let index = owners
            .into_iter()
            .find_map(|owner| self.buffers.iter().position(|it| it.owner == Some(owner)))?;
        self.buffers.get_mut(index)
    }
}

/// The request of a message that is over, and in no list any more: to be ended when nothing is locked.
#[must_use]
pub struct Over(*mut Request);

/// Ends the requests of messages that are over.
///
/// # Safety
/// Inside a stub, nothing locked.
pub unsafe fn end(over: Vec<Over>) {
    for Over(request) in over {
        // SAFETY: a request of ours that no other code has. The error of a buffered send that failed is told to no caller.
        let _ = unsafe { request::complete(request, None) };
    }
}

/// Whether a send is over; then it is done, and the lower half has no trace of it any more.
///
/// # Safety
/// Inside a stub; `request` must be a live request of a buffer's.
unsafe fn is_over(request: *mut Request) -> bool {
    // SAFETY: the request is alive, by the caller's promise, and no handle of the application leads to it, so no other thread completes it.
    unsafe {
        let it = &mut *request;
        if it.state == State::Active {
            let (mut flag, mut status) = (0, Status::default());
            let word = &raw mut it.head.lower;
            let code = cross(|dispatch| (dispatch.test)(word, &mut flag, &mut status));
            if flag == 0 && code == 0 {
                return false;
            }
            status.error = code;
            request::finish(request, &status);
        }
    }
    true
}

/// A message to be sent.
pub struct Message {
    pub buffer: *const c_void,
    pub count: c_int,
    pub datatype: Datatype,
    /// Neutral, like `tag`.
    pub peer: i32,
    pub tag: i32,
    pub communicator: Comm,
}

impl Message {
    /// Of the application's arguments.
    pub fn new(
        buffer: *const c_void,
        count: c_int,
        datatype: Datatype,
        (dest, tag): (c_int, c_int),
        communicator: Comm,
    ) -> Message {
        Message {
            buffer: abi::buffer(buffer),
            count,
            datatype,
            peer: abi::rank_to_neutral(dest),
            tag: abi::tag_to_neutral(tag),
            communicator,
        }
    }
}

/// The number of messages that are looked at when one more is sent: more than one, so that their number shrinks, and only a few, because many may wait for
/// their receivers.
const LOOKED_AT: usize = 8;

/// Puts a message into its buffer and begins to send it.
///
/// # Safety
/// Inside a stub, nothing locked; arguments as the application gave them.
pub unsafe fn send(message: &Message) -> MpiResult {
    // SAFETY: the handles are as the application gave them, and the real MPI checks their words before `begin` uses the objects; sizes go into local variables.
    unsafe {
        let datatype = abi::word(HandleKind::Datatype, message.datatype);
        let comm = abi::word(HandleKind::Communicator, message.communicator);
        let Message {
            buffer: from,
            count,
            peer,
            tag,
            ..
        } = *message;
        if peer == PROC_NULL {
            // It needs no buffer.
            return check(cross(|d| (d.send)(from, count, datatype, peer, tag, comm)));
        }
        let mut size = 0;
        check(cross(|d| (d.type_size_x)(datatype, &mut size)))?;
        if size
            .checked_mul(count.into())
            .is_none_or(|it| it > c_int::MAX.into())
        {
            return Err(class::COUNT);
        }
        let mut bytes = 0;
        check(cross(|d| (d.pack_size)(count, datatype, comm, &mut bytes)))?;
        let mut over = Vec::new();
        let mut outcome = begin(message, bytes, Some(LOOKED_AT), &mut over);
        end(over);
        if outcome == Err(class::BUFFER) {
            let over = ALL.lock().look();
            end(over);
            outcome = begin(message, bytes, None, &mut Vec::new());
        }
        outcome
    }
}

/// Takes room, packs, and begins the send, if there is room. Looks at some messages before.
///
/// # Safety
/// As [`send`]; `bytes` must be the size of the packed message.
unsafe fn begin(
    message: &Message,
    bytes: c_int,
    look: Option<usize>,
    over: &mut Vec<Over>,
) -> MpiResult {
    let room = usize::try_from(bytes).map_err(|_| class::COUNT)?;
    let mut all = ALL.lock();
    all.numbers += 1;
    let number = all.numbers;
    // SAFETY: the real MPI has accepted the communicator, so it is alive; `to` has room for the packed message, in the copy or in the part that was taken of
    // the buffer.
    unsafe {
        let Some(buffer) = all.used_by(message.communicator) else {
            return Err(class::BUFFER);
        };
        buffer.look(look.unwrap_or(0), over);
        let (mut copy, mut at) = (Vec::new(), 0);
        let to = if buffer.automatic {
            copy.try_reserve_exact(room).map_err(|_| class::NO_MEM)?;
            copy.resize(room, 0);
            copy.as_mut_ptr()
        } else {
            let size = usize::try_from(buffer.size).unwrap_or(0);
            at = buffer.room.take(room, size).ok_or(class::BUFFER)?;
            core::ptr::with_exposed_provenance_mut::<u8>(buffer.address + at)
        };
        match begin_from(message, to.cast(), bytes) {
            Ok(request) => buffer.sent.push(Sent {
                request,
                number,
                place: (at, room),
                _copy: copy,
            }),
            Err(code) => {
                if !buffer.automatic {
                    buffer.room.give_back(at, room);
                }
                return Err(code);
            }
        }
    }
    Ok(())
}

/// Packs a message to a place and begins to send it from there as `MPI_PACKED`, which matches any datatype of the receiver's.
///
/// # Safety
/// As [`begin`]; that many bytes must be writable at `to`.
unsafe fn begin_from(message: &Message, to: *mut c_void, bytes: c_int) -> MpiResult<*mut Request> {
    // SAFETY: `to` has room for `bytes` bytes, by the caller's promise, and stays until the request is over; the real MPI has accepted the handles.
    unsafe {
        let datatype = abi::word(HandleKind::Datatype, message.datatype);
        let comm = abi::word(HandleKind::Communicator, message.communicator);
        let (from, count, mut used) = (message.buffer, message.count, 0);
        check(cross(|d| {
            (d.pack)(from, count, datatype, to, bytes, &mut used, comm)
        }))?;
        let packed: *mut Object = abi::predefined(HandleKind::Datatype, standard::PACKED);
        let (as_bytes, mut word) = (abi::word(HandleKind::Datatype, packed), 0);
        let (peer, tag) = (message.peer, message.tag);
        check(cross(|d| {
            (d.isend)(to, used, as_bytes, peer, tag, comm, &mut word)
        }))?;
        arch::count_sent();
        let arguments = Arguments {
            kind: Kind::Send,
            buffer: to,
            count: used,
            datatype: packed,
            peer,
            tag,
            communicator: message.communicator,
        };
        let request = request::create(&arguments, 0);
        (*request).head.lower = word;
        Ok(request)
    }
}
