//! Fault points: numbered places at which a checkpoint or a restart can be made to fail, to die or to stall.
//!
//! ```text
//! STILLPOINT_FAULT=name[@pass][:rank][:action],...      seal    manifest-sync:stall=300    image-pages:1:die
//! ```
//!
//! * `name` - one of [`Point::ALL`]
//! * `@pass` - the first pass of this process at which the fault strikes, say the third (`@3`); without it, the first one
//! * `rank` - in this rank's processes only; the coordinator, which belongs to no rank, does not look at it
//! * `action` - `fail` (the step returns an error), `die` (SIGKILL), `crash` (SIGSEGV), `stall=MILLISECONDS` (it takes so much longer), `hold=FILE` (it takes
//!   as long as the file exists)
//!
//! Every entry strikes once, `hold` whenever its file is there, and says so on stderr. Several entries for one point strike one after the other.
//!
//! The variable is read once, by [`arm`], at a process's start. Without it, a point costs a load and a branch.

mod entry;
mod points;

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use entry::{Action, Entry};
pub use points::{Durable, Point, Process, Replacement, Run, page};

/// The environment variable.
pub const VARIABLE: &str = "STILLPOINT_FAULT";
/// The beginning of a line on stderr that reports a strike.
pub const MARK: &str = "fault point";

/// The time between two looks at a file that holds a step.
const LOOK: Duration = Duration::from_millis(2);

/// No rank: the coordinator, or a process that does not know its rank yet.
const NOBODY: u32 = u32::MAX;

static ARMED: AtomicBool = AtomicBool::new(false);
static PLAN: OnceLock<Plan> = OnceLock::new();
static RANK: AtomicU32 = AtomicU32::new(NOBODY);

/// The variable could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VARIABLE}: {}", self.0)
    }
}

impl std::error::Error for Unknown {}

/// The entries, and the number of passes of each point.
struct Plan {
    entries: Vec<Entry>,
    passes: [AtomicU32; Point::ALL.len()],
}

/// Reads the variable. A process calls it once, before other threads run.
pub fn arm() -> Result<(), Unknown> {
    match std::env::var_os(VARIABLE) {
        Some(text) => arm_with(&text.to_string_lossy()),
        None => Ok(()),
    }
}

fn arm_with(text: &str) -> Result<(), Unknown> {
    let entries = entry::all(text).map_err(Unknown)?;
    let any = !entries.is_empty();
    let passes = [const { AtomicU32::new(0) }; Point::ALL.len()];
    PLAN.get_or_init(|| Plan { entries, passes });
    ARMED.store(any, Ordering::Relaxed);
    Ok(())
}

/// Turns off all faults in this process.
pub fn disarm() {
    ARMED.store(false, Ordering::Relaxed);
}

/// Says that this process is, or is about to become, a rank.
pub fn this_is(rank: u32) {
    RANK.store(rank, Ordering::Relaxed);
}

/// Says that this process was forked from a rank's and is not a rank: it has come to no point yet, as if it had just been started.
pub fn begin_anew() {
    this_is(NOBODY);
    if let Some(plan) = PLAN.get() {
        plan.passes
            .iter()
            .for_each(|passes| passes.store(0, Ordering::Relaxed));
        plan.entries.iter().for_each(Entry::begin_anew);
    }
}

/// Passes a point before a step that may fail.
///
/// # Errors
/// The fault that was asked for.
#[inline]
pub fn strike(point: Point) -> io::Result<()> {
    match ARMED.load(Ordering::Relaxed) {
        false => Ok(()),
        true => struck(point),
    }
}

/// The same for a step that is not always part of a checkpoint or of a restart.
///
/// # Errors
/// As [`strike`].
#[inline]
pub fn strike_at(point: Option<Point>) -> io::Result<()> {
    point.map_or(Ok(()), strike)
}

/// Passes a point before a step that cannot return an error: the process can only die or stall there.
#[inline]
pub fn pass(point: Point) {
    if ARMED.load(Ordering::Relaxed) {
        // No such point fails: `entry` sees to it.
        let _ = struck(point);
    }
}

#[cold]
fn struck(point: Point) -> io::Result<()> {
    let Some(plan) = PLAN.get() else {
        return Ok(());
    };
    let passes = plan
        .passes
        .get(point.place())
        .map_or(0, |passes| passes.fetch_add(1, Ordering::Relaxed) + 1);
    let rank = RANK.load(Ordering::Relaxed);
    let entry = plan
        .entries
        .iter()
        .find(|entry| entry.strikes(point, passes, rank));
    match entry {
        Some(entry) => carry_out(point, &entry.action),
        None => Ok(()),
    }
}

fn carry_out(point: Point, action: &Action) -> io::Result<()> {
    let (number, name) = (point.number(), point.name());
    let line = format!(
        "{MARK} {number} {name}: {action} in process {}\n",
        std::process::id()
    );
    say(&line);
    match action {
        Action::Fail => {
            let problem = format!("no space left on device (fault point {name})");
            Err(io::Error::new(io::ErrorKind::StorageFull, problem))
        }
        Action::Die => die(),
        Action::Crash => crash(),
        Action::Stall(milliseconds) => {
            std::thread::sleep(Duration::from_millis(*milliseconds));
            Ok(())
        }
        Action::Hold(file) => {
            while file.exists() {
                std::thread::sleep(LOOK);
            }
            Ok(())
        }
    }
}

/// Reports a strike on stderr. The fault strikes even if this fails.
fn say(line: &str) {
    // The process's own stderr, also from a thread that has descriptors of its own.
    let opened = OpenOptions::new().append(true).open("/proc/self/fd/2");
    let said = opened.and_then(|mut stderr| stderr.write_all(line.as_bytes()));
    if said.is_err() {
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

/// Ends the process as a node that fails would: no signal handler runs.
fn die() -> ! {
    unsafe extern "C" {
        safe fn kill(pid: i32, signal: i32) -> i32;
    }
    const SIGKILL: i32 = 9;
    kill(std::process::id() as i32, SIGKILL);
    std::process::abort()
}

/// Writes to an address without memory, as a bug would.
fn crash() -> ! {
    let nowhere = std::ptr::without_provenance_mut::<u8>(size_of::<usize>());
    // SAFETY: this is never sound, and is meant to be: the process ends by the fault.
    unsafe { nowhere.write_volatile(0) };
    die()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_strikes_once_and_elsewhere_nothing_does() {
        assert!(strike(Point::Seal).is_ok());
        arm_with("seal@2:1:fail,drain:stall=1").unwrap();
        this_is(0);
        assert!((0..4).all(|_| strike(Point::Seal).is_ok()));
        this_is(1);
        assert!(strike(Point::Drain).is_ok() && strike(Point::Check).is_ok());
        let error = strike(Point::Seal).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("seal"), "{error}");
        assert!(strike(Point::Seal).is_ok());
        let file = std::env::temp_dir().join(format!("stillpoint-hold-{}", std::process::id()));
        let entry = &entry::all(&format!("seal:hold={}", file.display())).unwrap()[0];
        for there in [true, true, false] {
            let _ = std::fs::remove_file(&file);
            assert!(!there || std::fs::write(&file, "").is_ok());
            assert_eq!(entry.strikes(Point::Seal, 1, 1), there);
        }
        disarm();
        assert!(strike_at(Some(Point::Seal)).is_ok() && strike_at(None).is_ok());
    }
}
