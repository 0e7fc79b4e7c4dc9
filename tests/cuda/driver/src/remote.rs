//! Another process's driver: the caller finds it by its page, and sends requests through its pipes.

use std::collections::BTreeSet;
use std::fs;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::clock;
use stillpoint_emulated_gpu_protocol::message;
use stillpoint_emulated_gpu_protocol::page::{Answer, Command, Lent, MAGIC, Order, Page, State};
use stillpoint_emulated_gpu_protocol::window::PAGE;

use crate::code::{self, Code};
use crate::service;

/// The extra wait beyond the time limit of a lock: the service thread gives up by itself, and needs time to report it.
const GRACE: Duration = Duration::from_secs(20);

/// The processes with a pending command of this process. Each gets one command at a time, since all answers come back by one pipe. A slow
/// process does not block commands to others.
static ASKED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static FREE: Condvar = Condvar::new();

struct Asking(i32);

impl Asking {
    fn begin(pid: i32) -> Asking {
        let mut all = FREE
            .wait_while(asked(), |all| all.contains(&pid))
            .unwrap_or_else(PoisonError::into_inner);
        all.insert(pid);
        Asking(pid)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        asked().remove(&self.0);
        FREE.notify_all();
    }
}

fn asked() -> MutexGuard<'static, BTreeSet<i32>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The capacity of a pipe. An answer is shorter than a single write to it.
const AT_ONCE: usize = 1 << 16;

/// A process that has a driver.
pub struct Target {
    pid: i32,
    page: Page,
}

impl Target {
    /// Finds the driver of a process.
    pub fn find(pid: i32) -> Result<Target, Code> {
        let mut page = MaybeUninit::<Page>::uninit();
        let here = libc::iovec {
            iov_base: page.as_mut_ptr().cast(),
            iov_len: size_of::<Page>(),
        };
        let there = libc::iovec {
            iov_base: PAGE as *mut _,
            iov_len: size_of::<Page>(),
        };
        // SAFETY: the kernel writes a page's bytes into `page`, or fewer.
        let read = unsafe { libc::process_vm_readv(pid, &here, 1, &there, 1, 0) };
        if read != size_of::<Page>() as isize {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: all of it was written, and any bytes are a page.
        let page = unsafe { page.assume_init() };
        match page.magic {
            MAGIC => Ok(Target { pid, page }),
            _ => Err(code::INVALID_VALUE),
        }
    }

    /// Returns the state of the process.
    pub fn state(self) -> Result<State, Code> {
        State::from_number(self.page.state.into_inner()).ok_or(code::UNKNOWN)
    }

    /// Returns the thread that a restore needs. Its id is looked up each time, since a restart changes it.
    pub fn restore_thread(&self) -> Result<i32, Code> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid));
        for task in tasks.map_err(|_| code::INVALID_VALUE)?.flatten() {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if service::is_name(name.trim_end()) {
                let number = task.file_name().to_string_lossy().parse();
                return number.map_err(|_| code::UNKNOWN);
            }
        }
        Err(code::NOT_FOUND)
    }

    /// Sends a request, with a time limit on the monotonic clock if one is given.
    pub fn ask(&self, order: Order, until: Option<u64>) -> Result<Vec<Lent>, Code> {
        let _asking = Asking::begin(self.pid);
        self.exchange(order, until)
            .map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => code::NOT_READY,
                _ => code::OPERATING_SYSTEM,
            })
            .and_then(|answer| match answer.code {
                code::SUCCESS => Ok(answer.lent),
                code => Err(code),
            })
    }

    fn exchange(&self, order: Order, until: Option<u64>) -> io::Result<Answer> {
        let path = |descriptor: i32| format!("/proc/{}/fd/{descriptor}", self.pid);
        let mut commands = OpenOptions::new()
            .write(true)
            .open(path(self.page.commands))?;
        let mut answers = File::open(path(self.page.answers))?;
        let number = clock::now();
        message::send(&mut commands, &Command { number, order })?;
        // The remaining writing ends of the pipe belong to the target, so its answers end when it dies.
        drop(commands);
        let mut room = vec![0; AT_ONCE];
        loop {
            readable(&answers, until)?;
            // Reads everything at once. If it read half an answer and this process were killed then, the next process would get the
            // other half.
            let length = answers.read(&mut room)?;
            let mut left = &room[..length];
            if left.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            while !left.is_empty() {
                let answer: Answer = message::receive(&mut left)?;
                // An answer to a caller that has gone comes first.
                if answer.number == number {
                    return Ok(answer);
                }
            }
        }
    }
}

/// Waits until there is something to read.
fn readable(file: &File, until: Option<u64>) -> io::Result<()> {
    loop {
        let left = until.map(|until| until.saturating_sub(clock::now()) + GRACE.as_nanos() as u64);
        let longest = left.map_or(-1, |left| {
            i32::try_from(left.div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let mut poll = libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry.
        match unsafe { libc::poll(&mut poll, 1, longest) } {
            0 => return Err(io::ErrorKind::TimedOut.into()),
            -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => {
                return Err(io::Error::last_os_error());
            }
            -1 => {}
            _ => return Ok(()),
        }
    }
}
