//! Whole programs, one run after the other in turn, and how often they call MPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::{Failed, ensure};

use crate::options::Options;
use crate::programs::{Programs, this_bench};
use crate::progress::Progress;
use crate::row::Row;
use crate::settings::{Group, Setting, Unit};
use crate::turns;
use crate::way::Way;

/// A program and what is read off a run of it.
struct Application {
    /// Its short name.
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    figures: Vec<Figure>,
}

/// Something that a run tells: label, unit, and how it is found in what the run has left.
struct Figure {
    label: &'static str,
    unit: Unit,
    read: fn(&Run) -> Option<f64>,
}

/// A run that has ended.
struct Run {
    wall_nanoseconds: f64,
    stdout: String,
    directory: PathBuf,
}

/// How often a program calls MPI, natively, in a second of rank 0.
#[derive(Clone, Debug)]
pub struct Rate {
    pub program: &'static str,
    pub collective: f64,
    pub between_two: f64,
}

impl Rate {
    pub fn to_json(&self) -> Value {
        json!({
            "program": self.program,
            "collective": self.collective,
            "point_to_point": self.between_two,
        })
    }
}

fn seconds(text: &str) -> Option<f64> {
    Some(text.trim().parse::<f64>().ok()? * 1e9)
}

/// LAMMPS: "Loop time of 1.7086 on 2 procs for ...".
fn loop_time(run: &Run) -> Option<f64> {
    let line = run
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("Loop time of "))?;
    seconds(line.split_whitespace().next()?)
}

/// HPCC's summary: "HPL_time=1.44098".
fn summary(run: &Run, key: &str) -> Option<f64> {
    let text = fs::read_to_string(run.directory.join("hpccoutf.txt")).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    seconds(value)
}

fn applications(programs: &Programs) -> Vec<Application> {
    let whole = |label, unit| Figure {
        label,
        unit,
        read: |run| Some(run.wall_nanoseconds),
    };
    let melt = place::sources().join("applications").join("melt.in");
    let mut all = vec![Application {
        name: "start",
        program: programs.start.clone(),
        arguments: vec![],
        figures: vec![whole(
            "`mpirun` of two ranks that start MPI and end it",
            Unit::Milliseconds,
        )],
    }];
    if let Some(program) = found("lmp") {
        let words = [
            "-in",
            &melt.display().to_string(),
            "-log",
            "none",
            "-var",
            "every",
            "50",
            "-var",
            "steps",
            "300",
        ];
        all.push(Application {
            name: "lammps",
            program,
            arguments: words.map(str::to_owned).to_vec(),
            figures: vec![Figure {
                label: "LAMMPS, 4,000 atoms, 300 steps: its loop time",
                unit: Unit::Seconds,
                read: loop_time,
            }],
        });
    }
    if let Some(program) = found("hpcc") {
        all.push(Application {
            name: "hpcc",
            program,
            arguments: vec![],
            figures: vec![
                whole("HPCC: the whole run, with its start", Unit::Seconds),
                Figure {
                    label: "HPCC: HPL (2,000 unknowns)",
                    unit: Unit::Seconds,
                    read: |run| summary(run, "HPL_time"),
                },
                Figure {
                    label: "HPCC: MPIRandomAccess",
                    unit: Unit::Seconds,
                    read: |run| summary(run, "MPIRandomAccess_time"),
                },
            ],
        });
    }
    all
}

/// A program in PATH.
fn found(name: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH")?;
    std::env::split_paths(&search)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

impl Application {
    fn group(&self) -> Group {
        if self.name == "start" {
            Group::Start
        } else {
            Group::Programs
        }
    }

    fn wanted(&self, options: &Options) -> bool {
        options.wants(self.group().name(), self.name)
    }

    fn rows(&self) -> Vec<Row> {
        let row = |figure: &Figure| {
            Row::new(Setting::new(
                self.group(),
                figure.label,
                self.name,
                0,
                figure.unit,
            ))
        };
        self.figures.iter().map(row).collect()
    }

    /// Runs it once; `command` is all up to the program.
    fn run(&self, mut command: Command, directory: &Path) -> Result<Run, Failed> {
        if self.name == "hpcc" {
            // It appends to what is there.
            let _ = fs::remove_file(directory.join("hpccoutf.txt"));
            fs::copy(
                this_bench().join("hpccinf.txt"),
                directory.join("hpccinf.txt"),
            )
            .map_err(|error| format!("hpccinf.txt: {error}"))?;
        }
        command
            .arg(&self.program)
            .args(&self.arguments)
            .current_dir(directory)
            .stdin(Stdio::null());
        let begun = Instant::now();
        let output = command
            .output()
            .map_err(|error| format!("cannot start mpirun: {error}"))?;
        let wall_nanoseconds = begun.elapsed().as_nanos() as f64;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?}: {complaint}");
        Ok(Run {
            wall_nanoseconds,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            directory: directory.to_owned(),
        })
    }

    /// One run of every way; a figure for every row.
    fn pass(&self, rows: &mut [Row], ways: &[Way], directory: &Path) -> Result<(), Failed> {
        let mut round = vec![vec![]; self.figures.len()];
        for way in ways {
            let run = self.run(way.command(directory)?, directory)?;
            for (figure, round) in self.figures.iter().zip(&mut round) {
                let value = (figure.read)(&run)
                    .ok_or_else(|| format!("{}: not told by its run", figure.label))?;
                round.push((*way, value));
            }
        }
        for (row, round) in rows.iter_mut().zip(&round) {
            row.begin_launch();
            row.add(round);
        }
        Ok(())
    }

    /// A native run with its calls counted.
    fn rate(&self, programs: &Programs, directory: &Path) -> Result<Rate, Failed> {
        let counted = directory.join("calls");
        let mut command = Way::Native.command(directory)?;
        command
            .arg("-x")
            .arg(format!("LD_PRELOAD={}", programs.count_calls.display()))
            .env("CALLS_FILE", &counted);
        self.run(command, directory)?;
        let text = fs::read_to_string(&counted)
            .map_err(|error| format!("{}: {error}", counted.display()))?;
        let numbers: Vec<f64> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [collective, between_two, seconds] = numbers[..] else {
            return Err(format!("{}: not three numbers: {text}", counted.display()));
        };
        Ok(Rate {
            program: self.name,
            collective: collective / seconds,
            between_two: between_two / seconds,
        })
    }
}

/// Whether there is any program to run.
pub fn wanted(programs: &Programs, options: &Options) -> bool {
    applications(programs)
        .iter()
        .any(|application| application.wanted(options))
}

/// Runs all programs that are wanted and here, in turn, until the time is over.
pub fn measure(
    programs: &Programs,
    options: &Options,
    time: std::time::Duration,
) -> Result<Vec<Row>, Failed> {
    let directory = Directory::new("overhead-programs")?;
    let mut all: Vec<(Application, Vec<Row>)> = applications(programs)
        .into_iter()
        .filter(|application| application.wanted(options))
        .map(|application| {
            let rows = application.rows();
            (application, rows)
        })
        .collect();
    let ways = options.all_ways();
    let mut progress = Progress::new("programs".to_owned());
    let begun = Instant::now();
    let mut round = 0;
    while !all.is_empty()
        && options
            .rounds
            .map_or(round < 3 || begun.elapsed() < time, |most| round < most)
    {
        let turns = turns::order(ways.len(), round as usize);
        let ways: Vec<Way> = turns.into_iter().map(|turn| ways[turn]).collect();
        for (application, rows) in &mut all {
            application.pass(rows, &ways, directory.path())?;
        }
        round += 1;
        progress.say(&format!("round {round}"));
    }
    Ok(all.into_iter().flat_map(|(_, rows)| rows).collect())
}

/// How often the programs call MPI.
pub fn rates(programs: &Programs, options: &Options) -> Result<Vec<Rate>, Failed> {
    let directory = Directory::new("overhead-rates")?;
    let spectral = Application {
        name: "spectral",
        program: programs.worker.clone(),
        arguments: ["--once", "spectral", "256", "300"]
            .map(str::to_owned)
            .to_vec(),
        figures: vec![],
    };
    applications(programs)
        .iter()
        .chain([&spectral])
        .filter(|application| application.name != "start" && application.wanted(options))
        .map(|application| application.rate(programs, directory.path()))
        .collect()
}
