//! Tells which mapped files will probably be unchanged at a restart. Files that this process writes to are not among them: a
//! restart brings them back to what they were, but only after it has checked mapped files. Unless the launch says otherwise,
//! files that are temporary or have changed lately are not among them either.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use stillpoint_image::mapped_files::FileIdentity;

use super::super::maps::Mapping;
use super::Candidate;

/// Directories of temporary files, whatever the environment says.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Environment variables that name such directories.
const CALLED: [&str; 4] = ["TMPDIR", "TMP", "TEMP", "SLURM_TMPDIR"];

/// File systems (`f_type` of statfs(2)) whose files do not outlive the machine's run, or are made up by the kernel.
const FLEETING: [u32; 15] = [
    0x0102_1994, // tmpfs, devtmpfs
    0x8584_58f6, // ramfs
    0x9584_58f6, // hugetlbfs
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0x7363_6673, // securityfs
    0x1980_0202, // mqueue
    0x0904_1934, // anonymous inodes
    0x5345_434d, // secret memory
];

/// A file's time may be one tick of the kernel's clock too early.
const TICK: i64 = 10_000_000;
const SECOND: i64 = 1_000_000_000;

static PLACES: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Notes the directories of temporary files from the environment of the launch.
pub fn remember() {
    PLACES.get_or_init(|| {
        let called = CALLED.into_iter().filter_map(std::env::var_os);
        places(called)
    });
}

fn places(called: impl Iterator<Item = OsString>) -> Vec<PathBuf> {
    let named = TEMPORARY
        .into_iter()
        .map(PathBuf::from)
        .chain(called.map(PathBuf::from));
    let absolute = named.filter(|place| place.is_absolute());
    // `/proc` shows mapped files under their names without symbolic links.
    absolute
        .flat_map(|place| [std::fs::canonicalize(&place).ok(), Some(place)])
        .flatten()
        .collect()
}

/// The facts that tell lasting files from others.
#[derive(Default)]
pub struct Lasting {
    /// The time at which the job began, if temporary files and those that have changed since do not count as lasting.
    begun: Option<i64>,
    /// Device and inode of files that are open for writing, as fstat reports them; `mapped` has those mapped for writing, as mappings show
    /// them.
    open: Vec<(u64, u64)>,
    mapped: Vec<(u64, u64)>,
}

impl Lasting {
    /// Collects the facts; the caller is inside.
    pub fn new(begun: Option<i64>, mappings: &[Mapping]) -> Lasting {
        let written = mappings.iter().filter(|one| one.shared && one.may_write);
        Lasting {
            begun,
            open: open_for_writing().unwrap_or_default(),
            mapped: written.map(|one| (one.device, one.inode)).collect(),
        }
    }

    /// Returns whether a file will last.
    pub fn is(&self, candidate: &Candidate<'_>, file: &File, identity: &FileIdentity) -> bool {
        let path = Path::new(candidate.path);
        let places = PLACES.get().map_or(&[][..], Vec::as_slice);
        let likely = |begun: i64| {
            !places.iter().any(|place| path.starts_with(place))
                && !fleeting(file)
                && !since(identity.modified, begun)
                && !since(identity.changed, begun)
        };
        self.begun.is_none_or(likely)
            && !self.open.contains(&(identity.device, identity.inode))
            && !self.mapped.contains(&(candidate.device, candidate.inode))
    }
}

/// Returns whether a file's time lies in the time of the job. Some file systems report whole seconds.
fn since(time: i64, begun: i64) -> bool {
    match time % SECOND {
        0 => time + SECOND > begun,
        _ => time + TICK > begun,
    }
}

fn fleeting(file: &File) -> bool {
    let mut about = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: fstatfs fills the structure, for which zeros are valid too.
    let about = unsafe {
        if libc::fstatfs(file.as_raw_fd(), about.as_mut_ptr()) != 0 {
            return true;
        }
        about.assume_init()
    };
    FLEETING.contains(&(about.f_type as u32))
}

/// Returns the files that this process has open for writing, in either half.
fn open_for_writing() -> io::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name();
        let Some(number) = number.to_str().and_then(|text| text.parse::<RawFd>().ok()) else {
            continue;
        };
        found.extend(written_by(number));
    }
    Ok(found)
}

/// Returns the file that a descriptor may write to.
fn written_by(number: RawFd) -> Option<(u64, u64)> {
    // SAFETY: F_GETFL takes a number, which may have been closed meanwhile.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    if flags < 0 || flags & libc::O_ACCMODE == libc::O_RDONLY {
        return None;
    }
    let mut about = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: fstat fills the structure, for which zeros are valid too.
    let about = unsafe {
        if libc::fstat(number, about.as_mut_ptr()) != 0 {
            return None;
        }
        about.assume_init()
    };
    Some((about.st_dev, about.st_ino))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn identity(file: &File) -> FileIdentity {
        FileIdentity::of(&file.metadata().unwrap())
    }

    fn lasts(lasting: &Lasting, path: &str, file: &File) -> bool {
        let identity = identity(file);
        let candidate = Candidate {
            path,
            device: identity.device,
            inode: identity.inode,
            mappings: vec![],
        };
        lasting.is(&candidate, file, &identity)
    }

    #[test]
    fn an_executable_lasts_unless_it_has_changed_since_the_job_began() {
        let path = std::env::current_exe().unwrap();
        let file = File::open(&path).unwrap();
        let later = identity(&file).changed + SECOND;
        let mut lasting = Lasting {
            begun: Some(later),
            open: vec![],
            mapped: vec![],
        };
        assert!(lasts(&lasting, "/usr/bin/this", &file));
        lasting.begun = Some(identity(&file).changed);
        assert!(!lasts(&lasting, "/usr/bin/this", &file));
        lasting.begun = None;
        let about = file.metadata().unwrap();
        lasting.mapped.push((about.dev(), about.ino()));
        assert!(!lasts(&lasting, "/usr/bin/this", &file));
    }

    #[test]
    fn what_is_temporary_does_not_last() {
        PLACES.get_or_init(|| places(["/scratch/job".into(), "relative".into()].into_iter()));
        let file = File::open("/proc/self/exe").unwrap();
        let lasting = Lasting {
            begun: Some(i64::MAX),
            open: vec![],
            mapped: vec![],
        };
        for path in ["/tmp/a", "/var/tmp/a/b", "/dev/shm/a", "/scratch/job/a"] {
            assert!(!lasts(&lasting, path, &file), "{path}");
        }
        let whatever = Lasting::default();
        assert!(lasts(&whatever, "/tmp/a", &file));
        for path in ["/tmpfile", "/scratch/jobs/a", "/usr/lib/relative"] {
            assert!(lasts(&lasting, path, &file), "{path}");
        }
        let made_up = File::open("/proc/self/maps").unwrap();
        assert!(!lasts(&lasting, "/usr/lib/a", &made_up));
    }

    #[test]
    fn what_is_open_for_writing_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let about = file.as_file().metadata().unwrap();
        let written = (about.dev(), about.ino());
        assert!(open_for_writing().unwrap().contains(&written));
        let read = File::open(file.path()).unwrap();
        assert_eq!(written_by(read.as_raw_fd()), None);
        assert_eq!(written_by(file.as_raw_fd()), Some(written));
    }

    #[test]
    fn a_time_of_whole_seconds_is_rounded_down() {
        assert!(since(5 * SECOND, 5 * SECOND + 3) && !since(4 * SECOND, 5 * SECOND + 3));
        assert!(since(5 * SECOND + 1, 5 * SECOND + 3) && !since(5 * SECOND + 1, 6 * SECOND));
    }
}
