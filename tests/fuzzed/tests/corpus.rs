//! Runs every file of `fuzz/corpus`, and every seed, through its target, and checks that targets, programs and corpora
//! match.
//!
//! `STILLPOINT_WRITE_SEEDS=1` writes the seeds into the corpus first.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use stillpoint_fuzzed::seeds::{greedy, seeds};
use stillpoint_fuzzed::{Body, TARGETS, program};

/// The corpus is kept small: findings of a fuzzer are cut down to the essential part.
const MOST_FILES: usize = 200;
const MOST_BYTES: usize = 300 << 10;
/// The address space limit of this process, which ends if it exceeds it.
const MOST_MEMORY: u64 = 4 << 30;
/// The time limit for one input, which normally takes a small part of it.
const PATIENCE: Duration = Duration::from_secs(20);

fn fuzz(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(path)
}

/// Returns the names in a folder, without `end`.
fn names(folder: &Path, end: &str) -> BTreeSet<String> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .map(|name| name.strip_suffix(end).unwrap_or(&name).to_owned())
        .collect()
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz("corpus").join(target);
    let files = names(&folder, "").into_iter();
    files
        .map(|name| {
            let path = folder.join(name);
            (path.display().to_string(), fs::read(&path).unwrap())
        })
        .collect()
}

/// Runs inputs, and returns how many were accepted. A panic names the input.
fn accepted(body: Body, inputs: &[(String, Vec<u8>)]) -> usize {
    setrlimit(Resource::RLIMIT_AS, MOST_MEMORY, MOST_MEMORY).unwrap();
    let run = |(name, bytes): &&(String, Vec<u8>)| {
        let begun = Instant::now();
        let accepted = catch_unwind(|| body(bytes)).unwrap_or_else(|_| panic!("{name} goes wrong"));
        assert!(begun.elapsed() < PATIENCE, "{name} takes long");
        accepted
    };
    inputs.iter().filter(run).count()
}

#[test]
fn every_target_takes_its_corpus() {
    if std::env::var_os("STILLPOINT_WRITE_SEEDS").is_some() {
        write_seeds();
    }
    let (mut files, mut bytes) = (0, 0);
    for (target, body) in TARGETS {
        let corpus = corpus(target);
        let count = accepted(body, &corpus);
        assert!(
            0 < count && count < corpus.len(),
            "{target}: of {} inputs {count} are accepted: write the seeds with STILLPOINT_WRITE_SEEDS=1",
            corpus.len()
        );
        files += corpus.len();
        bytes += corpus.iter().map(|(_, input)| input.len()).sum::<usize>();
    }
    assert!(files <= MOST_FILES, "the corpus has {files} files");
    assert!(bytes <= MOST_BYTES, "the corpus has {bytes} bytes");
}

/// Stillpoint's own output is accepted, whatever version the corpus is from.
#[test]
fn every_target_takes_its_seeds() {
    for (target, body) in TARGETS {
        let seeds = seeds(target);
        assert!(accepted(body, &seeds) > 0, "{target}");
    }
}

/// Half a megabyte of input stands for sixteen gigabytes of names. It is too large for the corpus.
#[test]
fn a_program_that_needs_a_long_name_again_and_again_takes_no_memory() {
    for length in [1 << 19, 3000] {
        let input = ("a greedy program".to_owned(), greedy(1 << 15, length));
        assert_eq!(accepted(program, &[input]), 0);
    }
}

#[test]
fn every_target_has_its_program_and_its_corpus() {
    let targets: BTreeSet<String> = TARGETS.map(|(name, _)| name.to_owned()).into();
    assert_eq!(names(&fuzz("fuzz_targets"), ".rs"), targets);
    assert_eq!(names(&fuzz("corpus"), ""), targets);
    let manifest = fs::read_to_string(fuzz("Cargo.toml")).unwrap();
    let programs = manifest.split("[[bin]]\nname = \"").skip(1);
    let programs: BTreeSet<String> = programs
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    assert_eq!(programs, targets);
    for target in targets {
        let program =
            fs::read_to_string(fuzz("fuzz_targets").join(format!("{target}.rs"))).unwrap();
        assert!(
            program.contains(&format!("stillpoint_fuzzed::{target}(")),
            "{target}"
        );
    }
}

fn write_seeds() {
    for (target, _) in TARGETS {
        let folder = fuzz("corpus").join(target);
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in seeds(target) {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}
