//! Programs that change their MPI at a restart: every library at the start with every library at the restart, and back. Writes a table in markdown.
//!
//! `ci/matrix` runs it; by hand: `matrix --mpis DIR [--for NAME...] [--on NAME... | --pair START,RESTART...] [--few] [--program NAME...]`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use stillpoint_tests::Failed;
use stillpoint_tests::mpis::{self, Mpi, OWN};
use stillpoint_tests::program::{Kind, Program};

/// Runs programs that were built for one MPI on one library, carries them on on another and back, and writes a table of what came of it
#[derive(Debug, Parser)]
struct Options {
    /// Where `ci/mpis` has put the MPIs
    #[arg(long, value_name = "DIR")]
    mpis: PathBuf,

    /// These MPIs: `own` is the machine's, the others are named as in DIR
    #[arg(long, value_name = "NAME", num_args = 1.., default_values = [OWN, "openmpi", "mpich-debian", "mpich", "impi"])]
    on: Vec<String>,

    /// These pairs alone, the library at the start and the one at the restart
    #[arg(long, value_name = "START,RESTART", num_args = 1.., value_parser = pair, conflicts_with = "on")]
    pair: Vec<(String, String)>,

    /// Programs built for these MPIs
    #[arg(long = "for", value_name = "NAME", num_args = 1.., default_values = [OWN, "mpich-debian", "mpich"])]
    built_for: Vec<String>,

    /// A program or two of each area, in place of all
    #[arg(long)]
    few: bool,

    /// These programs alone
    #[arg(long, value_name = "NAME", num_args = 1..)]
    program: Vec<String>,
}

/// Messages in both directions, in parts and under way, collective operations, objects, windows, files, errors, and a moving program.
const FEW: [&str; 12] = [
    "attributes",
    "collective_mix",
    "communicator_kinds",
    "derived_types_in_flight",
    "error_handlers",
    "files_views",
    "iallreduce_pending",
    "message_order",
    "persistent_started",
    "ring",
    "user_operators",
    "windows_fence",
];

/// The results of all programs that were built for one MPI, on one pair.
struct Pair {
    built_for: String,
    from: String,
    to: String,
    lines: Vec<Line>,
}

/// The result of one program on one pair.
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

/// Parses two names with a comma between them.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(',');
    pair.map(|(from, to)| (from.to_owned(), to.to_owned()))
        .ok_or_else(|| "START,RESTART".to_owned())
}

/// Returns whether every program succeeded on every pair.
fn run(options: &Options) -> Result<bool, Failed> {
    let named = |names: &[String]| -> Result<Vec<Mpi>, Failed> {
        let mpis = names.iter().map(|name| Mpi::named(&options.mpis, name));
        mpis.collect()
    };
    let built_for = named(&options.built_for)?;
    let mut pairs = vec![];
    for (from, to) in pairs_of(options) {
        pairs.push((
            Mpi::named(&options.mpis, &from)?,
            Mpi::named(&options.mpis, &to)?,
        ));
    }
    let chosen: Vec<String> = match options.few {
        true => FEW.map(str::to_owned).into(),
        false => options.program.clone(),
    };
    let programs = programs(&chosen)?;
    let mut all = vec![];
    for built_for in &built_for {
        let for_it = programs
            .iter()
            .filter(|it| built_for.has(it.language()))
            .map(|it| it.built_for(built_for));
        let programs: Vec<Program> = for_it.collect();
        for (from, to) in &pairs {
            let lines = programs.iter().map(|program| tried(program, from, to));
            all.push(Pair {
                built_for: built_for.name.clone(),
                from: from.name.clone(),
                to: to.name.clone(),
                lines: lines.collect(),
            });
        }
    }
    print!("{}", table(&all));
    Ok(all
        .iter()
        .all(|pair| pair.lines.iter().all(|line| line.why.is_none())))
}

/// Returns the named pairs, or else every library with every library.
fn pairs_of(options: &Options) -> Vec<(String, String)> {
    if !options.pair.is_empty() {
        return options.pair.clone();
    }
    let with_all = |from: &String| -> Vec<(String, String)> {
        let pairs = options.on.iter().map(|to| (from.clone(), to.clone()));
        pairs.collect()
    };
    options.on.iter().flat_map(with_all).collect()
}

/// Returns programs of all languages, `still` and `moving`.
fn programs(names: &[String]) -> Result<Vec<Program>, Failed> {
    let mut programs = Program::all(Kind::Still)?;
    programs.extend(Program::all(Kind::Moving)?);
    programs.retain(|program| names.is_empty() || names.contains(&program.name));
    Ok(programs)
}

/// Moves a program there, and back if that is another MPI.
fn tried(program: &Program, from: &Mpi, to: &Mpi) -> Line {
    let begun = Instant::now();
    let ranks = program.ranks.first().copied().unwrap_or(2);
    let came = mpis::changes(program, ranks, &[from, to, from]);
    let seconds = begun.elapsed().as_secs_f64();
    let word = if came.is_ok() { "ok" } else { "NO" };
    eprintln!(
        "{word:<3} {:<36} for {}: {} > {} > {} {seconds:.1} s",
        program.name,
        program.mpi().name,
        from.name,
        to.name,
        from.name
    );
    if let Err(failed) = &came {
        eprintln!("{failed}");
    }
    Line {
        program: program.name.clone(),
        why: came.err().map(|failed| reason(&failed)),
    }
}

/// Returns the most useful line of a failure's text: the application's own, else Stillpoint's, else the first.
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

fn table(all: &[Pair]) -> String {
    let mut text = String::from(
        "| built for | started on | carried on on, and back | programs | right |\n|---|---|---|---|---|\n",
    );
    let mut failures: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for pair in all {
        let Pair {
            built_for,
            from,
            to,
            lines,
        } = pair;
        let programs = lines.len();
        let right = lines.iter().filter(|line| line.why.is_none()).count();
        let _ = writeln!(
            text,
            "| {built_for} | {from} | {to} | {programs} | {right} |"
        );
        for line in lines {
            if let Some(why) = &line.why {
                failures
                    .entry((line.program.clone(), why.clone()))
                    .or_default()
                    .push(format!("for {built_for}: {from} > {to}"));
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
