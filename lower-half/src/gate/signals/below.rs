//! Crash signals that reach a thread of the lower half, while the application handles them.
//!
//! Threads of the lower half block signals that are sent, but not faults: if a thread blocks its own fault, the kernel ends the process without a message. A
//! fault of such a thread is reported here in one line, and then ends the process as it would have anyway. A signal that was sent to the process is the
//! application's: it is passed on to a thread that takes it, or waits until one does.
//!
//! Rules of this place: runs in a signal handler on the thread's own stack, in a process whose memory may be corrupt: no allocation, and system calls made
//! directly.

use core::fmt::{self, Write};

use super::{actions, bit};
use crate::arch::frame::{Frame, PC};
use crate::arch::syscall::{self, failed, syscall3, syscall4};
use crate::threads::lower::FAULTS;

/// Handles a signal with a handler of the application that has come to the calling thread of the lower half.
///
/// # Safety
/// The arguments must be those that the kernel gave the handler, which has not returned.
pub(super) unsafe fn came(signal: i32, info: *mut libc::siginfo_t, frame: Frame) {
    // SAFETY: the caller gives the structure that the kernel gave the handler, which has not returned.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // `abort` lets its signal through; otherwise these threads block it.
    let own = signal == libc::SIGABRT || (code > 0 && FAULTS & bit(signal) != 0);
    if !own {
        frame.set_mask(frame.mask() | bit(signal));
        // As the application sees it, the signal has not come yet.
        actions::tell_again(signal);
        // SAFETY: this is the kernel's own structure, which the caller gives, sent on as it came.
        unsafe {
            syscall3(
                libc::SYS_rt_sigqueueinfo,
                syscall::getpid() as usize,
                signal as usize,
                info as usize,
            )
        };
        return;
    }
    report(signal, code, address, frame.register(PC));
    // The instruction runs again, or `abort` raises the signal again: now the kernel ends the process.
    actions::reset_in_kernel(signal);
}

fn report(signal: i32, code: i32, address: usize, instruction: usize) {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes, which the array has.
    unsafe {
        syscall3(
            libc::SYS_prctl,
            libc::PR_GET_NAME as usize,
            name.as_mut_ptr() as usize,
            0,
        )
    };
    let mut text = Text::<512>::EMPTY;
    // Text that does not fit is left out.
    let _ = write!(
        text,
        "stillpoint: process {}: a thread of the lower half ('{}') has crashed: signal {signal} (code {code}) at address {address:#x}, instruction {instruction:#x}",
        syscall::getpid(),
        until_nul(&name),
    );
    let mut line = Text::<512>::EMPTY;
    if line_of(instruction, &mut line) {
        let _ = write!(text, " in {}", line.as_str());
    }
    let _ = text.write_str("\n");
    // SAFETY: the kernel reads the text's bytes, which live on this stack. An error cannot be reported.
    unsafe { syscall3(libc::SYS_write, 2, text.bytes.as_ptr() as usize, text.used) };
}

fn until_nul(bytes: &[u8]) -> &str {
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    core::str::from_utf8(name).unwrap_or_default()
}

/// A buffer for text; text that does not fit is left out.
struct Text<const ROOM: usize> {
    bytes: [u8; ROOM],
    used: usize,
}

impl<const ROOM: usize> Text<ROOM> {
    const EMPTY: Text<ROOM> = Text {
        bytes: [0; ROOM],
        used: 0,
    };

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.used) {
            *place = byte;
            self.used += 1;
        }
    }

    fn as_str(&self) -> &str {
        let used = self.bytes.get(..self.used).unwrap_or_default();
        core::str::from_utf8(used).unwrap_or_default()
    }
}

impl<const ROOM: usize> Write for Text<ROOM> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.push(byte));
        Ok(())
    }
}

/// Reads the line of `/proc/self/maps` that an address lies in.
fn line_of<const ROOM: usize>(address: usize, line: &mut Text<ROOM>) -> bool {
    let path = c"/proc/self/maps".as_ptr() as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: the path is a constant that ends in NUL; the call makes a descriptor.
    let file = unsafe { syscall4(libc::SYS_openat, libc::AT_FDCWD as usize, path, flags, 0) };
    if failed(file) {
        return false;
    }
    let mut found = false;
    let mut some = [0u8; 1024];
    'lines: loop {
        let (at, room) = (some.as_mut_ptr() as usize, some.len());
        // SAFETY: the kernel writes at most `room` bytes, for which there is room at `at`.
        let bytes = unsafe { syscall3(libc::SYS_read, file as usize, at, room) };
        if bytes <= 0 {
            break;
        }
        for byte in some.iter().take(bytes as usize) {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            found = covers(line.as_str(), address);
            if found {
                break 'lines;
            }
            line.used = 0;
        }
    }
    // SAFETY: the descriptor was opened above, and nothing else uses it.
    unsafe { syscall3(libc::SYS_close, file as usize, 0, 0) };
    found
}

/// Whether a line of `/proc/self/maps` is about a range that the address lies in.
fn covers(line: &str, address: usize) -> bool {
    let Some((start, rest)) = line.split_once('-') else {
        return false;
    };
    let end = rest.split(' ').next().unwrap_or_default();
    let number = |text| usize::from_str_radix(text, 16);
    matches!((number(start), number(end)), (Ok(start), Ok(end)) if (start..end).contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_an_address_is_found() {
        let mut line = Text::<512>::EMPTY;
        assert!(line_of(covers as *const () as usize, &mut line));
        assert!(line.as_str().contains("r-xp"), "{}", line.as_str());
        assert!(!line_of(1, &mut line));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut text = Text::<4>::EMPTY;
        write!(text, "{}", 123_456).unwrap();
        assert_eq!(text.as_str(), "1234");
    }
}
