//! Files with one error at a time.

use super::*;

const GOOD: &str = r#"name = "two nodes"
[[process]]
name = "n0"
free = "8 GB"
size = "12 GB"
write = 4e9
[[process]]
name = "n1"
free = 8_000_000_000
size = "1 GB"
[[tier]]
name = "scratch"
bandwidth = "5 GB/s"
[[switch]]
name = "network"
[[link]]
from = "n0"
to = "network"
bandwidth = "100 Gbit/s"
both = true
[[link]]
from = "network"
to = "n1"
bandwidth = "100 Gbit/s"
[[link]]
from = "network"
to = "scratch"
bandwidth = "2 GB/s"
"#;

#[test]
fn a_file_becomes_a_topology_with_sizes() {
    let read = read_topology(GOOD).expect("good file");
    assert_eq!(read.sizes, Some(vec![12_000_000_000, 1_000_000_000]));
    assert_eq!(read.lines, [5, 10]);
    assert_eq!(read.topology.links().len(), 4);
    assert_eq!(read.topology.processes()[0].write, Some(4_000_000_000));
    assert_eq!(read.topology.link_name(0), "n0 -> network");
    assert_eq!(read.topology.links()[1].bandwidth, 12_500_000_000);
}

/// Replaces one piece of the good file and returns the error's line, field and problem.
fn broken(from: &str, to: &str) -> (usize, String, String) {
    assert!(GOOD.contains(from));
    let error = read_topology(&GOOD.replacen(from, to, 1)).expect_err(to);
    (error.line, error.field, error.problem)
}

/// Pieces and their replacements, with the expected line, field and a part of the problem.
const WRONG: [(&str, &str, usize, &str, &str); 20] = [
    (
        "free = \"8 GB\"",
        "free = -8",
        4,
        "process[0].free",
        "negative",
    ),
    (
        "size = \"12 GB\"",
        "size = \"twelve\"",
        5,
        "process[0].size",
        "not a number",
    ),
    (
        "write = 4e9",
        "write = 0",
        6,
        "process[0].write",
        "greater than zero",
    ),
    (
        "name = \"n1\"",
        "name = \"n0\"",
        8,
        "process[1].name",
        "already taken",
    ),
    (
        "\"5 GB/s\"",
        "\"5 GBps\"",
        13,
        "tier[0].bandwidth",
        "unknown unit",
    ),
    (
        "to = \"network\"",
        "to = \"netwerk\"",
        18,
        "link[0].to",
        "'netwerk'",
    ),
    (
        "\"2 GB/s\"",
        "0",
        28,
        "link[2].bandwidth",
        "greater than zero",
    ),
    (
        "from = \"network\"\nto = \"n1\"",
        "from = \"scratch\"\nto = \"n1\"",
        22,
        "link[1].from",
        "never sends",
    ),
    (
        "from = \"network\"\nto = \"n1\"",
        "from = \"n1\"\nto = \"n1\"",
        23,
        "link[1].to",
        "itself",
    ),
    ("both = true", "both = maybe", 20, "link[0].both", "quoted"),
    (
        "both = true",
        "bothe = true",
        20,
        "link[0].bothe",
        "unknown field",
    ),
    ("[[link]]", "[[link]", 16, "switch[0]", ""),
    (
        "free = \"8 GB\"",
        "free = true",
        4,
        "process[0].free",
        "boolean `true`, expected a number of bytes, or text with a unit such as \"8 GiB\"",
    ),
    (
        "free = \"8 GB\"",
        "free = [8]",
        4,
        "process[0].free",
        "expected a number of bytes",
    ),
    (
        "free = 8_000_000_000",
        "free = 99999999999999999999999",
        9,
        "process[1].free",
        "'99999999999999999999999' is too large",
    ),
    (
        "write = 4e9",
        "write = 1979-05-27",
        6,
        "process[0].write",
        "expected a number of bytes",
    ),
    (
        "name = \"n0\"\n",
        "",
        2,
        "process[0]",
        "missing field `name`",
    ),
    ("\"n1\"", "\" \"", 8, "process[1].name", "is empty"),
    ("\"scratch\"", "\"\"", 12, "tier[0].name", "is empty"),
    ("\"two nodes\"", "\"\"", 1, "name", "is empty"),
];

#[test]
fn every_wrong_field_is_named_with_its_line() {
    for (from, to, line, field, problem) in WRONG {
        let found = broken(from, to);
        assert_eq!(
            (found.0, found.1.as_str()),
            (line, field),
            "{to}: {}",
            found.2
        );
        assert!(found.2.contains(problem), "{to}: {}", found.2);
    }
}

#[test]
fn a_file_without_processes_is_refused() {
    let error = read_topology("name = \"empty\"").expect_err("no processes");
    assert_eq!(error.to_string(), "line 1: process: there is none");
}
