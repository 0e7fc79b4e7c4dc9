//! What a person types to carry a suspended job on.

use nix::unistd::{Gid, Group, User, getuid};

use crate::registry::Entry;
use stillpoint_protocol::job_file::JobFile;

/// The line, for the job's own user in a fresh login.
pub fn command(entry: &Entry, job: &JobFile) -> String {
    let command = format!(
        "cd {} && mpirun -n {} stillpoint restart {}",
        quoted(&job.working_directory.display().to_string()),
        job.ranks,
        quoted(&entry.directory.display().to_string())
    );
    match entry.group {
        Some(group) => in_group(command, group, logs_in_with(), name_of(group).as_deref()),
        None => command,
    }
}

/// The group that this user's logins have, where the system's tables know him.
fn logs_in_with() -> Option<u32> {
    let known = User::from_uid(getuid()).ok().flatten();
    known.map(|user| user.gid.as_raw())
}

fn name_of(group: u32) -> Option<String> {
    let known = Group::from_gid(Gid::from_raw(group)).ok().flatten();
    known.map(|group| group.name)
}

/// The kernel lets no process but root's choose its group, and a restart is refused in another one than the job's. `sg` knows users and groups by the
/// system's tables alone: whom they do not have is told which group it is to be.
fn in_group(command: String, group: u32, login: Option<u32>, name: Option<&str>) -> String {
    match (login, name) {
        (Some(login), _) if login == group => command,
        (Some(_), Some(name)) => format!("sg {} -c {}", quoted(name), quoted(&command)),
        _ => format!("{command} # in group {group}"),
    }
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::{in_group, quoted};

    #[test]
    fn a_word_stays_one_word_whatever_is_in_it() {
        assert_eq!(quoted("/scratch/run-1.d"), "/scratch/run-1.d");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn only_a_group_that_a_login_does_not_have_is_asked_for() {
        let said = |login, name| in_group("cd 'a b' && go".into(), 50, login, name);
        assert_eq!(said(Some(50), Some("staff")), "cd 'a b' && go");
        assert_eq!(
            said(Some(100), Some("staff")),
            r"sg staff -c 'cd '\''a b'\'' && go'"
        );
        assert_eq!(said(Some(100), None), "cd 'a b' && go # in group 50");
        assert_eq!(said(None, Some("staff")), "cd 'a b' && go # in group 50");
    }
}
