//! Integer constants, and their conversion to the standard ABI's values and back. A value without a meaning survives the conversion both ways, so that the real
//! MPI sees it and reports it.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::without_prefix;
use crate::abi::{Abi, Integer};

/// Sets whose constants are bits that are or-ed together.
const FLAGS: [&str; 2] = ["mode", "assertion"];
/// Sets in which most numbers mean something. Values without a meaning are swapped with the values whose numbers are taken.
const SWAPPED: [&str; 3] = ["rank", "tag", "darg"];

/// Writes constants and, for each set, the functions that convert a value.
pub fn emit(text: &mut String, abi: &Abi) {
    let mut written = BTreeSet::new();
    text.push('\n');
    for integer in abi.integers.iter().chain(&abi.last) {
        if written.insert(&integer.name) {
            let _ = writeln!(
                text,
                "/// `{}`.\npub const {}: {} = {};",
                integer.name,
                without_prefix(&integer.name),
                kind(&integer.set),
                integer.own
            );
        }
    }
    let swaps = |it: &Integer| SWAPPED.contains(&it.set.as_str());
    let mut others = abi.integers.iter().filter(|it| !swaps(it));
    if others.any(|it| it.own != it.standard) {
        text.push_str(
            "\n/// What is added to a value without a meaning, so that it keeps having none.\nconst MEANINGLESS: i32 = 0x2000_0000;\n",
        );
    }
    let sets: BTreeSet<&str> = abi.integers.iter().map(|it| it.set.as_str()).collect();
    for set in sets {
        let integers: Vec<&Integer> = abi.integers.iter().filter(|it| it.set == set).collect();
        if integers.iter().all(|it| it.own == it.standard) {
            same(text, set);
        } else if let Some(last) = abi.last.iter().find(|it| it.set == set) {
            added(text, set, &integers, last);
        } else if FLAGS.contains(&set) {
            flags(text, set, &integers);
        } else if SWAPPED.contains(&set) {
            swapped(text, set, &integers);
        } else {
            values(text, set, &integers);
        }
    }
}

/// Returns the type of a set's values.
fn kind(set: &str) -> &'static str {
    if set == "displacement" { "i64" } else { "i32" }
}

/// Writes a set whose values are the neutral ones.
fn same(text: &mut String, set: &str) {
    let number = kind(set);
    for way in ["to", "from"] {
        let _ = writeln!(
            text,
            "\n/// A value of the set `{set}`, which is the same here and in the neutral form.\n#[inline(always)]\n\
             pub const fn {set}_{way}_neutral(value: {number}) -> {number} {{\nvalue\n}}"
        );
    }
}

/// Writes a set that programs may add to: their values come after the last predefined value.
fn added(text: &mut String, set: &str, integers: &[&Integer], last: &Integer) {
    let (list, end) = (set.to_uppercase(), without_prefix(&last.name));
    let _ = writeln!(
        text,
        "\n/// `{}` of the standard's ABI.\npub const NEUTRAL_{end}: i32 = {};\n\n\
         /// Constants of the set `{set}`: (standard ABI, here).\nconst {list}: [(i32, i32); {}] = [",
        last.name,
        last.standard,
        integers.len()
    );
    for integer in integers {
        let _ = writeln!(
            text,
            "({}, {}), // {}",
            integer.standard, integer.own, integer.name
        );
    }
    let _ = writeln!(
        text,
        "];\n\n\
         /// A value of the set `{set}`, made neutral.\n#[inline(always)]\npub const fn {set}_to_neutral(value: i32) -> i32 {{\n\
         if value == 0 {{\n0\n}} else {{\nnonzero_{set}(value, true)\n}}\n}}\n\n\
         /// The neutral value of the set `{set}`, as it is here.\n#[inline(always)]\npub const fn {set}_from_neutral(value: i32) -> i32 {{\n\
         if value == 0 {{\n0\n}} else {{\nnonzero_{set}(value, false)\n}}\n}}\n\n\
         const fn nonzero_{set}(value: i32, to_neutral: bool) -> i32 {{\n\
         let mut index = 0;\n\
         while index < {list}.len() {{\n\
         let (standard, own) = {list}[index];\n\
         if to_neutral && own == value {{\nreturn standard;\n}}\n\
         if !to_neutral && standard == value {{\nreturn own;\n}}\n\
         index += 1;\n}}\n\
         let added = NEUTRAL_{end} - {end};\n\
         match (to_neutral, value) {{\n\
         (true, value) if value > {end} => value.wrapping_add(added),\n\
         (false, value) if value > NEUTRAL_{end} => value.wrapping_sub(added),\n\
         // Neither predefined nor added. Both ways the same, so that nothing is lost.\n\
         (_, value) => value,\n}}\n}}"
    );
}

fn swapped(text: &mut String, set: &str, integers: &[&Integer]) {
    let own: BTreeSet<i32> = integers.iter().map(|it| it.own).collect();
    let standard: BTreeSet<i32> = integers.iter().map(|it| it.standard).collect();
    let named = integers
        .iter()
        .map(|it| (it.own, it.standard, it.name.as_str()));
    let nameless = standard.difference(&own).zip(own.difference(&standard));
    let mut pairs: Vec<(i32, i32, &str)> = named
        .chain(nameless.map(|(one, other)| (*one, *other, "names nothing")))
        .filter(|pair| pair.0 != pair.1)
        .collect();
    for (way, verb) in [("to", "made neutral"), ("from", "as it is here")] {
        let _ = writeln!(
            text,
            "\n/// A value of the set `{set}`, {verb}.\n#[inline(always)]\n\
             pub const fn {set}_{way}_neutral(value: i32) -> i32 {{\nmatch value {{"
        );
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.0));
        for (from, to, name) in &mut pairs {
            let _ = writeln!(text, "{from} => {to}, // {name}");
            std::mem::swap(from, to);
        }
        text.push_str("other => other,\n}\n}\n");
    }
}

fn values(text: &mut String, set: &str, integers: &[&Integer]) {
    let number = kind(set);
    // An offset can be any number; only the one constant is special.
    let (there, back) = if set == "displacement" {
        ("other", "other")
    } else {
        (
            "other.wrapping_add(MEANINGLESS)",
            "other.wrapping_sub(MEANINGLESS)",
        )
    };
    let _ = writeln!(text, "\n/// A value of the set `{set}`, made neutral.");
    let _ = writeln!(
        text,
        "pub const fn {set}_to_neutral(value: {number}) -> {number} {{\nmatch value {{"
    );
    for integer in integers {
        let _ = writeln!(
            text,
            "{} => {}, // {}",
            integer.own, integer.standard, integer.name
        );
    }
    let _ = writeln!(text, "other => {there},\n}}\n}}");
    let _ = writeln!(
        text,
        "\n/// The neutral value of the set `{set}`, as it is here."
    );
    let _ = writeln!(
        text,
        "pub const fn {set}_from_neutral(value: {number}) -> {number} {{\nmatch value {{"
    );
    for integer in integers {
        let _ = writeln!(
            text,
            "{} => {}, // {}",
            integer.standard, integer.own, integer.name
        );
    }
    let _ = writeln!(text, "other => {back},\n}}\n}}");
}

fn flags(text: &mut String, set: &str, integers: &[&Integer]) {
    for (way, to_neutral) in [("to", true), ("from", false)] {
        let _ = writeln!(
            text,
            "\n/// Flags of the set `{set}`, converted bit by bit."
        );
        let _ = writeln!(
            text,
            "pub const fn {set}_{way}_neutral(value: i32) -> i32 {{"
        );
        text.push_str("let mut rest = value;\nlet mut result = 0;\n");
        for integer in integers {
            let (from, to) = if to_neutral {
                (integer.own, integer.standard)
            } else {
                (integer.standard, integer.own)
            };
            let _ = writeln!(
                text,
                "if value & {from} != 0 {{ rest &= !{from}; result |= {to}; }} // {}",
                integer.name
            );
        }
        text.push_str("if rest != 0 { result |= MEANINGLESS; }\nresult\n}\n");
    }
}
