//! Errors in the input are reported with field and line.

use super::{failure, plan_in};

const FILES: [(&str, &str); 9] = [
    ("negative.toml", "[[process]]\nname = \"a\"\nfree = -1\n"),
    ("malformed.toml", "[[process]\n"),
    (
        "full.toml",
        "[[process]]\nname = \"a\"\nfree = \"1 GB\"\nsize = \"3 GB\"\n",
    ),
    ("trace.csv", "G0,G1\n1,2\n1,x\n"),
    ("truth.toml", "[[process]]\nname = \"a\"\nfree = true\n"),
    (
        "huge.toml",
        "[[process]]\nname = \"a\"\nfree = 99999999999999999999999\n",
    ),
    ("nameless.toml", "[[process]]\nname = \"\"\nfree = 1\n"),
    (
        "five.toml",
        "process = [{ name = \"a\", free = 1, size = 2 }, { name = \"b\", free = 1, size = 2 }, \
         { name = \"c\", free = 1, size = 2 }, { name = \"d\", free = 1, size = 2 }, \
         { name = \"e\", free = 1, size = 2 }]\n",
    ),
    ("strange.csv", "G1,x\n1,2\n"),
];

/// Arguments, exit status and a part of the message.
const WRONG: [(&[&str], i32, &str); 18] = [
    (
        &["staging", "--topology", "truth.toml"],
        1,
        "truth.toml: line 3: process[0].free: invalid type: boolean `true`, expected a number of bytes",
    ),
    (
        &["staging", "--topology", "huge.toml"],
        1,
        "huge.toml: line 3: process[0].free: '99999999999999999999999' is too large",
    ),
    (
        &["staging", "--topology", "nameless.toml"],
        1,
        "nameless.toml: line 2: process[0].name: is empty",
    ),
    (
        &["staging", "--topology", "five.toml"],
        1,
        "a, b, c, d, 1 other together have 5 B that does not fit",
    ),
    (
        &[
            "staging",
            "--topology",
            "nvswitch:2",
            "--trace",
            "strange.csv",
        ],
        1,
        "strange.csv: column 2: nvswitch:2 has no process 'x'; it has G0, G1",
    ),
    (
        &[
            "staging",
            "--topology",
            "dgx1",
            "--remainder",
            "1",
            "--spare",
            "1",
        ],
        1,
        "remainder: 1 given for 8 processes",
    ),
    (
        &["staging", "--topology", "dgx1", "--sizes", "1,,2"],
        2,
        "number 2: a number is missing",
    ),
    (
        &[
            "interval",
            "--mttf",
            "12h",
            "--checkpoint",
            "40s",
            "--restart",
            "1e6d",
        ],
        1,
        "mttf: 12 h is too short for a restart of 1000000 d: almost none would finish between failures",
    ),
    (
        &["interval", "--mttf", "12h", "--checkpoint", "1e400s"],
        2,
        "'1e400s' is too large",
    ),
    (
        &["staging", "--topology", "negative.toml"],
        1,
        "negative.toml: line 3: process[0].free: '-1' is negative",
    ),
    (
        &["staging", "--topology", "malformed.toml"],
        1,
        "malformed.toml: line 1: ",
    ),
    (
        &["staging", "--topology", "full.toml"],
        1,
        "full.toml: line 4: sizes[0]: more than the tiers hold: a has 2 GB",
    ),
    (
        &[
            "staging",
            "--topology",
            "nvswitch:2",
            "--trace",
            "trace.csv",
        ],
        1,
        "trace.csv: line 3: G1: 'x' is not a number",
    ),
    (
        &["staging", "--topology", "dgx1", "--sizes", "1,2"],
        1,
        "sizes: 2 given for 8 processes",
    ),
    (
        &["staging", "--topology", "dgx1", "--sizes", "1,-2"],
        2,
        "number 2: '-2' is negative",
    ),
    (
        &["staging", "--topology", "nowhere"],
        1,
        "topology: there is no file 'nowhere'",
    ),
    (
        &["interval", "--mttf", "0", "--checkpoint", "1"],
        1,
        "mttf: must be a finite time greater than zero",
    ),
    (
        &["interval", "--mttf", "1h"],
        1,
        "checkpoint: give --checkpoint",
    ),
];

#[test]
fn bad_input_is_told_with_field_and_line_and_a_status() {
    let directory = tempfile::tempdir().expect("directory");
    for (name, text) in FILES {
        std::fs::write(directory.path().join(name), text).expect("file");
    }
    for (arguments, status, message) in WRONG {
        let found = failure(&plan_in(directory.path(), arguments));
        assert!(
            found.0 == status && found.1.contains(message),
            "{arguments:?}: {found:?}"
        );
        assert!(!found.1.contains("panicked"), "{found:?}");
    }
}
