//! Handles a signal to a command that waits for the job: the command ends at once, and says that the job goes on.

use std::io::Write;
use std::thread;

use nix::sys::signal::{SigSet, Signal};
use stillpoint_protocol::safe_text;

/// Lets SIGINT, SIGTERM and SIGHUP end this process with 128 + their number, after it has printed `words`.
///
/// This must be called while the process has one thread. A signal that the starter wants to be ignored stays ignored.
pub fn ends_with(words: String) {
    let ignored = ignored();
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .filter(|signal| !is_in(ignored, *signal))
        .collect();
    // Without the thread, or the mask, these signals end the process in the usual way.
    if signals.thread_block().is_err() {
        return;
    }
    let waiting = thread::Builder::new().spawn(move || {
        if let Ok(signal) = signals.wait() {
            let _ = writeln!(
                std::io::stderr(),
                "stillpoint: {signal}: {}",
                safe_text::line(&words)
            );
            std::process::exit(128 + signal as i32);
        }
    });
    if waiting.is_err() {
        let _ = signals.thread_unblock();
    }
}

/// Whether a mask has a signal.
pub fn is_in(mask: u64, signal: Signal) -> bool {
    mask & (1 << (signal as u64 - 1)) != 0
}

/// The signals that this process ignores: bit 0 is signal 1.
pub fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
