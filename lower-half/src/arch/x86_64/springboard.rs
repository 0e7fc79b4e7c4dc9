//! The springboard: code that is copied to the same address in every launch, so that a stack of the application which leads into it can be continued in another
//! launch.
//!
//! * *Calls*: a trapped system call that may block, or wait for a signal, is made here, after the trap's handler has returned, with the application's own mask.
//!   The handler puts the return address into rcx, one more word into r11 (the two registers that `syscall` destroys anyway), and the address of one of these
//!   pieces into rip.
//! * *Trampoline*: every handler of the application is called from here.
//! * *Restorer*: ends every signal handler.
//! * *Park*: the calling thread sends itself the stop signal.
//! * *Clocks*: system calls in place of the vDSO, for a kernel without one.
//! * *Waits with a timeout*, and *rests* of transfers: calls that a handler of ours has interrupted continue here (`threads::interrupted`).
//!
//! The pieces stay below the 128-byte red zone of the calling code, and leave every register as a system call would. While a call is being made, its number
//! lies at `rsp + 24`, so that a handler that interrupts it can have it made again ([`call_behind`]).

mod code;
mod standing;

use code::*;
pub use standing::{Standing, standing};

use stillpoint_wrappers::contract::Sum;

use crate::arch::layout::{SPRINGBOARD, SPRINGBOARD_BYTES};

/// The pieces of the springboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Restorer,
    CallPlain,
    CallNoting,
    CallArgument0Noting,
    CallArgument1Noting,
    CallMask0,
    CallSignalMask0,
    CallMask1Noting,
    CallMask3,
    CallMask4,
    CallMask5,
    CallRest1,
    CallRest3,
    CallRecvmsg,
    CallRecvmmsg,
    CallClose,
    CallFutexAgain,
    Trampoline,
    ParkSelf,
    ClockGettime,
    Gettimeofday,
    Time,
    Getcpu,
    CallUntil,
    CallMask4Until,
    CallSignalMask0Until,
    CallPolled,
    RestBytes,
    RestVector,
    RestMessage,
    RestCount,
    RestMessageNoting,
}

impl Piece {
    /// Returns the piece's address, which is the same in every launch of this build.
    pub fn address(self) -> usize {
        let symbol = match self {
            Piece::Restorer => &raw const stillpoint_restorer,
            Piece::CallPlain => &raw const stillpoint_call_plain,
            Piece::CallNoting => &raw const stillpoint_call_noting,
            Piece::CallArgument0Noting => &raw const stillpoint_call_rdi_noting,
            Piece::CallArgument1Noting => &raw const stillpoint_call_rsi_noting,
            Piece::CallMask0 => &raw const stillpoint_call_mask_rdi,
            Piece::CallSignalMask0 => &raw const stillpoint_call_signal_mask_rdi,
            Piece::CallMask1Noting => &raw const stillpoint_call_mask_rsi_noting,
            Piece::CallMask3 => &raw const stillpoint_call_mask_r10,
            Piece::CallMask4 => &raw const stillpoint_call_mask_r8,
            Piece::CallMask5 => &raw const stillpoint_call_mask_r9,
            Piece::CallRest1 => &raw const stillpoint_call_rest_rsi,
            Piece::CallRest3 => &raw const stillpoint_call_rest_r10,
            Piece::CallRecvmsg => &raw const stillpoint_call_recvmsg,
            Piece::CallRecvmmsg => &raw const stillpoint_call_recvmmsg,
            Piece::CallClose => &raw const stillpoint_call_close,
            Piece::CallFutexAgain => &raw const stillpoint_call_futex_again,
            Piece::Trampoline => &raw const stillpoint_trampoline,
            Piece::ParkSelf => &raw const stillpoint_park_self,
            Piece::ClockGettime => &raw const stillpoint_clock_gettime,
            Piece::Gettimeofday => &raw const stillpoint_gettimeofday,
            Piece::Time => &raw const stillpoint_time,
            Piece::Getcpu => &raw const stillpoint_getcpu,
            Piece::CallUntil => &raw const stillpoint_call_until,
            Piece::CallMask4Until => &raw const stillpoint_call_mask_r8_until,
            Piece::CallSignalMask0Until => &raw const stillpoint_call_signal_mask_rdi_until,
            Piece::CallPolled => &raw const stillpoint_call_polled,
            Piece::RestBytes => &raw const stillpoint_rest_bytes,
            Piece::RestVector => &raw const stillpoint_rest_vector,
            Piece::RestMessage => &raw const stillpoint_rest_message,
            Piece::RestCount => &raw const stillpoint_rest_count,
            Piece::RestMessageNoting => &raw const stillpoint_rest_message_noting,
        };
        SPRINGBOARD + (symbol as usize - &raw const stillpoint_springboard_start as usize)
    }
}

/// The instruction `syscall`.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Returns the address behind the `syscall` of the piece at `address`.
fn after_call(address: usize) -> usize {
    // SAFETY: the address is a piece's, and the springboard is mapped and readable for 192 bytes from there; no piece is longer before its call.
    let code = unsafe { core::slice::from_raw_parts(address as *const u8, 192) };
    let at = code
        .windows(2)
        .position(|pair| pair == SYSCALL)
        .unwrap_or(0);
    address + at + 2
}

/// Returns the number of the system call that a piece has just made: `rip` is the address behind its `syscall`, `rsp` the stack pointer there.
///
/// # Safety
/// Both must be those of one thread.
pub unsafe fn call_behind(rip: usize, rsp: usize) -> Option<usize> {
    if !makes_calls(rip) || !makes_calls(rip - 2) {
        return None;
    }
    // SAFETY: `rip - 2` lies in a piece (`makes_calls`); every such piece keeps the number at this place of the thread's stack, to which `rsp` leads as the
    // caller says.
    unsafe {
        let instruction = ((rip - 2) as *const [u8; 2]).read();
        (instruction == SYSCALL).then(|| ((rsp + 24) as *const u32).read() as usize)
    }
}

/// Whether code at this address belongs to a piece that makes a system call.
fn makes_calls(rip: usize) -> bool {
    let end = SPRINGBOARD + code().len();
    (Piece::CallPlain.address()..Piece::Trampoline.address()).contains(&rip)
        || (Piece::CallUntil.address()..end).contains(&rip)
}

/// Whether code at this address is the springboard's, and so at the same place in every launch.
pub fn holds(rip: usize) -> bool {
    (SPRINGBOARD..SPRINGBOARD + SPRINGBOARD_BYTES).contains(&rip)
}

/// Whether code at this address leads into a handler of the application or out of one. The handler's interrupted code lies beneath, but is not yet noted, or no
/// longer.
pub fn leads_to_handler(rip: usize) -> bool {
    let range = |from: Piece, to: Piece| from.address()..to.address();
    range(Piece::Trampoline, Piece::ParkSelf).contains(&rip)
        || range(Piece::Restorer, Piece::CallPlain).contains(&rip)
}

/// Whether code at this address is about to send its own thread the stop signal. The ids in its registers, and the note of the sender, are this launch's: in
/// another one, the signal would count as a stranger's and end the process.
pub fn about_to_stop(rip: usize) -> bool {
    let piece = Piece::ParkSelf.address();
    (piece..after_call(piece)).contains(&rip)
}

/// Returns a digest of the code that stacks of the application may lead to, and of its address.
pub fn digest() -> u32 {
    digest_of(code())
}

fn digest_of(code: &[u8]) -> u32 {
    let sum = code.iter().fold(Sum::new(), |sum, byte| sum.byte(*byte));
    sum.number(SPRINGBOARD).folded()
}

/// Whether stacks that lead to the code with this digest find it here: the code only grows at its end.
pub fn serves(digest: u32) -> bool {
    let start = &raw const stillpoint_springboard_start as usize;
    let first = &raw const stillpoint_springboard_first_end as usize - start;
    let first = code().get(..first).map(digest_of);
    digest == self::digest() || first == Some(digest)
}

/// The code to copy to [`SPRINGBOARD`].
pub fn code() -> &'static [u8] {
    let start = &raw const stillpoint_springboard_start;
    let bytes = &raw const stillpoint_springboard_end as usize - start as usize;
    debug_assert!(bytes <= SPRINGBOARD_BYTES);
    // SAFETY: both labels bound the code above, which is part of this executable and never changes.
    unsafe { core::slice::from_raw_parts(start, bytes.min(SPRINGBOARD_BYTES)) }
}

/// Returns the code of a function that jumps to the address in the word at `slot`, which is `piece` or its replacement. The clocks of processor time are left
/// to the kernel: those with negative numbers, the process's (2), and the thread's (3).
pub fn way_in(slot: usize, piece: Piece) -> Vec<u8> {
    let mut code = Vec::new();
    if piece == Piece::ClockGettime {
        code.extend([0x85, 0xff]); // test edi, edi
        code.extend([0x78, 21]); // js, over the jump
        code.extend([0x8d, 0x47, 0xfe]); // lea eax, [rdi - 2]
        code.extend([0x83, 0xf8, 0x01]); // cmp eax, 1
        code.extend([0x76, 13]); // jbe, over the jump
    }
    code.extend([0x49, 0xbb]); // mov r11, imm64
    code.extend((slot as u64).to_le_bytes());
    code.extend([0x41, 0xff, 0x23]); // jmp [r11]
    if piece == Piece::ClockGettime {
        code.push(0xb8); // mov eax, imm32
        code.extend((libc::SYS_clock_gettime as u32).to_le_bytes());
        code.extend([0x0f, 0x05, 0xc3]); // syscall; ret
    }
    code
}
