//! Starts the helpers, reads their messages, and ends them when the time is over.
//!
//! A helper runs as a user who may stop it or make it say anything. So its output has a limit, and nothing waits for it longer than for the request. A job
//! that it has named counts as one that stays, unless it reports the job's end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::messages::{End, HelperMessage, Job, Task};
use super::reports::Progress;
use crate::Failure;
use crate::request::{FOR_AN_ANSWER, FOR_THE_COMMIT};

/// The longest line of a helper, and the most bytes of all its lines.
const LONGEST: u64 = 8 << 20;
const MOST_BYTES: u64 = 256 << 20;
/// The most jobs of a user.
const MOST_JOBS: usize = 10_000;
/// The time added to that of a request for one job, for the helper's start and its last message.
const FOR_THE_HELPER: Duration = Duration::from_secs(3);
/// The time that a helper may take to end after it was killed. One that waits for a disk is left behind.
const FOR_ITS_END: Duration = Duration::from_secs(1);
/// The variables that a helper of another user inherits: the path of programs, and the place of the batch system's files.
const KEPT: [&str; 2] = ["PATH", "SLURM_CONF"];

/// The result of each job, with its user.
pub type JobResults = Vec<(u32, Job, End)>;

/// A helper, and its reports so far.
struct Helper {
    user: u32,
    child: Option<Child>,
    /// Jobs whose end is not known.
    open: BTreeMap<String, Job>,
    /// Whether one of them is past the point where it could be given up.
    committing: bool,
    found: usize,
    over: bool,
}

enum Event {
    Word(HelperMessage),
    /// It sends nothing more, for this reason.
    Silent(String),
}

/// Lets a helper for each user do its task, and returns the result of each job. Each is printed as the job ends, unless `quiet`.
pub fn all(tasks: Vec<(u32, Task)>, quiet: bool) -> JobResults {
    let longest = tasks.iter().map(|(_, task)| task.timeout.time()).max();
    let begun = Instant::now();
    let limit = longest.unwrap_or_default() + FOR_AN_ANSWER + FOR_THE_HELPER;
    let (said, hear) = mpsc::channel();
    let mut heard = vec![];
    let mut progress = Progress::new(quiet);
    let mut helpers: Vec<Helper> = (0..)
        .zip(tasks)
        .map(|(index, (user, task))| Helper::start(index, user, &task, &said))
        .collect();
    drop(said);
    while helpers.iter().any(|helper| !helper.over) {
        let committing = helpers
            .iter()
            .any(|helper| helper.committing && !helper.over);
        let limit = match committing {
            true => limit + FOR_THE_COMMIT,
            false => limit,
        };
        match hear.recv_timeout(limit.saturating_sub(begun.elapsed())) {
            Ok((index, event)) => {
                let helper: &mut Helper = &mut helpers[index];
                helper.take(event, &mut heard, &mut progress);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    for helper in &mut helpers {
        helper.give_up(&mut heard, &mut progress);
        helper.end();
    }
    progress.end();
    heard
}

impl Helper {
    fn start(index: usize, user: u32, task: &Task, said: &Sender<(usize, Event)>) -> Helper {
        let mut helper = Helper {
            user,
            child: None,
            open: BTreeMap::new(),
            committing: false,
            found: 0,
            over: false,
        };
        match start(task) {
            Ok((child, output)) => {
                helper.child = Some(child);
                let said = said.clone();
                thread::spawn(move || {
                    let last = listen(output, |word| said.send((index, Event::Word(word))).is_ok());
                    // The command may be over.
                    let _ = said.send((index, Event::Silent(last)));
                });
            }
            Err(error) => {
                // The receiver lives: it is read after all helpers are started.
                let _ = said.send((index, Event::Silent(error.to_string())));
            }
        }
        helper
    }

    fn take(&mut self, event: Event, heard: &mut JobResults, progress: &mut Progress) {
        if self.over {
            return;
        }
        match event {
            Event::Word(HelperMessage::Found(job)) => {
                self.found += 1;
                if self.found > MOST_JOBS {
                    return self.broken(format!("has more than {MOST_JOBS} jobs"), heard, progress);
                }
                self.open.insert(job.key.clone(), job);
                progress.found();
            }
            Event::Word(HelperMessage::Phase {
                key,
                text,
                committing,
            }) => {
                self.committing |= committing;
                if let Some(job) = self.open.get(&key) {
                    progress.phase(job, &text);
                }
            }
            Event::Word(HelperMessage::Not { key }) => {
                if self.open.remove(&key).is_some() {
                    progress.lost();
                }
            }
            Event::Word(HelperMessage::Ended { key, end }) => {
                if let Some(job) = self.open.remove(&key) {
                    progress.ended(self.user, &job, &end);
                    heard.push((self.user, job, end));
                }
                self.committing &= !self.open.is_empty();
            }
            Event::Word(HelperMessage::Over) => {
                self.over = true;
                let why = "its helper did not report on it";
                self.name_the_open(why, heard, progress);
            }
            Event::Silent(why) => self.broken(why, heard, progress),
        }
    }

    /// Ends a helper whose messages do not count any more.
    fn broken(&mut self, why: String, heard: &mut JobResults, progress: &mut Progress) {
        let user = self.user;
        self.over = true;
        if self.open.is_empty() {
            let name = format!("jobs of {}", stillpoint_coordinator::names::name_of(user));
            let job = Job {
                name,
                ..Job::default()
            };
            self.open.insert(String::new(), job);
            progress.found();
        }
        self.name_the_open(&format!("the helper of this user {why}"), heard, progress);
    }

    /// Ends a helper whose time is over.
    fn give_up(&mut self, heard: &mut JobResults, progress: &mut Progress) {
        if !self.over && self.open.is_empty() {
            return self.broken("did not answer in time".to_owned(), heard, progress);
        }
        self.over = true;
        self.name_the_open("did not answer in time", heard, progress);
    }

    fn name_the_open(&mut self, why: &str, heard: &mut JobResults, progress: &mut Progress) {
        for job in std::mem::take(&mut self.open).into_values() {
            let end = End::Stays {
                why: why.to_owned(),
                codes: vec![],
                status: Failure::FAILED,
                left: None,
            };
            progress.ended(self.user, &job, &end);
            heard.push((self.user, job, end));
        }
    }

    fn end(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        let since = Instant::now();
        // It may have ended by itself.
        let _ = child.kill();
        while matches!(child.try_wait(), Ok(None)) && since.elapsed() < FOR_ITS_END {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn start(task: &Task) -> std::io::Result<(Child, ChildStdout)> {
    let mut line = serde_json::to_vec(task)?;
    line.push(b'\n');
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("of-user")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if task.become_user.is_some() {
        command.env_clear().current_dir("/");
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
    }
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it has already ended, its missing output shows that.
        let _ = stdin.write_all(&line);
    }
    match child.stdout.take() {
        Some(output) => Ok((child, output)),
        None => Err(std::io::Error::other("its output is missing")),
    }
}

/// Passes on a helper's messages, until it is over or the receiver is gone. Returns why there are no more.
fn listen(output: ChildStdout, mut pass: impl FnMut(HelperMessage) -> bool) -> String {
    let mut output = BufReader::new(output.take(MOST_BYTES));
    loop {
        let mut line = vec![];
        let length = (&mut output).take(LONGEST).read_until(b'\n', &mut line);
        match length {
            Ok(_) if line.last() == Some(&b'\n') => {}
            Ok(0) => return "ended before it reported".to_owned(),
            Ok(_) => return "sent too much".to_owned(),
            Err(error) => return format!("cannot be read: {error}"),
        }
        let word: HelperMessage = match serde_json::from_slice(&line) {
            Ok(word) => word,
            Err(_) => return "sent a malformed report".to_owned(),
        };
        let over = word == HelperMessage::Over;
        if !pass(word) || over {
            return String::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper() -> Helper {
        Helper {
            user: 1,
            child: None,
            open: BTreeMap::new(),
            committing: false,
            found: 0,
            over: false,
        }
    }

    fn found(key: &str) -> Event {
        Event::Word(HelperMessage::Found(Job {
            key: key.into(),
            name: key.into(),
            directory: String::new(),
        }))
    }

    fn after(events: Vec<Event>) -> Vec<(String, End)> {
        let (mut helper, mut heard) = (helper(), vec![]);
        let mut progress = Progress::new(true);
        for event in events {
            helper.take(event, &mut heard, &mut progress);
        }
        helper.give_up(&mut heard, &mut progress);
        let named = heard.into_iter().map(|(_, job, end)| (job.name, end));
        named.collect()
    }

    fn done() -> End {
        End::Signalled { ranks: 1 }
    }

    #[test]
    fn what_a_helper_does_not_tell_the_end_of_stays() {
        let ended = Event::Word(HelperMessage::Ended {
            key: "a".into(),
            end: done(),
        });
        let said = vec![
            found("a"),
            found("b"),
            ended,
            Event::Word(HelperMessage::Over),
        ];
        let heard = after(said);
        assert_eq!(heard[0], ("a".to_owned(), done()));
        assert!(matches!(&heard[1], (name, End::Stays { .. }) if name == "b"));
        assert_eq!(heard.len(), 2);
    }

    #[test]
    fn a_helper_that_falls_silent_is_named_also_if_it_has_named_no_job() {
        for silent in [
            vec![],
            vec![Event::Silent("ended before it reported".into())],
        ] {
            let heard = after(silent);
            assert!(matches!(&heard[..], [(_, End::Stays { .. })]), "{heard:?}");
        }
    }

    #[test]
    fn what_it_says_after_its_end_or_of_jobs_it_has_not_named_is_not_heard() {
        let ended = || {
            Event::Word(HelperMessage::Ended {
                key: "a".into(),
                end: done(),
            })
        };
        let heard = after(vec![
            ended(),
            Event::Word(HelperMessage::Over),
            found("a"),
            ended(),
        ]);
        assert_eq!(heard, []);
    }

    #[test]
    fn too_many_jobs_are_no_jobs() {
        let many = (0..=MOST_JOBS).map(|number| found(&number.to_string()));
        let heard = after(many.collect());
        assert!(heard.iter().all(|(_, end)| !end.is_good()));
    }
}
