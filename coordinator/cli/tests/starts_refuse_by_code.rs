//! Every reason that prevents a start or a restart has a code: the files listed here make no failure without one.

use std::fs;
use std::path::Path;

const FILES: [&str; 22] = [
    "batch.rs",
    "directory_name.rs",
    "directory_owner.rs",
    "finished.rs",
    "first_process.rs",
    "gather.rs",
    "inside.rs",
    "job_start.rs",
    "launch.rs",
    "lock.rs",
    "mpi.rs",
    "options.rs",
    "program.rs",
    "restart.rs",
    "run.rs",
    "siblings.rs",
    "site_defaults.rs",
    "start.rs",
    "supervisor/launches.rs",
    "supervisor/line.rs",
    "supervisor/mod.rs",
    "tiers.rs",
];

/// The calls that make a failure without a code.
const WITHOUT: [&str; 4] = [
    "Failure::new(",
    "Failure::failed(",
    "Failure::of(",
    "Failure::because(",
];

/// Returns the lines of a source that make one, except in its tests.
fn without_a_code(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]\nmod ").next();
    let lines = code.unwrap_or_default().lines();
    let makes = |line: &&str| WITHOUT.iter().any(|made| line.contains(made));
    lines.filter(makes).collect()
}

#[test]
fn starts_and_restarts_refuse_by_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in FILES {
        let source = fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(without_a_code(&source), [""; 0], "{file}: name a code");
        assert!(source.contains("Failure::refuse"), "{file} refuses nothing");
    }
}

#[test]
fn a_failure_without_a_code_is_found() {
    let source =
        "a\nErr(Failure::failed(text))\n#[cfg(test)]\nmod tests {\nFailure::new(1, text)\n";
    assert_eq!(without_a_code(source), ["Err(Failure::failed(text))"]);
}
