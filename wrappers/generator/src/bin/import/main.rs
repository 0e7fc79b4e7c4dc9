//! Makes `wrappers/table/functions.txt` and `large.txt` from the MPI standard's own description of its functions
//! (the JSON file that the MPI Forum's document is rendered from).
//!
//! ```text
//! cargo run -p stillpoint-generator --features import --bin import -- mpi-standard-5.0-apis.json
//! ```
//!
//! Functions that the standard does not contain come from `extra.rs` (names that it has removed, extensions of installed MPIs). Class and form, which it does
//! not give, come from `classes.rs`.

mod classes;
mod extra;
mod large;
mod standard;

use std::path::Path;
use std::process::ExitCode;

use stillpoint_generator::table::Function;

const HEADER: &str = "\
# Every function of MPI, one a line: name, class, form of the stub, return value, parameters.
# Made by `import` from the MPI 5.0 standard's JSON; the notation is told in wrappers/generator/src/table.rs.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("import: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let input = std::env::args()
        .nth(1)
        .ok_or("usage: import STANDARD.json")?;
    let input = std::fs::read_to_string(&input)?;
    let mut functions = standard::read(&input)?;
    functions.extend(extra::functions(&functions));
    functions.sort_by(|a, b| a.name.cmp(&b.name));

    let mut text = String::from(HEADER);
    for function in &functions {
        text.push_str(&function.to_string());
        text.push('\n');
    }
    let output = Path::new(env!("CARGO_MANIFEST_DIR")).join("../table/functions.txt");
    std::fs::write(&output, text)?;
    std::fs::write(output.with_file_name("large.txt"), large::table(&input)?)?;
    println!("{}: {} functions", output.display(), functions.len());
    Ok(())
}

/// Gives a function its class and form.
fn classified(mut function: Function) -> Function {
    (function.class, function.form) = classes::of(&function.name);
    function
}
