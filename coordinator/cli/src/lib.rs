//! The `stillpoint` command: one file for each subcommand.
//!
//! The definitions here feed the parser, `--help`, the manual pages and the shell completions.

#![forbid(unsafe_code)]

mod all;
mod batch;
mod check;
mod checkpoint;
mod clean;
mod completions;
mod coordinator;
mod copies;
mod directory_name;
mod directory_owner;
mod explain;
mod finished;
mod first_process;
mod gather;
mod inside;
mod inspect;
mod interrupt;
mod job_directory;
mod job_start;
mod kernel;
mod launch;
mod leftovers;
mod lock;
mod man;
mod mpi;
mod options;
mod patience;
mod plan;
mod program;
#[cfg(test)]
mod reference;
mod request;
mod restart;
mod run;
mod shared_errors;
mod siblings;
mod site_defaults;
mod start;
mod status;
mod supervisor;
mod target;
mod tiers;
mod timeline;
mod title;
mod units;
mod verify;
mod version;

use std::error::Error;
use std::process::ExitCode;
use std::{fmt, io, iter};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use stillpoint_protocol::safe_text;
use stillpoint_refusals::{Code, Refusal, in_words, plain as plain_words};

use stillpoint_coordinator::site::Site;

/// Transparent checkpointing for MPI programs
///
/// Start a job under its launcher (`mpirun -n 4 stillpoint run -- ./app`, or `stillpoint launch -- mpirun -n 4 ./app`), suspend it at any moment
/// (`stillpoint suspend`), and restart it later (`mpirun -n 4 stillpoint restart DIR`).
#[derive(Debug, Parser)]
#[command(name = "stillpoint", version, propagate_version = true, after_help = EXIT_STATUS)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "\
Exit status: run, restart and launch end as the application does; after a suspend \
with --suspended-status; with 127 or 126 if the application cannot be found or started; with 6 if the job that \
--resume finds has finished. All other commands: 0 done, \
1 failed, 2 wrong usage, 3 no such job or epoch, 4 not allowed, 5 the job refused and runs on.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Launch(supervisor::Supervise),
    Restart(restart::Restart),
    Status(status::Status),
    Checkpoint(checkpoint::Checkpoint),
    Suspend(checkpoint::Suspend),
    Resume(all::Resume),
    Verify(verify::Verify),
    Inspect(inspect::Inspect),
    Timeline(timeline::Timeline),
    Clean(clean::Clean),
    Plan(plan::Plan),
    Check(check::Check),
    Explain(explain::Explain),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(hide = true)]
    Coordinator(coordinator::Coordinator),
    #[command(hide = true)]
    OfUser(all::OfUser),
}

/// The result of a subcommand: an error is one line for people and an exit status.
type CommandResult = Result<(), Failure>;

/// The reason why a subcommand failed.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    text: String,
    /// The items that the error is about, one line each.
    list: Vec<String>,
    /// The reasons, if something was refused.
    reasons: Vec<Refusal>,
}

impl Failure {
    /// The operation failed.
    pub const FAILED: u8 = 1;
    /// The options contradict each other.
    pub const USAGE: u8 = 2;
    /// There is no such job or epoch.
    pub const MISSING: u8 = 3;
    /// Not allowed.
    pub const NOT_ALLOWED: u8 = 4;
    /// The job refused; it runs on.
    pub const REFUSED: u8 = 5;
    /// The job in the directory has finished, and nothing was started.
    pub const FINISHED: u8 = 6;
    /// The application cannot be started.
    pub const NOT_EXECUTABLE: u8 = 126;
    /// There is no such application.
    pub const NOT_FOUND: u8 = 127;

    fn new(status: u8, text: impl Into<String>) -> Failure {
        Failure {
            status,
            text: text.into(),
            list: vec![],
            reasons: vec![],
        }
    }

    /// The failure that `what` was refused for these reasons.
    fn refused(status: u8, what: &str, reasons: Vec<Refusal>) -> Failure {
        let text = format!("{what}: {}", in_words(&reasons));
        Failure {
            reasons,
            ..Failure::new(status, text)
        }
    }

    /// Returns the failure as JSON.
    fn shown(&self) -> serde_json::Value {
        serde_json::json!({
            "failed": self.text,
            "status": self.status,
            "reasons": self.reasons.iter().map(|reason| serde_json::json!({
                "code": reason.code(),
                "reason": reason.details(),
                "remedy": plain_words(reason.code().remedy()),
            })).collect::<Vec<_>>(),
        })
    }

    /// The codes of the reasons.
    fn codes(&self) -> Vec<Code> {
        self.reasons.iter().map(Refusal::code).collect()
    }

    /// Adds a list of the items that the error is about.
    fn listing(self, list: Vec<String>) -> Failure {
        Failure { list, ..self }
    }

    /// The failure that a start or a restart was refused.
    fn refuse(code: Code, status: u8, text: impl Into<String>) -> Failure {
        let reason = Refusal::new(code, text);
        let text = reason.to_string();
        Failure {
            reasons: vec![reason],
            ..Failure::new(status, text)
        }
    }

    /// Like [`Failure::of`], with a code.
    fn refuse_of(code: Code, error: &(dyn Error + 'static)) -> Failure {
        Failure::refuse_because(code, error, error.to_string())
    }

    /// Like [`Failure::because`], with a code.
    fn refuse_because(
        code: Code,
        error: &(dyn Error + 'static),
        text: impl Into<String>,
    ) -> Failure {
        let Failure { status, text, .. } = Failure::because(error, text);
        Failure::refuse(code, status, text)
    }

    /// A failure that has been reported already.
    fn silent(status: u8) -> Failure {
        Failure::new(status, "")
    }

    /// Prints one line for people.
    fn say(&self) {
        use std::io::Write;
        if !self.is_silent() {
            // One write, since the launcher mixes the output of all ranks. A reader that has gone misses it.
            let _ =
                std::io::stderr().write_all((said(&self.text) + &listed(&self.list)).as_bytes());
        }
    }

    fn is_silent(&self) -> bool {
        self.text.is_empty()
    }

    fn failed(text: impl Into<String>) -> Failure {
        Failure::new(Failure::FAILED, text)
    }

    /// A failure with the words of an error. If any of its causes is a denial by the system, the exit status is [`Failure::NOT_ALLOWED`].
    fn of(error: &(dyn Error + 'static)) -> Failure {
        Failure::because(error, error.to_string())
    }

    /// The same in other words.
    fn because(error: &(dyn Error + 'static), text: impl Into<String>) -> Failure {
        let causes = iter::successors(Some(error), |error| (*error).source());
        let denied = causes.into_iter().any(|cause| {
            let cause = cause.downcast_ref::<io::Error>();
            cause.is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied)
        });
        let status = match denied {
            true => Failure::NOT_ALLOWED,
            false => Failure::FAILED,
        };
        Failure::new(status, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(failure) => {
            failure.say();
            return ExitCode::from(failure.status);
        }
    };
    if let Err(error) = stillpoint_faults::arm() {
        Failure::failed(error.to_string()).say();
        return ExitCode::from(2);
    }
    let outcome = match cli.command {
        Command::Run(run) => run.execute(),
        Command::Launch(launch) => launch.execute(),
        Command::Restart(restart) => restart.execute(),
        Command::Status(status) => status.execute(),
        Command::Checkpoint(checkpoint) => checkpoint.execute(),
        Command::Suspend(suspend) => suspend.execute(),
        Command::Resume(resume) => resume.execute(),
        Command::Verify(verify) => verify.execute(),
        Command::Inspect(inspect) => inspect.execute(),
        Command::Timeline(timeline) => timeline.execute(),
        Command::Clean(clean) => clean.execute(),
        Command::Plan(plan) => plan.execute(),
        Command::Check(check) => check.execute(),
        Command::Explain(explain) => explain.execute(),
        Command::Completions(completions) => completions.execute(),
        Command::Man(man) => man.execute(),
        Command::Coordinator(coordinator) => coordinator.execute(),
        Command::OfUser(helper) => helper.execute(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.say();
            ExitCode::from(failure.status)
        }
    }
}

/// Parses the command line of this process, with the site's settings. If the site's file cannot be used, only launches stop, since the settings are for them.
fn parse() -> Result<Cli, Failure> {
    let site = Site::of_this_machine();
    let applied = site.and_then(|site| {
        let path = site.path.display();
        let definition = site_defaults::apply(definition(), &site);
        let definition = definition.map_err(|error| format!("{path}: {error}"))?;
        Ok((definition, site))
    });
    let (definition, site, broken) = match applied {
        Ok((definition, site)) => (definition, site, None),
        Err(error) => (definition(), Site::default(), Some(error)),
    };
    let matches = definition
        .try_get_matches()
        .unwrap_or_else(|error| answer(&error));
    site_defaults::check(&matches, &site)?;
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match (broken, &cli.command) {
        (Some(error), Command::Run(_) | Command::Restart(_) | Command::Launch(_)) => {
            Err(Failure::refuse(
                Code::SiteSettings,
                Failure::FAILED,
                format!("cannot read this site's settings: {error}"),
            ))
        }
        _ => Ok(cli),
    }
}

/// Answers a command line that is wrong or asks for help or the version, and exits.
fn answer(error: &clap::Error) -> ! {
    use clap::error::ErrorKind;
    if error.kind() != ErrorKind::DisplayVersion {
        error.exit();
    }
    let status = match version::show(&error.to_string()) {
        Ok(()) => 0,
        Err(failure) => {
            failure.say();
            i32::from(failure.status)
        }
    };
    std::process::exit(status)
}

/// The definition of the whole command line.
fn definition() -> clap::Command {
    Cli::command()
}

/// Prints a message for people that is not a failure, in one write.
fn tell(text: &str) {
    use std::io::Write;
    // A reader that has gone misses it.
    let _ = std::io::stderr().write_all(said(text).as_bytes());
}

fn said(text: &str) -> String {
    format!("stillpoint: {}\n", safe_text::line(text))
}

fn listed(list: &[String]) -> String {
    let lines = list
        .iter()
        .map(|item| format!("  {}\n", safe_text::line(item)));
    lines.collect()
}

/// Prints to stdout. A reader that has gone (`| head`) is not an error.
fn print(text: &str) -> CommandResult {
    use std::io::{ErrorKind, Write};
    let mut out = std::io::stdout().lock();
    let shown = safe_text::lines(text);
    match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> CommandResult {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
    print(&format!("{}\n", safe_text::json(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    /// The rule for the exit status holds everywhere. Code that turns an error into text alone would break it.
    #[test]
    fn what_is_denied_is_not_allowed_everywhere() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(Failure::of(&denied()).status, Failure::NOT_ALLOWED);
        let nested =
            stillpoint_coordinator::epoch::EpochError::from(stillpoint_image::ImageError::Io {
                path: "/d".into(),
                action: "open it",
                source: denied(),
            });
        assert_eq!(Failure::of(&nested).status, Failure::NOT_ALLOWED);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::of(&full).status, Failure::FAILED);
    }

    /// Options that make a command do more. A variable that was exported long ago must not do that.
    const WITHOUT_VARIABLE: [&str; 5] = ["all", "left", "run", "discard", "watch"];

    #[test]
    fn every_option_has_its_variable_and_every_argument_its_help() {
        for command in definition().get_subcommands() {
            for argument in command.get_arguments() {
                let name = argument.get_id().as_str();
                if ["help", "version"].contains(&name) {
                    continue;
                }
                let place = format!("{} {name}", command.get_name());
                assert!(argument.get_help().is_some(), "{place} has no help");
                if let Some(long) = argument.get_long()
                    && command.get_name() != "coordinator"
                {
                    let variable = format!("STILLPOINT_{}", long.to_uppercase().replace('-', "_"));
                    let found = argument.get_env().and_then(|v| v.to_str());
                    let without = WITHOUT_VARIABLE.contains(&long);
                    assert_eq!(found, (!without).then_some(variable.as_str()), "{place}");
                }
            }
        }
    }
}
