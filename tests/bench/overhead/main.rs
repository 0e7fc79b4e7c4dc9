//! What Stillpoint costs: `./ci/bench overhead`.
//!
//! Native, clock and barrier jobs stand side by side and are measured in turn, some milliseconds each, so that what
//! disturbs the machine disturbs a pair and not one side of it. Whole programs run one after the other, in turn too.

mod applications;
mod figures;
mod options;
mod programs;
mod progress;
mod publish;
mod rounds;
mod row;
mod settings;
mod tables;
mod way;
mod worker;

use std::fs;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use stillpoint_tests::{Failed, place};

use applications::Rate;
use options::Options;
use row::Row;
use settings::Group;
use way::RANKS;

/// The part of the time that goes to the short measures, if both parts are wanted.
const SHORT_MEASURES: f64 = 0.6;

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
    let programs = programs::build()?;
    let settings = settings::wanted(options);
    let runs = applications::wanted(&programs, options);
    let share = match (settings.is_empty(), runs) {
        (true, _) => 0.0,
        (false, true) => SHORT_MEASURES,
        (false, false) => 1.0,
    };
    let mut rows = rounds::measure(settings, &programs, options, options.share(share))?;
    rows.extend(applications::measure(
        &programs,
        options,
        options.share(1.0 - share),
    )?);
    let rates = applications::rates(&programs, options)?;
    report(options, &rows, &rates)
}

/// Prints, writes and publishes.
fn report(options: &Options, rows: &[Row], rates: &[Rate]) -> Result<(), Failed> {
    let ways = options.all_ways();
    let mut named: Vec<publish::Named> = Group::ALL
        .into_iter()
        .filter_map(|group| Some((group.name(), tables::table(group, rows, &ways)?)))
        .collect();
    named.extend(tables::rates(rates).map(|table| ("rates", table)));
    let figures = figures::draw(rows);
    let results = json!({
        "ranks": RANKS,
        "rows": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        "calls_per_second": rates.iter().map(|rate| json!({
            "program": rate.program,
            "collective": rate.collective,
            "point_to_point": rate.between_two,
        })).collect::<Vec<_>>(),
    });
    let folder = options
        .out
        .clone()
        .unwrap_or_else(|| place::target().join("bench"));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("overhead.json", &format!("{results:#}\n"))?;
    for (name, svg) in &figures {
        write(&format!("{name}.svg"), svg)?;
    }
    if options.json {
        println!("{results:#}");
    } else {
        for (name, table) in &named {
            println!("{name}\n\n{table}");
        }
    }
    if options.publish {
        publish::tables(&named)?;
        publish::figures(&figures)?;
    }
    eprintln!(
        "overhead: written: {}",
        folder.join("overhead.json").display()
    );
    Ok(())
}
