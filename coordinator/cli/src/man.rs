//! `stillpoint man`.

use std::path::PathBuf;

use clap::Args;

use super::{CommandResult, Failure, definition, print};

/// Print the manual page, or write all manual pages into a directory
#[derive(Debug, Args)]
pub struct Man {
    /// Directory for stillpoint.1, stillpoint-run.1, ...
    directory: Option<PathBuf>,
}

impl Man {
    pub fn execute(self) -> CommandResult {
        let failed =
            |error: std::io::Error| Failure::failed(format!("cannot write manual pages: {error}"));
        match self.directory {
            Some(directory) => {
                std::fs::create_dir_all(&directory).map_err(failed)?;
                clap_mangen::generate_to(definition(), directory).map_err(failed)
            }
            None => {
                let mut text = Vec::new();
                clap_mangen::Man::new(definition())
                    .render(&mut text)
                    .map_err(failed)?;
                print(&String::from_utf8_lossy(&text))
            }
        }
    }
}
