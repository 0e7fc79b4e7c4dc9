//! Open MPI's integer constants, and their conversion to the standard ABI's values and back (`stillpoint_wrappers::openmpi`). A value
//! that names nothing is carried through both ways, so that the real MPI sees it and complains.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Input;
use crate::constants::Integer;

/// Sets whose constants are bits that are or-ed together.
const FLAGS: [&str; 2] = ["mode", "assertion"];
/// Sets with a rule of their own, written by hand in `openmpi.rs`.
const RULED: [&str; 3] = ["rank", "tag", "error"];

/// Writes constants and, for each set, the functions that convert a value.
pub fn emit(input: &Input) -> String {
    let mut text = String::new();
    let sets: BTreeSet<&str> = input
        .integers
        .iter()
        .map(|integer| integer.set.as_str())
        .collect();
    text.push_str(
        "/// What is added to a value without a meaning, so that it keeps having none.\n",
    );
    text.push_str("const MEANINGLESS: i32 = 0x2000_0000;\n");
    for set in sets {
        let integers: Vec<&Integer> = input.integers.iter().filter(|i| i.set == set).collect();
        if FLAGS.contains(&set) {
            flags(&mut text, set, &integers);
        } else if RULED.contains(&set) {
            pairs(&mut text, set, &integers);
        } else {
            values(&mut text, set, &integers);
        }
    }
    text
}

fn pairs(text: &mut String, set: &str, integers: &[&Integer]) {
    let _ = writeln!(
        text,
        "\n/// Constants of the set `{set}`: (standard ABI, Open MPI)."
    );
    let _ = writeln!(
        text,
        "pub const {}: [(i32, i32); {}] = [",
        set.to_uppercase(),
        integers.len()
    );
    for integer in integers {
        let _ = writeln!(
            text,
            "({}, {}), // {}",
            integer.standard, integer.openmpi, integer.name
        );
    }
    text.push_str("];\n");
}

fn values(text: &mut String, set: &str, integers: &[&Integer]) {
    let (number, shift) = if set == "displacement" {
        ("i64", "i64::from(MEANINGLESS)")
    } else {
        ("i32", "MEANINGLESS")
    };
    // An offset is a number like any other; only the one constant is special.
    let (there, back) = if set == "displacement" {
        ("other".into(), "other".into())
    } else {
        (
            format!("other.wrapping_add({shift})"),
            format!("other.wrapping_sub({shift})"),
        )
    };
    let _ = writeln!(
        text,
        "\n/// Open MPI's value of the set `{set}`, made neutral."
    );
    let _ = writeln!(
        text,
        "pub const fn {set}_to_neutral(value: {number}) -> {number} {{\nmatch value {{"
    );
    for integer in integers {
        let _ = writeln!(
            text,
            "{} => {}, // {}",
            integer.openmpi, integer.standard, integer.name
        );
    }
    let _ = writeln!(text, "other => {there},\n}}\n}}");
    let _ = writeln!(
        text,
        "\n/// The neutral value of the set `{set}`, made Open MPI's."
    );
    let _ = writeln!(
        text,
        "pub const fn {set}_from_neutral(value: {number}) -> {number} {{\nmatch value {{"
    );
    for integer in integers {
        let _ = writeln!(
            text,
            "{} => {}, // {}",
            integer.standard, integer.openmpi, integer.name
        );
    }
    let _ = writeln!(text, "other => {back},\n}}\n}}");
}

fn flags(text: &mut String, set: &str, integers: &[&Integer]) {
    for (way, from_openmpi) in [("to", true), ("from", false)] {
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
            let (from, to) = if from_openmpi {
                (integer.openmpi, integer.standard)
            } else {
                (integer.standard, integer.openmpi)
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
