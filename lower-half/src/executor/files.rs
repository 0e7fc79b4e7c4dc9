//! Syncs the files that the application writes. After a power failure an epoch is restarted only if these files are at least as long as they were.
//!
//! A sync may take as long as the file system likes, and the application may run on and close its files meanwhile. So a thread with a descriptor table of
//! its own syncs: it takes the table while the application stands still.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, mpsc};
use std::thread::JoinHandle;

use nix::sys::stat::fstat;
use nix::unistd::fdatasync;
use stillpoint_faults::{Point, strike};
use stillpoint_part::Failure;
use stillpoint_protocol::launch::{Launch, SyncFiles};
use stillpoint_refusals::{Code, Refusal, refusal};

use crate::capture::access::Access;
use crate::capture::own_descriptor_table::own_table;
use crate::gate::descriptors;
use crate::ground::thread;

static HOW: OnceLock<SyncFiles> = OnceLock::new();

/// Notes the setting of the launch, before the application runs.
pub fn remember(launch: Option<&Launch>) {
    if let Some(launch) = launch {
        HOW.get_or_init(|| launch.sync_files);
    }
}

/// A file that the application may have written.
struct Written {
    number: i32,
    path: PathBuf,
}

/// A sync under way.
pub struct Syncing(Option<JoinHandle<Result<(), Refusal>>>);

impl Syncing {
    /// Begins to sync what the application has written so far. Every thread of the upper half must be stopped.
    ///
    /// # Errors
    /// There is no thread for it, or the access has been taken back.
    pub fn start(access: &Access) -> Result<Syncing, Failure> {
        strike(Point::FilesSync).map_err(|error| refusal!(FaultPoint, "{error}"))?;
        let how = HOW.get().copied().unwrap_or_default();
        if how == SyncFiles::Off {
            return Ok(Syncing(None));
        }
        let inside = access.enter()?;
        let files = written();
        let here = match how {
            SyncFiles::All => fs::read_link("/proc/self/cwd").ok(),
            SyncFiles::Open | SyncFiles::Off => None,
        };
        if files.is_empty() && here.is_none() {
            return Ok(Syncing(None));
        }
        let (taken, is_taken) = mpsc::channel();
        let started = thread::start("stillpoint-sync", thread::LARGE, move || {
            let table = own_table().map(|()| keep_only(&files));
            // The executor goes on in either case.
            let _ = taken.send(());
            table.map_err(|error| cannot("sync this rank's files", &error))?;
            sync(files, here)
        });
        let thread = started.map_err(|error| {
            Failure::Refused(cannot(
                "start a thread that syncs this rank's files",
                &error,
            ))
        })?;
        // If the thread ends early, this returns as well.
        let _ = is_taken.recv();
        drop(inside);
        Ok(Syncing(Some(thread)))
    }

    /// Waits until all is on the disk.
    ///
    /// # Errors
    /// A file cannot be synced: bytes that the epoch needs may be lost.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(thread) = self.0 else {
            return Ok(());
        };
        let synced = thread.join();
        let ended = |_| {
            let text = "the thread that syncs this rank's files has ended early";
            Err(refusal!(NotSynced, "{text}"))
        };
        synced.unwrap_or_else(ended).map_err(Failure::Refused)
    }
}

fn cannot(what: &str, error: &io::Error) -> Refusal {
    let text = format!(
        "cannot {what}: {error}: the job runs on; try again, or start it with --sync-files off"
    );
    Refusal::new(Code::of(error, Code::NotSynced), text)
}

/// Returns the files that the application has open for writing and to which a path leads. This asks no file system.
fn written() -> Vec<Written> {
    let open = descriptors::upper().into_iter();
    open.filter_map(|number| {
        // SAFETY: the call takes a number and touches no memory; if the number has been closed, that is an error.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
        let writes =
            flags >= 0 && flags & libc::O_PATH == 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
        let path = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        // Links without a path are `pipe:[1]`, `socket:[1]` and `anon_inode:`; a device has no data of its own.
        let lasts = path.is_absolute() && !path.starts_with("/dev") && !path.starts_with("/proc");
        (writes && lasts).then_some(Written { number, path })
    })
    .collect()
}

/// Closes all other descriptors of this thread's table. A reader may wait until the last writer of a pipe has closed it.
fn keep_only(files: &[Written]) {
    let kept: BTreeSet<u32> = files.iter().map(|file| file.number as u32).collect();
    let mut first = 0;
    for number in kept.into_iter().chain([u32::MAX]) {
        if first < number {
            // SAFETY: the table is this thread's alone, and no value of the thread owns a descriptor.
            unsafe { libc::syscall(libc::SYS_close_range, first, number - 1, 0) };
        }
        first = number.saturating_add(1);
    }
}

fn sync(files: Vec<Written>, here: Option<PathBuf>) -> Result<(), Refusal> {
    let mut systems = BTreeSet::new();
    for Written { number, path } in &files {
        // SAFETY: the table is this thread's alone; it has closed all other numbers, and these stay open until the thread ends.
        let file = unsafe { BorrowedFd::borrow_raw(*number) };
        let about = fstat(file).map_err(io::Error::from);
        let about = about.map_err(|error| cannot_sync(path, &error))?;
        let regular = about.st_mode & libc::S_IFMT == libc::S_IFREG;
        // The image holds the bytes of a file without a name.
        if !regular || about.st_nlink == 0 {
            continue;
        }
        fdatasync(file).map_err(|error| cannot_sync(path, &error.into()))?;
        if here.is_some() && systems.insert(about.st_dev) {
            sync_system(file.as_raw_fd()).map_err(|error| cannot_sync(path, &error))?;
        }
    }
    let Some(here) = here else { return Ok(()) };
    let opened = File::open(&here).and_then(|file| Ok((file.metadata()?.dev(), file)));
    match opened {
        Ok((system, file)) if !systems.contains(&system) => {
            sync_system(file.as_raw_fd()).map_err(|error| cannot_sync(&here, &error))
        }
        // A directory that has gone holds no files.
        _ => Ok(()),
    }
}

fn sync_system(descriptor: i32) -> io::Result<()> {
    // SAFETY: the call takes a number and touches no memory.
    match unsafe { libc::syncfs(descriptor) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn cannot_sync(path: &Path, error: &io::Error) -> Refusal {
    cannot(&format!("sync {}", path.display()), error)
}
