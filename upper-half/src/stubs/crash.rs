//! The report that is printed when the program crashes. When MPI starts, Open MPI installs handlers that print the place of a crash. They
//! are switched off in the lower half, where they would run in the application's thread and see only half of the process. The handlers here
//! are the application's, as Open MPI's would be: a program that has handlers of its own keeps them, a restart brings them back, and after
//! the report the program ends by its signal.
//!
//! Rules of this place: [`report`] runs in a signal handler in a process whose memory may be broken; so no allocation, and text
//! goes out line by line.

use core::ffi::{CStr, c_int, c_void};
use core::fmt::{self, Write};
use core::ptr;

use crate::ground::arch;

/// Whether crashes are reported: MPICH, and so every library with the standard's ABI, leaves them to the kernel.
pub const ARE_REPORTED: bool = cfg!(application = "openmpi");

/// The signals, as the user may have set them for Open MPI, and Open MPI's own choice.
const VARIABLE: &CStr = c"OMPI_MCA_opal_signal";
const DEFAULT: &str = "6,7,8,11";

/// The most callers that are shown.
const MOST: usize = 32;

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
}

/// Installs the handlers, where the program leaves these signals to the kernel.
pub fn install() {
    // SAFETY: the name is a C string; the value is only read here, while MPI starts.
    let told = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    let signals = if told.is_null() {
        DEFAULT
    } else {
        // SAFETY: a variable's value is a C string.
        let told = unsafe { CStr::from_ptr(told) };
        told.to_str().unwrap_or_default()
    };
    signals_in(signals).for_each(install_for);
}

/// `6,7,8,11`; an entry may have more behind a colon.
fn signals_in(list: &str) -> impl Iterator<Item = c_int> + '_ {
    let entries = list.split(',');
    let numbers = entries.filter_map(|entry| entry.split(':').next()?.trim().parse().ok());
    numbers.filter(|signal| (1..=64).contains(signal))
}

fn install_for(signal: c_int) {
    // SAFETY: the structure is integers, for which zeros are valid; `sigaction` reads and writes whole ones.
    unsafe {
        let mut before: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &raw mut before) != 0 {
            return;
        }
        if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN {
            return;
        }
        let mut ours: libc::sigaction = core::mem::zeroed();
        ours.sa_sigaction = report as *const () as usize;
        // Once: the same signal again ends the program.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND;
        libc::sigaction(signal, &raw const ours, ptr::null_mut());
    }
}

/// A line on stderr, with room for a long path.
struct Line {
    bytes: [u8; 1024],
    used: usize,
}

impl Line {
    /// An empty line that begins like all lines of a process.
    fn new() -> Line {
        let mut line = Line {
            bytes: [0; 1024],
            used: 0,
        };
        let mut name = [0u8; 64];
        // SAFETY: writes at most as many bytes; the last stays 0.
        unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
        let host = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        let host = host.to_str().unwrap_or_default();
        let short = host.split('.').next().unwrap_or_default();
        // SAFETY: the function takes no arguments and cannot fail.
        let process = unsafe { libc::getpid() };
        // Text that does not fit is left out.
        let _ = write!(line, "[{short}:{process:05}] ");
        line
    }

    fn print(mut self, text: fmt::Arguments<'_>) {
        let _ = self.write_fmt(text);
        let used = self.used.min(self.bytes.len() - 1);
        if let Some(place) = self.bytes.get_mut(used) {
            *place = b'\n';
        }
        // SAFETY: writes bytes of ours. There is no way to report a failure.
        unsafe { libc::write(2, self.bytes.as_ptr().cast(), used + 1) };
    }
}

/// Prints a line outside a crash report.
pub fn say(text: fmt::Arguments<'_>) {
    let line = Line {
        bytes: [0; 1024],
        used: 0,
    };
    line.print(text);
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if let Some(place) = self.bytes.get_mut(self.used) {
                *place = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}

/// The handler.
unsafe extern "C" fn report(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's own arguments.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    Line::new().print(format_args!("*** Process received signal ***"));
    Line::new().print(format_args!("Signal: {} ({signal})", name(signal)));
    Line::new().print(format_args!(
        "Signal code: {} ({code})",
        meaning(signal, code)
    ));
    if is_fault(signal) {
        Line::new().print(format_args!("Failing at address: {address:#x}"));
    }
    // SAFETY: the context is what the kernel gave this handler, and `print_callers` does not unwind.
    unsafe { arch::on_behalf(context, print_callers) };
    Line::new().print(format_args!("*** End of error message ***"));
    // The signal may have been sent, and not be a fault that comes again by itself. This one comes when the handler returns, and
    // no handler is left for it.
    // SAFETY: sends a signal; touches no memory.
    unsafe { libc::raise(signal) };
}

fn is_fault(signal: c_int) -> bool {
    matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL
    )
}

fn name(signal: c_int) -> &'static str {
    // SAFETY: the C library's text for a signal, which it keeps.
    let text = unsafe { libc::strsignal(signal) };
    if text.is_null() {
        return "";
    }
    // SAFETY: the library gives a C string that stays, or null, which was looked for.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default()
}

/// The kernel's description of the signal's cause (sigaction(2)).
fn meaning(signal: c_int, code: c_int) -> &'static str {
    match (signal, code) {
        (libc::SIGSEGV, 1) => "Address not mapped",
        (libc::SIGSEGV, 2) => "Invalid permissions",
        (libc::SIGBUS, 1) => "Invalid address alignment",
        (libc::SIGBUS, 2) => "Non-existing physical address",
        (libc::SIGBUS, 3) => "Hardware error of an object",
        (libc::SIGFPE, 1) => "Integer divide-by-zero",
        (libc::SIGFPE, 2) => "Integer overflow",
        (libc::SIGFPE, 3) => "Floating point divide-by-zero",
        (libc::SIGFPE, 4) => "Floating point overflow",
        (libc::SIGFPE, 5) => "Floating point underflow",
        (libc::SIGFPE, 6) => "Floating point inexact result",
        (libc::SIGFPE, 7) => "Invalid floating point operation",
        (libc::SIGILL, 1) => "Illegal opcode",
        (libc::SIGILL, 2) => "Illegal operand",
        (libc::SIGILL, 5 | 6) => "Privileged opcode or register",
        (_, libc::SI_USER) => "User function (kill, sigsend, abort, etc.)",
        (_, libc::SI_QUEUE) => "User function (sigqueue)",
        _ => "",
    }
}

/// Called on behalf of the code that has crashed.
unsafe extern "C" fn print_callers() {
    let mut callers = [ptr::null_mut(); MOST];
    // SAFETY: writes at most as many addresses.
    let count = unsafe { backtrace(callers.as_mut_ptr(), MOST as c_int) };
    let callers = callers.get(..count.max(0) as usize).unwrap_or(&[]);
    let ours = callers
        .iter()
        .position(|caller| arch::is_on_behalf(*caller as usize));
    let crashed = ours.map_or(0, |ours| ours + 1);
    for (number, caller) in callers.iter().skip(crashed).enumerate() {
        print_caller(number, *caller as usize);
    }
}

/// Prints an address as the C library's `backtrace_symbols` shows it.
fn print_caller(number: usize, address: usize) {
    // SAFETY: integers and pointers, for which zeros are valid.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: fills the structure; what it points to stays as long as the object is loaded.
    let known = unsafe { libc::dladdr(address as *const c_void, &raw mut found) } != 0;
    if !known || found.dli_fname.is_null() {
        return Line::new().print(format_args!("[{number:2}] [{address:#x}]"));
    }
    let text = |pointer: *const libc::c_char| {
        // SAFETY: a C string of the loader's.
        let text = unsafe { CStr::from_ptr(pointer) };
        text.to_str().unwrap_or("?")
    };
    let file = text(found.dli_fname);
    if found.dli_sname.is_null() {
        let offset = address.wrapping_sub(found.dli_fbase as usize);
        Line::new().print(format_args!(
            "[{number:2}] {file}(+{offset:#x})[{address:#x}]"
        ));
    } else {
        let (symbol, offset) = (
            text(found.dli_sname),
            address.wrapping_sub(found.dli_saddr as usize),
        );
        Line::new().print(format_args!(
            "[{number:2}] {file}({symbol}+{offset:#x})[{address:#x}]"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_list_is_read_as_open_mpi_reads_it() {
        let signals = |list| signals_in(list).collect::<Vec<c_int>>();
        assert_eq!(signals(DEFAULT), [6, 7, 8, 11]);
        assert_eq!(signals("11:complain, 6"), [11, 6]);
        assert_eq!(signals(""), []);
        assert_eq!(signals("x,99,-3"), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        let mut line = Line::new();
        for _ in 0..3000 {
            line.write_str("x").unwrap();
        }
        assert_eq!(line.used, line.bytes.len());
    }
}
