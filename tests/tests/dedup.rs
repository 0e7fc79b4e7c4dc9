//! Equal memory is written once, in a rank and in all ranks of a node. A restart gets the original bytes back, and checks that all images it
//! needs are there before it restarts anything.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{Ended, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, reason};

const DEDUP: &str = "STILLPOINT_DEDUP";
const INCREMENTAL: &str = "STILLPOINT_INCREMENTAL";
const MEGABYTE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test with a job of `equal_tables` that is ready.
fn tried(
    name: &str,
    ranks: u32,
    arguments: &[&str],
    settings: &[(&'static str, &'static str)],
    test: impl FnOnce(&Trial, Job) -> Result<(), Failed>,
) {
    let run = || -> Result<(), Failed> {
        let program = Program::named(Kind::Special, "equal_tables")?;
        Directory::new(name)?.run(|directory| {
            let mut trial = Trial::new(&program, ranks, directory)?.with(arguments);
            trial.settings = settings.to_vec();
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            test(&trial, job)
        })
    };
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}

fn said(trial: &Trial, words: &[&str]) -> Result<Answer, Failed> {
    let target = trial.epochs_at();
    let target = target.to_string_lossy().into_owned();
    let (first, rest) = words.split_at(1);
    let all = first.iter().copied().chain([target.as_str()]);
    command::stillpoint(trial.directory, all.chain(rest.iter().copied()))
}

/// An epoch, as `inspect` describes it.
struct Epoch {
    /// Bytes of all images.
    on_disk: u64,
    /// Bytes of memory in all images.
    memory: u64,
    /// Bytes of memory that were not written, because this rank or another one has them.
    within: u64,
    across: u64,
    needs: Vec<u64>,
}

fn inspected(trial: &Trial) -> Result<Epoch, Failed> {
    let shown = said(trial, &["inspect", "--json"])?.expect(exit::DONE)?;
    let shown = shown.json()?;
    let images: Vec<&Value> = shown["images"].as_array().into_iter().flatten().collect();
    let sum = |field: &str| -> u64 {
        let of = |image: &&Value| image["sizes"][field].as_u64();
        images.iter().filter_map(of).sum()
    };
    let (mut within, mut across) = (0, 0);
    for image in &images {
        for shared in image["shared"].as_array().into_iter().flatten() {
            let bytes = shared["bytes"].as_u64().unwrap_or(0);
            match shared["rank"] == image["identity"]["rank"] {
                true => within += bytes,
                false => across += bytes,
            }
        }
    }
    let needs = shown["manifest"]["needs"].as_array().into_iter().flatten();
    Ok(Epoch {
        on_disk: sum("file_bytes"),
        memory: sum("page_bytes"),
        within,
        across,
        needs: needs.filter_map(Value::as_u64).collect(),
    })
}

fn checkpointed(trial: &Trial) -> Result<Epoch, Failed> {
    command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    said(trial, &["verify"])?.expect(exit::DONE)?;
    inspected(trial)
}

/// Suspends and restarts the job, and checks that everything is as before.
fn carries_on(trial: &Trial, job: Job) -> Result<(), Failed> {
    trial.suspended(job)?;
    said(trial, &["verify"])?.expect(exit::DONE)?;
    trial.go()?;
    trial.ends_well(trial.restarted()?)?;
    Ok(())
}

#[test]
fn a_table_of_all_ranks_is_written_once_a_node() {
    for copy in ["auto", "off"] {
        let settings = [("STILLPOINT_COPY", copy)];
        tried("one-table", 2, &["200"], &settings, |trial, job| {
            let epoch = checkpointed(trial)?;
            ensure!(epoch.memory > 400 * MEGABYTE, "{}", epoch.memory);
            ensure!(epoch.on_disk < 215 * MEGABYTE, "{}", epoch.on_disk);
            ensure!(epoch.across > 195 * MEGABYTE, "{}", epoch.across);
            ensure!(epoch.needs.is_empty(), "{:?}", epoch.needs);
            carries_on(trial, job)
        });
    }
}

#[test]
fn two_tables_of_one_rank_are_written_once() {
    tried("two-tables", 1, &["100", "twice"], &[], |trial, job| {
        let epoch = checkpointed(trial)?;
        ensure!(epoch.memory > 200 * MEGABYTE, "{}", epoch.memory);
        ensure!(epoch.on_disk < 112 * MEGABYTE, "{}", epoch.on_disk);
        ensure!(epoch.within > 95 * MEGABYTE, "{}", epoch.within);
        ensure!(epoch.across == 0, "{}", epoch.across);
        carries_on(trial, job)
    });
}

#[test]
fn three_ranks_with_two_tables_each_write_one() {
    tried("six-tables", 3, &["40", "twice"], &[], |trial, job| {
        let epoch = checkpointed(trial)?;
        ensure!(epoch.memory > 240 * MEGABYTE, "{}", epoch.memory);
        ensure!(epoch.on_disk < 50 * MEGABYTE, "{}", epoch.on_disk);
        carries_on(trial, job)
    });
}

#[test]
fn memory_comes_late_from_wherever_it_lies() {
    let settings = [("STILLPOINT_LAZY", "true")];
    tried("late-tables", 2, &["60", "twice"], &settings, carries_on);
}

#[test]
fn nobody_shares_who_is_told_not_to() {
    tried(
        "own-tables",
        2,
        &["30", "twice"],
        &[(DEDUP, "off")],
        |trial, job| {
            let epoch = checkpointed(trial)?;
            ensure!(epoch.on_disk > 120 * MEGABYTE, "{}", epoch.on_disk);
            ensure!(epoch.within + epoch.across == 0, "{}", epoch.within);
            carries_on(trial, job)
        },
    );
}

/// Later epochs carry shared chunks, and keep the images that they need.
#[test]
fn what_is_shared_is_carried_by_later_epochs() {
    for how in ["pages", "blocks"] {
        let settings = [(INCREMENTAL, how), ("STILLPOINT_KEEP", "1")];
        tried(
            "carried-tables",
            2,
            &["50", "twice"],
            &settings,
            |trial, job| {
                let first = checkpointed(trial)?;
                ensure!(first.on_disk < 65 * MEGABYTE, "{}", first.on_disk);
                for number in 2..=4 {
                    let epoch = checkpointed(trial)?;
                    ensure!(epoch.memory > 200 * MEGABYTE, "{}", epoch.memory);
                    ensure!(epoch.on_disk < 12 * MEGABYTE, "{number}: {}", epoch.on_disk);
                    ensure!(epoch.needs.contains(&1), "{number}: {:?}", epoch.needs);
                }
                carries_on(trial, job)
            },
        );
    }
}

/// Returns an image that another one needs.
fn needed(trial: &Trial) -> Result<PathBuf, Failed> {
    let shown = said(trial, &["inspect", "--json"])?.expect(exit::DONE)?;
    let shown = shown.json()?;
    for image in shown["images"].as_array().into_iter().flatten() {
        let this = image["identity"]["rank"].as_u64().unwrap_or(0);
        for shared in image["shared"].as_array().into_iter().flatten() {
            match shared["rank"].as_u64() {
                Some(rank) if rank != this => {
                    let epoch = trial.epochs_at().join("epoch-000001");
                    return Ok(epoch.join(format!("rank-{rank:06}.img")));
                }
                _ => {}
            }
        }
    }
    Err("no image needs another one".into())
}

/// If an image that others need is missing or broken, `verify` and the restart name its file.
#[test]
fn an_image_that_another_needs_is_missed_by_name() {
    tried("lost-tables", 2, &["20"], &[], |trial, job| {
        trial.suspended(job)?;
        let path = needed(trial)?;
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let sound = fs::read(&path).map_err(|e| e.to_string())?;
        let names = |text: &str, what: &str| text.contains(what) && text.contains(&name);
        let refused = |verified: &str, restarted: &[&str]| -> Result<Ended, Failed> {
            let answer = said(trial, &["verify"])?.expect(exit::FAILED)?;
            let needed = "2 of 2 images need this";
            ensure!(names(&answer.stderr, needed), "{}", answer.show());
            ensure!(names(&answer.stderr, verified), "{}", answer.show());
            let ended = trial.restarted()?.end(PATIENCE)?;
            ensure!(ended.status != 0, "it was restarted");
            let said = restarted.iter().any(|word| names(&ended.stderr, word));
            ensure!(said, "{}", ended.show());
            Ok(ended)
        };
        fs::remove_file(&path).map_err(|e| e.to_string())?;
        // The rank of the image, or one that needs it, reports first, and then the launch ends.
        let missing = "cannot open the image";
        refused(missing, &[missing, "needs the image of rank"])?;
        // This byte is page data of the image, in the middle of the table.
        let mut broken = sound.clone();
        let middle = broken.len() / 2;
        broken[middle] ^= 1;
        fs::write(&path, &broken).map_err(|e| e.to_string())?;
        let ended = refused("checksum", &["checksum"])?;
        // Every rank needs the image, and one of them reports it.
        reason::one(&ended.stderr, &[&name])?;
        fs::write(&path, &sound).map_err(|e| e.to_string())?;
        trial.go()?;
        trial.ends_well(trial.restarted()?)?;
        Ok(())
    });
}
