//! Locks that this process holds on a file, from the `lock:` lines of fdinfo.

use stillpoint_image::descriptors::{Lock, LockKind};

use super::info::Info;

/// The locks of one description. (POSIX locks show on every description of the file; taking one twice
/// changes nothing.)
pub fn of(info: &Info) -> Vec<Lock> {
    info.all("lock:").filter_map(parse).collect()
}

/// `1: POSIX  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`.
fn parse(line: &str) -> Option<Lock> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, kind, _, access, _, _, start, end] = words.as_slice() else {
        return None;
    };
    let kind = match *kind {
        "POSIX" => LockKind::Posix,
        "OFDLCK" => LockKind::Description,
        "FLOCK" => LockKind::Whole,
        _ => return None,
    };
    Some(Lock {
        kind,
        write: *access == "WRITE",
        start: start.parse().ok()?,
        end: end.parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_understood() {
        let info = Info::parse(
            "pos:\t0\nlock:\t1: POSIX  ADVISORY  WRITE 99 00:2e:7 10 19\nlock:\t2: FLOCK  ADVISORY  READ 99 00:2e:7 0 EOF\n",
        );
        let whole = Lock {
            kind: LockKind::Whole,
            write: false,
            start: 0,
            end: None,
        };
        assert_eq!(
            of(&info),
            [
                Lock {
                    kind: LockKind::Posix,
                    write: true,
                    start: 10,
                    end: Some(19)
                },
                whole
            ]
        );
    }
}
