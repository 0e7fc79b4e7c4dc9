//! The cost of epochs: `./ci/bench checkpoint`.
//!
//! Compared figures are measured in turn, in one run, beside the machine's speed without Stillpoint.

mod applications;
mod epochs;
mod increments;
mod machine;
mod moves;
mod options;
mod programs;
mod ranks;
mod raw;
mod running;
mod table;

use std::fs;
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Value, json};
use stillpoint_tests::Failed;
use stillpoint_tests::results::{self, Named};

use options::Options;
use table::Table;

/// A section: its name for `--only`, and its measuring function.
type Section = (&'static str, fn(&Options) -> Result<Vec<Table>, Failed>);

const SECTIONS: [Section; 9] = [
    ("full", epochs::full),
    ("copies", epochs::copies),
    ("lazy", moves::lazy),
    ("move", moves::moves),
    ("increments", increments::rewritten),
    ("lammps", applications::lammps),
    ("small", applications::small),
    ("ranks", ranks::of_one_host),
    ("tracking", increments::tracking),
];

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("checkpoints: {failed}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failed> {
    let machine = machine::describe();
    let mut tables = vec![];
    for (name, measure) in SECTIONS {
        if options.wants(name) {
            eprintln!("checkpoints: {name}");
            tables.extend(measure(options)?);
            // An interrupted run leaves at least these tables.
            write(options, &machine, &tables)?;
        }
    }
    if let Some(machine) = &options.publish {
        let named: Vec<Named> = tables
            .iter()
            .map(|table| (table.name.to_owned(), table.to_string()))
            .collect();
        results::tables(machine, "checkpoint", &named)?;
    }
    match options.json {
        true => println!("{:#}", in_json(&machine, &tables)),
        false => print!("{}", in_words(&machine, &tables)),
    }
    Ok(())
}

fn in_json(machine: &str, tables: &[Table]) -> Value {
    json!({
        "machine": machine,
        "tables": tables.iter().map(Table::to_json).collect::<Vec<_>>(),
    })
}

fn in_words(machine: &str, tables: &[Table]) -> String {
    let tables = tables
        .iter()
        .map(|table| format!("{}\n\n{table}\n", table.name));
    std::iter::once(format!("{machine}\n\n"))
        .chain(tables)
        .collect()
}

fn write(options: &Options, machine: &str, tables: &[Table]) -> Result<(), Failed> {
    let folder = options.folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    put(
        "checkpoint.json",
        format!("{:#}\n", in_json(machine, tables)),
    )?;
    put("checkpoint.md", in_words(machine, tables))
}
