//! Nodes that are lost at seeded moments. `STILLPOINT_HOSTS_SEEDS=1..31` plays thirty, two at a time; `STILLPOINT_HOSTS_TABLE=FILE` names the file for
//! a table of them.

use std::env;
use std::fs;
use std::sync::Mutex;
use std::thread;

use stillpoint_tests::seed::Seed;
use stillpoint_tests::{Failed, ensure};

use crate::loss::{Outcome, bound, lose};
use crate::scene::{Blow, Moment, Scene, Storage};

/// The scenes in the suite: a link and a whole node, rank 0's node and others, with tiers, with copies there and without either.
const ALWAYS: [u64; 3] = [2, 3, 5];

fn seeds() -> Vec<u64> {
    let named = env::var("STILLPOINT_HOSTS_SEEDS").ok();
    match named.as_deref().and_then(Seed::range) {
        Some(range) => range.collect(),
        None => ALWAYS.to_vec(),
    }
}

fn row(outcome: &Outcome) -> String {
    format!(
        "| {} | {} | {} | {} | {:.1} s | {:.1} s |\n",
        outcome.scene,
        outcome.before,
        outcome.after,
        outcome.carried_on,
        outcome.mpirun.as_secs_f64(),
        outcome.resumed.as_secs_f64()
    )
}

const HEAD: &str = "| seed | images go to | ranks on nodes 1 to 4 | lost | at | restarted as | durable at the loss | at the end | carried on | mpirun ended \
    | next epoch |\n|--:|---|---|---|---|---|--:|--:|--:|--:|--:|\n";

#[test]
fn whatever_node_is_lost_and_when_the_newest_durable_epoch_is_carried_on_by_those_that_are_left() {
    let tested = || -> Result<(), Failed> {
        let waiting = Mutex::new(seeds().into_iter());
        let done = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let Some(seed) = waiting.lock().ok().and_then(|mut seeds| seeds.next())
                        else {
                            return;
                        };
                        let played = lose(&Scene::of(seed));
                        match &played {
                            Ok(outcome) => print!("{}", row(outcome)),
                            Err(failed) => println!("{}: {failed}", Scene::of(seed)),
                        }
                        if let Ok(mut done) = done.lock() {
                            done.push((seed, played));
                        }
                    }
                });
            }
        });
        let mut done = done.into_inner().map_err(|error| error.to_string())?;
        done.sort_by_key(|(seed, _)| *seed);
        if let Some(file) = env::var_os("STILLPOINT_HOSTS_TABLE") {
            let rows = done.iter().filter_map(|(_, played)| played.as_ref().ok());
            let table: String = rows.map(row).collect();
            fs::write(file, format!("{HEAD}{table}")).map_err(|error| error.to_string())?;
        }
        let failed: Vec<String> = done
            .into_iter()
            .filter_map(|(seed, played)| Some(format!("seed {seed}: {}", played.err()?)))
            .collect();
        ensure!(
            failed.is_empty(),
            "{}\n(bound: {})",
            failed.join("\n"),
            bound()
        );
        Ok(())
    };
    if let Err(failed) = tested() {
        panic!("{failed}");
    }
}

#[test]
fn thirty_seeds_are_of_every_kind() {
    let scenes: Vec<Scene> = (1..31).map(Scene::of).collect();
    for lost in 0..4 {
        assert!(scenes.iter().filter(|scene| scene.lost == lost).count() >= 3);
    }
    for blow in [Blow::Cut, Blow::Dead] {
        assert!(scenes.iter().filter(|scene| scene.blow == blow).count() >= 5);
    }
    for storage in [Storage::Plain, Storage::Tiers, Storage::Partner] {
        let with = scenes.iter().filter(|scene| scene.storage == storage);
        assert!(with.count() >= 5);
    }
    let at_points = scenes
        .iter()
        .filter(|scene| matches!(scene.moment, Moment::At(_)));
    assert!(at_points.count() >= 15);
}
