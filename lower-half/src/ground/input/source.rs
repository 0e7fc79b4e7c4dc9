//! The launch's standard input: read, counted, and compared with the bytes that had passed in an earlier launch.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use super::messages::Found;
use super::passed::{Likeness, Passed};

/// The largest number of bytes that are kept while an input is compared with an earlier one; an input that is equal for longer counts as the same.
const KEPT: usize = 64 << 20;
/// The largest size of one read.
const PIECE: usize = 64 << 10;

pub struct Source {
    /// `None`: this launch has none.
    file: Option<OwnedFd>,
    ended: bool,
    passed: Passed,
    last: Instant,
    /// The bytes that had passed earlier, until this input is known to be the same or another.
    earlier: Option<Passed>,
    /// The bytes that have come meanwhile; `None`: there were too many.
    kept: Option<Vec<u8>>,
    /// Whether a rank waits for the result, and can still refuse.
    awaited: bool,
    found: Option<Found>,
}

impl Source {
    pub fn new(file: Option<OwnedFd>) -> Source {
        Source {
            ended: file.is_none(),
            file,
            passed: Passed::default(),
            last: Instant::now(),
            earlier: None,
            kept: Some(Vec::new()),
            awaited: false,
            found: None,
        }
    }

    /// Compares the input from now on.
    pub fn compare(&mut self, earlier: Passed) {
        if earlier.bytes() > 0 {
            self.earlier = Some(earlier);
            self.awaited = true;
        }
    }

    /// Stops waiting for the comparison: the program gets the input, whether it is the same or another.
    pub fn go_on(&mut self) {
        self.awaited = false;
    }

    /// Whether the comparison must now be completed, because the bytes have not been kept.
    pub fn must_be_told(&self) -> bool {
        self.kept.is_none()
    }

    /// Returns the bytes that an image counts: those of the earlier input, as long as this may be the same.
    pub fn passed(&self) -> &Passed {
        self.earlier.as_ref().unwrap_or(&self.passed)
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Ends the input, even if it has more.
    pub fn end(&mut self) {
        self.ended = true;
        self.earlier = None;
        self.file = None;
    }

    /// Returns the descriptor that more may come from.
    pub fn number(&self) -> Option<RawFd> {
        let open = self.file.as_ref().filter(|_| !self.ended);
        open.map(AsRawFd::as_raw_fd)
    }

    /// Returns the time since the last byte.
    pub fn silence(&self) -> Duration {
        self.last.elapsed()
    }

    /// Returns the result of the comparison so far.
    pub fn found(&self) -> Found {
        match (self.found, &self.earlier) {
            (Some(found), _) => found,
            (None, None) => Found::Other,
            (None, Some(_)) if self.passed.bytes() > 0 => Found::Same,
            (None, Some(_)) if self.ended => Found::Empty,
            (None, Some(_)) => Found::Silent,
        }
    }

    /// Whether the comparison is complete.
    pub fn is_told(&self) -> bool {
        self.earlier.is_none() || self.ended
    }

    /// Reads the available bytes; those for the program go to `ahead`.
    pub fn read(&mut self, ahead: &mut Vec<u8>) {
        let Some(number) = self.number() else { return };
        let mut piece = vec![0u8; PIECE];
        // SAFETY: the kernel writes at most as many bytes as the buffer has.
        let got = unsafe { libc::read(number, piece.as_mut_ptr().cast(), piece.len()) };
        match got {
            1.. => {
                self.last = Instant::now();
                self.take(&piece[..got as usize], ahead);
            }
            0 => self.at_its_end(ahead),
            _ => match io::Error::last_os_error().kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                _ => self.at_its_end(ahead),
            },
        }
    }

    fn take(&mut self, bytes: &[u8], ahead: &mut Vec<u8>) {
        let Some(earlier) = &self.earlier else {
            self.passed.add(bytes);
            ahead.extend_from_slice(bytes);
            return;
        };
        let missing = earlier.bytes() - self.passed.bytes();
        let (now, later) = bytes.split_at(bytes.len().min(missing as usize));
        self.passed.add(now);
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(now);
        }
        match self.passed.likeness(earlier) {
            Likeness::SoFar => {
                if self.awaited && self.kept.as_ref().is_some_and(|kept| kept.len() > KEPT) {
                    self.kept = None;
                }
            }
            Likeness::Same => {
                self.kept = None;
                self.told(Found::Same);
            }
            Likeness::Differs => self.is_another(ahead),
        }
        if !later.is_empty() {
            self.take(later, ahead);
        }
    }

    fn at_its_end(&mut self, ahead: &mut Vec<u8>) {
        self.ended = true;
        if self.earlier.is_some() {
            match self.passed.bytes() {
                0 => self.told(Found::Empty),
                _ => self.is_another(ahead),
            }
        }
    }

    fn is_another(&mut self, ahead: &mut Vec<u8>) {
        match self.kept.take() {
            Some(mut kept) => {
                ahead.append(&mut kept);
                self.told(Found::Other);
            }
            None => self.told(Found::Changed),
        }
    }

    fn told(&mut self, found: Found) {
        self.found = Some(found);
        self.earlier = None;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn found(earlier: &[u8], now: &[u8]) -> (Found, Vec<u8>, u64) {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(now).unwrap();
        drop(writer);
        let mut source = Source::new(Some(reader.into()));
        let mut passed = Passed::default();
        passed.add(earlier);
        source.compare(passed);
        let mut ahead = Vec::new();
        while !source.has_ended() {
            source.read(&mut ahead);
        }
        (source.found(), ahead, source.passed().bytes())
    }

    #[test]
    fn the_same_input_goes_on_behind_what_has_gone_by_and_another_from_its_beginning() {
        assert_eq!(found(b"ab", b"abcd"), (Found::Same, b"cd".to_vec(), 4));
        assert_eq!(found(b"ab", b"ab"), (Found::Same, vec![], 2));
        assert_eq!(found(b"ab", b"a"), (Found::Other, b"a".to_vec(), 1));
        assert_eq!(found(b"ab", b"xyz"), (Found::Other, b"xyz".to_vec(), 3));
        assert_eq!(found(b"ab", b""), (Found::Empty, vec![], 0));
        assert_eq!(found(b"", b"ab"), (Found::Other, b"ab".to_vec(), 2));
    }

    #[test]
    fn a_launch_without_input_has_an_empty_one() {
        let mut source = Source::new(None);
        let mut passed = Passed::default();
        passed.add(b"a");
        source.compare(passed);
        assert_eq!(source.found(), Found::Empty);
    }
}
