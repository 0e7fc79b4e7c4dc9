//! Applies the site's settings ([`stillpoint_coordinator::site`]) to the options: its values are the defaults, and some cannot be changed.

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use nix::unistd::Group;
use stillpoint_refusals::Code;

use super::Failure;
use stillpoint_coordinator::site::Site;

/// The commands whose options the site may set.
const LAUNCHES: [&str; 2] = ["run", "restart"];

/// An option's name in the definition.
fn id(option: &str) -> String {
    option.replace('-', "_")
}

fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut arguments = command.get_arguments();
    arguments.find(|argument| argument.get_long() == Some(name))
}

/// Returns the definition with the site's defaults. A setting of an option that does not exist is an error, in words.
pub fn apply(mut definition: Command, site: &Site) -> Result<Command, String> {
    let named = site.defaults.keys().chain(&site.fixed.options);
    for name in named {
        let there = LAUNCHES.iter().any(|launch| {
            let command = definition.find_subcommand(launch);
            command.is_some_and(|command| option(command, name).is_some())
        });
        if !there {
            return Err(format!("'{name}' is not an option of run and restart"));
        }
    }
    for name in site.defaults.keys() {
        check_values(&definition, name, &site.values(name).unwrap_or_default())
            .map_err(|why| format!("{name}: {why}"))?;
    }
    for launch in LAUNCHES {
        definition = definition.mut_subcommand(launch, |mut command| {
            for name in site.defaults.keys() {
                if let (Some(values), Some(_)) = (site.values(name), option(&command, name)) {
                    command = command.mut_arg(id(name), |argument| argument.default_values(values));
                }
            }
            command
        });
    }
    Ok(definition)
}

/// Checks the values as those of a command line, so that the error names the site's file and not an option that the user has not written.
fn check_values(definition: &Command, name: &str, values: &[String]) -> Result<(), String> {
    for launch in LAUNCHES {
        let command = definition.find_subcommand(launch);
        let Some(argument) = command.and_then(|command| option(command, name)) else {
            continue;
        };
        if !argument.get_action().takes_values() {
            match values {
                [flag] if flag == "true" || flag == "false" => continue,
                _ => {
                    let given = values.join(" ");
                    return Err(format!("'{given}' is neither true nor false"));
                }
            }
        }
        // Variables of this process do not count here.
        let alone = definition.clone().mut_subcommand(launch, |command| {
            command.mut_args(|argument| argument.env(Resettable::Reset))
        });
        let words = values.iter().map(|value| format!("--{name}={value}"));
        let line = ["stillpoint".to_owned(), launch.to_owned()]
            .into_iter()
            .chain(words)
            .chain(["x".to_owned()]);
        if let Err(error) = alone.try_get_matches_from(line) {
            let text = error.to_string();
            let lines = text.lines().map(str::trim);
            let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
            let told = lines.join(" ");
            return Err(told.trim_start_matches("error: ").to_owned());
        }
    }
    Ok(())
}

/// The group of operators that the site names, if the system does not know it. There would be no operator then.
pub fn unknown_group(site: &Site) -> Option<String> {
    let named = site.values("operators")?.join(" ");
    let known = Group::from_name(&named).ok().flatten().is_some() || named.parse::<u32>().is_ok();
    (!known).then_some(named)
}

/// Refuses options that the site does not let users change.
pub fn check(matches: &ArgMatches, site: &Site) -> Result<(), Failure> {
    let Some((launch, matches)) = matches.subcommand() else {
        return Ok(());
    };
    if !LAUNCHES.contains(&launch) {
        return Ok(());
    }
    for option in &site.fixed.options {
        // Not every option belongs to both commands.
        let there = matches.try_contains_id(&id(option)).is_ok();
        let source = there.then(|| matches.value_source(&id(option))).flatten();
        if source.is_some_and(|source| source != ValueSource::DefaultValue) {
            let text = format!(
                "--{option} is fixed by this site ({}): leave it out",
                site.path.display()
            );
            return Err(Failure::refuse(Code::SiteSettings, Failure::USAGE, text));
        }
    }
    Ok(())
}

/// The options that the site or a variable sets for a launch from this shell, with their sources.
pub fn in_words(definition: &Command, site: &Site) -> String {
    let Some(run) = definition.find_subcommand("run") else {
        return String::new();
    };
    let settings = run.get_arguments().filter_map(|argument| {
        let name = argument.get_long()?;
        let variable = argument.get_env().and_then(std::env::var_os);
        let variable = variable.map(|value| value.to_string_lossy().into_owned());
        let settled = site.values(name).map(|values| values.join(" "));
        let (value, from) = match (variable, settled, site.is_fixed(name)) {
            (_, settled, true) => (
                settled.unwrap_or_else(|| "the built-in default".into()),
                "the site, fixed",
            ),
            (Some(value), _, _) => (value, "the environment"),
            (None, Some(value), _) => (value, "the site"),
            (None, None, _) => return None,
        };
        Some(format!("{name} = {value} ({from})"))
    });
    settings.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition;
    use clap::FromArgMatches;

    fn site(defaults: &str, fixed: &str) -> Site {
        let text = format!("[defaults]\n{defaults}\n[fixed]\noptions = [{fixed}]\n");
        toml::from_str(&text).unwrap()
    }

    fn parse(site: &Site, words: &[&str]) -> (Result<(), Failure>, crate::run::Run) {
        let definition = apply(definition(), site).unwrap();
        let words = ["stillpoint", "run"].iter().chain(words).chain(&["app"]);
        let matches = definition.get_matches_from(words);
        let run = matches.subcommand_matches("run").unwrap();
        let run = crate::run::Run::from_arg_matches(run).unwrap();
        (check(&matches, site), run)
    }

    #[test]
    fn the_sites_values_count_where_nobody_says_another() {
        let site = site("keep = 5\ninterval = \"30m\"\non-term = \"suspend\"", "");
        let (allowed, run) = parse(&site, &[]);
        assert!(allowed.is_ok());
        assert_eq!(run.options.keep, 5);
        assert_eq!(run.options.interval().unwrap().time().as_secs(), 1800);
        assert_eq!(run.options.on_term, crate::options::OnTerm::Suspend);
        let (allowed, run) = parse(&site, &["--keep", "7"]);
        assert!(allowed.is_ok());
        assert_eq!(run.options.keep, 7);
    }

    #[test]
    fn what_is_fixed_cannot_be_changed() {
        let site = site("operators = \"ops\"", "\"operators\", \"keep\"");
        assert!(parse(&site, &[]).0.is_ok());
        assert_eq!(
            parse(&site, &[]).1.options.operators.as_deref(),
            Some("ops")
        );
        for words in [["--operators", "mine"], ["--keep", "9"]] {
            let refused = parse(&site, &words).0.unwrap_err();
            assert_eq!(refused.status, Failure::USAGE);
            assert!(refused.to_string().contains(words[0]), "{refused}");
        }
    }

    #[test]
    fn a_value_is_checked_as_on_a_command_line() {
        for (defaults, word) in [
            ("keep = \"three\"", "keep: invalid value 'three'"),
            ("keep = 0", "keep: invalid value '0'"),
            ("interval = 30", "interval: invalid value '30'"),
            ("lazy = \"yes\"", "lazy: 'yes' is neither true nor false"),
            ("on-term = \"stop\"", "[possible values: end, suspend]"),
            ("tier = [\"fast=/x\"]", "capacity: a fast tier needs one"),
            ("keep = [\"1\", \"2\"]", "multiple times"),
            ("epoch = \"new\"", "epoch: invalid value 'new'"),
        ] {
            let error = apply(definition(), &site(defaults, "")).unwrap_err();
            assert!(error.contains(word), "{defaults}: {error}");
        }
        for right in ["lazy = true", "resume-anyway = true", "incremental = \"\""] {
            assert!(apply(definition(), &site(right, "")).is_ok(), "{right}");
        }
        assert_eq!(unknown_group(&site("operators = \"0\"", "")), None);
        let nobody = "operators = \"no-such-group\"";
        assert!(unknown_group(&site(nobody, "")).is_some());
    }

    #[test]
    fn an_option_that_there_is_not_is_named() {
        let error = apply(definition(), &site("kep = 3", "")).unwrap_err();
        assert!(error.contains("'kep'"), "{error}");
    }
}
