//! Connections between hosts are made and accepted by [`stillpoint_protocol::lasting`] only. Without it, a connection would wait for ever for a host that has
//! lost its network.
//!
//! The test searches the sources for other ways to make or accept connections.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are searched, from the repository's root.
const SEARCHED: [&str; 5] = [
    "coordinator/src",
    "coordinator/protocol/src",
    "lower-half/src",
    "plugins/gpu",
    "upper-half",
];

/// The ways to make or accept a connection.
const OTHER_WAYS: [&str; 6] = [
    "TcpStream::",
    "TcpListener::",
    "TcpSocket",
    "UdpSocket",
    ".accept()",
    ".incoming()",
];

/// Source, the most lines of it that do so, and the reason.
const ELSEWHERE: [(&str, usize, &str); 6] = [
    ("coordinator/protocol/src/lasting.rs", 3, "the only way"),
    (
        "coordinator/src/server/listen.rs",
        4,
        "a runtime's own sockets, which it hands to the only way",
    ),
    ("coordinator/src/server/door.rs", 1, "on this host alone"),
    (
        "coordinator/protocol/src/launch_start.rs",
        1,
        "on this host alone",
    ),
    ("plugins/gpu/helper/src/serve.rs", 1, "on this host alone"),
    (
        "lower-half/src/ground/input/feeder.rs",
        1,
        "on this host alone",
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The lines before the tests, which come last in a file.
fn lines_that_ship(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn connections_between_hosts_are_made_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![];
    for folder in SEARCHED {
        sources(&root.join(folder), &mut found);
    }
    assert!(found.len() > 200, "{} sources", found.len());
    let mut seen = 0;
    for path in found {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        if name.contains("/tests") || name.contains("/examples/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let others: Vec<&str> = lines_that_ship(&text)
            .filter(|line| OTHER_WAYS.iter().any(|way| line.contains(way)))
            .collect();
        let listed = ELSEWHERE.iter().find(|(listed, ..)| *listed == name);
        let allowed = listed.map_or(0, |(_, allowed, _)| *allowed);
        assert!(
            others.len() <= allowed,
            "{name}: make connections by stillpoint_protocol::lasting: {others:#?}"
        );
        seen += others.len();
    }
    let allowed: usize = ELSEWHERE.iter().map(|(_, allowed, _)| allowed).sum();
    assert_eq!(seen, allowed, "what is listed is not there any more");
}
