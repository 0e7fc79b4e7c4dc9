//! Descriptors without a file: event counters, timers, signals, epoll sets, inotify.

use stillpoint_image::descriptors::{DescriptorKind, Watch, Watched};

use super::Open;
use super::info::field;

/// What an `anon_inode` is, or why it cannot be carried.
pub fn describe(open: &Open) -> Result<DescriptorKind, String> {
    let unreadable = || {
        format!(
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
        "anon_inode:[eventpoll]" => {
            let watched: Option<Vec<Watched>> = open.info.all("tfd:").map(watched).collect();
            watched
                .map(|watched| DescriptorKind::Epoll { watched })
                .ok_or_else(unreadable)
        }
        "anon_inode:inotify" | "anon_inode:[inotify]" => inotify(open),
        link => Err(format!(
            "{link}, which cannot be carried over a restart: close it before a checkpoint"
        )),
    }
}

fn eventfd(open: &Open) -> Option<DescriptorKind> {
    let count = u64::from_str_radix(open.info.value("eventfd-count:")?, 16).ok()?;
    // Kernels before 6.5 do not tell; hardly any program asks for it.
    let semaphore = open
        .info
        .value("eventfd-semaphore:")
        .is_some_and(|value| value != "0");
    Some(DescriptorKind::EventFd { count, semaphore })
}

fn timerfd(open: &Open) -> Option<DescriptorKind> {
    Some(DescriptorKind::TimerFd {
        clock: open.info.value("clockid:")?.parse().ok()?,
        settime_flags: i32::from_str_radix(open.info.value("settime flags:")?, 8).ok()?,
        ticks: open.info.value("ticks:")?.parse().ok()?,
        value_nanoseconds: pair(open.info.value("it_value:")?)?,
        interval_nanoseconds: pair(open.info.value("it_interval:")?)?,
    })
}

/// `(seconds, nanoseconds)`.
fn pair(text: &str) -> Option<u64> {
    let (seconds, nanoseconds) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    let seconds: u64 = seconds.trim().parse().ok()?;
    Some(seconds * 1_000_000_000 + nanoseconds.trim().parse::<u64>().ok()?)
}

/// `5 events: 19 data: 5  pos:0 ino:2 sdev:d`, the number in front.
fn watched(line: &str) -> Option<Watched> {
    Some(Watched {
        number: line.split_whitespace().next()?.parse().ok()?,
        events: u32::from_str_radix(field(line, "events:")?, 16).ok()?,
        data: u64::from_str_radix(field(line, "data:")?, 16).ok()?,
    })
}

/// The kernel names watched files by handle; only a privileged process may turn one into a path.
fn inotify(open: &Open) -> Result<DescriptorKind, String> {
    let mut watches = Vec::new();
    for line in open.info.all("inotify ") {
        let watch = watch(line);
        watches.push(
            watch.ok_or("a set of inotify watches, whose paths this kernel does not tell us")?,
        );
    }
    watches.sort_by_key(|watch| watch.descriptor);
    Ok(DescriptorKind::Inotify { watches })
}

/// `wd:1 ino:2 sdev:800001 mask:300 ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:0200...`.
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
    fn lines_of_the_kernel_are_understood() {
        let line = "       5 events:       19 data:     7fffffff00000005  pos:0 ino:2f sdev:d";
        let expected = Watched {
            number: 5,
            events: 0x19,
            data: 0x7fff_ffff_0000_0005,
        };
        assert_eq!(watched(line.trim()), Some(expected));
        assert_eq!(pair("(1, 500000000)"), Some(1_500_000_000));
        assert_eq!(pair("1, 5"), None);
    }
}
