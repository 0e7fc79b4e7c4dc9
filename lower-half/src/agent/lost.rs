//! Goes on when the coordinator has died, or its host cannot be reached: the application runs on, and the agents find the next coordinator,
//! or the same one when its host answers again.
//!
//! The first rank's agent starts the next one. It takes over the checkpoint directory, job.json with the job's key, and the
//! numbers of epochs. job.json says where it is, and every agent introduces itself again. Nothing that was under way continues:
//! an attempt that was not committed is given up.

use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stillpoint_protocol::agent::FromAgent;
use stillpoint_protocol::job_file::{JobFile, JobState};

use super::member::{Coming, enter};
use super::{Agent, AgentError, ending, successor, user_messages};
use crate::ground::wake;

/// How long a coordinator may take to answer an agent that comes back.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pauses between attempts to find one, at first and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The time after which a rank that has not started another coordinator says that it has none.
const SILENCE: Duration = Duration::from_secs(15);

impl Agent {
    /// Cleans up when the connection has ended. The application is released, unless the epoch after which it was to end is committed. Then
    /// every rank ends, even one that the coordinator could not tell any more.
    pub(super) fn left_alone(&mut self) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        if self.is_suspended() {
            self.leave_tiers();
            ending::leave(self.launch.suspended_status);
        }
        if let Some(staging) = &self.staging {
            staging.give_up(attempt.number());
        }
        attempt.abandon();
    }

    /// Returns whether the job is suspended: job.json says so before the first rank is told to end.
    fn is_suspended(&self) -> bool {
        JobFile::read(&self.launch.directory)
            .is_ok_and(|job| job.launch == self.launch.launch && job.state == JobState::Suspended)
    }

    /// Returns when a coordinator serves this rank again, or this thread is to step aside.
    pub(super) fn find_another(&mut self) {
        let since = Instant::now();
        let mut news = News::default();
        let mut pause = FIRST_PAUSE;
        while !self.is_to_step_aside() {
            let lost = match self.come_back() {
                Ok(()) => {
                    if news.said {
                        user_messages::say("another coordinator serves the job");
                    }
                    return;
                }
                Err(error) => error,
            };
            // A process that ends waits only for a moment, and need not start a coordinator for that.
            if wake::ending().is_none() {
                match self.start_another(&mut news) {
                    Some(Ok(())) => continue,
                    Some(Err(reason)) => news.tell(format!(
                        "no other coordinator could be started: {reason}; the job runs on, and cannot be checkpointed \
                         until one is"
                    )),
                    None if since.elapsed() > SILENCE => news.tell(format!(
                        "rank {} has no coordinator and cannot be checkpointed; it runs on, and looks for one: {lost}",
                        self.launch.rank
                    )),
                    None => {}
                }
            }
            if let Some(signal) = wake::take_suspend() {
                self.suspend = Some(signal);
                news.tell(format!(
                    "rank {} got signal {signal}: there is no coordinator to suspend the job; it is suspended when there \
                     is one",
                    self.launch.rank
                ));
            }
            wait_for_bell(pause);
            pause = match wake::ending() {
                None => (pause * 2).min(LONGEST_PAUSE),
                Some(_) => FIRST_PAUSE,
            };
        }
    }

    /// Connects to the coordinator that job.json names.
    fn come_back(&mut self) -> Result<(), AgentError> {
        let connection = self.launch.try_connect(PATIENCE)?;
        let coming = Coming {
            returns: true,
            late: self.late,
        };
        let (sender, receiver) = enter(&self.launch, connection, coming)?;
        if let Some(staging) = &mut self.staging {
            staging.serve_with(sender.clone());
        }
        if let Some(signal) = self.suspend {
            sender.send(&FromAgent::SuspendWanted { signal })?;
        }
        self.sender = sender;
        self.receiver = receiver;
        // The new coordinator has to hear it again.
        self.mpi = false;
        Ok(())
    }

    /// Starts another coordinator, if this rank is the one to do so, and the last one is known to be dead.
    fn start_another(&self, news: &mut News) -> Option<Result<(), String>> {
        let command = self.launch.stillpoint.as_ref()?;
        let dead = match JobFile::read(&self.launch.directory) {
            Ok(job) if job.launch != self.launch.launch => {
                return Some(Err("another job has the checkpoint directory".to_owned()));
            }
            Ok(job) if job.coordinator.alive() != Some(false) => return None,
            Ok(job) => job.coordinator,
            Err(error) => return Some(Err(error.to_string())),
        };
        if !news.said {
            news.tell(format!(
                "the job's coordinator, process {} on {}, has died: starting another one",
                dead.pid, dead.host
            ));
        }
        Some(successor::start(command, &self.launch.directory))
    }
}

/// The news that the user has heard; the same text does not come twice in a row.
#[derive(Default)]
struct News {
    said: bool,
    last: String,
}

impl News {
    fn tell(&mut self, text: String) {
        self.said = true;
        if self.last != text {
            user_messages::say(&text);
            self.last = text;
        }
    }
}

/// Sleeps until the application's side rings the bell, or the time is over, a minute at most.
pub(super) fn wait_for_bell(patience: Duration) {
    let Some(bell) = wake::bell() else {
        std::thread::sleep(patience);
        return;
    };
    let limit = PollTimeout::from(patience.as_millis().min(60_000) as u16);
    // An interrupted poll only makes the caller look around once more.
    let _ = poll(&mut [PollFd::new(bell, PollFlags::POLLIN)], limit);
    wake::silence();
}
