//! Selects the users whose jobs are meant, and looks up their ids.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;

use nix::unistd::{Gid, Uid, User, getgrouplist};

use super::messages::{Action, Ids};
use super::ranks;
use crate::Failure;
use stillpoint_coordinator::registry;

/// The group of users whom the system does not know and who have no job: nobody's. The group of a user's files does not show the user's own.
const NOBODY: u32 = 65534;
/// The most users to look at because of the names of directories alone.
const MOST: usize = 10_000;

/// Whether a variable names a registry for this command: then it alone counts.
pub fn private() -> bool {
    std::env::var_os("STILLPOINT_RUNTIME_DIR").is_some()
}

/// The users whose jobs are meant.
pub struct Meant {
    /// Users for whom this process may act.
    pub users: Vec<u32>,
    /// Users whose jobs may have this user as an operator: these, or all (`Some(None)`); `None`: no users.
    pub others: Option<Option<Vec<u32>>>,
}

/// Returns the named users, or all if none is named.
pub fn meant(named: &[String], deed: Action, this: u32) -> Result<Meant, Failure> {
    let root = this == 0 && !private();
    let named: Vec<u32> = named
        .iter()
        .map(|name| number(name))
        .collect::<Result<_, _>>()?;
    if !root {
        let other = named.iter().find(|user| **user != this);
        if let Some(other) = other.filter(|_| deed != Action::Suspend || private()) {
            let text = format!(
                "only root may do this to jobs of user {other}; operators may suspend them"
            );
            return Err(Failure::new(Failure::NOT_ALLOWED, text));
        }
        let own = named.is_empty() || named.contains(&this);
        let others = (deed == Action::Suspend && !private())
            .then(|| (!named.is_empty()).then_some(others_of(&named, this)))
            .filter(|others| others.as_ref().is_none_or(|others| !others.is_empty()));
        return Ok(Meant {
            users: own.then_some(this).into_iter().collect(),
            others,
        });
    }
    // Jobs that begin from now on are then recorded where every user has a place. Without it they use other places.
    let _ = registry::make_shared_place();
    let there = match deed {
        // A suspended job has no process.
        Action::Resume { .. } => with_a_place(),
        _ => ranks::users(),
    };
    let meant = |user: &u32| named.is_empty() || named.contains(user);
    Ok(Meant {
        users: there.into_iter().filter(meant).collect(),
        others: None,
    })
}

fn others_of(named: &[u32], this: u32) -> Vec<u32> {
    let others = named.iter().filter(|user| **user != this);
    others.copied().collect()
}

fn number(name: &str) -> Result<u32, Failure> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let known = User::from_name(name).ok().flatten();
    let unknown = || Failure::new(Failure::USAGE, format!("--user: there is no user '{name}'"));
    known.map(|user| user.uid.as_raw()).ok_or_else(unknown)
}

/// Users with a directory of a registry that is named after them. The directories are not opened here, since their contents belong to the users.
fn with_a_place() -> Vec<u32> {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    };
    let plain = names("/run/stillpoint").chain(names("/run/user"));
    let plain = plain.filter_map(|name| name.parse().ok());
    let beside = names("/tmp").filter_map(|name| name.strip_prefix("stillpoint-")?.parse().ok());
    let all: BTreeSet<u32> = plain.chain(beside).take(MOST).collect();
    all.into_iter().collect()
}

/// The ids of a user's processes. They come from the system's tables, but the group is that of the user's job processes, as the kernel reports it. The kernel
/// lets a process be looked at by one of the same group only. A job may have been started under another group than its user's first (`newgrp`), or by a user
/// whom the tables do not have.
pub fn ids(user: u32) -> Ids {
    let known = User::from_uid(Uid::from_raw(user)).ok().flatten();
    let (group, groups) = match known {
        Some(known) => {
            let name = CString::new(known.name).unwrap_or_default();
            let groups = getgrouplist(&name, known.gid).unwrap_or_else(|_| vec![known.gid]);
            (known.gid, groups)
        }
        None => (Gid::from_raw(NOBODY), vec![]),
    };
    let of_jobs = ranks::groups(user).into_iter().map(Gid::from_raw);
    let of_jobs: Vec<Gid> = of_jobs.collect();
    let group = match of_jobs.contains(&group) {
        true => group,
        false => of_jobs.first().copied().unwrap_or(group),
    };
    Ids {
        user,
        group: group.as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
    }
}
