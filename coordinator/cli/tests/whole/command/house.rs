//! A directory with the command, and launches from it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stand_in::STAND_IN;
use crate::support::PATIENCE;

/// A directory with the command, its stand-in siblings and a place for checkpoints.
pub struct House {
    directory: tempfile::TempDir,
}

impl House {
    pub fn new() -> House {
        let house = House {
            directory: tempfile::tempdir().unwrap(),
        };
        let this = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = restart ] || shift\nexport TEST_ARGUMENTS=\"$*\"\n\
             exec {} --exact command::stand_in::a_rank_without_an_application --nocapture\n",
            this.display()
        );
        // Another process makes the copies: a file that this one has open for writing while another test starts a process cannot be executed.
        let copy = |from: &Path, to: &str| {
            let done = Command::new("cp").arg(from).arg(house.path(to)).status();
            assert!(done.unwrap().success());
        };
        copy(Path::new(env!("CARGO_BIN_EXE_stillpoint")), "stillpoint");
        let text = house.path("script");
        fs::write(&text, script).unwrap();
        fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
        copy(&text, "stillpoint-lower-openmpi");
        fs::write(house.path("libstillpoint_upper_openmpi.so"), "").unwrap();
        house
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn checkpoints(&self) -> PathBuf {
        self.path("d")
    }

    /// The command, without variables of the launcher, session or options of this test.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("stillpoint"));
        for (name, _) in std::env::vars() {
            if ["OMPI_", "PMI", "SLURM_", "STILLPOINT_", "PMIX_"]
                .iter()
                .any(|p| name.starts_with(p))
            {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("STILLPOINT_RUNTIME_DIR", self.path("run"))
            .env("STILLPOINT_DIR", self.checkpoints())
            .stdin(Stdio::null());
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Checks that the command fails with this status and one line that contains all of these words.
    pub fn refuses(&self, arguments: &[&str], status: i32, words: &[&str]) {
        let output = self.output(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
        for word in words {
            assert!(
                text.contains(word),
                "{arguments:?}: '{word}' is not in: {text}"
            );
        }
    }

    /// The same, with lines of progress before the line with the error.
    pub fn refuses_last(&self, arguments: &[&str], status: i32, words: &[&str]) {
        let output = self.output(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        let last = text.lines().last().unwrap_or_default();
        for word in words {
            assert!(
                last.contains(word),
                "{arguments:?}: '{word}' is not in: {last}"
            );
        }
    }

    pub fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeeds(arguments)).unwrap()
    }

    /// Starts ranks as Open MPI's launcher would.
    pub fn launch(&self, ranks: u32, behaviour: &str, arguments: &[&str]) -> Launched {
        let key = format!("{:?}", Instant::now());
        let children = (0..ranks).map(|rank| {
            self.command(arguments)
                .env("OMPI_COMM_WORLD_RANK", rank.to_string())
                .env("OMPI_COMM_WORLD_SIZE", ranks.to_string())
                .env("OMPI_COMM_WORLD_LOCAL_SIZE", ranks.to_string())
                .env("OMPI_MCA_orte_precondition_transports", &key)
                .env(STAND_IN, behaviour)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        });
        Launched {
            children: children.collect(),
        }
    }

    /// Waits until status shows this state.
    pub fn until_state(&self, state: &str) -> Value {
        let directory = self.checkpoints();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.output(&["status", directory.to_str().unwrap(), "--json"]);
            let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let connected = |rank: &Value| rank["state"] == "in MPI";
            let ready = state != "running"
                || shown["live"]["processes"]
                    .as_array()
                    .is_some_and(|all| all.iter().all(connected));
            if shown["state"] == state && ready {
                return shown;
            }
            assert!(Instant::now() < deadline, "not {state}: {shown}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

pub struct Launched {
    children: Vec<Child>,
}

/// Ends the ranks of a failed test.
impl Drop for Launched {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Launched {
    /// Returns (status, stderr) of one rank. The others are ended, as a launcher would.
    pub fn wait_for(mut self, rank: usize) -> (Option<i32>, String) {
        let output = self.children.remove(rank).wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// Returns (status, stderr) of each rank.
    pub fn wait(mut self) -> Vec<(Option<i32>, String)> {
        std::mem::take(&mut self.children)
            .into_iter()
            .map(|child| {
                let output = child.wait_with_output().unwrap();
                (
                    output.status.code(),
                    String::from_utf8_lossy(&output.stderr).into_owned(),
                )
            })
            .collect()
    }

    pub fn end_well(self) {
        for (rank, (status, text)) in self.wait().into_iter().enumerate() {
            assert_eq!(status, Some(0), "rank {rank}: {text}");
        }
    }
}
