//! Templates in the name of a checkpoint directory: one setting then does for every job of every user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::{User, getuid};
use stillpoint_refusals::Code;

use super::Failure;
use stillpoint_coordinator::batch::{self, variable};

/// Variables in which Slurm, PBS and LSF give a batch job its name.
const NAMES: [&str; 3] = ["SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME"];

/// Returns the path with its templates filled in. A name that is not text has none.
pub fn filled(path: &Path) -> Result<PathBuf, Failure> {
    let Some(text) = path.to_str() else {
        return Ok(path.to_owned());
    };
    let value = |template| match template {
        'u' => Some(user()),
        'j' => batch::job().map(|job| job.id),
        'x' => NAMES.into_iter().find_map(variable),
        _ => None,
    };
    fill(text, value).map(PathBuf::from).map_err(|why| {
        Failure::refuse(Code::WrongOptions, Failure::USAGE, format!("{text}: {why}"))
    })
}

/// Returns the text that [`filled`] turns into this path.
pub fn literal(path: &Path) -> OsString {
    match path.to_str() {
        Some(text) => text.replace('%', "%%").into(),
        None => path.into(),
    }
}

/// The name of this user, or the number if the system does not know the user.
fn user() -> String {
    let known = User::from_uid(getuid()).ok().flatten();
    known.map_or_else(|| getuid().to_string(), |user| user.name)
}

fn fill(text: &str, value: impl Fn(char) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            filled.push(letter);
            continue;
        }
        match letters.next() {
            Some('%') => filled.push('%'),
            Some(template @ ('u' | 'j' | 'x')) => {
                let value = value(template).ok_or_else(|| {
                    format!(
                        "%{template} stands for the batch job, but this launch is in none: name the directory itself"
                    )
                })?;
                if value.is_empty() || value.starts_with('.') || value.contains('/') {
                    return Err(format!(
                        "%{template} is '{value}' here, which is no name of a directory: name the directory itself"
                    ));
                }
                filled.push_str(&value);
            }
            _ => {
                return Err(
                    "a percent sign begins %u (user), %j (batch job) or %x (its name): write %% for the sign itself"
                        .to_owned(),
                );
            }
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, String> {
        fill(text, |template| match template {
            'u' => Some("ann".into()),
            'x' => Some("../melt".into()),
            _ => None,
        })
    }

    #[test]
    fn templates_are_filled_in() {
        assert_eq!(of("/scratch/%u/%%d").unwrap(), "/scratch/ann/%d");
        assert_eq!(of("plain").unwrap(), "plain");
    }

    #[test]
    fn what_has_no_value_or_a_path_for_one_is_an_error() {
        assert!(
            of("d-%j")
                .unwrap_err()
                .contains("%j stands for the batch job")
        );
        assert!(of("d-%x").unwrap_err().contains("no name of a directory"));
        for wrong in ["%q", "50%", "%"] {
            assert!(of(wrong).unwrap_err().contains("write %%"), "{wrong}");
        }
    }
}
