//! Descriptors without a file: event counters, timers, signals, epoll sets, inotify.

use std::os::fd::RawFd;

use stillpoint_image::descriptors::{DescriptorKind, Watch};
use stillpoint_refusals::{Refusal, refusal};

use super::info::field;
use super::{All, OpenDescriptor, epoll};

/// Describes an `anon_inode`, or says why it cannot be carried.
pub fn describe(open: &OpenDescriptor, all: &All<'_>) -> Result<DescriptorKind, Refusal> {
    let unreadable = || {
        refusal!(
            UnclearDescriptor,
            "{}, about which this kernel does not tell enough",
            open.link
        )
    };
    match open.link.as_str() {
        "anon_inode:[eventfd]" => eventfd(open).ok_or_else(unreadable),
        "anon_inode:[timerfd]" => timerfd(open).ok_or_else(unreadable),
        "anon_inode:[signalfd]" => {
            let mask = open
                .info
                .value("sigmask:")
                .and_then(|mask| u64::from_str_radix(mask, 16).ok());
            mask.map(|mask| DescriptorKind::SignalFd { mask })
                .ok_or_else(unreadable)
        }
        "anon_inode:[eventpoll]" => epoll::describe(open, all),
        "anon_inode:inotify" | "anon_inode:[inotify]" => inotify(open),
        link => Err(refusal!(
            AnonymousInode,
            "{link}, which cannot be carried over a restart: close it before a checkpoint"
        )),
    }
}

fn eventfd(open: &OpenDescriptor) -> Option<DescriptorKind> {
    let count = u64::from_str_radix(open.info.value("eventfd-count:")?, 16).ok()?;
    let semaphore = match open.info.value("eventfd-semaphore:") {
        Some(value) => value != "0",
        None => counts_down(open.number, count)?,
    };
    Some(DescriptorKind::EventFd { count, semaphore })
}

/// Returns whether reading takes 1 from a counter, not all. Kernels before 6.5 do not tell, so the counter is read, and the number that
/// this takes is put back. The application's threads stand still.
fn counts_down(number: RawFd, count: u64) -> Option<bool> {
    let add = |count: u64| {
        // SAFETY: eight bytes of this stack are written. The counter has room: the number was taken out before, or the count is at most 1.
        let written = unsafe { libc::write(number, (&raw const count).cast(), 8) };
        (written == 8).then_some(())
    };
    let take = || {
        let mut taken = 0u64;
        // SAFETY: eight bytes are read to this stack; there is something to read, so the call does not wait.
        let read = unsafe { libc::read(number, (&raw mut taken).cast(), 8) };
        (read == 8).then_some(taken)
    };
    match count {
        0 | 1 => {
            // A counter of 1 does not show the difference.
            add(1)?;
            if count == 0 {
                add(1)?;
            }
            let counts_down = take()? == 1;
            if counts_down && count == 0 {
                take()?;
            }
            if !counts_down && count == 1 {
                add(1)?;
            }
            Some(counts_down)
        }
        _ => {
            let taken = take()?;
            add(taken)?;
            Some(taken == 1)
        }
    }
}

fn timerfd(open: &OpenDescriptor) -> Option<DescriptorKind> {
    // A periodic timer that has expired stands still until a thread reads it or asks for its time, and fdinfo shows no time left. Asking
    // starts it again, and counts the periods that have gone by.
    let mut told = std::mem::MaybeUninit::<libc::itimerspec>::zeroed();
    // SAFETY: the kernel fills the structure.
    if unsafe { libc::timerfd_gettime(open.number, told.as_mut_ptr()) } != 0 {
        return None;
    }
    let info = open.info_again().ok()?;
    Some(DescriptorKind::TimerFd {
        clock: info.value("clockid:")?.parse().ok()?,
        settime_flags: i32::from_str_radix(info.value("settime flags:")?, 8).ok()?,
        ticks: info.value("ticks:")?.parse().ok()?,
        value_nanoseconds: pair(info.value("it_value:")?)?,
        interval_nanoseconds: pair(info.value("it_interval:")?)?,
    })
}

/// Reads `(seconds, nanoseconds)`.
fn pair(text: &str) -> Option<u64> {
    let (seconds, nanoseconds) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    let seconds: u64 = seconds.trim().parse().ok()?;
    Some(seconds * 1_000_000_000 + nanoseconds.trim().parse::<u64>().ok()?)
}

/// Describes inotify watches. The kernel names watched files by handle; only a privileged process may turn a handle into a path.
fn inotify(open: &OpenDescriptor) -> Result<DescriptorKind, Refusal> {
    let mut waiting: libc::c_int = 0;
    // SAFETY: the kernel writes one int.
    if unsafe { libc::ioctl(open.number, libc::FIONREAD, &raw mut waiting) } != 0 || waiting != 0 {
        return Err(refusal!(
            UnreadEvents,
            "a set of inotify watches with events that have not been read: read them before a checkpoint"
        ));
    }
    let mut watches = Vec::new();
    for line in open.info.all("inotify ") {
        let watch = watch(line);
        watches.push(watch.ok_or_else(|| {
            refusal!(
                UnclearDescriptor,
                "a set of inotify watches, whose paths this kernel does not tell us"
            )
        })?);
    }
    watches.sort_by_key(|watch| watch.descriptor);
    Ok(DescriptorKind::Inotify { watches })
}

/// Reads `wd:1 ino:2 sdev:800001 mask:300 ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:0200...`.
fn watch(line: &str) -> Option<Watch> {
    let hexadecimal = |key| field(line, key).and_then(|word| u64::from_str_radix(word, 16).ok());
    let path = path_of_handle(
        field(line, "f_handle:")?,
        hexadecimal("fhandle-type:")? as i32,
        hexadecimal("ino:")?,
        hexadecimal("sdev:")?,
    )?;
    Some(Watch {
        descriptor: hexadecimal("wd:")? as i32,
        path,
        mask: hexadecimal("mask:")? as u32,
    })
}

fn path_of_handle(hexadecimal: &str, handle_type: i32, inode: u64, device: u64) -> Option<String> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        data: [u8; 128],
    }
    let mut handle = Handle {
        bytes: hexadecimal.len() as u32 / 2,
        kind: handle_type,
        data: [0; 128],
    };
    for (index, byte) in handle
        .data
        .iter_mut()
        .take(hexadecimal.len() / 2)
        .enumerate()
    {
        *byte = u8::from_str_radix(hexadecimal.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    // Any file of the file system will do as its representative.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let roots = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    for root in roots {
        let Ok(root) = std::fs::File::open(root) else {
            continue;
        };
        // SAFETY: the handle is alive; the kernel reads `bytes` of its data.
        let number = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                root.as_raw_fd(),
                &raw const handle,
                libc::O_PATH,
            )
        };
        let Ok(file) = super::owned(number as i32) else {
            continue;
        };
        let path = super::link_of(file.as_raw_fd()).into_string().ok()?;
        let found = std::fs::metadata(&path).ok();
        // `sdev` has the kernel's own packing of major and minor.
        let packed =
            |device: u64| u64::from(libc::major(device)) << 20 | u64::from(libc::minor(device));
        if found.is_some_and(|found| found.ino() == inode && packed(found.dev()) == device) {
            return Some(path);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_kernel_are_understood() {
        assert_eq!(pair("(1, 500000000)"), Some(1_500_000_000));
        assert_eq!(pair("1, 5"), None);
    }
    #[test]
    fn what_kind_of_counter_it_is_shows_and_its_count_stays() {
        for semaphore in [false, true] {
            for count in [0, 1, 2, 77] {
                let flags = if semaphore { libc::EFD_SEMAPHORE } else { 0 };
                // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
                let counter = super::super::owned(unsafe {
                    libc::eventfd(count, flags | libc::EFD_NONBLOCK)
                })
                .unwrap();
                let number = std::os::fd::AsRawFd::as_raw_fd(&counter);
                assert_eq!(counts_down(number, u64::from(count)), Some(semaphore));
                let open = OpenDescriptor::look(number, super::super::LIVING).unwrap();
                let left = open.info.value("eventfd-count:").unwrap();
                assert_eq!(u32::from_str_radix(left, 16).unwrap(), count);
            }
        }
    }
}
