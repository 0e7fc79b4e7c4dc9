//! Features of `tests/programs/chaos`: the list, the choice by seed, and the trial of several together.

use std::process::Command;
use std::thread;
use std::time::Duration;

use stillpoint_refusals::Code;

use crate::command::{self, exit};
use crate::place::Directory;
use crate::program::Program;
use crate::seed::Seed;
use crate::trial::Trial;
use crate::{Failed, ensure};

const RANKS: u32 = 2;
/// The longest wait, during which timers fire.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// A feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    pub name: String,
    /// The reason for which a checkpoint is refused while the feature exists.
    pub refused: Option<Code>,
}

/// Returns all features, as the program itself lists them.
pub fn features(program: &Program) -> Result<Vec<Feature>, Failed> {
    let executable = program.build()?;
    let listed = Command::new(&executable).arg("--list").output();
    let listed = listed.map_err(|error| format!("{}: {error}", executable.display()))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    let features = lines.map(|(name, refused)| -> Result<Feature, Failed> {
        let code = || Code::named(refused).ok_or_else(|| format!("'{refused}' is no code"));
        Ok(Feature {
            name: name.to_owned(),
            refused: (!refused.is_empty()).then(code).transpose()?,
        })
    });
    let features: Vec<Feature> = features.collect::<Result<_, Failed>>()?;
    ensure!(!features.is_empty(), "the program lists no features");
    Ok(features)
}

/// Returns one feature by its name.
pub fn named(features: &[Feature], name: &str) -> Result<Feature, Failed> {
    let found = features.iter().find(|feature| feature.name == name);
    found
        .cloned()
        .ok_or_else(|| format!("no feature '{name}' in tests/programs/chaos"))
}

/// Chooses two or three features.
pub fn choose(features: &[Feature], seed: &mut Seed) -> Vec<Feature> {
    let count = 2 + seed.below(2) as usize;
    let mut chosen: Vec<Feature> = vec![];
    while chosen.len() < count {
        let feature = &features[seed.below(features.len() as u64) as usize];
        if !chosen.contains(feature) {
            chosen.push(feature.clone());
        }
    }
    chosen
}

/// Runs features together natively; then suspends and restarts them twice, or checks that they are refused by name.
pub fn together(program: &Program, features: &[Feature]) -> Result<(), Failed> {
    let names: Vec<String> = features.iter().map(|one| one.name.clone()).collect();
    let tested = (|| {
        let with = |way: &str, test: &dyn Fn(&Trial) -> Result<(), Failed>| {
            Directory::new(&format!("chaos-{}-{way}", names[0]))?.run(|directory| {
                let mut trial = Trial::new(program, RANKS, directory)?;
                trial.arguments = names.clone();
                test(&trial)
            })
        };
        with("natively", &natively)?;
        let refused = features.iter().find_map(|one| one.refused);
        match refused {
            Some(code) => with("refused", &|trial| is_refused(trial, code)),
            None => with("restarted", &restarts),
        }
    })();
    tested.map_err(|failed| format!("{failed}\n(features: {})", names.join(",")))
}

fn natively(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.native()?;
    trial.ready(&mut job)?;
    trial.go()?;
    trial.ends_well(job).map(drop)
}

fn restarts(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    for _ in 0..2 {
        trial.suspended(job)?;
        job = trial.resumed()?;
        thread::sleep(LONGEST_WAIT);
    }
    trial.go()?;
    trial.ends_well(job).map(drop)
}

fn is_refused(trial: &Trial, code: Code) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    command::suspend(trial.directory, &trial.epochs_at())?.expect_code(exit::REFUSED, code)?;
    trial.go()?;
    trial.ends_well(job).map(drop)
}
