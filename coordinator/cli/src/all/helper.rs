//! The helper: one process for each user, with that user's rights alone.

use std::io::{BufRead, BufReader, Read};
use std::time::Instant;

use clap::Args;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, geteuid, getresgid, getresuid, setgroups, setresgid, setresuid};

use super::messages::{Action, HelperMessage, Ids, Task};
use super::ranks::{self, Seen};
use super::speaker::{Speaker, Visits};
use super::{jobs, resume};
use crate::{CommandResult, Failure};
use stillpoint_coordinator::door::{self, Visit};

/// The longest task, in bytes.
const LONGEST: u64 = 1 << 20;
/// The most doors to knock at, since each takes a descriptor.
const MOST_VISITS: usize = 512;

/// Serve a command with --all (started by it)
#[derive(Debug, Args)]
pub struct OfUser {}

impl OfUser {
    pub fn execute(self) -> CommandResult {
        let mut line = String::new();
        BufReader::new(std::io::stdin().take(LONGEST))
            .read_line(&mut line)
            .map_err(|error| Failure::of(&error))?;
        let task: Task = serde_json::from_str(&line)
            .map_err(|error| Failure::failed(format!("cannot read the task: {error}")))?;
        let until = Instant::now() + task.timeout.time();
        let user = task.become_user.as_ref().map(|ids| ids.user);
        let whose = user.unwrap_or_else(|| geteuid().as_raw());
        let asks = matches!(task.deed, Action::Checkpoint | Action::Suspend);
        if asks && !task.private {
            ranks::wait_for_starts(whose, until);
        }
        let visits = match user {
            // The kernel reports the process that knocks, which has to be root's, not the user's.
            Some(user) if asks => knock(user),
            _ => Visits::new(),
        };
        let seen = match (task.private, task.deed) {
            (true, _) | (_, Action::Resume { .. }) => Seen::default(),
            _ => Seen::of(whose),
        };
        if let Some(ids) = &task.become_user {
            become_user(ids).map_err(|error| {
                Failure::failed(format!("cannot become user {}: {error}", ids.user))
            })?;
        }
        let speaker = Speaker::default();
        match task.deed {
            Action::Resume { run } => resume::all(&task, run, &speaker),
            _ => jobs::all(&task, until, seen, visits, &speaker),
        }
        speaker.say(&HelperMessage::Over);
        Ok(())
    }
}

/// Knocks at the doors of all jobs of a user. It opens no file of the user and reads no answer yet.
fn knock(user: u32) -> Visits {
    let his = door::all().into_iter().filter(|(owner, _)| *owner == user);
    let visits = his.filter_map(|(owner, launch)| {
        let visit = Visit::pay(owner, &launch).ok()?;
        Some((launch, visit))
    });
    visits.take(MOST_VISITS).collect()
}

/// Gives up every right that the user does not have, for good, before the helper touches anything of the user's.
fn become_user(ids: &Ids) -> nix::Result<()> {
    let (user, group) = (Uid::from_raw(ids.user), Gid::from_raw(ids.group));
    let groups: Vec<Gid> = ids.groups.iter().copied().map(Gid::from_raw).collect();
    setgroups(&groups)?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)?;
    let (users, groups) = (getresuid()?, getresgid()?);
    let became = [users.real, users.effective, users.saved] == [user; 3]
        && [groups.real, groups.effective, groups.saved] == [group; 3];
    if !became || geteuid() != user {
        return Err(nix::errno::Errno::EPERM);
    }
    set_no_new_privs()?;
    umask(Mode::from_bits_truncate(0o077));
    nix::unistd::chdir("/")
}
