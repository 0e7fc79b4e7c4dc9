//! Incremental epochs: programs that never hold still are checkpointed, suspended and restarted at random moments.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::Job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{self, Trial};
use stillpoint_tests::{Failed, ensure};

const INCREMENTAL: &str = "STILLPOINT_INCREMENTAL";
const TRACKING: &str = "STILLPOINT_TRACKING";
const PATIENCE: Duration = Duration::from_secs(100);

fn tested(test: impl FnOnce() -> Result<(), Failed>) {
    if let Err(failed) = test() {
        panic!("{failed}");
    }
}

/// Returns the ways of tracking that this machine has.
fn ways() -> Vec<&'static str> {
    let offers = stillpoint_tracking::offer::all();
    let there = offers.iter().filter(|offer| offer.lacks.is_none());
    there.map(|offer| offer.tracking.name()).collect()
}

/// Runs a program with each way of tracking of this machine. `pages` runs with the best one only: without tracking, `pages` means
/// whole epochs.
fn moves(program: &str, how: &'static str, copy: &'static str) {
    let ways = match how {
        "pages" => vec!["auto"],
        _ => ways(),
    };
    for way in ways {
        tested(|| {
            let program = Program::named(Kind::Moving, program)?;
            let settings = [
                (INCREMENTAL, how),
                (TRACKING, way),
                ("STILLPOINT_COPY", copy),
            ];
            trial::moves_with(&program, 2, &settings)
        });
    }
}

#[test]
fn memory_that_is_rewritten_in_pages() {
    moves("rewrites_everything", "pages", "auto");
}

#[test]
fn memory_that_is_rewritten_in_blocks() {
    moves("rewrites_everything", "blocks", "auto");
}

#[test]
fn memory_that_comes_and_goes() {
    moves("memory_churn", "blocks", "auto");
}

#[test]
fn memory_that_comes_and_goes_while_the_application_stands() {
    moves("memory_churn", "blocks", "off");
}

#[test]
fn threads_that_come_and_go() {
    moves("threads_come_and_go", "pages", "auto");
}

/// Mappings change in every way between two epochs, with any way of tracking.
#[test]
fn mappings_that_change_in_pages() {
    moves("mappings_change", "pages", "auto");
}

#[test]
fn mappings_that_change_in_blocks() {
    moves("mappings_change", "blocks", "auto");
}

#[test]
fn mappings_that_change_while_the_application_stands() {
    moves("mappings_change", "auto", "off");
}

#[test]
fn memory_of_windows() {
    moves("windows_shared_all_the_time", "blocks", "auto");
}

#[test]
fn messages_of_all_kinds() {
    moves("random_messages", "auto", "auto");
}

/// Returns `inspect`'s description of the newest epoch.
fn shown(trial: &Trial) -> Result<Value, Failed> {
    let target = trial.epochs_at();
    let words = [Path::new("inspect"), target.as_path(), Path::new("--json")];
    command::stillpoint(trial.directory, words)?
        .expect(exit::DONE)?
        .json()
}

/// Returns from `inspect` of the newest epoch: bytes of its own pages, of all its pages, and the epochs that it needs.
fn inspected(trial: &Trial) -> Result<(u64, u64, Vec<u64>), Failed> {
    let shown = shown(trial)?;
    let sum = |field: &str| -> u64 {
        let images = shown["images"].as_array().into_iter().flatten();
        images
            .filter_map(|image| image["sizes"][field].as_u64())
            .sum()
    };
    let needs = shown["manifest"]["needs"].as_array().into_iter().flatten();
    let needs = needs.filter_map(Value::as_u64).collect();
    Ok((sum("own_page_bytes"), sum("page_bytes"), needs))
}

fn checkpointed(trial: &Trial) -> Result<(u64, u64, Vec<u64>), Failed> {
    command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    inspected(trial)
}

/// Unchanged memory is written once, and again if the epoch that has it is gone.
#[test]
fn what_does_not_change_is_not_written_again() {
    for way in ways() {
        tested(|| is_not_written_again(way));
    }
}

fn is_not_written_again(way: &'static str) -> Result<(), Failed> {
    let program = Program::named(Kind::Special, "large_and_awake")?;
    Directory::new("increments")?.run(|directory| {
        let mut trial = Trial::new(&program, 1, directory)?.with(&["64"]);
        // Hash-based, because with `auto` the model's measurements decide whether hashing is worth its time without tracking.
        trial.settings = vec![(INCREMENTAL, "blocks"), (TRACKING, way)];
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        let (own, all, needs) = checkpointed(&trial)?;
        ensure!(
            own == all && all > 64 << 20 && needs.is_empty(),
            "{own} of {all}"
        );
        let (own, all, needs) = checkpointed(&trial)?;
        ensure!(
            own < 4 << 20 && all > 64 << 20 && needs == [1],
            "{own} of {all}"
        );
        let (own, all, needs) = checkpointed(&trial)?;
        ensure!(
            own < 4 << 20 && all > 64 << 20 && needs.contains(&1),
            "{own} of {all}"
        );
        // Two epochs are kept, and those that they need.
        let epochs = command::epochs(&trial.epochs_at());
        ensure!(epochs == [1, 2, 3], "{epochs:?}");
        fs::remove_dir_all(trial.epochs_at().join("epoch-000001")).map_err(|e| e.to_string())?;
        let (own, all, needs) = checkpointed(&trial)?;
        ensure!(own == all && needs.is_empty(), "{own} of {all}, {needs:?}");
        trial.suspended(job)?;
        let (own, _, needs) = inspected(&trial)?;
        ensure!(own < 4 << 20 && needs == [4], "{own}, {needs:?}");
        ensure!(tracked_by(&trial)? == way, "{}", tracked_by(&trial)?);
        trial.go()?;
        trial.ends_well(trial.restarted()?)?;
        Ok(())
    })
}

/// Returns the way of tracking of the newest epoch, from its manifest.
fn tracked_by(trial: &Trial) -> Result<String, Failed> {
    let shown = shown(trial)?;
    let said = &shown["manifest"]["ranks"][0]["increment"]["tracking"];
    Ok(said.as_str().unwrap_or_default().to_owned())
}

/// A program that handles page faults itself has them for itself, whichever tracking there was before. From then on all memory is
/// hashed.
#[test]
fn page_faults_that_the_program_handles_are_its_own() {
    tested(|| {
        let program = Program::named(Kind::Special, "handles_page_faults")?;
        Directory::new("page-faults")?.run(|directory| {
            let mut trial = Trial::new(&program, 1, directory)?.with(&["taken"]);
            trial.settings = vec![(INCREMENTAL, "blocks")];
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            checkpointed(&trial)?;
            let (_, _, needs) = checkpointed(&trial)?;
            ensure!(needs == [1], "{needs:?}");
            trial.go()?;
            let taken = directory.file("taken");
            job.until("handling page faults", PATIENCE, |_| taken.exists())?;
            for _ in 1..=3 {
                checkpointed(&trial)?;
            }
            let (own, all, needs) = checkpointed(&trial)?;
            ensure!(!needs.is_empty() && own < all, "{own} of {all}, {needs:?}");
            ensure!(tracked_by(&trial)? == "none", "{}", tracked_by(&trial)?);
            trial.suspended(job)?;
            fs::remove_file(&taken).map_err(|e| e.to_string())?;
            trial.ends_well(trial.restarted()?)?;
            Ok(())
        })
    });
}

/// Increments by pages are refused without tracking.
#[test]
fn pages_that_nobody_tells_apart_are_refused() {
    tested(|| {
        Directory::new("no-pages")?.run(|directory| {
            let words = [
                "run",
                "--incremental=pages",
                "--tracking",
                "none",
                "--",
                "true",
            ];
            command::stillpoint(directory, words)?
                .expect_reason(exit::USAGE, "--incremental=pages needs pages")?;
            Ok(())
        })
    });
}

/// Waits until every page has been written to since this call: two more rounds have begun.
fn written_to_again(trial: &Trial, job: &mut Job) -> Result<(), Failed> {
    let rounds = || -> u64 {
        let text = fs::read_to_string(trial.directory.file("rounds")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    let mut begun = 0;
    job.until("counting", PATIENCE, |_| {
        begun = rounds();
        begun > 0
    })?;
    job.until("in its next rounds", PATIENCE, |_| rounds() > begun + 1)
}

/// Returns `inspect`'s regions of at least so many bytes that were written to, one list a rank.
fn rewritten(shown: &Value, least: u64) -> Vec<Vec<&Value>> {
    let of = |image: &'_ Value| -> u64 { image["page_dirty"].as_u64().unwrap_or(0) };
    let images = shown["images"].as_array().into_iter().flatten();
    let regions = images.map(|image| image["regions"].as_array().into_iter().flatten());
    let bytes = regions.map(|regions| regions.map(|region| &region["bytes"]));
    bytes
        .map(|bytes| bytes.filter(|bytes| of(bytes) >= least).collect())
        .collect()
}

/// Each region is written in its own way. A region that is rewritten with the same bytes is hashed, the other is not, and the manifest
/// has the prediction and the outcome.
#[test]
fn each_region_is_hashed_where_that_pays_for_it() {
    for way in ways() {
        tested(|| each_region_in_its_own_way(way));
    }
}

fn each_region_in_its_own_way(way: &'static str) -> Result<(), Failed> {
    let program = Program::named(Kind::Special, "two_ways")?;
    Directory::new("two-ways")?.run(|directory| {
        let mut trial = Trial::new(&program, 2, directory)?.with(&["16"]);
        // Compression takes most of the time then, so that hashing pays with any disk.
        let packing = ("STILLPOINT_COMPRESS", "zstd:9");
        trial.settings = vec![
            (INCREMENTAL, "auto"),
            (TRACKING, way),
            ("STILLPOINT_COPY", "off"),
            packing,
        ];
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        // The epochs are: whole; hashed with nothing to compare with; hashed and compared; by the result of that.
        for _ in 1..=4 {
            written_to_again(&trial, &mut job)?;
            checkpointed(&trial)?;
        }
        let shown = shown(&trial)?;
        let least = 16 << 20;
        for bytes in rewritten(&shown, least) {
            let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or(u64::MAX);
            let [one, two] = bytes[..] else {
                return Err(format!("not two regions: {bytes:?}"));
            };
            let (same, other) = match number(one, "hashed") > 0 {
                true => (one, two),
                false => (two, one),
            };
            ensure!(
                number(same, "hashed") == least
                    && number(same, "hash_dirty") == 0
                    && number(same, "written") == 0,
                "{same}"
            );
            ensure!(
                number(other, "hashed") == 0 && number(other, "written") == least,
                "{other}"
            );
        }
        let ranks = shown["manifest"]["ranks"].as_array().cloned();
        let ranks = ranks.unwrap_or_default();
        ensure!(ranks.len() == 2, "{shown}");
        for rank in &ranks {
            says_what_was_expected(&rank["increment"])?;
        }
        let target = trial.epochs_at();
        let words = [
            Path::new("inspect"),
            target.as_path(),
            Path::new("--regions"),
        ];
        let said = command::stillpoint(directory, words)?.expect(exit::DONE)?;
        let row = "   16.8 MB    16.8 MB    16.8 MB    16.8 MB        0 B        0 B";
        let rows = said.stdout.lines().filter(|line| line.ends_with(row));
        ensure!(rows.count() == 2, "{}", said.stdout);
        trial.suspended(job)?;
        trial.go()?;
        trial.ends_well(trial.restarted()?)?;
        Ok(())
    })
}

fn says_what_was_expected(said: &Value) -> Result<(), Failed> {
    let (predicted, regions, outcome) = (&said["predicted"], &said["regions"], &said["outcome"]);
    let number = |of: &Value| of.as_f64().unwrap_or(f64::NAN);
    let region = f64::from(1 << 20);
    let dirty = number(&outcome["page_dirty"]);
    ensure!(dirty >= 32.0 * region, "{outcome}");
    // Each kind has at least the 16 regions of its stretch.
    let others = number(&regions["full"]) + number(&regions["page"]);
    ensure!(
        number(&regions["hash"]) >= 16.0 && others >= 16.0,
        "{regions}"
    );
    // Half of the written memory has its old content.
    for alpha in [&predicted["alpha_hashed"], &outcome["alpha"]] {
        ensure!(number(alpha) > 0.9, "{predicted} {outcome}");
    }
    ensure!(
        (number(&predicted["alpha"]) - 0.5).abs() < 0.1,
        "{predicted}"
    );
    let (expected, came) = (&predicted["taken"]["bytes"], &outcome["written"]);
    ensure!(
        (number(expected) / number(came) - 1.0).abs() < 0.2,
        "{expected} expected, {came} written"
    );
    let pages = number(&predicted["page"]["bytes"]);
    ensure!(number(expected) < 0.7 * pages, "{predicted}");
    let ratio = number(&predicted["rates"]["beta_ckpt"]) / number(&predicted["rates"]["beta_hash"]);
    ensure!(ratio > 0.0 && ratio < 1.0, "{predicted}");
    let seconds = number(&outcome["hash_seconds"]) * number(&outcome["write_seconds"]);
    ensure!(seconds > 0.0, "{outcome}");
    Ok(())
}
