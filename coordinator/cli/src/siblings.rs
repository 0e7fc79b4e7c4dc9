//! The other files of this installation: the lower halves, by library, and the libraries of stubs, by program.

use std::path::PathBuf;

use stillpoint_protocol::installed::beside;

use stillpoint_refusals::Code;

use super::Failure;

/// The two files for a launch, beside the command or in the installation's folder.
pub struct Siblings {
    pub lower: PathBuf,
    pub upper: PathBuf,
}

impl Siblings {
    /// Finds the files for a program and a library with these binary interfaces.
    pub fn find(program: &str, library: &str) -> Result<Siblings, Failure> {
        let part = |name: String| {
            beside(&name).map_err(|missing| {
                let text = format!(
                    "{name} is {missing}: this build has no support for {program} programs on {library} libraries, or \
                     the installation is incomplete"
                );
                Failure::refuse(Code::MpiMissing, Failure::FAILED, text)
            })
        };
        Ok(Siblings {
            lower: part(lower_name(library))?,
            upper: part(upper_name(program))?,
        })
    }

    /// Finds the library for programs with this binary interface.
    pub fn upper(program: &str) -> Result<PathBuf, Failure> {
        alone(&upper_name(program))
    }

    /// Finds the lower half for libraries with this binary interface.
    pub fn lower(library: &str) -> Result<PathBuf, Failure> {
        alone(&lower_name(library))
    }
}

fn lower_name(library: &str) -> String {
    format!("stillpoint-lower-{library}")
}

fn upper_name(program: &str) -> String {
    format!("libstillpoint_upper_{program}.so")
}

/// Finds a part of the installation that may be missing.
fn alone(name: &str) -> Result<PathBuf, Failure> {
    beside(name).map_err(|missing| {
        Failure::refuse(
            Code::Incomplete,
            Failure::FAILED,
            format!("{name} is {missing}"),
        )
    })
}
