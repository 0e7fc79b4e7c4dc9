//! What operators do with all jobs of a machine: of three users, one of whom does what he can to be in the way.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};
use serde_json::Value;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure, strike};

/// Longest that a launch may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Jobs of each user; the last one of the last user is the hostile one.
const JOBS: [usize; 3] = [7, 7, 6];
/// The group of users whom the system does not know.
const NOBODY: u32 = 65534;
const REASON: &str = "maintenance of node 7";

fn text(error: impl ToString) -> Failed {
    error.to_string()
}

/// Where programs are that every user may start, and the users' own directories.
struct House {
    root: PathBuf,
    users: Vec<u32>,
    program: PathBuf,
}

impl House {
    /// Users of this test alone, by number; a suite that is not root has one, itself, with a registry of its own.
    fn new(name: &str) -> Result<House, Failed> {
        let root = std::env::temp_dir();
        let root = root.join(format!("stillpoint-house-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).map_err(text)?;
        fs::set_permissions(&root, Permissions::from_mode(0o755)).map_err(text)?;
        let mine = geteuid().as_raw();
        // Tests run at once: each has users of its own.
        static HOUSES: AtomicU32 = AtomicU32::new(0);
        let house = HOUSES.fetch_add(1, Ordering::Relaxed);
        let first = 100_000 + std::process::id() % 60_000 * 30 + house * 3;
        let users = match mine {
            0 => (first..first + 3).collect(),
            _ => vec![mine; 3],
        };
        let program = Program::named(Kind::Still, "self_messages")?.build()?;
        let house = House {
            program: root.join("program"),
            root,
            users,
        };
        let binaries = [
            "stillpoint",
            "stillpoint-lower-openmpi",
            "libstillpoint_upper_openmpi.so",
        ];
        let copies = binaries.map(|name| (place::binaries().join(name), house.root.join(name)));
        let copies = copies.into_iter().chain([(program, house.program.clone())]);
        for (from, to) in copies {
            // By another process: a file that this one has open for writing cannot be executed.
            let copied = Command::new("cp").arg(&from).arg(&to).status();
            ensure!(copied.map_err(text)?.success(), "no {}", from.display());
            fs::set_permissions(&to, Permissions::from_mode(0o755)).map_err(text)?;
        }
        Ok(house)
    }

    fn is_root(&self) -> bool {
        geteuid().is_root()
    }

    fn stillpoint(&self, directory: &Directory, words: &[&str]) -> Result<Answer, Failed> {
        let mut command = Command::new(self.root.join("stillpoint"));
        command.args(words);
        if self.is_root() {
            let users: Vec<String> = self.users.iter().map(ToString::to_string).collect();
            // Other tests have jobs here.
            command.args(["--user", &users.join(",")]);
        }
        self.at_home(&mut command);
        command::run(command, directory, PATIENCE)
    }

    /// The suite's own user has a registry of his own, so that other tests' jobs are none of his.
    fn at_home(&self, command: &mut Command) {
        command.env_remove("STILLPOINT_RUNTIME_DIR");
        if !self.is_root() {
            command.env("STILLPOINT_RUNTIME_DIR", self.root.join("registry"));
        }
    }

    /// Where a user's jobs are noted.
    fn registry(&self, user: u32) -> Result<PathBuf, Failed> {
        let places = [
            self.root.join("registry"),
            PathBuf::from(format!("/run/stillpoint/{user}")),
            PathBuf::from(format!("/tmp/stillpoint-{user}")),
        ];
        let there = places.into_iter().find(|place| place.is_dir());
        there.ok_or_else(|| format!("user {user} has no registry"))
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // What cannot be removed is in a place for temporary files.
        let _ = fs::remove_dir_all(&self.root);
        if self.is_root() {
            for user in &self.users {
                let _ = fs::remove_dir_all(format!("/run/stillpoint/{user}"));
                let _ = fs::remove_dir_all(format!("/tmp/stillpoint-{user}"));
            }
        }
    }
}

/// A job of one rank, in a directory of its user's.
struct Work<'a> {
    house: &'a House,
    user: u32,
    name: String,
    directory: PathBuf,
}

impl<'a> Work<'a> {
    fn new(house: &'a House, user: u32, number: usize) -> Result<Work<'a>, Failed> {
        let name = format!("job-{number}");
        let directory = house.root.join(&name);
        fs::create_dir(&directory).map_err(text)?;
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).map_err(text)?;
        if house.is_root() {
            chown(&directory, Some(user), Some(NOBODY)).map_err(text)?;
        }
        Ok(Work {
            house,
            user,
            name,
            directory,
        })
    }

    fn epochs(&self) -> PathBuf {
        self.directory.join("epochs.d")
    }

    fn start(&self, directory: &Directory, words: &[&str]) -> Result<Job, Failed> {
        Job::start(self.command(words), directory)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = job::mpirun(1);
        command.arg(self.house.root.join("stillpoint"));
        command.args(words);
        self.house.at_home(&mut command);
        command
            .current_dir(&self.directory)
            .env("HOME", &self.directory)
            .env("TMPDIR", &self.directory)
            .env("TRIAL_DIR", &self.directory);
        if self.house.is_root() {
            command.uid(self.user).gid(NOBODY);
        }
        command
    }

    fn run(&self, directory: &Directory) -> Result<Job, Failed> {
        let (epochs, program) = (self.epochs(), self.house.program.clone());
        let words = ["run", "--name", &self.name, "--dir", shown(&epochs)];
        let words = words.into_iter().chain(["--", shown(&program)]);
        self.start(directory, &words.collect::<Vec<_>>())
    }

    fn ready(&self, job: &mut Job) -> Result<(), Failed> {
        let ready = self.directory.join("ready.0");
        job.until("ready", PATIENCE, |_| ready.exists())
    }
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// Does what a user can who wants to be in the way of whoever looks at his jobs; a file that nobody may have read.
fn be_hostile(work: &Work<'_>, another: &Work<'_>) -> Result<PathBuf, Failed> {
    let secret = work.house.root.join("secret");
    fs::write(
        &secret,
        "{\"name\":\"x\",\"directory\":\"/\",\"launch\":\"x\"}",
    )
    .map_err(text)?;
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).map_err(text)?;
    // Read long ago, changed since: whoever reads it now leaves a trace.
    let long_ago = fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH);
    let file = File::options().write(true).open(&secret).map_err(text)?;
    file.set_times(long_ago).map_err(text)?;
    let registry = work.house.registry(work.user)?;
    let all = Mode::from_bits_truncate(0o666);
    mkfifo(&registry.join("fifo.json"), all).map_err(text)?;
    symlink(&secret, registry.join("link.json")).map_err(text)?;
    symlink("/dev/zero", registry.join("endless.json")).map_err(text)?;
    // A job of his that is nothing but a FIFO, and one that is another user's.
    let trap = work.directory.join("trap");
    fs::create_dir(&trap).map_err(text)?;
    mkfifo(&trap.join("job.json"), all).map_err(text)?;
    let bent = work.directory.join("bent");
    symlink(another.epochs(), &bent).map_err(text)?;
    let own = |path: &Path| {
        let owner = work.house.is_root().then_some(work.user);
        std::os::unix::fs::lchown(path, owner, None).map_err(text)
    };
    for (number, place) in [&trap, &bent].into_iter().enumerate() {
        let entry = serde_json::json!({
            "name": format!("trap-{number}"), "directory": place, "launch": "x",
        });
        let path = registry.join(format!("trap-{number}.json"));
        fs::write(&path, entry.to_string()).map_err(text)?;
        own(&path)?;
        own(place)?;
    }
    strike::signal(strike::coordinator(&work.epochs())?, Signal::SIGSTOP)?;
    let job_json = work.epochs().join("job.json");
    fs::remove_file(&job_json).map_err(text)?;
    let file = File::create(&job_json).map_err(text)?;
    file.set_len(1 << 30).map_err(text)?;
    own(&job_json)?;
    Ok(secret)
}

fn on_trial(name: &str, test: impl FnOnce(&House, &Directory) -> Result<(), Failed>) {
    let tested = (|| {
        let _turn = Turn::take()?;
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
        // Root's first look makes the place for all users.
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

/// A job that no entry leads to is found by its coordinator; where that leads nowhere either, by its ranks, which take a signal for a wish to be
/// suspended. A registry of one's own is all there is to whoever has named it.
#[test]
fn jobs_that_no_entry_leads_to_are_found_but_for_those_of_a_private_registry() {
    on_trial("unnoted", |house, directory| {
        for broken in [false, true] {
            let work = Work::new(house, house.users[0], usize::from(broken))?;
            let mut job = work.run(directory)?;
            work.ready(&mut job)?;
            let registry = house.registry(work.user)?;
            for entry in fs::read_dir(&registry).map_err(text)?.flatten() {
                // A folder is none.
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

/// A job that cannot be suspended stays, is stopped, or is killed, as the operator says; and carries on from the epoch that it has.
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
            let state = fs::read_to_string(format!("/proc/{rank}/stat")).unwrap_or_default();
            let state = state
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.chars().next());
            let right = match left {
                "stop" => state == Some('T'),
                "kill" => matches!(state, None | Some('Z' | 'X')),
                _ => matches!(state, Some('R' | 'S')),
            };
            ensure!(right, "{left}: it is in state {state:?}: {}", answer.show());
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

/// A member of the group that the site names may have a job suspended, and may do nothing else; whoever is no member may do nothing.
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
            // The file is not root's own: nothing is started with it, and nobody is left out of what he may not change.
            let ended = start(&run)?.end(PATIENCE)?;
            ensure!(ended.status != 0, "{}", ended.show());
            ensure!(ended.stderr.contains("not root's own"), "{}", ended.show());
            return Ok(());
        }
        let mine = start(&["run", "--operators", "0", "--", "true"])?.end(PATIENCE)?;
        ensure!(
            mine.stderr.contains("settled by this site"),
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
