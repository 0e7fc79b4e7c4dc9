//! Reads the bytes that wait at a Unix socket, without taking them out.

use std::io;
use std::os::fd::RawFd;

use stillpoint_refusals::refusal;

/// The waiting bytes, and the lengths of the messages in them (empty for a stream).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    pub bytes: Vec<u8>,
    pub messages: Vec<u32>,
}

/// The first size of the buffer for a message.
const MESSAGE_BYTES: usize = 256 << 10;

/// Returns the bytes that wait at `number`. `writer` is its other end, if there is one that may still send.
pub fn peek(number: RawFd, stream: bool, shut: u8, writer: Option<RawFd>) -> io::Result<Waiting> {
    let before = peek_offset(number)?;
    let waiting = if stream {
        set_peek_offset(number, -1)
            .and_then(|()| bytes_of_stream(number))
            .map(|bytes| Waiting {
                bytes,
                messages: vec![],
            })
    } else {
        messages(number, shut)
    };
    set_peek_offset(number, before)?;
    let waiting = waiting?;
    if waiting.messages.contains(&0) {
        renew(number, writer, &waiting)?;
    }
    Ok(waiting)
}

fn bytes_of_stream(number: RawFd) -> io::Result<Vec<u8>> {
    let mut waiting: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int, which lives on this stack.
    if unsafe { libc::ioctl(number, libc::FIONREAD, &raw mut waiting) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut bytes = vec![0; waiting as usize];
    if waiting > 0 {
        let seen = receive(number, &mut bytes, libc::MSG_PEEK)?;
        if seen.bytes != bytes.len() {
            return Err(io::Error::other(format!(
                "{} of {waiting} bytes could be seen",
                seen.bytes
            )));
        }
    }
    Ok(bytes)
}

/// Reads message after message: the kernel keeps the last peek position.
fn messages(number: RawFd, shut: u8) -> io::Result<Waiting> {
    let mut found = Waiting::default();
    let mut room = vec![0; MESSAGE_BYTES];
    set_peek_offset(number, 0)?;
    loop {
        let seen = match receive(number, &mut room, libc::MSG_PEEK) {
            Ok(seen) => seen,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
            Err(error) => return Err(error),
        };
        if seen.cut {
            room.resize(2 * room.len(), 0);
            set_peek_offset(number, found.bytes.len() as i32)?;
            continue;
        }
        if seen.bytes == 0 && shut & 1 != 0 {
            // The other end cannot send any more: the queue ends here.
            return Ok(found);
        }
        found
            .bytes
            .extend(room.get(..seen.bytes).unwrap_or_default());
        found.messages.push(seen.bytes as u32);
    }
}

/// Replaces all messages by fresh ones: an empty message that was peeked at is skipped by later peeks. The application's threads stand
/// still, so they do not notice.
fn renew(number: RawFd, writer: Option<RawFd>, waiting: &Waiting) -> io::Result<()> {
    let writer = writer.ok_or_else(|| {
        io::Error::other("an empty message waits there, from an end that is closed")
    })?;
    let mut room = vec![0; waiting.bytes.len()];
    for _ in &waiting.messages {
        receive(number, &mut room, 0)?;
    }
    let mut rest = waiting.bytes.as_slice();
    for length in &waiting.messages {
        let (message, others) = rest.split_at(*length as usize);
        send(writer, message)?;
        rest = others;
    }
    Ok(())
}

/// Sends bytes without waiting; returns how many were sent.
pub fn send(number: RawFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads as many bytes as the slice has.
    let sent = unsafe { libc::send(number, bytes.as_ptr().cast(), bytes.len(), flags) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(sent as usize)
}

struct Seen {
    bytes: usize,
    /// The message is longer than the buffer.
    cut: bool,
}

/// Receives without waiting. A message with descriptors in it is an error: they cannot be carried.
fn receive(number: RawFd, room: &mut [u8], flags: i32) -> io::Result<Seen> {
    let mut control = [0u64; 64];
    let mut part = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    // SAFETY: zeros are a valid header: null pointers, and lengths of 0.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control);
    let flags = flags | libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the header leads to `part`, the room and the control buffer with their lengths, all of which live until the call returns.
    let bytes = unsafe { libc::recvmsg(number, &raw mut header, flags) };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    if close_received(&header) || header.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::other(refusal!(
            PassedDescriptors,
            "descriptors are under way to it: receive them before a checkpoint"
        )));
    }
    Ok(Seen {
        bytes: bytes as usize,
        cut: header.msg_flags & libc::MSG_TRUNC != 0,
    })
}

/// Closes the descriptors that a message has brought; returns whether there were any.
fn close_received(header: &libc::msghdr) -> bool {
    let mut any = false;
    // SAFETY: the kernel has filled the control messages that these macros walk over; the numbers are new, and no other code has them.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(part) = message.as_ref() {
            if (part.cmsg_level, part.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                any = true;
                let bytes = part.cmsg_len - libc::CMSG_LEN(0) as usize;
                let numbers = libc::CMSG_DATA(message).cast::<i32>();
                for index in 0..bytes / size_of::<i32>() {
                    libc::close(numbers.add(index).read_unaligned());
                }
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    any
}

fn peek_offset(number: RawFd) -> io::Result<i32> {
    let mut offset: i32 = -1;
    let mut bytes = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes one int, as `bytes` says.
    let result = unsafe {
        libc::getsockopt(
            number,
            libc::SOL_SOCKET,
            libc::SO_PEEK_OFF,
            (&raw mut offset).cast(),
            &raw mut bytes,
        )
    };
    if result == 0 {
        Ok(offset)
    } else {
        Err(io::Error::last_os_error())
    }
}

fn set_peek_offset(number: RawFd, offset: i32) -> io::Result<()> {
    // SAFETY: the kernel reads one int, which lives on this stack.
    let result = unsafe {
        libc::setsockopt(
            number,
            libc::SOL_SOCKET,
            libc::SO_PEEK_OFF,
            (&raw const offset).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
