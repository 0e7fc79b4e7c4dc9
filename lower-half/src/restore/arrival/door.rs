//! `userfaultfd`: a thread that touches memory that has not arrived waits for it, also inside a system call.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use linux_raw_sys::general::{
    UFFD_EVENT_PAGEFAULT, UFFD_EVENT_REMOVE, uffd_msg, uffdio_api, uffdio_copy, uffdio_range,
    uffdio_register, uffdio_zeropage,
};
use stillpoint_tracking::all_faults;

use crate::arch::PAGE;

/// linux/userfaultfd.h.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_WAKE: libc::c_ulong = 0x8010_aa02;
const UFFDIO_COPY: libc::c_ulong = 0xc028_aa03;
const UFFDIO_ZEROPAGE: libc::c_ulong = 0xc020_aa04;
const API: u64 = 0xaa;
const EVENT_REMOVE: u64 = 1 << 3;
const REGISTER_MISSING: u64 = 1;
const MESSAGES: usize = 16;

/// A message of the kernel.
pub enum KernelMessage {
    /// A thread waits for the page with this address.
    Wanted(u64),
    /// The application discards these pages, and waits until the message has been read.
    Removed(Range<u64>),
}

/// The result of putting pages in place.
#[derive(Debug, PartialEq, Eq)]
pub enum Put {
    /// So many bytes are in place now.
    There(usize),
    /// A thread discards pages: the message about that has to be read first.
    Again,
    /// Nothing is mapped there any more, or not as one mapping.
    Gone,
}

/// The userfaultfd of the memory that is to arrive.
pub struct Door(OwnedFd);

impl Door {
    /// # Errors
    /// Those of [`all_faults::open`], and if the kernel does not report discarded memory.
    pub fn open() -> io::Result<Door> {
        let door = Door(all_faults::open()?);
        let mut api = uffdio_api {
            api: API,
            features: EVENT_REMOVE,
            ioctls: 0,
        };
        door.ask(UFFDIO_API, &mut api)?;
        Ok(door)
    }

    /// SAFETY of all requests: the kernel reads and fills the structure that belongs to the request.
    fn ask<T>(&self, request: libc::c_ulong, about: &mut T) -> io::Result<()> {
        // SAFETY: every caller gives the structure that belongs to its request, which lives until the call returns; the kernel reads and fills it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), request, std::ptr::from_mut(about)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// From here on, a thread that touches a missing page in this range waits.
    pub fn guard(&self, range: Range<u64>) -> io::Result<()> {
        let mut register = uffdio_register {
            range: whole(range),
            mode: REGISTER_MISSING,
            ioctls: 0,
        };
        self.ask(UFFDIO_REGISTER, &mut register)
    }

    /// Fills missing pages with these bytes, and wakes the threads that wait for them.
    pub fn copy(&self, address: u64, bytes: &[u8]) -> io::Result<Put> {
        let mut copy = uffdio_copy {
            dst: address,
            src: bytes.as_ptr() as u64,
            len: bytes.len() as u64,
            mode: 0,
            copy: 0,
        };
        let result = self.ask(UFFDIO_COPY, &mut copy);
        put(result, copy.copy)
    }

    /// Fills a missing page with zeros.
    pub fn zero(&self, address: u64) -> io::Result<Put> {
        let mut zero = uffdio_zeropage {
            range: whole(address..address + PAGE as u64),
            mode: 0,
            zeropage: 0,
        };
        let result = self.ask(UFFDIO_ZEROPAGE, &mut zero);
        put(result, zero.zeropage)
    }

    /// Wakes the threads that wait for a page, so that they touch it again.
    pub fn wake(&self, address: u64) -> io::Result<()> {
        self.ask(UFFDIO_WAKE, &mut whole(address..address + PAGE as u64))
    }

    /// Returns the messages that have come so far.
    pub fn told(&self) -> io::Result<Vec<KernelMessage>> {
        let mut messages = [const { MaybeUninit::<uffd_msg>::zeroed() }; MESSAGES];
        // SAFETY: the kernel writes whole messages, at most as many as the array has.
        let bytes = unsafe {
            libc::read(
                self.0.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                size_of_val(&messages),
            )
        };
        if bytes < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(vec![]),
                _ => Err(error),
            };
        }
        let messages = &messages[..bytes as usize / size_of::<uffd_msg>()];
        let told = messages.iter().filter_map(|message| {
            // SAFETY: the kernel has filled these messages; the event says which member it has written.
            unsafe {
                let message = message.assume_init_ref();
                match u32::from(message.event) {
                    UFFD_EVENT_PAGEFAULT => {
                        Some(KernelMessage::Wanted(message.arg.pagefault.address))
                    }
                    UFFD_EVENT_REMOVE => {
                        let removed = message.arg.remove;
                        Some(KernelMessage::Removed(removed.start..removed.end))
                    }
                    _ => None,
                }
            }
        });
        Ok(told.collect())
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn whole(range: Range<u64>) -> uffdio_range {
    uffdio_range {
        start: range.start,
        len: range.end - range.start,
    }
}

/// Interprets a request's result; `done` is a number of bytes, or a negative error number.
fn put(result: io::Result<()>, done: i64) -> io::Result<Put> {
    let Err(error) = result else {
        return Ok(Put::There(done as usize));
    };
    match error.raw_os_error() {
        Some(libc::EAGAIN) if done > 0 => Ok(Put::There(done as usize)),
        Some(libc::EAGAIN) => Ok(Put::Again),
        Some(libc::ENOENT) => Ok(Put::Gone),
        _ => Err(error),
    }
}
