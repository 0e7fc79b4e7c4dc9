//! DIR/coordinator.log: the events of the job, one line each, for people.
//!
//! The log stays small: past 1 MiB the file becomes `coordinator.log.old` and a new one begins.
//!
//! A file server may take lines and lose them: it reports the error when a later line is written, or the file is synced. So the newest lines are kept. After
//! an error, those that the file does not hold are written again with the next line.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};

use stillpoint_directory::Directory;
use stillpoint_protocol::safe_text;

/// The file's name in the checkpoint directory.
pub const NAME: &str = "coordinator.log";
const OLD: &str = "coordinator.log.old";
const MAX_BYTES: u64 = 1 << 20;
/// The most bytes of lines that are kept.
const KEPT_BYTES: usize = 1 << 16;

/// An open log.
#[derive(Debug)]
pub struct Log {
    directory: Directory,
    file: File,
    bytes: u64,
    /// The newest lines, each with its end.
    newest: VecDeque<String>,
    /// An error has been reported, so the file may lack some of them.
    failed: bool,
}

impl Log {
    /// Opens the log of a checkpoint directory, to append to it.
    pub fn open(directory: &Directory) -> io::Result<Log> {
        let file = directory.append(NAME)?;
        let bytes = file.metadata()?.len();
        Ok(Log {
            directory: directory.clone(),
            file,
            bytes,
            newest: VecDeque::new(),
            failed: false,
        })
    }

    /// Adds a line, for a moment in seconds since 1970. A log that cannot be written (disk full) does not stop the job.
    pub fn line(&mut self, at: u64, text: &str) {
        if self.bytes > MAX_BYTES && !self.failed {
            self.rotate();
            self.newest.clear();
        }
        let line = format!(
            "{} {}\n",
            utc(at),
            safe_text::line(&text.replace('\n', " "))
        );
        self.newest.push_back(line.clone());
        let mut kept: usize = self.newest.iter().map(String::len).sum();
        while kept > KEPT_BYTES
            && self.newest.len() > 1
            && let Some(oldest) = self.newest.pop_front()
        {
            kept -= oldest.len();
        }
        let written = match self.failed {
            true => self.write_what_is_missing(),
            false => self.file.write_all(line.as_bytes()),
        };
        self.failed = written.is_err();
        self.bytes += line.len() as u64;
    }

    /// Writes what is missing, if anything is, and returns when the storage has all lines or fails again.
    pub fn finish(&mut self) {
        for _ in 0..2 {
            if self.failed {
                self.failed = self.write_what_is_missing().is_err();
            }
            self.failed |= self.file.sync_data().is_err();
            if !self.failed {
                break;
            }
        }
    }

    /// Opens the file anew, which asks the storage what it has, and writes the newest lines that it lacks.
    fn write_what_is_missing(&mut self) -> io::Result<()> {
        let mut file = self.directory.append(NAME)?;
        let held = match self.directory.read(NAME, 4 * MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.rotate();
                file = self.directory.append(NAME)?;
                Vec::new()
            }
            held => held?,
        };
        let held = String::from_utf8_lossy(&held);
        let mut rest = &*held;
        let mut missing = String::new();
        if !held.is_empty() && !held.ends_with('\n') {
            missing.push('\n');
        }
        for line in &self.newest {
            match rest.split_once(line.as_str()) {
                Some((_, behind)) => rest = behind,
                None => missing.push_str(line),
            }
        }
        self.bytes = (held.len() + missing.len()) as u64;
        file.write_all(missing.as_bytes())?;
        self.file = file;
        Ok(())
    }

    /// The file, for direct writes.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn rotate(&mut self) {
        let renamed = self.directory.rename(NAME, OLD, None);
        if renamed.is_ok()
            && let Ok(file) = self.directory.append(NAME)
        {
            self.file = file;
        }
        // Even after a failure: the next try is a mebibyte later.
        self.bytes = 0;
    }
}

/// Seconds since 1970 as "2026-01-31T12:00:00Z".
pub fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a date, counting years from March (Howard Hinnant's civil_from_days).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use stillpoint_directory::RequiredOwner;

    #[test]
    fn dates_are_right() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn a_log_stays_small() {
        let directory = tempfile::tempdir().unwrap();
        let held = Directory::open(directory.path(), RequiredOwner::Ours).unwrap();
        let mut log = Log::open(&held).unwrap();
        let line = "x".repeat(100_000);
        for _ in 0..40 {
            log.line(0, &line);
        }
        log.line(0, "two\nlines");
        let bytes = |name: &str| fs::metadata(directory.path().join(name)).unwrap().len();
        assert!(bytes(NAME) < 2 * MAX_BYTES && bytes("coordinator.log.old") < 2 * MAX_BYTES);
        let text = fs::read_to_string(directory.path().join(NAME)).unwrap();
        assert!(text.ends_with("Z two lines\n"));
    }

    #[test]
    fn a_line_that_was_not_written_comes_with_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let held = Directory::open(directory.path(), RequiredOwner::Ours).unwrap();
        let path = directory.path().join(NAME);
        let full = || File::options().append(true).open("/dev/full").unwrap();
        let lines = || -> Vec<String> {
            let text = fs::read_to_string(&path).unwrap();
            let words = |line: &str| line.get(21..).unwrap_or("half").to_owned();
            text.lines().map(words).collect()
        };
        let mut log = Log::open(&held).unwrap();
        log.line(0, "a");
        log.file = full();
        log.line(0, "b");
        assert_eq!(lines(), ["a"]);
        log.line(0, "c");
        log.line(0, "c");
        assert_eq!(lines(), ["a", "b", "c", "c"]);
        // A server has taken two lines, has lost them with half of a third one, and says so at the next line.
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2 - 3]).unwrap();
        log.file = full();
        log.line(0, "d");
        log.line(0, "e");
        assert_eq!(lines()[..1], ["a"]);
        assert_eq!(lines()[2..], ["b", "c", "c", "d", "e"]);
        // The last line has none behind it.
        log.file = full();
        log.line(0, "f");
        log.finish();
        assert_eq!(lines().last().unwrap(), "f");
    }
}
