//! Jobs of one user in several groups: each is suspended, and must be resumed in its own group.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::Job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::{Failed, ensure};

use super::house::{GROUP, House, PATIENCE, Work, shown, text};
use super::{on_trial, outcomes};

/// The group of a login of this test's user.
const LOGIN: u32 = 61_233;
/// The name of GROUP.
const NAME: &str = "stillpoint-trial";

/// Checks that a user without root rights has jobs in one group, and that no group is named.
fn alone(house: &House, directory: &Directory) -> Result<(), Failed> {
    let work = Work::new(house, house.users[0], 0)?;
    let mut job = work.run(directory)?;
    work.ready(&mut job)?;
    let suspend = ["suspend", "--all", "--timeout", "60"];
    house.stillpoint(directory, &suspend)?.expect(exit::DONE)?;
    job.end(PATIENCE)?;
    let said = house.stillpoint(directory, &["resume", "--all"])?;
    ensure!(!said.stdout.contains("group"), "{}", said.show());
    Ok(())
}

#[test]
fn jobs_of_several_groups_are_suspended_and_each_carries_on_in_its_own() {
    on_trial("groups", |house, directory| {
        if !house.is_root() {
            return alone(house, directory);
        }
        let user = house.users[0];
        let works = [
            Work::of_group(house, user, GROUP, 0)?,
            Work::of_group(house, user, GROUP + 1, 1)?,
        ];
        let mut jobs = vec![];
        for work in &works {
            let mut job = work.run(directory)?;
            work.ready(&mut job)?;
            jobs.push(job);
        }
        let suspend = ["suspend", "--all", "--timeout", "60", "--json"];
        let answer = house.stillpoint(directory, &suspend)?.expect(exit::DONE)?;
        let suspended = outcomes(&answer.json()?, "suspended").len();
        ensure!(suspended == 2, "not both: {}", answer.show());
        for job in jobs {
            let ended = job.end(PATIENCE)?;
            ensure!(ended.status == 0, "{}", ended.show());
        }
        // No table of the system lists this user or the groups.
        let resume = house.stillpoint(directory, &["resume", "--all", "--json"])?;
        for work in &works {
            let right = command_for(&resume.json()?, work)?;
            let last = format!(" # in group {}", work.group);
            ensure!(right.ends_with(&last), "{right}");
        }
        let other = Work {
            group: GROUP,
            name: works[1].name.clone(),
            directory: works[1].directory.clone(),
            ..works[0]
        };
        let restart = |work: &Work| {
            let job = work.start(directory, &["restart", shown(&works[1].epochs())])?;
            fs::write(works[1].directory.join("go"), "").map_err(text)?;
            job.end(PATIENCE)
        };
        let refused = restart(&other)?;
        let why = format!("it ran in group {}", GROUP + 1);
        ensure!(
            refused.status != 0 && refused.stderr.contains(&why),
            "{}",
            refused.show()
        );
        let ended = restart(&works[1])?;
        ensure!(ended.stdout.contains("OK 0"), "{}", ended.show());
        Ok(())
    });
}

/// Returns the command that `resume --all` prints for a job.
fn command_for(said: &serde_json::Value, work: &Work) -> Result<String, Failed> {
    let waiting = outcomes(said, "waits").into_iter();
    let mut his = waiting.filter(|job| job["name"] == *work.name);
    let command = his.next().and_then(|job| job["command"].as_str());
    let command = command.ok_or_else(|| format!("no word of {}: {said}", work.name))?;
    Ok(command.to_owned())
}

/// The system's tables with a user and that user's groups, for processes in a mount namespace.
struct Tables {
    place: PathBuf,
    user: u32,
}

impl Tables {
    fn new(house: &House, user: u32) -> Result<Tables, Failed> {
        let place = house.root.join("tables");
        fs::create_dir(&place).map_err(text)?;
        let added = |name: &str, lines: &str| {
            let there = fs::read_to_string(Path::new("/etc").join(name)).map_err(text)?;
            fs::write(place.join(name), format!("{there}{lines}")).map_err(text)
        };
        added("passwd", &format!("trial:x:{user}:{LOGIN}::/:/bin/sh\n"))?;
        added(
            "group",
            &format!("trial-login:x:{LOGIN}:\n{NAME}:x:{GROUP}:trial\n"),
        )?;
        Ok(Tables { place, user })
    }

    /// Runs the command with these tables, as root or as the user in a group.
    fn with(&self, command: &Command, group: Option<u32>) -> Command {
        let mut all = Command::new("unshare");
        let script = "for name in passwd group; do mount --bind \"$0/$name\" \"/etc/$name\"; done; exec \"$@\"";
        all.args(["--mount", "sh", "-euc", script]).arg(&self.place);
        if let Some(group) = group {
            all.arg("setpriv").arg(format!("--reuid={}", self.user));
            all.arg(format!("--regid={group}")).arg("--init-groups");
        }
        all.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => all.env(name, value),
                None => all.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            all.current_dir(directory);
        }
        all
    }
}

/// The printed line is typed in a login of the user, which has another group.
#[test]
fn the_command_that_is_printed_carries_a_job_on_in_a_group_that_a_login_does_not_have() {
    on_trial("login", |house, directory| {
        if !house.is_root() {
            return alone(house, directory);
        }
        let user = house.users[0];
        let tables = Tables::new(house, user)?;
        let works = [
            Work::of_group(house, user, GROUP, 0)?,
            Work::of_group(house, user, LOGIN, 1)?,
        ];
        for work in &works {
            let (epochs, program) = (work.epochs(), house.program.clone());
            let run = ["run", "--name", &work.name, "--dir", shown(&epochs)];
            let run: Vec<&str> = run.into_iter().chain(["--", shown(&program)]).collect();
            let started = tables.with(&work.command(&run), Some(work.group));
            let mut job = Job::start(started, directory)?;
            work.ready(&mut job)?;
            let suspend = ["suspend", "--all", "--timeout", "60"];
            house.stillpoint(directory, &suspend)?.expect(exit::DONE)?;
            job.end(PATIENCE)?;
            fs::write(work.directory.join("go"), "").map_err(text)?;
        }
        let mut resume = Command::new(house.root.join("stillpoint"));
        resume.args(["resume", "--all", "--json", "--user", &user.to_string()]);
        house.at_home(&mut resume);
        let said = command::run(tables.with(&resume, None), directory, PATIENCE)?;
        let said = said.expect(exit::DONE)?.json()?;
        for work in &works {
            let line = command_for(&said, work)?;
            let asks = line.starts_with(&format!("sg {NAME} -c "));
            ensure!(asks == (work.group == GROUP), "{line}");
            let mut typed = work.command(&[]);
            let path = std::env::var("PATH").unwrap_or_default();
            typed.env("PATH", format!("{}:{path}", shown(&house.root)));
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).current_dir("/");
            for (name, value) in typed.get_envs() {
                if let Some(value) = value {
                    shell.env(name, value);
                }
            }
            let again = Job::start(tables.with(&shell, Some(LOGIN)), directory)?;
            let ended = again.end(PATIENCE)?;
            ensure!(ended.stdout.contains("OK 0"), "{line}: {}", ended.show());
        }
        Ok(())
    });
}
