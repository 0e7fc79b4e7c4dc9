//! The common parts of the self-checking Rust programs: the same protocol as `common.h`.

use std::env;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

/// The rounds of a moving program before it reports that it is ready.
const LEAST_ROUNDS: u64 = 20;

/// A program's start, its errors, and its end.
pub struct Trial {
    universe: Universe,
    pub rank: i32,
    pub size: i32,
    wrong: AtomicU32,
}

/// Reports an error if a condition does not hold; the program goes on, to find more errors.
#[macro_export]
macro_rules! check {
    ($trial:expr, $condition:expr, $($text:tt)+) => {
        if !$condition {
            $trial.wrong(file!(), line!(), &format!($($text)+));
        }
    };
}

impl Trial {
    /// Starts MPI without threads.
    pub fn start() -> Trial {
        Trial::of(mpi::initialize().expect("MPI starts"))
    }

    /// Starts MPI for threads.
    pub fn start_threads(level: Threading) -> Trial {
        let (universe, provided) = mpi::initialize_with_threading(level).expect("MPI starts");
        let trial = Trial::of(universe);
        check!(
            trial,
            provided >= level,
            "{provided:?} granted, {level:?} asked for"
        );
        trial
    }

    fn of(universe: Universe) -> Trial {
        let world = universe.world();
        Trial {
            rank: world.rank(),
            size: world.size(),
            universe,
            wrong: AtomicU32::new(0),
        }
    }

    pub fn world(&self) -> SimpleCommunicator {
        self.universe.world()
    }

    /// Returns the rank `steps` further round the ring.
    pub fn neighbour(&self, steps: i32) -> i32 {
        (self.rank + steps).rem_euclid(self.size)
    }

    pub fn wrong(&self, file: &str, line: u32, text: &str) {
        if self.wrong.fetch_add(1, Ordering::Relaxed) < 10 {
            eprintln!("WRONG rank {}: {file}:{line}: {text}", self.rank);
        }
    }

    /// Tells whether there was no error so far.
    pub fn right(&self) -> bool {
        self.wrong.load(Ordering::Relaxed) == 0
    }

    /// Tells the harness that this rank is where it wants to be checkpointed.
    pub fn ready(&self) {
        if let Some(path) = in_directory(&format!("ready.{}", self.rank)) {
            File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    /// Reports that the rank is ready, then waits outside MPI.
    pub fn hold(&self) {
        self.ready();
        wait_for_go();
    }

    /// Tells rank 0 of a moving program whether there will be a round after this one.
    pub fn goes_on(&self, round: u64) -> bool {
        if round == LEAST_ROUNDS {
            self.ready();
        }
        round <= LEAST_ROUNDS || !may_go()
    }

    /// Ends MPI, and prints OK if there was no error. No rank is in `MPI_Finalize` before `go`.
    pub fn finish(self) -> ExitCode {
        wait_for_go();
        drop(self.universe);
        match self.wrong.into_inner() {
            0 => {
                println!("OK {}", self.rank);
                ExitCode::SUCCESS
            }
            count => {
                eprintln!("WRONG rank {}: {count} checks failed", self.rank);
                ExitCode::FAILURE
            }
        }
    }
}

fn in_directory(name: &str) -> Option<PathBuf> {
    env::var_os("TRIAL_DIR").map(|directory| PathBuf::from(directory).join(name))
}

/// Tells whether the program may go on.
pub fn may_go() -> bool {
    in_directory("go").is_none_or(|path| path.exists())
}

/// Waits for `go` outside MPI, mostly asleep.
pub fn wait_for_go() {
    while !may_go() {
        thread::sleep(Duration::from_millis(2));
    }
}
