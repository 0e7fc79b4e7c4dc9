//! A signal of the application's and the stop signal that reach a thread at once, while it is in the kernel's vDSO: the
//! handler's frame then lies beneath the stop's before the handler's first instruction.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use stillpoint_tests::command;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure, strike};

/// Longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

fn failed(error: impl std::fmt::Display) -> Failed {
    error.to_string()
}

/// Where a process has its vDSO.
fn vdso(pid: Pid) -> Result<std::ops::Range<u64>, Failed> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(failed)?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split_whitespace().next());
    let (start, end) = range
        .and_then(|range| range.split_once('-'))
        .ok_or("no vDSO")?;
    let number = |text| u64::from_str_radix(text, 16).map_err(failed);
    Ok(number(start)?..number(end)?)
}

/// Holds the process's first thread by ptrace(2) where it executes the vDSO.
fn hold_in_vdso(pid: Pid) -> Result<(), Failed> {
    let vdso = vdso(pid)?;
    let began = Instant::now();
    ptrace::seize(pid, ptrace::Options::empty()).map_err(failed)?;
    loop {
        ptrace::interrupt(pid).map_err(failed)?;
        waitpid(pid, None).map_err(failed)?;
        let rip = ptrace::getregs(pid).map_err(failed)?.rip;
        if vdso.contains(&rip) {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "never in the vDSO");
        ptrace::cont(pid, None).map_err(failed)?;
        thread::sleep(Duration::from_micros(300));
    }
}

/// The one rank's process, once it has joined its job.
fn rank(trial: &Trial) -> Option<Pid> {
    let ranks = strike::ranks(&trial.epochs_at()).ok()?;
    ranks.first().copied().map(Pid::from_raw)
}

/// A set of signals in the status of the process's first thread, as in proc_pid_status(5).
fn signals(pid: Pid, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{pid}/status")).ok()?;
    let set = status.lines().find_map(|line| line.strip_prefix(field))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// Whether the process has a handler of SIGUSR2.
fn handles(pid: Pid) -> bool {
    let bit = 1 << (Signal::SIGUSR2 as u64 - 1);
    signals(pid, "SigCgt:").is_some_and(|caught| caught & bit != 0)
}

/// Sends a signal to the process's first thread, as only tgkill(2) does.
fn send_to_thread(pid: Pid, signal: Signal) -> Result<(), Failed> {
    // SAFETY: passes three numbers.
    let sent =
        unsafe { libc::syscall(libc::SYS_tgkill, pid.as_raw(), pid.as_raw(), signal as i32) };
    ensure!(sent == 0, "tgkill: {}", std::io::Error::last_os_error());
    Ok(())
}

/// How many signals wait for the process's first thread.
fn waiting(pid: Pid) -> u32 {
    signals(pid, "SigPnd:").map_or(0, u64::count_ones)
}

#[test]
fn a_handler_that_has_not_begun_is_found_by_a_restart() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "clock_under_signals")?;
        let _turn = Turn::take()?;
        Directory::new("at-once")?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            for _ in 0..3 {
                job.until("handling SIGUSR2 again", PATIENCE, |_| {
                    rank(&trial).is_some_and(handles)
                })?;
                let pid = rank(&trial).ok_or("no rank")?;
                hold_in_vdso(pid)?;
                // Of the signals that wait for a thread the kernel delivers the one with the lowest number first.
                send_to_thread(pid, Signal::SIGUSR2)?;
                thread::scope(|scope| {
                    let suspended = scope.spawn(|| trial.suspended(job));
                    let began = Instant::now();
                    while waiting(pid) < 2 && began.elapsed() < PATIENCE {
                        thread::sleep(Duration::from_millis(1));
                    }
                    let at_once = waiting(pid) == 2;
                    ptrace::detach(pid, None).map_err(failed)?;
                    suspended.join().map_err(|_| "the test panicked")??;
                    ensure!(at_once, "the signals did not wait at once");
                    Ok(())
                })?;
                job = trial.resumed()?;
            }
            trial.go()?;
            trial.ends_well(job)?;
            let state = command::state(directory, &trial.epochs_at())?;
            ensure!(state == "finished", "a finished job is '{state}'");
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
