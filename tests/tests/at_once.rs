//! Two coincidences that befall a thread once in ten thousand checkpoints. In one, a signal of the application's and the
//! stop signal reach the thread while it is in the kernel's vDSO: the handler's frame then lies beneath the stop's before
//! the handler's first instruction. In the other, the agent's stop signal reaches it when it is about to send that signal
//! to itself.

use std::fs;
use std::os::unix::fs::FileExt;
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
use stillpoint_tests::{Failed, ensure, strike};

/// The longest time for any step.
const PATIENCE: Duration = Duration::from_secs(20);

fn failed(error: impl std::fmt::Display) -> Failed {
    error.to_string()
}

/// Returns the addresses of a process's vDSO.
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

/// Holds the process's first thread by ptrace(2) while it executes the vDSO.
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

/// Returns a rank's process, once it has joined its job.
fn rank(trial: &Trial, rank: usize) -> Option<Pid> {
    let ranks = strike::ranks(&trial.epochs_at()).ok()?;
    ranks.get(rank).copied().map(Pid::from_raw)
}

/// Returns a set of signals from the status of the process's first thread, as in proc_pid_status(5).
fn signals(pid: Pid, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{pid}/status")).ok()?;
    let set = status.lines().find_map(|line| line.strip_prefix(field))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// Tells whether the process has a handler of SIGUSR2.
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

/// Counts the signals that wait for the process's first thread.
fn waiting(pid: Pid) -> u32 {
    signals(pid, "SigPnd:").map_or(0, u64::count_ones)
}

/// Waits until so many signals wait for the process's first thread, and tells whether they came.
fn come_to_wait(pid: Pid, count: u32) -> bool {
    let began = Instant::now();
    while waiting(pid) < count && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    waiting(pid) == count
}

#[test]
fn a_handler_that_has_not_begun_is_found_by_a_restart() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "clock_under_signals")?;
        Directory::new("at-once")?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            for _ in 0..3 {
                job.until("handling SIGUSR2 again", PATIENCE, |_| {
                    rank(&trial, 0).is_some_and(handles)
                })?;
                let pid = rank(&trial, 0).ok_or("no rank")?;
                hold_in_vdso(pid)?;
                // Among the signals that wait for a thread, the kernel delivers the one with the lowest number first.
                send_to_thread(pid, Signal::SIGUSR2)?;
                thread::scope(|scope| {
                    let suspended = scope.spawn(|| trial.suspended(job));
                    let at_once = come_to_wait(pid, 2);
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

/// `lock or qword ptr gs:[0x40], 1`, without its prefixes. With it, a thread notes that the stop signal which it is about to
/// send itself is its own.
const NOTE: [u8; 9] = [0x48, 0x83, 0x0c, 0x25, 0x40, 0, 0, 0, 1];
/// `int3`.
const BREAKPOINT: i64 = 0xcc;

/// Returns the address of that instruction, in the page that is at one place in every launch.
fn note_of_own_stop(pid: Pid) -> Result<u64, Failed> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(failed)?;
    let memory = fs::File::open(format!("/proc/{pid}/mem")).map_err(failed)?;
    for line in maps
        .lines()
        .filter(|line| line.contains("r-xp 00000000 00:00 0"))
    {
        let (start, end) = line
            .split_once(' ')
            .and_then(|(range, _)| range.split_once('-'))
            .ok_or("a line of maps")?;
        let number = |text| u64::from_str_radix(text, 16).map_err(failed);
        let (start, end) = (number(start)?, number(end)?);
        let mut bytes = vec![0; (end - start) as usize];
        if memory.read_exact_at(&mut bytes, start).is_err() {
            continue;
        }
        if let Some(at) = bytes.windows(NOTE.len()).position(|some| some == NOTE) {
            return Ok(start + at as u64);
        }
    }
    Err("no such instruction".into())
}

/// Lets a traced process go on with a signal, which may be a real-time one, or without one (0).
fn cont(pid: Pid, signal: i32) -> Result<(), Failed> {
    // SAFETY: passes numbers.
    let done = unsafe { libc::ptrace(libc::PTRACE_CONT, pid.as_raw(), 0, signal) };
    ensure!(done == 0, "ptrace: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Waits until a traced process stops, and returns the signal.
fn stopped(pid: Pid) -> Result<i32, Failed> {
    let mut status = 0;
    // SAFETY: the kernel writes the status.
    let waited = unsafe { libc::waitpid(pid.as_raw(), &raw mut status, 0) };
    ensure!(
        waited == pid.as_raw() && libc::WIFSTOPPED(status),
        "it ended: {status:#x}"
    );
    Ok(libc::WSTOPSIG(status))
}

/// Holds the process's first thread just behind that instruction, by a breakpoint there. `ask` makes the thread come to
/// it.
fn hold_before_own_stop<T>(pid: Pid, ask: impl FnOnce() -> T) -> Result<T, Failed> {
    let behind = (note_of_own_stop(pid)? + NOTE.len() as u64) as ptrace::AddressType;
    ptrace::seize(pid, ptrace::Options::empty()).map_err(failed)?;
    ptrace::interrupt(pid).map_err(failed)?;
    waitpid(pid, None).map_err(failed)?;
    let code = ptrace::read(pid, behind).map_err(failed)?;
    ptrace::write(pid, behind, code & !0xff | BREAKPOINT).map_err(failed)?;
    let asked = ask();
    let mut signal = 0;
    loop {
        cont(pid, signal)?;
        signal = match stopped(pid)? {
            libc::SIGTRAP => break,
            other => other,
        };
    }
    ptrace::write(pid, behind, code).map_err(failed)?;
    let mut registers = ptrace::getregs(pid).map_err(failed)?;
    registers.rip = behind as u64;
    ptrace::setregs(pid, registers).map_err(failed)?;
    Ok(asked)
}

#[test]
fn a_thread_that_is_about_to_stop_by_itself_is_stopped() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "blocked_in_completion")?;
        Directory::new("own-stop")?.run(|directory| {
            let trial = Trial::new(&program, 4, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            // Rank 1 is blocked in MPI_Recv, where the agent's own signal leaves it alone.
            let pid = rank(&trial, 1).ok_or("no rank 1")?;
            thread::scope(|scope| {
                let suspended = hold_before_own_stop(pid, || scope.spawn(|| trial.suspended(job)))?;
                let at_once = come_to_wait(pid, 1);
                ptrace::detach(pid, None).map_err(failed)?;
                suspended.join().map_err(|_| "the test panicked")??;
                ensure!(at_once, "the agent did not ask");
                Ok::<(), Failed>(())
            })?;
            let job = trial.resumed()?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
