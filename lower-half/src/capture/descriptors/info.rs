//! `/proc/.../fdinfo/N`: the kernel's description of an open descriptor.

use std::io;
use std::os::fd::RawFd;

/// The file's lines, and the position, which every such file has.
#[derive(Clone, Debug, Default)]
pub struct Info {
    pub position: u64,
    lines: Vec<String>,
}

impl Info {
    /// Reads the file of a descriptor; `place` is the process or thread in `/proc` that has it.
    pub fn read(number: RawFd, place: &str) -> io::Result<Info> {
        Ok(Info::parse(&std::fs::read_to_string(format!(
            "{place}/fdinfo/{number}"
        ))?))
    }

    pub fn parse(text: &str) -> Info {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut info = Info { position: 0, lines };
        info.position = info
            .value("pos:")
            .and_then(|value| value.parse().ok())
            .unwrap_or(0);
        info
    }

    /// Returns the text behind `key` on its line.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.lines
            .iter()
            .find_map(|line| line.strip_prefix(key))
            .map(str::trim)
    }

    /// Returns the text behind `key` on each line that starts with it.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines
            .iter()
            .filter_map(move |line| line.strip_prefix(key))
            .map(str::trim)
    }
}

/// Returns the word after `key` in a line of `key: value` or `key:value` pairs.
pub fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = line;
    while let Some(at) = rest.find(key) {
        let starts_a_word = at == 0 || rest[..at].ends_with(char::is_whitespace);
        rest = &rest[at + key.len()..];
        if starts_a_word {
            return rest.split_whitespace().next();
        }
    }
    None
}
