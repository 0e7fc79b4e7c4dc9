//! Transfers that a signal has cut short: the rest of their bytes.
//!
//! At a signal, the kernel ends a blocking write to a pipe, a terminal or a stream, and a receive that waits for all bytes; the result is the number of bytes
//! transferred. A piece of the springboard continues with the rest, and adds both numbers up.
//!
//! Rules of this place: runs in signal handlers, on the application's stack.

use core::mem::MaybeUninit;

use super::calls::Moves;
use super::deadlines::leave_piece;
use crate::arch::frame::{ARGUMENTS, BEHIND, Frame, PC, RESULT, SP, WORD};
use crate::arch::springboard::{self, Piece, SYSCALL, Standing};
use crate::arch::syscall::{failed, syscall3, syscall6};

/// The offset at which a piece that transfers a rest keeps the number of bytes already transferred.
const GONE_AT: usize = 8;

/// Flags of a socket's calls.
const DONTWAIT: usize = libc::MSG_DONTWAIT as usize;
const WAITALL: usize = libc::MSG_WAITALL as usize;
const NOSIGNAL: usize = libc::MSG_NOSIGNAL as usize;
const MORE: usize = libc::MSG_MORE as usize;

/// Called when `frame` stands behind a call that a handler of ours has interrupted and that has transferred some bytes: has it continue if some are left.
pub fn go_on(frame: Frame, number: usize, moves: Moves) {
    let result = frame.register(RESULT);
    let [fd, second, third, fourth, ..] = ARGUMENTS.map(|register| frame.register(register));
    if let Standing::Called(piece) = springboard::standing(frame.register(PC))
        && piece.is_rest()
    {
        return more(frame, piece, number, result);
    }
    let sending = |flags: usize| flags & DONTWAIT == 0 && waits(fd);
    // No SIGPIPE was sent for the bytes already transferred, so none is sent for the rest.
    let send = |flags: usize| libc::SYS_sendto as usize | (flags & MORE | NOSIGNAL) << 32;
    match moves {
        Moves::Whole => {}
        Moves::Random => {
            finish_here(frame, number, [fd, second], |at, left| [at, left, third]);
        }
        Moves::FromDevice if is_endless(fd) => {
            finish_here(frame, number, [second, third], |at, left| [fd, at, left]);
        }
        Moves::FromDevice => {}
        Moves::Buffer if result < third && sending(0) => {
            let how = if is_socket(fd) { send(0) } else { number };
            begin(frame, Piece::RestBytes, how);
        }
        Moves::Sends if result < third && sending(fourth) => {
            begin(frame, Piece::RestBytes, send(fourth));
        }
        Moves::Receives if result < third && receives_all(fd, fourth) => {
            begin(frame, Piece::RestBytes, number | WAITALL << 32);
        }
        Moves::Vector if sending(0) => {
            let how = if is_socket(fd) {
                send(0)
            } else {
                libc::SYS_write as usize
            };
            begin(frame, Piece::RestVector, how);
        }
        Moves::SendsMessage if sending(third) => begin(frame, Piece::RestMessage, send(third)),
        Moves::ReceivesMessage if receives_all(fd, third) => {
            let how = libc::SYS_recvfrom as usize | WAITALL << 32;
            match springboard::standing(frame.register(PC)) {
                Standing::Called(Piece::CallRecvmsg) => {
                    frame.set_register(WORD, result | how >> 32 << 32);
                    frame.set_register(PC, Piece::RestMessageNoting.address());
                }
                _ => begin(frame, Piece::RestMessage, how),
            }
        }
        Moves::Count if result < fourth && sending(0) => begin(frame, Piece::RestCount, number),
        Moves::Buffer
        | Moves::Sends
        | Moves::Receives
        | Moves::Vector
        | Moves::SendsMessage
        | Moves::ReceivesMessage
        | Moves::Count => {}
    }
}

/// Has a piece begin with the rest. `how`: the call, and flags in the upper half.
fn begin(frame: Frame, piece: Piece, how: usize) {
    let (result, behind) = (frame.register(RESULT), frame.register(PC));
    frame.set_register(PC, behind - SYSCALL.len());
    if !leave_piece(frame) {
        frame.set_register(PC, behind);
        return;
    }
    frame.set_register(WORD, result | how >> 32 << 32);
    frame.set_register(RESULT, how as u32 as usize);
    frame.set_register(PC, piece.address());
}

fn gone(frame: Frame) -> &'static mut usize {
    // SAFETY: the piece that the thread stands in keeps this word on the thread's stack; the thread is interrupted, so nothing else uses it.
    unsafe { &mut *((frame.register(SP) + GONE_AT) as *mut usize) }
}

/// Continues a rest that was cut short too.
fn more(frame: Frame, piece: Piece, number: usize, result: usize) {
    let [_, buffer, bytes, count, ..] = ARGUMENTS;
    let asked = if piece == Piece::RestCount {
        count
    } else {
        bytes
    };
    if result >= frame.register(asked) {
        return;
    }
    if piece != Piece::RestCount {
        frame.set_register(buffer, frame.register(buffer) + result);
    }
    frame.set_register(asked, frame.register(asked) - result);
    *gone(frame) += result;
    frame.set_register(RESULT, number);
    frame.set_register(PC, frame.register(PC) - SYSCALL.len());
}

/// Called before a handler of the application runs on top of `frame`: natively, it would have ended a transfer that is partly done. Returns whether there is
/// such a transfer.
pub fn ended(frame: Frame) -> bool {
    let rip = frame.register(PC);
    let begins = [
        Piece::RestBytes,
        Piece::RestVector,
        Piece::RestMessage,
        Piece::RestCount,
    ];
    if begins.iter().any(|piece| piece.address() == rip) {
        frame.set_register(RESULT, frame.register(WORD) as u32 as usize);
        frame.set_register(PC, frame.register(BEHIND));
        frame.set_register(BEHIND, 0);
        return true;
    }
    match springboard::standing(rip) {
        Standing::Calls(piece) if piece.is_rest() => {
            frame.set_register(RESULT, 0);
            frame.set_register(PC, rip + SYSCALL.len());
            frame.set_register(BEHIND, 0);
            true
        }
        _ => false,
    }
}

/// Fetches the bytes that the kernel returns without waiting. `arguments`: the call's arguments, for an address and the remaining length.
fn finish_here(
    frame: Frame,
    number: usize,
    [at, all]: [usize; 2],
    arguments: impl Fn(usize, usize) -> [usize; 3],
) {
    let mut gone = frame.register(RESULT);
    while gone < all {
        let [one, two, three] = arguments(at + gone, all - gone);
        // SAFETY: the application has made this call with this memory to write to; the kernel checks the rest of it.
        let result = unsafe { syscall3(number as i64, one, two, three) };
        if result <= 0 {
            break;
        }
        gone += result as usize;
    }
    frame.set_register(RESULT, gone);
}

/// Returns `st_mode` and `st_rdev` of a file descriptor.
fn status(fd: usize) -> Option<(u32, u64)> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills the structure, which lives on this stack.
    let result = unsafe { syscall3(libc::SYS_fstat, fd, status.as_mut_ptr() as usize, 0) };
    // SAFETY: the kernel has filled the structure, or left its zeros, which are a value of it too.
    let status = unsafe { status.assume_init() };
    (!failed(result)).then_some((status.st_mode, status.st_rdev))
}

fn is_socket(fd: usize) -> bool {
    status(fd).is_some_and(|(mode, _)| mode & libc::S_IFMT == libc::S_IFSOCK)
}

/// Whether writes there wait until all bytes fit: a pipe, a stream or a device, without `O_NONBLOCK`.
fn waits(fd: usize) -> bool {
    let kind = status(fd).map_or(0, |(mode, _)| mode & libc::S_IFMT);
    let whole = match kind {
        libc::S_IFIFO | libc::S_IFCHR => true,
        libc::S_IFSOCK => is_stream(fd),
        _ => false,
    };
    // SAFETY: F_GETFL takes numbers and touches no memory.
    let flags = unsafe { syscall3(libc::SYS_fcntl, fd, libc::F_GETFL as usize, 0) };
    whole && !failed(flags) && flags as i32 & libc::O_NONBLOCK == 0
}

/// Whether a receive with these flags waits until all bytes have come.
fn receives_all(fd: usize, flags: usize) -> bool {
    let others = libc::MSG_CMSG_CLOEXEC | libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
    flags & WAITALL != 0 && flags & !(others as usize) == 0 && is_socket(fd) && waits(fd)
}

fn is_stream(fd: usize) -> bool {
    let (mut kind, mut bytes) = (0i32, 4u32);
    let (level, option) = (libc::SOL_SOCKET as usize, libc::SO_TYPE as usize);
    let (kind_at, bytes_at) = (&raw mut kind as usize, &raw mut bytes as usize);
    // SAFETY: the kernel writes four bytes, and their number; both live on this stack.
    let result = unsafe {
        syscall6(
            libc::SYS_getsockopt,
            [fd, level, option, kind_at, bytes_at, 0],
        )
    };
    !failed(result) && kind == libc::SOCK_STREAM
}

/// Whether this is a device that always has more data, at once: /dev/zero, full, random, urandom.
fn is_endless(fd: usize) -> bool {
    status(fd).is_some_and(|(mode, device)| {
        let memory = libc::major(device) == 1 && [5, 7, 8, 9].contains(&libc::minor(device));
        mode & libc::S_IFMT == libc::S_IFCHR && memory
    })
}
