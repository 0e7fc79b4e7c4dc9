//! Whole programs: the list, their own figures, and their rates of MPI calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::{Failed, ensure};

use crate::options::Options;
use crate::programs::{Programs, this_bench};
use crate::progress::Progress;
use crate::row::Row;
use crate::settings::{Group, Setting, Unit};
use crate::slices::{self, Job, Lap};
use crate::turns;
use crate::way::Way;

/// A program and the figures of a run of it.
struct Application {
    /// Its short name.
    name: &'static str,
    /// The MPI that starts it.
    mpi: Mpi,
    program: PathBuf,
    arguments: Vec<String>,
    /// The file in its directory in which it reports its progress.
    watched: Option<&'static str>,
    figures: Vec<Figure>,
}

/// A figure of a run: label, unit, and how to find it.
struct Figure {
    label: &'static str,
    unit: Unit,
    read: fn(&Lap) -> Option<Duration>,
}

/// The number of a program's MPI calls in a second, natively, on rank 0.
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

/// Times LAMMPS from its first line of figures to its last.
fn steps(lap: &Lap) -> Option<Duration> {
    let figures = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() > 3 && words.iter().all(|word| word.parse::<f64>().is_ok())
    };
    lap.between(figures, figures)
}

/// Times one part of HPCC from its beginning to its end.
fn section(lap: &Lap, name: &str) -> Option<Duration> {
    lap.between(
        |line| line == format!("Begin of {name} section."),
        |line| line == format!("End of {name} section."),
    )
}

/// Returns the installed programs. Debian's are built for the machine's own MPI, so they are used only with that one.
fn applications(programs: &Programs) -> Vec<Application> {
    let found = |name: &str| programs.mpi.is_own().then(|| found(name)).flatten();
    let whole = |label, unit| Figure {
        label,
        unit,
        read: |lap| Some(lap.whole),
    };
    let melt = place::sources().join("applications").join("melt.in");
    let mut all = vec![Application {
        name: "start",
        mpi: programs.mpi.clone(),
        program: programs.start.clone(),
        arguments: vec![],
        watched: None,
        figures: vec![whole(
            "`mpirun` of two ranks that start MPI and end it",
            Unit::Milliseconds,
        )],
    }];
    all.push(Application {
        name: "children",
        mpi: programs.mpi.clone(),
        program: programs.start.clone(),
        arguments: vec!["1000".to_owned()],
        watched: None,
        figures: vec![
            Figure {
                label: "`fork` and `execve` of `true` by a rank",
                unit: Unit::Milliseconds,
                read: |lap| told(lap, "forked "),
            },
            Figure {
                label: "`posix_spawn` of `true` by a rank",
                unit: Unit::Milliseconds,
                read: |lap| told(lap, "spawned "),
            },
        ],
    });
    if let Some(program) = found("python3").filter(|python| has_scipy(python)) {
        all.push(Application {
            name: "python",
            mpi: programs.mpi.clone(),
            program,
            arguments: ["-c", "import numpy, scipy"].map(str::to_owned).to_vec(),
            watched: None,
            figures: vec![whole(
                "`mpirun` of two ranks `python3 -c 'import numpy, scipy'`",
                Unit::Milliseconds,
            )],
        });
    }
    if let Some(program) = found("lmp") {
        let words = [
            "-in",
            &melt.display().to_string(),
            "-log",
            "log.lammps",
            "-var",
            "every",
            "50",
            "-var",
            "steps",
            "1500",
        ];
        all.push(Application {
            name: "lammps",
            mpi: programs.mpi.clone(),
            program,
            arguments: words.map(str::to_owned).to_vec(),
            watched: Some("log.lammps"),
            figures: vec![Figure {
                label: "LAMMPS, 4,000 atoms: 1,500 steps",
                unit: Unit::Seconds,
                read: steps,
            }],
        });
    }
    if let Some(program) = found("hpcc") {
        all.push(Application {
            name: "hpcc",
            mpi: programs.mpi.clone(),
            program,
            arguments: vec![],
            watched: Some("hpccoutf.txt"),
            figures: vec![
                whole("HPCC: the whole run, with its start", Unit::Seconds),
                Figure {
                    label: "HPCC: from its first line to its last",
                    unit: Unit::Seconds,
                    read: |lap| lap.between(|_| true, |_| true),
                },
                Figure {
                    label: "HPCC: HPL (2,000 unknowns)",
                    unit: Unit::Seconds,
                    read: |lap| section(lap, "HPL"),
                },
                Figure {
                    label: "HPCC: MPIRandomAccess, with its check",
                    unit: Unit::Seconds,
                    read: |lap| section(lap, "MPIRandomAccess"),
                },
            ],
        });
    }
    all
}

/// Returns the nanoseconds that a short program's line tells.
fn told(lap: &Lap, beginning: &str) -> Option<Duration> {
    let mut lines = lap.lines.iter();
    let nanoseconds = lines.find_map(|(line, _)| line.strip_prefix(beginning))?;
    Some(Duration::from_nanos(nanoseconds.parse().ok()?))
}

/// Whether the libraries are there that the row imports.
fn has_scipy(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import numpy, scipy"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// Finds a program in PATH.
fn found(name: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH")?;
    std::env::split_paths(&search)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

impl Application {
    fn group(&self) -> Group {
        if ["start", "children", "python"].contains(&self.name) {
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

    /// Adds the program in that directory to `command`, which is everything before its name.
    fn command(&self, mut command: Command, directory: &Path) -> Result<Command, Failed> {
        if let Some(watched) = self.watched {
            // The file may have lines of an earlier run, and HPCC appends to it.
            let _ = fs::remove_file(directory.join(watched));
        }
        if self.name == "hpcc" {
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
        Ok(command)
    }

    /// Runs the program alone.
    fn run(&self, command: Command, directory: &Path) -> Result<Lap, Failed> {
        let mut command = self.command(command, directory)?;
        let begun = Instant::now();
        let output = command
            .output()
            .map_err(|error| format!("cannot start mpirun: {error}"))?;
        let whole = begun.elapsed();
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?}: {complaint}");
        let said = String::from_utf8_lossy(&output.stdout);
        Ok(Lap {
            whole,
            lines: said.lines().map(|line| (line.to_owned(), whole)).collect(),
        })
    }

    /// Runs the program once in each way: one after the other if it is short, else side by side.
    fn laps(&self, ways: &[Way], directory: &Path) -> Result<Vec<Lap>, Failed> {
        if self.group() == Group::Start {
            let run = |way: &Way| self.run(way.command(&self.mpi, directory)?, directory);
            return ways.iter().map(run).collect();
        }
        let job = |way: &Way| {
            let directory = directory.join(format!("{}-{}", self.name, way.name()));
            fs::create_dir_all(&directory)
                .map_err(|error| format!("{}: {error}", directory.display()))?;
            Ok(Job {
                command: self.command(way.command(&self.mpi, &directory)?, &directory)?,
                watched: self.watched,
                directory,
            })
        };
        let jobs: Result<Vec<Job>, Failed> = ways.iter().map(job).collect();
        slices::run(jobs?)
    }

    /// Runs the program once in every way, and adds a figure to every row.
    fn pass(&self, rows: &mut [Row], ways: &[Way], directory: &Path) -> Result<(), Failed> {
        let laps = self.laps(ways, directory)?;
        for (row, figure) in rows.iter_mut().zip(&self.figures) {
            let told = |(way, lap): (&Way, &Lap)| {
                let time = (figure.read)(lap)
                    .ok_or_else(|| format!("{}: not told by its run", figure.label))?;
                Ok((*way, time.as_nanos() as f64))
            };
            let round: Result<Vec<(Way, f64)>, Failed> = ways.iter().zip(&laps).map(told).collect();
            row.begin_launch();
            row.add(&round?);
        }
        Ok(())
    }

    /// Runs the program natively and counts its calls.
    fn rate(&self, programs: &Programs, directory: &Path) -> Result<Rate, Failed> {
        let counted = directory.join("calls");
        let mut command = Way::Native.command(&self.mpi, directory)?;
        let preload = programs.count_calls.display().to_string();
        match self.mpi.is_own() {
            true => command.arg("-x").arg(format!("LD_PRELOAD={preload}")),
            false => command.args(["-genv", "LD_PRELOAD", &preload]),
        };
        command.env("CALLS_FILE", &counted);
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

/// Tells whether there is any program to run.
pub fn wanted(programs: &Programs, options: &Options) -> bool {
    applications(programs)
        .iter()
        .any(|application| application.wanted(options))
}

/// Runs all wanted and installed programs until the time is over.
pub fn measure(programs: &Programs, options: &Options, time: Duration) -> Result<Vec<Row>, Failed> {
    let directory = Directory::new("overhead-programs")?;
    let mut all: Vec<(Application, Vec<Row>)> = applications(programs)
        .into_iter()
        .filter(|application| application.wanted(options))
        .map(|application| {
            let rows = application.rows();
            (application, rows)
        })
        .collect();
    let ways = options.own_ways();
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

/// Returns the rates of the programs' MPI calls.
pub fn rates(programs: &Programs, options: &Options) -> Result<Vec<Rate>, Failed> {
    let directory = Directory::new("overhead-rates")?;
    let spectral = Application {
        name: "spectral",
        mpi: programs.mpi.clone(),
        program: programs.worker.clone(),
        arguments: ["--once", "spectral", "256", "300"]
            .map(str::to_owned)
            .to_vec(),
        watched: None,
        figures: vec![],
    };
    applications(programs)
        .iter()
        .chain([&spectral])
        .filter(|application| application.group() != Group::Start && application.wanted(options))
        .map(|application| application.rate(programs, directory.path()))
        .collect()
}
