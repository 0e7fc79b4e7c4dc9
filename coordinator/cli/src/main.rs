//! The `stillpoint` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    stillpoint::main()
}
