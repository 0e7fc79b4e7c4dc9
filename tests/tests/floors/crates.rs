//! The crates of the project that each crate is built from: `dependencies` and `build-dependencies`, not what its tests use.

use std::path::Path;

use crate::manifest;

/// Folder, and the folders of the crates that it uses. A line more is a decision: see the table in ARCHITECTURE.md of what each must not know.
const USES: [(&str, &[&str]); 35] = [
    ("plugins/api", &["plugins/refusals"]),
    ("plugins/gpu", &["plugins/ids", "plugins/multilevel"]),
    (
        "plugins/gpu/copies",
        &[
            "plugins/gpu",
            "plugins/gpu/driver",
            "plugins/gpu/hash",
            "plugins/gpu/staging",
        ],
    ),
    ("plugins/gpu/driver", &[]),
    ("plugins/gpu/hash", &[]),
    (
        "plugins/gpu/helper",
        &[
            "plugins/gpu",
            "plugins/gpu/copies",
            "plugins/gpu/driver",
            "plugins/gpu/hash",
            "plugins/gpu/messages",
            "plugins/gpu/staging",
            "plugins/ids",
        ],
    ),
    ("plugins/gpu/messages", &["plugins/ids"]),
    // Not the driver: the staging crate gets a device to copy with.
    ("plugins/gpu/staging", &["plugins/gpu", "plugins/ids"]),
    ("plugins/ids", &[]),
    ("plugins/incremental", &[]),
    ("plugins/multilevel", &[]),
    ("plugins/refusals", &[]),
    ("wrappers", &["wrappers/clock", "wrappers/generator"]),
    ("wrappers/clock", &[]),
    ("wrappers/generator", &[]),
    // Not `wrappers`: the coordinator does not know what the halves of its ranks say to each other.
    (
        "coordinator",
        &[
            "coordinator/directory",
            "coordinator/faults",
            "coordinator/image",
            "coordinator/protocol",
            "plugins/ids",
            "plugins/incremental",
            "plugins/multilevel",
            "plugins/refusals",
            "wrappers/clock",
        ],
    ),
    (
        "coordinator/cli",
        &[
            "coordinator",
            "coordinator/directory",
            "coordinator/faults",
            "coordinator/image",
            "coordinator/linkage",
            "coordinator/protocol",
            "coordinator/tracking",
            "plugins/gpu",
            "plugins/gpu/messages",
            "plugins/ids",
            "plugins/incremental",
            "plugins/multilevel",
            "plugins/refusals",
        ],
    ),
    ("coordinator/directory", &["coordinator/faults"]),
    ("coordinator/faults", &[]),
    (
        "coordinator/image",
        &[
            "coordinator/directory",
            "coordinator/faults",
            "plugins/ids",
            "plugins/incremental",
            "plugins/refusals",
        ],
    ),
    ("coordinator/linkage", &[]),
    (
        "coordinator/protocol",
        &[
            "coordinator/directory",
            "coordinator/faults",
            "plugins/ids",
            "plugins/incremental",
            "plugins/refusals",
            "wrappers/clock",
        ],
    ),
    ("coordinator/tracking", &["plugins/incremental"]),
    (
        "upper-half",
        &[
            "plugins/refusals",
            "wrappers",
            "wrappers/clock",
            "wrappers/generator",
        ],
    ),
    ("upper-half/preload", &[]),
    // The same sources, for programs of another ABI.
    (
        "upper-half/abi",
        &[
            "plugins/refusals",
            "wrappers",
            "wrappers/clock",
            "wrappers/generator",
        ],
    ),
    (
        "upper-half/mpich",
        &[
            "plugins/refusals",
            "wrappers",
            "wrappers/clock",
            "wrappers/generator",
        ],
    ),
    (
        "lower-half",
        &[
            "coordinator/directory",
            "coordinator/faults",
            "coordinator/image",
            "coordinator/linkage",
            "coordinator/protocol",
            "coordinator/tracking",
            "plugins/api",
            "plugins/gpu/hash",
            "plugins/gpu/messages",
            "plugins/ids",
            "plugins/incremental",
            "plugins/refusals",
            "wrappers",
            "wrappers/clock",
            "wrappers/generator",
        ],
    ),
    // The same sources, before another library.
    (
        "lower-half/abi",
        &[
            "coordinator/directory",
            "coordinator/faults",
            "coordinator/image",
            "coordinator/linkage",
            "coordinator/protocol",
            "coordinator/tracking",
            "plugins/api",
            "plugins/gpu/hash",
            "plugins/gpu/messages",
            "plugins/ids",
            "plugins/incremental",
            "plugins/refusals",
            "wrappers",
            "wrappers/clock",
            "wrappers/generator",
        ],
    ),
    (
        "lower-half/mpich",
        &[
            "coordinator/directory",
            "coordinator/faults",
            "coordinator/image",
            "coordinator/linkage",
            "coordinator/protocol",
            "coordinator/tracking",
            "plugins/api",
            "plugins/gpu/hash",
            "plugins/gpu/messages",
            "plugins/ids",
            "plugins/incremental",
            "plugins/refusals",
            "wrappers",
            "wrappers/clock",
            "wrappers/generator",
        ],
    ),
    // A driver and a device for tests know nothing of the project: they stand for what is foreign to it.
    ("tests/cuda/device", &["tests/cuda/protocol"]),
    ("tests/cuda/driver", &["tests/cuda/protocol"]),
    ("tests/cuda/protocol", &[]),
    // The fuzzer tries each of them by itself.
    (
        "tests/fuzzed",
        &[
            "coordinator/image",
            "coordinator/linkage",
            "coordinator/protocol",
            "plugins/gpu",
            "plugins/ids",
            "plugins/multilevel",
            "plugins/refusals",
        ],
    ),
    (
        "tests/simulator",
        &["coordinator/protocol", "plugins/ids", "wrappers/clock"],
    ),
];

/// The folder of each crate.
pub fn folders() -> impl Iterator<Item = &'static str> {
    USES.iter().map(|(folder, _)| *folder)
}

/// The folders that the text of a `Cargo.toml` in `folder` names.
fn used(folder: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut counts = false;
    for line in text.lines() {
        if line.starts_with('[') {
            counts = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if counts && let Some((_, path)) = line.split_once("path = \"") {
            let path = path.split('"').next().unwrap_or_default();
            found.push(joined(folder, path));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Follows a relative path from a folder of the project.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn a_crate_uses_only_the_crates_that_it_may_know() {
    for (folder, expected) in USES {
        assert_eq!(used(folder, &manifest(folder)), expected, "{folder}");
    }
}

/// The folders of the top level, the lowest floor first.
const FLOORS: [&str; 6] = [
    "plugins",
    "wrappers",
    "coordinator",
    "upper-half",
    "lower-half",
    "tests",
];

#[test]
fn a_crate_uses_only_crates_of_its_own_floor_and_lower_ones() {
    let floor = |folder: &str| {
        let top = folder.split('/').next();
        FLOORS.iter().position(|floor| Some(*floor) == top).unwrap()
    };
    for (folder, uses) in USES {
        for used in uses {
            assert!(floor(used) <= floor(folder), "{folder} uses {used}");
        }
    }
}

#[test]
fn every_crate_has_its_line() {
    let workspace = manifest("");
    let members = workspace.split_once("members = [").unwrap().1;
    let members = members.split_once(']').unwrap().0;
    let mut members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    members.retain(|member| *member != "tests");
    let mut listed = USES.map(|(folder, _)| folder);
    members.sort_unstable();
    listed.sort_unstable();
    assert_eq!(members, listed);
    assert!(
        members
            .iter()
            .all(|member| Path::new("..").join(member).is_dir())
    );
}

#[test]
fn what_is_used_is_read() {
    let text = "[package]\npath = \"x\"\n[dependencies]\n# Why.\na = { path = \"../../b\" }\nc = \"1\"\n[target.'cfg(unix)'.dependencies]\nd = { path = \
                \"e\" }\n[dev-dependencies]\nf = { path = \"g\" }\n[lints]\nworkspace = true\n";
    assert_eq!(used("one/two", text), ["b", "one/two/e"]);
}

/// The names in a manifest's list of dependencies.
fn dependencies(text: &str) -> Vec<&str> {
    let list = text
        .split("\n[")
        .find(|list| list.starts_with("dependencies]"));
    let lines = list.unwrap_or_default().lines();
    let mut names: Vec<&str> = lines
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn lower_halves_of_the_same_sources_depend_on_the_same() {
    let (openmpi, abi) = (manifest("lower-half"), manifest("lower-half/abi"));
    let mut shared = dependencies(&openmpi);
    assert!(shared.len() > 15, "{shared:?}");
    // The bindings to the real MPI are made of the table of functions there.
    shared.retain(|name| *name != "mpi-sys");
    assert_eq!(shared, dependencies(&abi));
}

#[test]
fn upper_halves_of_the_same_sources_depend_on_the_same() {
    let openmpi = manifest("upper-half");
    let shared = dependencies(&openmpi);
    assert!(shared.len() > 3, "{shared:?}");
    for other in ["upper-half/abi", "upper-half/mpich"] {
        assert_eq!(shared, dependencies(&manifest(other)), "{other}");
    }
}
