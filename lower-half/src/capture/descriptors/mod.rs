//! The upper half's descriptors: the open files, and what it takes to open them again.
//!
//! If a descriptor cannot be carried over a restart, a sentence says which number it has and where it leads.

mod all;
mod anonymous;
mod diagnosis;
pub mod epoll;
mod files;
pub mod holders;
mod info;
mod locks;
pub mod messages;
pub mod outward;
pub mod owner;
mod pairs;
mod pipes;
pub mod queue;
mod same_open_file;
mod sockets;
pub mod streams;
mod unconnected;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;

use stillpoint_image::descriptors::{Description, DescriptorKind, Descriptors, Number};
use stillpoint_refusals::{Refusal, refusal};

use super::contents::{Contents, FileKey};
pub use all::All;
use info::Info;
use same_open_file::Known;

/// The place in `/proc` with the application's descriptors: those of the main thread.
pub const LIVING: &str = "/proc/self";
/// The place with the descriptors of the calling thread, which may have a table of its own.
pub const OWN: &str = "/proc/thread-self";

/// One open descriptor and its properties.
pub struct OpenDescriptor {
    pub number: RawFd,
    /// [`LIVING`] or [`OWN`].
    place: &'static str,
    pub status: libc::stat,
    /// `F_GETFL`.
    pub flags: i32,
    /// The target of `/proc/self/fd/N`.
    pub link: String,
    pub info: Info,
}

impl OpenDescriptor {
    pub fn look(number: RawFd, place: &'static str) -> io::Result<OpenDescriptor> {
        let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: fstat fills the structure, for which zeros are valid too.
        let status = unsafe {
            if libc::fstat(number, status.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            status.assume_init()
        };
        // SAFETY: F_GETFL has no argument.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
        if flags < 0 {
            return Err(io::Error::last_os_error());
        }
        let link = std::fs::read_link(format!("{place}/fd/{number}"))?;
        let link = link
            .to_str()
            .ok_or_else(|| io::Error::other("its path is not UTF-8"))?
            .to_owned();
        let info = Info::read(number, place)?;
        Ok(OpenDescriptor {
            number,
            place,
            status,
            flags,
            link,
            info,
        })
    }

    pub fn key(&self) -> FileKey {
        FileKey {
            device: self.status.st_dev,
            inode: self.status.st_ino,
        }
    }

    /// Returns whether a rehearsal has made it: then no other process can have it.
    pub(super) fn is_scratch(&self) -> bool {
        self.place == OWN
    }

    fn file_type(&self) -> u32 {
        self.status.st_mode & libc::S_IFMT
    }

    fn writable(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY
    }

    fn close_on_exec(&self) -> bool {
        // SAFETY: F_GETFD has no argument.
        unsafe { libc::fcntl(self.number, libc::F_GETFD) & libc::FD_CLOEXEC != 0 }
    }

    /// Opens a second descriptor for reading the same file, whatever this one allows.
    fn reopen_readable(&self) -> io::Result<File> {
        File::open(format!("{}/fd/{}", self.place, self.number))
    }

    /// Reads fdinfo again.
    fn info_again(&self) -> io::Result<Info> {
        Info::read(self.number, self.place)
    }
}

/// Examines the given descriptors. Contents that must travel are added to `contents`; the error is a list of sentences about what cannot be
/// carried. It must run [apart](super::own_descriptor_table), since it opens and closes files.
pub fn survey(numbers: &[RawFd], contents: &mut Contents) -> Result<Descriptors, Vec<Refusal>> {
    let (opens, mut refusals) = look(numbers);
    let mut table = Descriptors::default();
    let (all, mut files) = (All::new(&opens), Known::default());
    for open in &opens {
        // A terminal is all three streams in one; the next launch may have three. Other descriptors that lead there are taken for the last
        // stream.
        let known = match streams::is_one(open) {
            true => Ok(None),
            false => files.find(open),
        };
        let known = match known {
            Ok(known) => known,
            Err(other) => {
                refusals.push(refusal!(UnclearDescriptor, "descriptor {} is {}, which may be open once or twice, as descriptor {other}: the kernel does not tell (kcmp, which a container's seccomp profile may forbid), \
                     and somebody is to be told of its events (F_SETOWN, O_ASYNC)",
                    open.number, open.link
                ));
                continue;
            }
        };
        let description = match known {
            Some(known) => known,
            None => match describe(open, &all, contents) {
                Ok(description) => {
                    files.add(open, table.descriptions.len());
                    table.descriptions.push(description);
                    table.descriptions.len() - 1
                }
                Err(reason) => {
                    refusals.push(
                        reason.reworded(|reason| format!("descriptor {} is {reason}", open.number)),
                    );
                    continue;
                }
            },
        };
        table.numbers.push(Number {
            number: open.number,
            description,
            close_on_exec: open.close_on_exec(),
        });
    }
    if refusals.is_empty() {
        outward::will_be_told(&mut table);
        Ok(table)
    } else {
        Err(refusals)
    }
}

/// Returns the application's descriptors under these numbers, and the reasons why some cannot be examined.
pub fn look(numbers: &[RawFd]) -> (Vec<OpenDescriptor>, Vec<Refusal>) {
    let (mut opens, mut refusals) = (Vec::new(), Vec::new());
    for number in numbers {
        match OpenDescriptor::look(*number, LIVING) {
            Ok(open) => opens.push(open),
            // It was closed in the meantime: the number is free.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => {}
            Err(error) => refusals.push(refusal!(
                UnclearDescriptor,
                "descriptor {number} cannot be looked at: {error}"
            )),
        }
    }
    (opens, refusals)
}

/// Describes everything that a restart needs of an open file description, or says why it cannot be carried. `all` are the other
/// descriptors.
pub fn describe(
    open: &OpenDescriptor,
    all: &All<'_>,
    contents: &mut Contents,
) -> Result<Description, Refusal> {
    let kind = kind(open, all, contents)?;
    let locks = locks::of(&open.info)?;
    let (owner, signal) = match (owner::of(open), &kind) {
        // The launcher may have set that owner.
        (Err(_), DescriptorKind::Inherited { .. }) => (None, 0),
        (found, _) => found?,
    };
    Ok(Description {
        kind,
        flags: open.flags,
        offset: open.info.position,
        locks,
        owner,
        signal,
    })
}

fn kind(
    open: &OpenDescriptor,
    all: &All<'_>,
    contents: &mut Contents,
) -> Result<DescriptorKind, Refusal> {
    if let Some(stream) = streams::inherited(open) {
        return Ok(DescriptorKind::Inherited { stream });
    }
    if streams::left_open(open) {
        return Ok(DescriptorKind::Inherited {
            stream: open.number,
        });
    }
    if open.flags & libc::O_PATH != 0 {
        return files::path(open);
    }
    match open.file_type() {
        libc::S_IFREG => files::file(open, contents),
        libc::S_IFDIR => files::directory(open),
        libc::S_IFCHR | libc::S_IFBLK => device(open),
        libc::S_IFIFO => pipes::describe(open, all, contents),
        libc::S_IFSOCK => sockets::describe(open, all, contents),
        _ => anonymous::describe(open, all),
    }
}

/// Describes a device, if it keeps no state for its users.
fn device(open: &OpenDescriptor) -> Result<DescriptorKind, Refusal> {
    const PLAIN: [&str; 7] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/tty",
        "/dev/console",
    ];
    let path = open.link.clone();
    if PLAIN.contains(&path.as_str()) || path.starts_with("/dev/pts/") && path != "/dev/pts/ptmx" {
        return Ok(DescriptorKind::Device { path });
    }
    Err(refusal!(
        OpenDevice,
        "the device {path}, whose state cannot be carried over a restart: close it before a checkpoint"
    ))
}

/// Returns the path that a descriptor leads to, for messages.
pub(super) fn link_of(number: RawFd) -> OsString {
    std::fs::read_link(format!("{OWN}/fd/{number}")).map_or_else(
        |_| OsString::from("?"),
        |link| OsString::from_vec(link.into_os_string().into_vec()),
    )
}

/// Makes a descriptor of a number that a system call has just returned.
pub(super) fn owned(number: libc::c_int) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the number has just been made for us, and no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
