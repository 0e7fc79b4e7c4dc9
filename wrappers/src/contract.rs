//! The contract between the halves: the layout of all data that one writes and the other reads, in one number.
//!
//! An upper half that comes out of an image meets the lower half of another build. It calls through tables of function pointers and reads words at offsets, so
//! both must have been built from the same definitions. [`VERSION`] is computed from these: from the names, the order and the types of every field, from every
//! number and every function's arguments, and from the resulting sizes. `wrappers/contract.txt` records each change; a test compares its last line.
//!
//! A lower half [serves](serves) every contract whose definitions are the beginning of its own: tables grow at their ends only. So an epoch of an older build
//! restarts under a newer one. Another test compares the definitions of every contract that is served.

use core::mem::size_of;

use crate::dispatch::Dispatch;
use crate::gate::{ClockCell, ClockRoom, GatePage, Room, Services, ThreadRecord, UpperHooks};
use crate::neutral::Status;

/// The files with the definitions.
const SOURCES: [&str; 8] = [
    include_str!("gate.rs"),
    include_str!(concat!(env!("OUT_DIR"), "/dispatch.rs")),
    include_str!(concat!(env!("OUT_DIR"), "/direct.rs")),
    include_str!("extra.rs"),
    include_str!("neutral.rs"),
    // The words of a clock's cell, which the agent reads in the upper half's memory.
    include_str!("../clock/src/count.rs"),
    include_str!("clocks.rs"),
    // The description of an operation that is carried out in advance.
    include_str!("../clock/src/absent/operation.rs"),
];

/// Sizes, which the definitions do not give.
const SIZES: [usize; 9] = [
    size_of::<GatePage>(),
    size_of::<UpperHooks>(),
    size_of::<ClockCell>(),
    size_of::<ClockRoom>(),
    size_of::<ThreadRecord>(),
    size_of::<Services>(),
    size_of::<Dispatch>(),
    size_of::<Room>(),
    size_of::<Status>(),
];

/// The contract of this build.
#[allow(long_running_const_eval)]
pub const VERSION: u32 = {
    let mut sum = Sum::new();
    let mut at = 0;
    while at < SOURCES.len() {
        sum = sum.definitions(SOURCES[at].as_bytes());
        at += 1;
    }
    at = 0;
    while at < SIZES.len() {
        sum = sum.number(SIZES[at]);
        at += 1;
    }
    sum.folded()
};

/// All contracts, the newest last.
const HISTORY: &str = include_str!("../contract.txt");

/// Returns the lines of the history: the number, and whether it is served.
fn contracts() -> impl Iterator<Item = (u32, bool)> {
    HISTORY.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let number = u32::from_str_radix(words.next()?, 16).ok()?;
        Some((number, words.next() == Some("served")))
    })
}

/// Whether a lower half of this build works with an upper half that was built with that contract.
pub fn serves(contract: u32) -> bool {
    contracts().any(|(number, served)| number == contract && served)
}

/// A running sum (FNV-1a, 64 bits), for code that the compiler runs.
#[derive(Clone, Copy)]
pub struct Sum(u64);

impl Sum {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Sum {
        Sum(0xcbf2_9ce4_8422_2325)
    }

    pub const fn byte(self, byte: u8) -> Sum {
        Sum((self.0 ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
    }

    pub const fn number(mut self, number: usize) -> Sum {
        let mut shift = 0;
        while shift < usize::BITS {
            self = self.byte((number >> shift) as u8);
            shift += 8;
        }
        self
    }

    pub const fn folded(self) -> u32 {
        (self.0 ^ self.0 >> 32) as u32
    }

    /// Adds the definitions of public structures, enumerations and constants, without comments, blanks and derived traits.
    const fn definitions(mut self, text: &[u8]) -> Sum {
        let (mut at, mut inside) = (0, false);
        while at < text.len() {
            let start = first_of_line(text, at);
            let end = end_of_line(text, start);
            let begins = at == start && !inside && is_definition(text, start);
            if (inside || begins)
                && !starts_with(text, start, b"//")
                && !starts_with(text, start, b"#[derive")
            {
                let mut byte = start;
                while byte < end {
                    if text[byte] != b' ' {
                        self = self.byte(text[byte]);
                    }
                    byte += 1;
                }
                let last = if end > start { text[end - 1] } else { 0 };
                let attribute = starts_with(text, start, b"#[");
                // A definition ends with a brace at the beginning of a line, or with the semicolon of one without braces.
                let closed = at == start && text[start] == b'}';
                inside =
                    !(attribute || closed || last == b';' && (begins || is_value_end(text, start)));
            }
            at = end + 1;
        }
        self
    }
}

const fn first_of_line(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] == b' ' {
        at += 1;
    }
    at
}

const fn end_of_line(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b'\n' {
        at += 1;
    }
    at
}

const fn starts_with(text: &[u8], at: usize, word: &[u8]) -> bool {
    let mut index = 0;
    while index < word.len() {
        if at + index >= text.len() || text[at + index] != word[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Whether a relevant definition begins here.
const fn is_definition(text: &[u8], at: usize) -> bool {
    starts_with(text, at, b"pub struct ")
        || starts_with(text, at, b"pub enum ")
        || starts_with(text, at, b"#[repr(")
        || starts_with(text, at, b"pub const ") && !starts_with(text, at, b"pub const fn ")
}

/// Whether this is the last line of a constant's value.
const fn is_value_end(text: &[u8], at: usize) -> bool {
    starts_with(text, at, b"];") || starts_with(text, at, b"};") || starts_with(text, at, b");")
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use super::*;

    fn of(text: &str) -> u64 {
        Sum::new().definitions(text.as_bytes()).0
    }

    const SOURCE: &str = "//! A page.\n\nuse core::ffi;\n\n/// One.\n#[repr(C)]\n#[derive(Debug)]\npub struct Page {\n    /// First.\n    \
                          pub first: u64,\n    pub call: Option<\n        unsafe extern \"C\" fn(u32),\n    >,\n}\n\npub const A: u32 = 3;\n\nfn \
                          other() -> u32 {\n    7\n}\n\npub const B: [&str; 1] = [\n    \"x\",\n];\n";

    #[test]
    fn whatever_changes_a_definition_changes_the_contract() {
        let changes = [
            ("first: u64", "first: u32"),
            ("first", "second"),
            ("pub first: u64,\n    pub call", "pub call"),
            ("fn(u32)", "fn(u32, u32)"),
            ("A: u32 = 3", "A: u32 = 4"),
            ("\"x\"", "\"y\""),
            ("#[repr(C)]", "#[repr(C, packed)]"),
        ];
        for (from, to) in changes {
            let changed = SOURCE.replacen(from, to, 1);
            assert_ne!(changed, SOURCE);
            assert_ne!(of(&changed), of(SOURCE), "{from} -> {to}");
        }
    }

    #[test]
    fn words_about_it_do_not() {
        let changes = [
            ("/// First.", "/// The first."),
            ("A page", "Pages"),
            ("    7", "    8"),
            ("use core::ffi;\n", ""),
            ("(Debug)", "(Clone)"),
            ("        unsafe", "      unsafe"),
        ];
        for (from, to) in changes {
            let changed = SOURCE.replacen(from, to, 1);
            assert_ne!(changed, SOURCE);
            assert_eq!(of(&changed), of(SOURCE), "{from} -> {to}");
        }
    }

    #[test]
    fn every_table_is_in_it() {
        let all: String = SOURCES.concat();
        for name in [
            "GatePage",
            "UpperHooks",
            "Services",
            "ThreadRecord",
            "Dispatch",
            "Direct",
            "Extra",
            "Count<W>",
            "Status",
        ] {
            assert!(all.contains(&format!("pub struct {name} {{")), "{name}");
        }
    }

    #[test]
    fn a_change_has_its_line_in_the_history() {
        assert_eq!(
            contracts().last(),
            Some((VERSION, true)),
            "the contract between the halves is {VERSION:08x} now: say in wrappers/contract.txt, in a line `{VERSION:08x} served WHAT`, what has \
             changed, write contract/{VERSION:08x}.txt with STILLPOINT_WRITE_CONTRACT=1, and see which older ones are served still"
        );
        assert!(serves(VERSION) && !serves(0) && !serves(8));
    }

    /// Returns the definitions: the name of each, and its lines without comments.
    fn definitions(source: &str) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        let mut inside = false;
        for line in source.lines().take_while(|line| *line != "#[cfg(test)]") {
            let begins = ["pub struct ", "pub enum ", "pub const "]
                .iter()
                .any(|word| line.starts_with(word))
                && !line.starts_with("pub const fn ");
            if begins {
                found.push((line.to_owned(), Vec::new()));
                inside = !line.ends_with(';');
            } else if inside && (line.starts_with('}') || line.ends_with("];") || line == ");") {
                inside = false;
            } else if inside
                && !line.trim_start().starts_with("//")
                && let Some((_, lines)) = found.last_mut()
            {
                lines.push(line.split_whitespace().collect());
            }
        }
        found
    }

    fn sum(lines: &[String]) -> u64 {
        let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
        bytes.fold(Sum::new(), Sum::byte).0
    }

    /// Returns a line for each definition: the number of its lines, their sum, and its name.
    fn record() -> String {
        SOURCES
            .iter()
            .flat_map(|source| definitions(source))
            .map(|(name, lines)| format!("{} {:016x} {name}\n", lines.len(), sum(&lines)))
            .collect()
    }

    /// Returns the lines of a recorded contract that are not the beginning of today's definitions.
    fn broken(recorded: &str, sources: &[&str]) -> Vec<String> {
        let now: Vec<_> = sources.iter().flat_map(|it| definitions(it)).collect();
        let kept = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let count: usize = words.next()?.parse().ok()?;
            let (expected, name) = (words.next()?, words.next()?);
            let (_, lines) = now.iter().find(|(known, _)| known == name)?;
            // The whole value of an array or a number is in its first line, or in all of them.
            let whole = !name.starts_with("pub const ") || lines.len() == count;
            let first = lines.get(..count)?;
            (whole && format!("{:016x}", sum(first)) == expected).then_some(())
        };
        recorded
            .lines()
            .filter(|line| kept(line).is_none())
            .map(ToOwned::to_owned)
            .collect()
    }

    fn place(contract: u32) -> std::path::PathBuf {
        let name = format!("contract/{contract:08x}.txt");
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
    }

    #[test]
    fn what_is_served_is_the_beginning_of_what_is() {
        if std::env::var_os("STILLPOINT_WRITE_CONTRACT").is_some() {
            std::fs::write(place(VERSION), record()).unwrap();
        }
        for (contract, served) in contracts() {
            if !served {
                continue;
            }
            let recorded = std::fs::read_to_string(place(contract)).unwrap();
            assert!(recorded.lines().count() > 15, "{contract:08x}");
            assert_eq!(
                broken(&recorded, &SOURCES),
                [""; 0],
                "{contract:08x} is not served by this build: tables may grow at their ends only"
            );
        }
        let newest = std::fs::read_to_string(place(VERSION)).unwrap();
        assert_eq!(newest, record());
    }

    #[test]
    fn a_table_may_grow_at_its_end_only() {
        let was = "pub struct Table {\n    /// One.\n    pub one: u64,\n    pub two: u32,\n}\npub const A: u32 = 3;\n";
        let record: String = definitions(was)
            .iter()
            .map(|(name, lines)| format!("{} {:016x} {name}\n", lines.len(), sum(lines)))
            .collect();
        let after = |from: &str, to: &str| broken(&record, &[&was.replacen(from, to, 1)]).len();
        assert_eq!(after("One.", "The first."), 0);
        assert_eq!(after("two: u32,\n", "two: u32,\n    pub three: u8,\n"), 0);
        assert_eq!(after("    pub one", "    pub zero: u8,\n    pub one"), 1);
        assert_eq!(after("two: u32", "two: u64"), 1);
        assert_eq!(after("    pub two: u32,\n", ""), 1);
        assert_eq!(after("A: u32 = 3", "A: u32 = 4"), 1);
    }
}
