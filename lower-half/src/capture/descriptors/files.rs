//! Regular files, directories and paths: how to reach them again, or why that is impossible.

use std::os::unix::fs::MetadataExt;

use stillpoint_image::descriptors::DescriptorKind;
use stillpoint_refusals::{Refusal, refusal};

use super::{OpenDescriptor, holders};
use crate::capture::contents::Contents;

const DELETED: &str = " (deleted)";
const ADVICE: &str = "close it before a checkpoint";

/// Describes an `O_PATH` descriptor: a place in the file system, whatever lies there.
pub fn path(open: &OpenDescriptor) -> Result<DescriptorKind, Refusal> {
    let path = lasting(&open.link)?;
    if leads_here(open, std::fs::symlink_metadata(&path)) {
        return Ok(DescriptorKind::Path { path });
    }
    Err(nameless(open))
}

/// Describes a directory.
pub fn directory(open: &OpenDescriptor) -> Result<DescriptorKind, Refusal> {
    let path = lasting(&open.link)?;
    if leads_here(open, std::fs::metadata(&path)) {
        return Ok(DescriptorKind::Directory { path });
    }
    Err(nameless(open))
}

/// Describes a regular file.
pub fn file(open: &OpenDescriptor, contents: &mut Contents) -> Result<DescriptorKind, Refusal> {
    let path = lasting(&open.link)?;
    let bytes = open.status.st_size as u64;
    if leads_here(open, std::fs::metadata(&path)) {
        // The kernel makes up files below /proc/self when they are read: there is nothing to cut.
        let made_up = path != open.link;
        let cut = open.writable() && !made_up;
        let bytes = if made_up { 0 } else { bytes };
        return Ok(DescriptorKind::File { path, bytes, cut });
    }
    let memory = open.link.strip_prefix("/memfd:").map(undeleted);
    let gone = open.link.starts_with('/') && open.link.ends_with(DELETED);
    if memory.is_none() && !(gone && open.status.st_nlink == 0) {
        return Err(nameless(open));
    }
    if memory.is_some() && on_huge_pages(open) {
        return Err(refusal!(
            HugePagesFile,
            "the memory file {} in huge pages, which cannot be carried over a restart: {ADVICE}",
            undeleted(&open.link)
        ));
    }
    let path = undeleted(&open.link).to_owned();
    if !open.is_scratch()
        && let Some(pid) = holders::sharer(open.key())
    {
        return Err(refusal!(
            NamelessFile,
            "the file {path}, which has no name (any more), and which {} has too, so that a restart would make two of it: {ADVICE}, or give it a name",
            holders::in_words(pid)
        ));
    }
    if has_attributes(open) {
        return Err(refusal!(
            FileAttributes,
            "the unlinked file {path}, which has extended attributes (user.*), which cannot be carried over a restart: {ADVICE}"
        ));
    }
    let readable = open.reopen_readable();
    let content = readable.and_then(|file| contents.add_file(open.key(), &path, &file));
    let content = content.map_err(|error| {
        refusal!(
            LostFile,
            "the unlinked file {path}, which cannot be read: {error}"
        )
    })?;
    let mode = open.status.st_mode & 0o7777;
    if let Some(name) = memory {
        // SAFETY: F_GET_SEALS has no argument.
        let seals = unsafe { libc::fcntl(open.number, libc::F_GET_SEALS) }.max(0);
        return Ok(DescriptorKind::Memory {
            name: name.to_owned(),
            bytes,
            content,
            seals,
            mode,
        });
    }
    Ok(DescriptorKind::Unlinked {
        path,
        bytes,
        content,
        mode,
        linkable: open.flags & libc::O_TMPFILE == libc::O_TMPFILE,
    })
}

fn undeleted(link: &str) -> &str {
    link.strip_suffix(DELETED).unwrap_or(link)
}

/// Returns whether the path leads to the open file.
fn leads_here(open: &OpenDescriptor, found: std::io::Result<std::fs::Metadata>) -> bool {
    found.is_ok_and(|file| file.dev() == open.status.st_dev && file.ino() == open.status.st_ino)
}

/// Returns the path in words that mean the same in another launch: below `/proc`, a process has another number then.
fn lasting(link: &str) -> Result<String, Refusal> {
    let Some((id, rest)) = of_process(link) else {
        return Ok(link.to_owned());
    };
    if id != std::process::id() {
        return Err(refusal!(
            ProcFile,
            "{link}, which is about process {id}, which is not part of the job: {ADVICE}"
        ));
    }
    if rest.starts_with("/task/") {
        return Err(refusal!(
            ProcFile,
            "{link}, which is about one thread, and the thread will have another number after a restart: {ADVICE}"
        ));
    }
    Ok(format!("/proc/self{rest}"))
}

/// Splits `/proc/PID...` into the process and the rest.
fn of_process(link: &str) -> Option<(u32, &str)> {
    let rest = link.strip_prefix("/proc/")?;
    let (id, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Some((id.parse().ok()?, rest))
}

/// Returns the reason why no path leads to the open file.
fn nameless(open: &OpenDescriptor) -> Refusal {
    let link = &open.link;
    if !link.ends_with(DELETED) {
        return refusal!(LostFile, "{link}, which no path leads to: {ADVICE}");
    }
    let what = undeleted(link);
    if open.file_type() == libc::S_IFDIR {
        return refusal!(
            LostFile,
            "the directory {what}, which has been removed: {ADVICE}"
        );
    }
    if open.status.st_nlink > 0 {
        return refusal!(
            LostFile,
            "the file {what}, which has lost this name and is known by another, which nobody tells: {ADVICE}"
        );
    }
    refusal!(LostFile, "{what}, which has been removed: {ADVICE}")
}

/// Returns whether the program has set extended attributes of the file.
fn has_attributes(open: &OpenDescriptor) -> bool {
    let mut names = [0u8; 4096];
    // SAFETY: the kernel writes at most what the buffer holds; a longer list is an error.
    let bytes = unsafe { libc::flistxattr(open.number, names.as_mut_ptr().cast(), names.len()) };
    match usize::try_from(bytes) {
        Ok(bytes) => names
            .get(..bytes)
            .unwrap_or_default()
            .split(|byte| *byte == 0)
            .any(|name| name.starts_with(b"user.")),
        Err(_) => std::io::Error::last_os_error().raw_os_error() == Some(libc::ERANGE),
    }
}

fn on_huge_pages(open: &OpenDescriptor) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: fstatfs fills the structure, for which zeros are valid too.
    unsafe {
        libc::fstatfs(open.number, found.as_mut_ptr()) == 0
            && found.assume_init().f_type == libc::HUGETLBFS_MAGIC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_about_this_process_last() {
        let own = std::process::id();
        assert_eq!(lasting("/tmp/a").unwrap(), "/tmp/a");
        assert_eq!(lasting("/proc/meminfo").unwrap(), "/proc/meminfo");
        assert_eq!(lasting(&format!("/proc/{own}")).unwrap(), "/proc/self");
        assert_eq!(
            lasting(&format!("/proc/{own}/fd")).unwrap(),
            "/proc/self/fd"
        );
        let thread = lasting(&format!("/proc/{own}/task/{own}/stat")).unwrap_err();
        assert!(thread.details().contains("about one thread"), "{thread}");
        assert!(
            lasting("/proc/1/stat")
                .unwrap_err()
                .details()
                .contains("process 1,")
        );
    }
}
