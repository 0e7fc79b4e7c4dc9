//! The helper of a job's ranks on one node that use GPUs. The driver locks, checkpoints and restores a process only for another one: this one.
//!
//! ```text
//! stillpoint-gpu --serve NAME    serves the ranks that come to the socket NAME (abstract), until all have gone
//! stillpoint-gpu --facts         says as JSON what the node has
//! ```
//!
//! The rank that needs it first starts it, out of its own lower half. It is no child of the application's, and outlives a rank that dies.
//!
//! * [`facts`] - what the node has
//! * [`checkpoint`] - what is done for one rank
//! * [`serve`] - who is served, and until when

mod checkpoint;
mod facts;
mod serve;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["--facts"] => say_facts(),
        ["--serve", name] => serve::until_all_have_gone(name.as_bytes()),
        _ => Err("usage: stillpoint-gpu --facts | --serve NAME (started by Stillpoint)".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stillpoint-gpu: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say_facts() -> Result<(), String> {
    facts::see_every_device();
    let facts = facts::of(&facts::open()?)?;
    let text = serde_json::to_string(&facts).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}
