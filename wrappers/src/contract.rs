//! The contract between the halves: the layout of all that one writes and the other reads, in one number.
//!
//! An upper half that comes out of an image meets the lower half of another build. It calls through tables of function pointers
//! and reads words at offsets, so both must have been built from the same definitions. [`VERSION`] is computed from these: from the
//! names, the order and the types of every field, every number and every function's arguments, and from the sizes that follow. What was
//! changed, and when, is in `wrappers/contract.txt`; a test compares its last line.

use core::mem::size_of;

use crate::dispatch::Dispatch;
use crate::gate::{ClockCell, GatePage, Room, Services, ThreadRecord, UpperHooks};
use crate::neutral::Status;

/// Where the definitions are.
const SOURCES: [&str; 6] = [
    include_str!("gate.rs"),
    include_str!(concat!(env!("OUT_DIR"), "/dispatch.rs")),
    include_str!(concat!(env!("OUT_DIR"), "/direct.rs")),
    include_str!("extra.rs"),
    include_str!("neutral.rs"),
    // The words of a clock's cell, which the agent reads in the upper half's memory.
    include_str!("../../upper-half/clock/src/count.rs"),
];

/// What the definitions do not say.
const SIZES: [usize; 8] = [
    size_of::<GatePage>(),
    size_of::<UpperHooks>(),
    size_of::<ClockCell>(),
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

/// A running sum (FNV-1a, 64 bits), for code that is run by the compiler.
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

    /// Adds the definitions of public structures, enumerations and constants, without comments, blanks and what derives from them.
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
                // A definition ends with a brace at the beginning of a line, or with the semicolon of one that has none.
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

/// Whether a definition that counts begins here.
const fn is_definition(text: &[u8], at: usize) -> bool {
    starts_with(text, at, b"pub struct ")
        || starts_with(text, at, b"pub enum ")
        || starts_with(text, at, b"#[repr(")
        || starts_with(text, at, b"pub const ") && !starts_with(text, at, b"pub const fn ")
}

/// The last line of a constant's value.
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
        let history = include_str!("../contract.txt");
        let last = history.lines().last().unwrap_or_default();
        let this = format!("{VERSION:08x}");
        assert!(
            last.split(' ').next() == Some(&this),
            "the contract between the halves is {this} now: say in wrappers/contract.txt, in a line that begins with this number, what has \
             changed (images of other builds are refused)"
        );
    }
}
