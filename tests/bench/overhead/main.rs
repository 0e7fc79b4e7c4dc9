//! The overhead of Stillpoint: `./ci/bench overhead`.
//!
//! Native, clock and barrier jobs exist side by side and are measured in turn, some milliseconds each, so that a
//! disturbance of the machine affects a pair and not one side of it. Whole programs run one after the other, in turn
//! too. A second native job shows the method's result for two equal jobs.

mod applications;
mod figures;
mod options;
mod programs;
mod progress;
mod rounds;
mod row;
mod settings;
mod slices;
mod tables;
mod turns;
mod way;
mod worker;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Value, json};
use stillpoint_tests::results::{self, Named};
use stillpoint_tests::{Failed, place};

use applications::Rate;
use options::Options;
use row::Row;
use settings::Group;
use way::RANKS;

/// The part of the time that goes to the short measures, if both parts are wanted.
const SHORT_MEASURES: f64 = 0.55;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("overhead: {failed}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failed> {
    let programs = programs::build(options)?;
    let settings = settings::wanted(options);
    let runs = applications::wanted(&programs, options);
    let share = match (settings.is_empty(), runs) {
        (true, _) => 0.0,
        (false, true) => SHORT_MEASURES,
        (false, false) => 1.0,
    };
    let mut rows = rounds::measure(settings, &programs, options, options.share(share))?;
    // An interrupted run leaves at least these results.
    let folder = Results::of(options, &rows, &[]).write(options)?;
    rows.extend(applications::measure(
        &programs,
        options,
        options.share(1.0 - share),
    )?);
    let rates = applications::rates(&programs, options)?;
    let measured = Results::of(options, &rows, &rates);
    measured.write(options)?;
    if let Some(machine) = &options.publish {
        results::tables(machine, "overhead", &measured.tables)?;
        results::figures(machine, &measured.figures)?;
    }
    measured.print(options);
    eprintln!("overhead: written: {}", folder.display());
    Ok(())
}

/// The measurements, in all their forms.
struct Results {
    json: Value,
    tables: Vec<Named>,
    figures: Vec<Named>,
}

impl Results {
    fn of(options: &Options, rows: &[Row], rates: &[Rate]) -> Results {
        let ways = options.all_ways();
        let mut tables: Vec<Named> = Group::ALL
            .into_iter()
            .filter_map(|group| {
                let table = tables::table(group, rows, &ways)?;
                Some((options.titled(group.name()), table))
            })
            .collect();
        tables.extend(tables::rates(rates).map(|table| (options.titled("rates"), table)));
        let json = json!({
            "ranks": RANKS,
            "mpi": options.mpi,
            "rows": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "calls_per_second": rates.iter().map(Rate::to_json).collect::<Vec<_>>(),
        });
        Results {
            json,
            tables,
            figures: figures::draw(rows, options),
        }
    }

    /// Writes JSON, tables and figures, and returns the folder.
    fn write(&self, options: &Options) -> Result<PathBuf, Failed> {
        let folder = options
            .out
            .clone()
            .unwrap_or_else(|| place::target().join("bench"));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        write("overhead.json", &format!("{:#}\n", self.json))?;
        write("overhead.md", &self.text())?;
        for (name, svg) in &self.figures {
            write(&format!("{name}.svg"), svg)?;
        }
        Ok(folder)
    }

    fn text(&self) -> String {
        let one = |(name, table): &Named| format!("{name}\n\n{table}\n");
        self.tables.iter().map(one).collect()
    }

    fn print(&self, options: &Options) {
        match options.json {
            true => println!("{:#}", self.json),
            false => print!("{}", self.text()),
        }
    }
}
