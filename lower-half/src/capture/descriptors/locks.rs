//! Locks that this process holds on a file, from the `lock:` lines of fdinfo.

use stillpoint_image::descriptors::{Lock, LockKind};
use stillpoint_refusals::{Refusal, refusal};

use super::info::Info;

/// Returns the locks of one description, or why they cannot be carried. (A POSIX lock belongs to the process, but the kernel shows it with
/// the description through which it was taken.)
pub fn of(info: &Info) -> Result<Vec<Lock>, Refusal> {
    info.all("lock:").map(parse).collect()
}

/// Reads `1: POSIX  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`.
fn parse(line: &str) -> Result<Lock, Refusal> {
    let unclear = || {
        refusal!(
            UnclearDescriptor,
            "a file with a lock that is not understood ({line})"
        )
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, kind, force, access, _, _, start, end] = words.as_slice() else {
        return Err(unclear());
    };
    let kind = match (*kind, *force) {
        ("POSIX", "ADVISORY") => LockKind::Posix,
        ("OFDLCK", "ADVISORY") => LockKind::Description,
        ("FLOCK", "ADVISORY") => LockKind::Whole,
        ("LEASE", _) => {
            return Err(refusal!(
                Lease,
                "a file with a lease (F_SETLEASE), which cannot be carried over a restart: give it up before a checkpoint"
            ));
        }
        _ => return Err(unclear()),
    };
    Ok(Lock {
        kind,
        write: match *access {
            "WRITE" => true,
            "READ" => false,
            _ => return Err(unclear()),
        },
        start: start.parse().map_err(|_| unclear())?,
        end: match *end {
            "EOF" => None,
            end => Some(end.parse().map_err(|_| unclear())?),
        },
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
            of(&info).unwrap(),
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

    #[test]
    fn what_is_no_lock_that_can_be_taken_again_is_named() {
        let lease = Info::parse("lock:\t1: LEASE  ACTIVE    WRITE 99 00:2e:7 0 EOF\n");
        assert!(of(&lease).unwrap_err().details().contains("F_SETLEASE"));
        let new = Info::parse("lock:\t1: NEW    ADVISORY  WRITE 99 00:2e:7 0 EOF\n");
        assert!(of(&new).unwrap_err().details().contains("not understood"));
    }
}
