//! Writes every file that follows from the tables in `wrappers/table/`.
//!
//! ```text
//! cargo run -p stillpoint-wrappers --features generator --bin generate
//! ```

use std::path::Path;
use std::process::ExitCode;

use stillpoint_wrappers::emit;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("no parent folder")?;
    for output in emit::outputs(&emit::input()?) {
        let path = root.join(&output.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // A file that has not changed keeps its time, so that nothing is compiled again for it.
        if std::fs::read_to_string(&path).is_ok_and(|old| old == output.text) {
            continue;
        }
        std::fs::write(&path, &output.text)?;
        println!("{}", output.path);
    }
    Ok(())
}
