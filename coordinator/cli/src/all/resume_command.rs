//! The command line with which a person resumes a suspended job.
//!
//! A helper sends fields, and the command makes the line from them. So the text of one user cannot become part of a line that another user types.

use std::path::PathBuf;

use nix::unistd::{Gid, Group, User, getuid};
use serde::{Deserialize, Deserializer, Serialize};
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::safe_text::word;

use stillpoint_coordinator::registry::Entry;

/// A way to resume a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResumeCommand {
    /// Slurm starts it again.
    Requeue(SlurmId),
    /// The job's own user does so, in a fresh login.
    ByHand {
        working_directory: PathBuf,
        ranks: u32,
        directory: PathBuf,
        group: InGroup,
    },
}

/// The name of a job of Slurm: `17`, or `17_3` for one of an array, or `17+1` for a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlurmId(String);

impl SlurmId {
    /// Returns `None` if the text is not such a name.
    pub fn of(text: &str) -> Option<SlurmId> {
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits && (1..=20).contains(&text.len())
        };
        let is_one = match text.split_once(['_', '+']) {
            Some((job, part)) => number(job) && number(part),
            None => number(text),
        };
        is_one.then(|| SlurmId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for SlurmId {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<SlurmId, D::Error> {
        let text = String::deserialize(source)?;
        SlurmId::of(&text).ok_or_else(|| serde::de::Error::custom("not the name of a Slurm job"))
    }
}

/// The group that a restart needs, which is the job's.
///
/// The kernel lets only processes of root choose their group, and a restart in another group than the job's is refused. `sg` knows only users and groups of
/// the system's tables. For others, the line names the group instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InGroup {
    /// The group of the user's logins, or an unknown one.
    Login,
    Named(String),
    Number(u32),
}

impl InGroup {
    fn of(group: Option<u32>, login: Option<u32>, name: impl Fn(u32) -> Option<String>) -> InGroup {
        match (group, login) {
            (None, _) => InGroup::Login,
            (Some(group), Some(login)) if login == group => InGroup::Login,
            (Some(group), Some(_)) => name(group).map_or(InGroup::Number(group), InGroup::Named),
            (Some(group), None) => InGroup::Number(group),
        }
    }
}

impl ResumeCommand {
    /// The way for the job's own user, who runs this process.
    pub fn by_hand(entry: &Entry, job: &JobFile) -> ResumeCommand {
        let user = User::from_uid(getuid()).ok().flatten();
        let name = |group| {
            let known = Group::from_gid(Gid::from_raw(group)).ok().flatten();
            known.map(|group| group.name)
        };
        ResumeCommand::ByHand {
            working_directory: job.working_directory.clone(),
            ranks: job.ranks,
            directory: entry.directory.clone(),
            group: InGroup::of(entry.group, user.map(|user| user.gid.as_raw()), name),
        }
    }

    /// The line to type.
    pub fn command(&self) -> String {
        let (place, ranks, directory, group) = match self {
            ResumeCommand::Requeue(id) => return format!("scontrol requeue {}", id.as_str()),
            ResumeCommand::ByHand {
                working_directory,
                ranks,
                directory,
                group,
            } => (working_directory, ranks, directory, group),
        };
        let command = format!(
            "cd {} && mpirun -n {ranks} stillpoint restart {}",
            word(&place.display().to_string()),
            word(&directory.display().to_string())
        );
        match group {
            InGroup::Login => command,
            InGroup::Named(name) => format!("sg {} -c {}", word(name), word(&command)),
            InGroup::Number(group) => format!("{command} # in group {group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_that_a_login_does_not_have_is_asked_for() {
        let said = |login, name: Option<&str>| {
            let again = ResumeCommand::ByHand {
                working_directory: "a b".into(),
                ranks: 2,
                directory: "/d".into(),
                group: InGroup::of(Some(50), login, |_| name.map(str::to_owned)),
            };
            again.command()
        };
        let plain = "cd 'a b' && mpirun -n 2 stillpoint restart /d";
        assert_eq!(said(Some(50), Some("staff")), plain);
        assert_eq!(
            said(Some(100), Some("staff")),
            r"sg staff -c 'cd '\''a b'\'' && mpirun -n 2 stillpoint restart /d'"
        );
        let told = format!("{plain} # in group 50");
        assert_eq!(said(Some(100), None), told);
        assert_eq!(said(None, Some("staff")), told);
    }

    #[test]
    fn a_job_of_slurm_is_known_by_its_form() {
        for id in ["17", "17_3", "17+1"] {
            assert_eq!(SlurmId::of(id).unwrap().as_str(), id);
        }
        for hostile in ["", "--help; id", "17;id", "17_", "_3", "1 7", "17_3_4", "x"] {
            assert_eq!(SlurmId::of(hostile), None, "{hostile}");
            let word = serde_json::json!({ "Requeue": hostile });
            assert!(
                serde_json::from_value::<ResumeCommand>(word).is_err(),
                "{hostile}"
            );
        }
    }
}
