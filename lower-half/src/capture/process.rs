//! State of the process as a whole that the kernel keeps: directory, masks, limits, timers.
//!
//! Signal handlers, identities and POSIX timers are the gate's own to save.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use stillpoint_part::Kind;
use stillpoint_refusals::{Refusal, refusal};

use serde::{Deserialize, Serialize};

use super::file_limit::SpaceLimit;
use super::scheduling;
use super::signals::Waiting;
use crate::ground::proc_files;

/// The payload of an image with this state.
pub const KIND: Kind = Kind {
    name: "process",
    version: 2,
    always: true,
};

/// State of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessState {
    pub directory: String,
    pub umask: u32,
    /// The main thread's nice value. A restart takes it from `scheduling`, if the image has that.
    pub nice: i32,
    /// (resource, soft limit)
    pub limits: Vec<(u32, u64)>,
    /// (resource, hard limit)
    #[serde(default)]
    pub hard_limits: Vec<(u32, u64)>,
    /// (which, value, interval) in microseconds, of `setitimer`.
    pub interval_timers: Vec<(i32, u64, u64)>,
    pub child_subreaper: bool,
}

/// Every resource with a limit, in the kernel's numbering.
const RESOURCES: std::ops::Range<u32> = 0..LIMITS.len() as u32;
const LIMITS: [&str; 16] = [
    "RLIMIT_CPU",
    "RLIMIT_FSIZE",
    "RLIMIT_DATA",
    "RLIMIT_STACK",
    "RLIMIT_CORE",
    "RLIMIT_RSS",
    "RLIMIT_NPROC",
    "RLIMIT_NOFILE",
    "RLIMIT_MEMLOCK",
    "RLIMIT_AS",
    "RLIMIT_LOCKS",
    "RLIMIT_SIGPENDING",
    "RLIMIT_MSGQUEUE",
    "RLIMIT_NICE",
    "RLIMIT_RTPRIO",
    "RLIMIT_RTTIME",
];
const TIMERS: [i32; 3] = [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF];

/// Reads the state of the process.
pub fn survey() -> io::Result<ProcessState> {
    let directory = directory().map_err(io::Error::other)?;
    let mut subreaper: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which lives on this stack.
    unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut subreaper) };
    Ok(ProcessState {
        directory,
        umask: umask()?,
        nice: scheduling::nice(std::process::id()).unwrap_or(0),
        limits: RESOURCES
            .filter_map(|resource| Some((resource, limit(resource)?.rlim_cur)))
            .collect(),
        hard_limits: RESOURCES
            .filter_map(|resource| Some((resource, limit(resource)?.rlim_max)))
            .collect(),
        interval_timers: TIMERS.into_iter().filter_map(interval_timer).collect(),
        child_subreaper: subreaper != 0,
    })
}

/// Returns the working directory, or why it cannot be entered again.
pub fn directory() -> Result<String, Refusal> {
    let directory = std::env::current_dir().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            refusal!(WorkingDirectory, "its working directory has been removed: have it enter another one before a checkpoint")
        }
        _ => refusal!(WorkingDirectory, "its working directory cannot be told: {error}"),
    })?;
    let directory = directory.to_str().ok_or_else(|| {
        refusal!(
            WorkingDirectory,
            "the name of its working directory is not UTF-8"
        )
    })?;
    let own = format!("/proc/{}", std::process::id());
    Ok(match directory.strip_prefix(&own) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/proc/self{rest}"),
        _ => directory.to_owned(),
    })
}

/// Checks that the path still leads to the working directory, and that it may be entered.
pub fn enterable(directory: &str) -> Result<(), Refusal> {
    let problem = |problem: String| {
        refusal!(
            WorkingDirectory,
            "its working directory {directory} {problem}: have it enter another one before a checkpoint"
        )
    };
    let identity = |path: &str| -> Result<(u64, u64), Refusal> {
        let found = std::fs::metadata(path);
        let found = found.map_err(|error| problem(format!("cannot be looked at: {error}")))?;
        Ok((found.dev(), found.ino()))
    };
    if identity(directory)? != identity(".")? {
        return Err(problem("is reached by another path".to_owned()));
    }
    let place = std::ffi::CString::new(directory).map_err(|error| problem(error.to_string()))?;
    // SAFETY: the path ends in NUL, and the kernel only reads it.
    match unsafe { libc::faccessat(libc::AT_FDCWD, place.as_ptr(), libc::X_OK, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => {
            let error = io::Error::last_os_error();
            Err(problem(format!("cannot be entered again: {error}")))
        }
    }
}

/// The root directory at launch: device and inode.
static ROOT: OnceLock<(u64, u64)> = OnceLock::new();

fn root() -> Option<(u64, u64)> {
    let root = std::fs::metadata("/").ok()?;
    Some((root.dev(), root.ino()))
}

/// Notes the root directory, before the application can change it.
pub fn remember() {
    if let Some(root) = root() {
        ROOT.get_or_init(|| root);
    }
}

/// Returns a refusal if the process has another root directory than at launch.
pub fn moved_root() -> Option<Refusal> {
    (*ROOT.get()? != root()?).then(|| {
        refusal!(
            RootDirectory,
            "it has changed its root directory (chroot), which cannot be carried over a restart"
        )
    })
}

/// Reads the umask from `/proc`: `umask(2)` cannot read it without changing it for a moment.
fn umask() -> io::Result<u32> {
    status_field("Umask:", 8)
        .map(|mask| mask as u32)
        .ok_or_else(|| io::Error::other("/proc/self/status shows no umask"))
}

fn status_field(key: &str, radix: u32) -> Option<u64> {
    let status = proc_files::by("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    u64::from_str_radix(line.trim(), radix).ok()
}

fn limit(resource: u32) -> Option<libc::rlimit> {
    if resource == libc::RLIMIT_AS {
        return SpaceLimit::of_application();
    }
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure, which lives on this stack.
    (unsafe { libc::getrlimit(resource, &raw mut limit) } == 0).then_some(limit)
}

fn interval_timer(which: i32) -> Option<(i32, u64, u64)> {
    let zero = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut timer = libc::itimerval {
        it_interval: zero,
        it_value: zero,
    };
    // SAFETY: the kernel fills the structure, which lives on this stack.
    if unsafe { libc::getitimer(which as _, &raw mut timer) } != 0 {
        return None;
    }
    let microseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let (value, interval) = (
        microseconds(timer.it_value),
        microseconds(timer.it_interval),
    );
    (value != 0 || interval != 0).then_some((which, value, interval))
}

/// Returns an interval timer as it has to be started again. While the signal of a periodic `ITIMER_REAL` is pending, the timer
/// stands still, and the kernel shows no time left; it goes on when a thread takes the signal. A timer that expires only once may
/// have expired since it was read: then its signal is pending too, and will be sent again.
fn timer_to_start(
    (which, value, interval): (i32, u64, u64),
    waiting: &Waiting,
) -> Option<(i32, u64, u64)> {
    let signal = match which {
        libc::ITIMER_REAL => libc::SIGALRM,
        libc::ITIMER_VIRTUAL => libc::SIGVTALRM,
        _ => libc::SIGPROF,
    };
    match (value, interval) {
        (_, 0) if waiting.holds_expiry(signal) => None,
        (0, interval) => Some((which, interval, interval)),
        _ => Some((which, value, interval)),
    }
}

impl ProcessState {
    /// Makes the timers, which were read first, agree with the signals that were found pending after that.
    pub fn agree_with(&mut self, waiting: &Waiting) {
        let timers = self.interval_timers.iter();
        self.interval_timers = timers
            .filter_map(|timer| timer_to_start(*timer, waiting))
            .collect();
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        // This could fail only with a map whose keys are not text.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<ProcessState, Refusal> {
        serde_json::from_slice(bytes)
            .map_err(|error| refusal!(BrokenImage, "process state: {error}"))
    }

    /// Checks that the working directory exists here.
    pub fn check(&self) -> Result<(), Refusal> {
        match Path::new(&self.directory).is_dir() {
            true => Ok(()),
            false => Err(refusal!(
                MissingFile,
                "the program's working directory {} does not exist here: create it",
                self.directory
            )),
        }
    }

    /// Restores this state. Timers come last, with [`ProcessState::restore_clocks`].
    pub fn restore(&self) -> Result<(), Refusal> {
        std::env::set_current_dir(&self.directory).map_err(|error| {
            refusal!(
                MissingFile,
                "cannot enter the program's working directory {}: {error}",
                self.directory
            )
        })?;
        // SAFETY: these calls take numbers and touch no memory.
        unsafe {
            libc::umask(self.umask as libc::mode_t);
            libc::prctl(
                libc::PR_SET_CHILD_SUBREAPER,
                libc::c_ulong::from(self.child_subreaper),
            );
        }
        Ok(())
    }

    /// Restores the limits. A hard limit becomes at most this launch's, and a soft limit at most the hard one. Returns words for people
    /// about each soft limit that is lower than before.
    pub fn restore_limits(&self) -> Vec<String> {
        let hard = |wanted: u32| {
            let found = self
                .hard_limits
                .iter()
                .find(|(resource, _)| *resource == wanted);
            found.map_or(libc::RLIM_INFINITY, |(_, hard)| *hard)
        };
        let give = |(resource, soft): &(u32, u64)| {
            let now = limit(*resource)?;
            let most = now.rlim_max.min(hard(*resource));
            let wanted = libc::rlimit {
                rlim_cur: (*soft).min(most),
                rlim_max: most,
            };
            // SAFETY: the kernel reads the structure, which lives on this stack. It never refuses a soft limit up to the hard one.
            unsafe { libc::setrlimit(*resource, &raw const wanted) };
            (wanted.rlim_cur < *soft).then(|| {
                let name = LIMITS.get(*resource as usize).copied().unwrap_or("a limit");
                let had = match *soft {
                    libc::RLIM_INFINITY => "none".to_owned(),
                    soft => soft.to_string(),
                };
                format!(
                    "goes on with {name} of {} (it had {had}): this launch allows no more",
                    wanted.rlim_cur
                )
            })
        };
        self.limits.iter().filter_map(give).collect()
    }

    /// Starts the interval timers with the time that they had left. This comes when the application's handlers are in place and its threads
    /// are about to run.
    pub fn restore_clocks(&self) {
        let time = |microseconds: u64| libc::timeval {
            tv_sec: (microseconds / 1_000_000) as libc::time_t,
            tv_usec: (microseconds % 1_000_000) as libc::suseconds_t,
        };
        for (which, value, interval) in &self.interval_timers {
            let timer = libc::itimerval {
                it_interval: time(*interval),
                it_value: time(*value),
            };
            // SAFETY: the kernel reads the structure, which lives on this stack; null says that the old value is not wanted.
            unsafe { libc::setitimer(*which as _, &raw const timer, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::signals::Pending;
    use super::*;

    #[test]
    fn what_is_surveyed_is_restored() {
        let state = survey().unwrap();
        assert_eq!(ProcessState::from_bytes(&state.to_bytes()).unwrap(), state);
        assert!(state.check().is_ok() && state.restore().is_ok());
        assert_eq!(survey().unwrap(), state);
        let gone = ProcessState {
            directory: "/no such place".into(),
            ..state
        };
        assert!(
            gone.check()
                .unwrap_err()
                .details()
                .contains("/no such place")
        );
    }

    #[test]
    fn a_timer_whose_signal_waits_goes_on_or_has_ended() {
        let mut information = vec![0u8; 128];
        information[8..12].copy_from_slice(&libc::SI_KERNEL.to_ne_bytes());
        let waiting = Waiting {
            process: vec![Pending {
                signal: libc::SIGALRM,
                information,
            }],
            ..Waiting::default()
        };
        let real = |value, interval| (libc::ITIMER_REAL, value, interval);
        assert_eq!(timer_to_start(real(0, 50), &waiting), Some(real(50, 50)));
        assert_eq!(timer_to_start(real(7, 50), &waiting), Some(real(7, 50)));
        assert_eq!(timer_to_start(real(1, 0), &waiting), None);
        let other = (libc::ITIMER_PROF, 1, 0);
        assert_eq!(timer_to_start(other, &waiting), Some(other));
    }
}
