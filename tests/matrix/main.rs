//! Programs that change their MPI at a restart: every library at the start with every library at the restart, and back. Writes a table in markdown.
//!
//! `ci/matrix` runs it; by hand: `matrix --mpis DIR [--on NAME...] [--program NAME...]`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use stillpoint_tests::Failed;
use stillpoint_tests::mpis::{self, Mpi, OWN};
use stillpoint_tests::program::{Kind, Program};

/// Runs programs on one MPI library, carries them on on another and back, and writes a table of what came of it
#[derive(Debug, Parser)]
struct Options {
    /// Where `ci/mpis` has put the MPIs
    #[arg(long, value_name = "DIR")]
    mpis: PathBuf,

    /// These MPIs: `own` is the machine's, the others are named as in DIR
    #[arg(long, value_name = "NAME", num_args = 1.., default_values = [OWN, "mpich-debian", "mpich"])]
    on: Vec<String>,

    /// These programs alone
    #[arg(long, value_name = "NAME", num_args = 1..)]
    program: Vec<String>,
}

/// What came of one program on one pair.
struct Line {
    program: String,
    why: Option<String>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failed) => {
            eprintln!("{failed}");
            ExitCode::from(2)
        }
    }
}

/// Whether every program came through on every pair.
fn run(options: &Options) -> Result<bool, Failed> {
    let mpis: Vec<Mpi> = options
        .on
        .iter()
        .map(|name| Mpi::named(&options.mpis, name))
        .collect::<Result<_, _>>()?;
    let programs = programs(&options.program)?;
    let mut all = vec![];
    for from in &mpis {
        for to in &mpis {
            let lines = programs
                .iter()
                .map(|program| tried(program, from, to))
                .collect();
            all.push((from.name.clone(), to.name.clone(), lines));
        }
    }
    print!("{}", table(&all, programs.len()));
    Ok(all
        .iter()
        .all(|(_, _, lines)| lines.iter().all(|line| line.why.is_none())))
}

/// C and C++ programs, `still` and `moving`.
fn programs(names: &[String]) -> Result<Vec<Program>, Failed> {
    let mut programs = Program::all(Kind::Still)?;
    programs.extend(Program::all(Kind::Moving)?);
    programs.retain(|program| names.is_empty() || names.contains(&program.name));
    Ok(programs)
}

/// There, and back where that is another one.
fn tried(program: &Program, from: &Mpi, to: &Mpi) -> Line {
    let begun = Instant::now();
    let ranks = program.ranks.first().copied().unwrap_or(2);
    let came = mpis::changes(program, ranks, &[from, to, from]);
    let seconds = begun.elapsed().as_secs_f64();
    let word = if came.is_ok() { "ok" } else { "NO" };
    eprintln!(
        "{word:<3} {:<36} {} > {} > {} {seconds:.1} s",
        program.name, from.name, to.name, from.name
    );
    if let Err(failed) = &came {
        eprintln!("{failed}");
    }
    Line {
        program: program.name.clone(),
        why: came.err().map(|failed| reason(&failed)),
    }
}

/// The line of a failure's text that says most: the application's own, else Stillpoint's, else the first.
fn reason(failed: &str) -> String {
    let lines = || {
        failed
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let found = [
        "WRONG",
        "stillpoint: rank",
        "stillpoint: epoch",
        "stillpoint:",
        "Abort(",
    ]
    .iter()
    .find_map(|word| lines().find(|line| line.contains(word)));
    let line = found.or_else(|| lines().next()).unwrap_or_default();
    line.replace('|', "/").chars().take(180).collect()
}

fn table(all: &[(String, String, Vec<Line>)], programs: usize) -> String {
    let mut text = String::from(
        "| started on | carried on on, and back | programs | right |\n|---|---|---|---|\n",
    );
    let mut failures: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (from, to, lines) in all {
        let right = lines.iter().filter(|line| line.why.is_none()).count();
        let _ = writeln!(text, "| {from} | {to} | {programs} | {right} |");
        for line in lines {
            if let Some(why) = &line.why {
                failures
                    .entry((line.program.clone(), why.clone()))
                    .or_default()
                    .push(format!("{from} > {to}"));
            }
        }
    }
    if !failures.is_empty() {
        text.push_str("\n| program | pairs | what it, or Stillpoint, said |\n|---|---|---|\n");
    }
    for ((program, why), pairs) in failures {
        let _ = writeln!(text, "| `{program}` | {} | {why} |", pairs.join(", "));
    }
    text
}
