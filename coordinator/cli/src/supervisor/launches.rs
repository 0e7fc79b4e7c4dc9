//! The command lines of a supervised job: its first launch, the next ones, and a restart from an earlier epoch.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};
use stillpoint_coordinator::site::Site;
use stillpoint_ids::Epoch;
use stillpoint_protocol::installed::this_program;
use stillpoint_refusals::Code;

use super::line::Line;
use crate::run::Run;
use crate::{Failure, definition, directory_name, site_defaults};

/// A job's launches.
pub struct Launches {
    launcher: Vec<OsString>,
    stillpoint: OsString,
    /// The options of `run` by their names, each with its words.
    options: Vec<(String, Vec<OsString>)>,
    program: Vec<OsString>,
    /// The checkpoint directory.
    pub directory: PathBuf,
}

/// Options of `run` that later launches are not given: they say how to begin.
const TO_BEGIN: [&str; 3] = ["discard", "resume", "finished-ok"];

impl Launches {
    /// Takes the options of `launch`, which are those of `run`, and the launcher's line, with the site's settings.
    pub fn new(line: Line, given: &ArgMatches, site: &Site) -> Result<Launches, Failure> {
        let definition = site_defaults::apply(definition(), site)
            .map_err(|error| Failure::refuse(Code::SiteSettings, Failure::FAILED, error))?;
        let stillpoint = match line.stillpoint {
            Some(stillpoint) => stillpoint,
            None => this_program()
                .map_err(|error| Failure::refuse_of(Code::Incomplete, &error))?
                .into(),
        };
        let run = definition
            .find_subcommand("run")
            .cloned()
            .unwrap_or_default();
        let mut words = vec![OsString::from("stillpoint"), "run".into()];
        let mut options = command_line(given, &run);
        words.extend(options.iter().flat_map(|(_, words)| words.clone()));
        words.extend(line.rest);
        let matches = definition.try_get_matches_from(words).map_err(|error| {
            let text = error.to_string();
            let lines = text
                .lines()
                .map(str::trim)
                .take_while(|line| !line.is_empty());
            let told = lines.collect::<Vec<_>>().join(" ");
            let told = told.trim_start_matches("error: ").to_owned();
            Failure::refuse(
                Code::WrongOptions,
                Failure::USAGE,
                format!("stillpoint run: {told}"),
            )
        })?;
        site_defaults::check(&matches, site)?;
        let matches = matches
            .subcommand_matches("run")
            .cloned()
            .unwrap_or_default();
        let parsed = Run::from_arg_matches(&matches).map_err(|error| {
            Failure::refuse(Code::WrongOptions, Failure::USAGE, error.to_string())
        })?;
        options = command_line(&matches, &run);
        options.retain(|(name, _)| name != "dir");
        Ok(Launches {
            launcher: line.launcher,
            stillpoint,
            options,
            directory: parsed.directory()?,
            program: parsed.words(),
        })
    }

    /// The first launch, as the user wants it.
    pub fn first(&self) -> Vec<OsString> {
        self.run(|_| true, &[])
    }

    /// Another launch, from the newest epoch or from the beginning.
    pub fn newest(&self) -> Vec<OsString> {
        self.run(|name| !TO_BEGIN.contains(&name), &["--resume"])
    }

    /// Another launch, from this epoch.
    pub fn restart_from(&self, epoch: Epoch) -> Vec<OsString> {
        let restart = definition();
        let restart = restart.find_subcommand("restart");
        let takes = |name: &str| {
            let mut arguments = restart.into_iter().flat_map(Command::get_arguments);
            arguments.any(|argument| argument.get_long() == Some(name))
        };
        let mut words = self.launcher.clone();
        words.extend([
            self.stillpoint.clone(),
            "restart".into(),
            self.directory.clone().into(),
        ]);
        // Otherwise STILLPOINT_DIR would name the directory to work in.
        words.push(self.dir());
        words.push(format!("--epoch={epoch}").into());
        words.extend(self.options_that(takes));
        words
    }

    fn run(&self, wanted: impl Fn(&str) -> bool, more: &[&str]) -> Vec<OsString> {
        let mut words = self.launcher.clone();
        words.extend([self.stillpoint.clone(), "run".into()]);
        words.push(self.dir());
        words.extend(self.options_that(wanted));
        words.extend(more.iter().map(OsString::from));
        words.push("--".into());
        words.extend(self.program.iter().cloned());
        words
    }

    /// `--dir`, with the templates of its name filled in.
    fn dir(&self) -> OsString {
        joined("dir", directory_name::literal(&self.directory))
    }

    /// Whether the first launch gives up the epochs that it finds.
    pub fn discards(&self) -> bool {
        self.options.iter().any(|(name, _)| name == "discard")
    }

    fn options_that(&self, wanted: impl Fn(&str) -> bool) -> Vec<OsString> {
        let options = self.options.iter().filter(|(name, _)| wanted(name));
        options.flat_map(|(_, words)| words.clone()).collect()
    }
}

/// `--name=value`.
fn joined(name: &str, value: OsString) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}

/// The options of `run` that a command line has, in words.
fn command_line(given: &ArgMatches, run: &Command) -> Vec<(String, Vec<OsString>)> {
    let options = run.get_arguments().filter_map(|argument| {
        let name = argument.get_long()?;
        let id = argument.get_id().as_str();
        let there = given.try_contains_id(id).is_ok();
        let source = there.then(|| given.value_source(id)).flatten();
        if source != Some(ValueSource::CommandLine) {
            return None;
        }
        if !argument.get_action().takes_values() {
            return Some((name.to_owned(), vec![format!("--{name}").into()]));
        }
        let values = given.get_raw(id).into_iter().flatten();
        let words = values.map(|value| joined(name, value.to_owned()));
        Some((name.to_owned(), words.collect()))
    });
    options.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(options: &[&str]) -> Launches {
        Launches {
            launcher: vec!["mpirun".into()],
            stillpoint: "stillpoint".into(),
            options: options
                .iter()
                .map(|name| ((*name).to_owned(), vec![format!("--{name}").into()]))
                .collect(),
            program: vec!["app".into()],
            directory: "/scratch/a%b.d".into(),
        }
    }

    #[test]
    fn every_launch_names_its_directory_itself() {
        let launches = launches(&["resume-anyway"]);
        for words in [
            launches.first(),
            launches.newest(),
            launches.restart_from(Epoch(5)),
        ] {
            assert!(words.contains(&"--dir=/scratch/a%%b.d".into()), "{words:?}");
        }
    }

    #[test]
    fn an_epoch_of_another_command_is_resumed_by_later_launches_too() {
        let launches = launches(&["resume", "resume-anyway", "discard", "finished-ok"]);
        let words = launches.newest();
        let options: Vec<_> = words.iter().filter(|word| *word != "--").collect();
        let wanted = [
            "mpirun",
            "stillpoint",
            "run",
            "--dir=/scratch/a%%b.d",
            "--resume-anyway",
            "--resume",
            "app",
        ];
        assert_eq!(options, wanted);
    }
}
