//! Operators' commands for all jobs of a machine. There are three users, one of them hostile.

mod groups;
mod hostile;
mod hosts;
mod house;
mod moments;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::Job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::{Failed, ensure, strike};

use hostile::be_hostile;
use house::{House, NOBODY, PATIENCE, Work, shown, text};

/// The number of jobs of each user; the last one of the last user is the hostile one.
const JOBS: [usize; 3] = [7, 7, 6];
/// The longest time until a signal has been acted on.
const SIGNALLED: Duration = Duration::from_secs(10);
const REASON: &str = "maintenance of node 7";

fn on_trial(name: &str, test: impl FnOnce(&House, &Directory) -> Result<(), Failed>) {
    let tested = (|| {
        let house = House::new(name)?;
        Directory::new(name)?.run(|directory| test(&house, directory))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn outcomes<'a>(answer: &'a Value, outcome: &str) -> Vec<&'a Value> {
    let jobs = answer["jobs"].as_array().into_iter().flatten();
    jobs.filter(|job| job["outcome"] == outcome).collect()
}

#[test]
fn nineteen_jobs_of_three_users_are_suspended_and_the_hostile_one_is_named() {
    on_trial("operators", |house, directory| {
        // Root's first command makes the place for all users.
        house
            .stillpoint(directory, &["status", "--all"])?
            .expect(exit::DONE)?;
        let users = house.users.iter().zip(JOBS);
        let users = users.flat_map(|(user, jobs)| std::iter::repeat_n(*user, jobs));
        let works: Vec<Work> = users
            .enumerate()
            .map(|(number, user)| Work::new(house, user, number))
            .collect::<Result<_, _>>()?;
        let mut jobs = vec![];
        for work in &works {
            let mut job = work.run(directory)?;
            work.ready(&mut job)?;
            jobs.push(job);
        }
        let status = house.stillpoint(directory, &["status", "--all", "--json"])?;
        let status = status.expect(exit::DONE)?.json()?;
        let running = status["jobs"].as_array().map_or(0, Vec::len);
        ensure!(running == works.len(), "{running} jobs run: {status}");

        let Some((hostile, good)) = works.split_last() else {
            return Err("there are no jobs".into());
        };
        let secret = be_hostile(hostile, &good[0])?;
        let began = Instant::now();
        let words = [
            "suspend",
            "--all",
            "--timeout",
            "60",
            "--reason",
            REASON,
            "--json",
        ];
        let answer = house.stillpoint(directory, &words)?.expect(exit::FAILED)?;
        let took = began.elapsed();
        let said = answer.json()?;
        let suspended = outcomes(&said, "suspended");
        ensure!(suspended.len() == good.len(), "not 19: {}", answer.show());
        let stays = outcomes(&said, "stays");
        let his = |job: &&Value| job["name"] == *hostile.name;
        ensure!(stays.iter().any(his), "not named: {}", answer.show());
        let others = stays
            .iter()
            .filter(|job| job["uid"] != hostile.user)
            .count();
        ensure!(others == 0, "others stay: {}", answer.show());
        ensure!(
            answer.stderr.contains(&hostile.name),
            "not named: {}",
            answer.show()
        );
        ensure!(took < Duration::from_secs(75), "it took {took:?}");
        let read = fs::metadata(&secret).map_err(text)?.atime();
        ensure!(read == 0, "what the link leads to was read");

        jobs.pop();
        for (work, job) in good.iter().zip(jobs) {
            let ended = job.end(PATIENCE)?;
            let line = format!("suspended by {}: {REASON}", caller());
            ensure!(ended.status == 0, "{}", ended.show());
            ensure!(ended.stderr.contains(&line), "not told: {}", ended.show());
            let file = strike::job_file(&work.epochs())?;
            ensure!(file["suspended_by"]["reason"] == REASON, "{file}");
            let owner = fs::metadata(work.epochs().join("epoch-000001"))
                .map_err(text)?
                .uid();
            ensure!(owner == work.user, "the epoch belongs to user {owner}");
        }
        let resume = house.stillpoint(directory, &["resume", "--all", "--json"])?;
        let resume = resume.expect(exit::DONE)?.json()?;
        ensure!(outcomes(&resume, "waits").len() == good.len(), "{resume}");
        for work in good {
            let job = work.start(directory, &["restart", shown(&work.epochs())])?;
            fs::write(work.directory.join("go"), "").map_err(text)?;
            let ended = job.end(PATIENCE)?;
            let right = ended.status == 0 && ended.stdout.contains("OK 0");
            ensure!(right, "{}: {}", work.name, ended.show());
        }
        let resume = house.stillpoint(directory, &["resume", "--all", "--json"])?;
        ensure!(
            outcomes(&resume.json()?, "waits").is_empty(),
            "not forgotten"
        );
        Ok(())
    });
}

fn caller() -> String {
    let known = nix::unistd::User::from_uid(geteuid()).ok().flatten();
    known.map_or_else(|| format!("user {}", geteuid()), |user| user.name)
}

/// A job without an entry is found by its coordinator or, if that fails too, by its ranks, which take a signal for a suspend request. A command
/// with a private registry sees only that registry.
#[test]
fn jobs_that_no_entry_leads_to_are_found_but_for_those_of_a_private_registry() {
    on_trial("unnoted", |house, directory| {
        for broken in [false, true] {
            let work = Work::new(house, house.users[0], usize::from(broken))?;
            let mut job = work.run(directory)?;
            work.ready(&mut job)?;
            let registry = house.registry(work.user)?;
            for entry in fs::read_dir(&registry).map_err(text)?.flatten() {
                // A folder is no entry.
                let _ = fs::remove_file(entry.path());
            }
            if broken {
                fs::write(work.epochs().join("job.json"), "{").map_err(text)?;
            }
            let words = ["suspend", "--all", "--timeout", "60", "--json"];
            let answer = house.stillpoint(directory, &words)?.expect(exit::DONE)?;
            let expected = match (house.is_root(), broken) {
                (false, _) => {
                    ensure!(job.runs(), "not its job: {}", answer.show());
                    continue;
                }
                (true, false) => "suspended",
                (true, true) => "signalled",
            };
            let found = outcomes(&answer.json()?, expected).len();
            ensure!(found == 1, "not {expected}: {}", answer.show());
            let ended = job.end(PATIENCE)?;
            ensure!(ended.status == 0, "{}", ended.show());
            let state = &strike::job_file(&work.epochs())?["state"];
            ensure!(state == "suspended", "it is {state}");
        }
        Ok(())
    });
}

/// Returns the letter of a process's state, if it exists.
fn state_of(process: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// A job that cannot be suspended is left, stopped, or killed, as the operator chooses. It carries on from its last epoch.
#[test]
fn a_job_that_stays_is_left_stopped_or_killed() {
    on_trial("left", |house, directory| {
        for left in ["leave", "stop", "kill"] {
            let work = Work::new(
                house,
                house.users[0],
                left.len() + left.find('t').unwrap_or(9),
            )?;
            let mut job = work.run(directory)?;
            work.ready(&mut job)?;
            let checkpoint = ["checkpoint", "--all", "--timeout", "60"];
            house
                .stillpoint(directory, &checkpoint)?
                .expect(exit::DONE)?;
            let rank = strike::ranks(&work.epochs())?[0];
            strike::signal(strike::coordinator(&work.epochs())?, Signal::SIGSTOP)?;
            let words = ["suspend", "--all", "--timeout", "3", "--left", left];
            let answer = house.stillpoint(directory, &words)?.expect(exit::FAILED)?;
            let right = |state: Option<char>| match left {
                "stop" => state == Some('T'),
                "kill" => matches!(state, None | Some('Z' | 'X')),
                _ => matches!(state, Some('R' | 'S' | 'D')),
            };
            // A signal may find a process in the middle of a call.
            let sent = Instant::now();
            while !right(state_of(rank)) {
                ensure!(
                    sent.elapsed() < SIGNALLED,
                    "{left}: it is in state {:?}: {}",
                    state_of(rank),
                    answer.show()
                );
                thread::sleep(Duration::from_millis(10));
            }
            if left == "kill" {
                strike::signal(strike::coordinator(&work.epochs())?, Signal::SIGCONT)?;
                job.end(PATIENCE)?;
                let again = work.start(directory, &["restart", shown(&work.epochs())])?;
                fs::write(work.directory.join("go"), "").map_err(text)?;
                let ended = again.end(PATIENCE)?;
                ensure!(ended.stdout.contains("OK 0"), "{}", ended.show());
            }
        }
        Ok(())
    });
}

/// A member of the site's group may suspend another user's job and do nothing else; other users may do nothing.
#[test]
fn operators_may_suspend_others_jobs_and_nothing_else() {
    on_trial("members", |house, directory| {
        let (operators, operator) = (house.users[1], house.users[2]);
        let site = house.root.join("site.conf");
        let settled = format!(
            "[defaults]\noperators = \"{operators}\"\n[fixed]\noptions = [\"operators\"]\n"
        );
        fs::write(&site, settled).map_err(text)?;
        let work = Work::new(house, house.users[0], 0)?;
        let start = |words: &[&str]| {
            let mut command = work.command(words);
            command.env("STILLPOINT_CONF", &site);
            Job::start(command, directory)
        };
        let program = house.program.clone();
        let epochs = work.epochs();
        let run = ["run", "--dir", shown(&epochs), "--", shown(&program)];
        if !house.is_root() {
            // The file is not root's own, so jobs do not start with it.
            let ended = start(&run)?.end(PATIENCE)?;
            ensure!(ended.status != 0, "{}", ended.show());
            ensure!(ended.stderr.contains("not root's own"), "{}", ended.show());
            return Ok(());
        }
        let mine = start(&["run", "--operators", "0", "--", "true"])?.end(PATIENCE)?;
        ensure!(
            mine.stderr.contains("fixed by this site"),
            "{}",
            mine.show()
        );
        let mut job = start(&run)?;
        work.ready(&mut job)?;
        let ask = |group: u32, deed: &str| {
            let mut command = Command::new(house.root.join("stillpoint"));
            let user = work.user.to_string();
            command.args([deed, "--all", "--user", &user, "--timeout", "60"]);
            house.at_home(&mut command);
            command.uid(operator).gid(group).current_dir("/");
            command::run(command, directory, PATIENCE)
        };
        ask(NOBODY, "suspend")?.expect_reason(exit::NOT_ALLOWED, "no operator")?;
        ask(operators, "checkpoint")?.expect_reason(exit::NOT_ALLOWED, "only root")?;
        ask(operators, "status")?.expect_reason(exit::NOT_ALLOWED, "only root")?;
        ensure!(job.runs(), "it has ended: {}", job.stderr());
        let answer = ask(operators, "suspend")?.expect(exit::DONE)?;
        let told = answer.stdout.contains("suspended") && !answer.stdout.contains("job-0");
        ensure!(told, "{}", answer.show());
        let ended = job.end(PATIENCE)?;
        let by = format!("suspended by user {operator}");
        ensure!(ended.stderr.contains(&by), "{}", ended.show());
        let restart = ["restart", shown(&epochs)];
        fs::write(work.directory.join("go"), "").map_err(text)?;
        let ended = start(&restart)?.end(PATIENCE)?;
        ensure!(ended.stdout.contains("OK 0"), "{}", ended.show());
        Ok(())
    });
}
