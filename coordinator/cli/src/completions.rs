//! `stillpoint completions`.

use clap::Args;
use clap_complete::Shell;

use super::{CommandResult, definition, print};

/// Print shell completions
///
/// For example: stillpoint completions bash > ~/.local/share/bash-completion/completions/stillpoint
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell
    shell: Shell,
}

impl Completions {
    pub fn execute(self) -> CommandResult {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut definition(), "stillpoint", &mut text);
        print(&String::from_utf8_lossy(&text))
    }
}
