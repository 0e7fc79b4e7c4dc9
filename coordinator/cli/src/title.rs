//! The title of this process in `ps`: the words of its command line.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The index of the fields with the bounds of the command line's words in memory. They are fields 48 and 49 of /proc/PID/stat (man 5 proc). The count begins
/// at field 3, the first one after the name.
const FIRST: usize = 48 - 3;

/// Replaces the words of the process's command line, as far as there is room; the rest of the room is empty.
///
/// # Errors
/// The kernel does not report their place, or does not let them be written. Then nothing has changed.
pub fn show(words: &[&str]) -> io::Result<()> {
    let (start, end) = place(&fs::read_to_string("/proc/self/stat")?)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let text = filled(words, usize::try_from(end - start).unwrap_or(0));
    // The kernel writes there, and this program holds no reference to that memory.
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    memory.write_all_at(&text, start)
}

/// The name in parentheses may contain any character.
fn place(stat: &str) -> Option<(u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(FIRST);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (start, end) = (next()?, next()?);
    (start != 0 && start < end).then_some((start, end))
}

/// Text of `room` bytes: the words, each followed by a NUL, and the last byte a NUL.
fn filled(words: &[&str], room: usize) -> Vec<u8> {
    let words = words.iter().flat_map(|word| word.bytes().chain([0]));
    let mut text: Vec<u8> = words.take(room.saturating_sub(1)).collect();
    text.resize(room, 0);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fill_the_room_and_no_more() {
        assert_eq!(filled(&["a", "bc"], 7), b"a\0bc\0\0\0");
        assert_eq!(filled(&["a", "bc"], 4), b"a\0b\0");
        assert_eq!(filled(&["a"], 0), b"");
    }

    #[test]
    fn the_kernel_says_where_the_words_are() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let (start, end) = place(&stat).unwrap();
        let mut there = vec![0; (end - start) as usize];
        let memory = fs::File::open("/proc/self/mem").unwrap();
        memory.read_exact_at(&mut there, start).unwrap();
        assert_eq!(there, fs::read("/proc/self/cmdline").unwrap());
        assert_eq!(place("1 (a) b) S 1"), None);
    }
}
