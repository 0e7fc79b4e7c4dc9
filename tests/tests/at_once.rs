//! A signal of the application's and the stop signal that reach a thread at once, while it is in the kernel's vDSO: the
//! handler's frame then lies beneath the stop's before the handler's first instruction.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
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

/// Signals that wait for the process's first thread alone, or for the process.
fn waiting(pid: Pid) -> Result<(u64, u64), Failed> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{pid}/status")).map_err(failed)?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
            .ok_or(format!("no {name}"))
    };
    Ok((field("SigPnd:")?, field("ShdPnd:")?))
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
                let pid = Pid::from_raw(strike::ranks(&trial.epochs_at())?[0]);
                hold_in_vdso(pid)?;
                kill(pid, Signal::SIGUSR2).map_err(failed)?;
                thread::scope(|scope| {
                    let suspended = scope.spawn(|| trial.suspended(job));
                    let began = Instant::now();
                    // The stop signal is sent to the thread, the other to the process.
                    while waiting(pid).is_ok_and(|(own, shared)| own == 0 || shared == 0) {
                        if began.elapsed() > PATIENCE {
                            break;
                        }
                        thread::sleep(Duration::from_millis(1));
                    }
                    ptrace::detach(pid, None).map_err(failed)?;
                    suspended.join().map_err(|_| "the test panicked")?
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
