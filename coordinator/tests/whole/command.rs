//! The `stillpoint` command as people and scripts use it: exit statuses, messages, JSON.
//!
//! The lower half is a stand-in beside a copy of the command: this very test program, started as a rank
//! that has an agent and no application.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Agent, Character, End, PATIENCE, names};
use serde_json::Value;
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::launch::Launch;

/// Set for the stand-in; its value says how it behaves.
const STAND_IN: &str = "STILLPOINT_TEST_RANK";

/// Not a test of its own: what the stand-in runs.
#[test]
fn a_rank_without_an_application() {
    let Ok(behaviour) = std::env::var(STAND_IN) else {
        return;
    };
    let launch = Launch::from_environment().unwrap();
    let job = JobFile::read(&launch.directory).unwrap();
    let mut character = Character::default();
    if behaviour == "refuses" {
        character.refusals = vec!["a window is open".into()];
    }
    let agent = Agent::connect(&job, launch.rank, character);
    match behaviour.as_str() {
        "fails" => {
            let status = 7;
            agent.send(&stillpoint_protocol::agent::FromAgent::Exiting { status });
            std::process::exit(status);
        }
        "dies" => std::process::abort(),
        _ => {}
    }
    let ended_well = [End::Terminated, End::Told].contains(&agent.live());
    std::process::exit(if ended_well { 0 } else { 1 });
}

/// A directory with the command, its stand-in siblings and a place for checkpoints.
struct House {
    directory: tempfile::TempDir,
}

impl House {
    fn new() -> House {
        let house = House {
            directory: tempfile::tempdir().unwrap(),
        };
        let this = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = restart ] || shift\nexport TEST_ARGUMENTS=\"$*\"\n\
             exec {} --exact command::a_rank_without_an_application --nocapture\n",
            this.display()
        );
        // Copied by another process: a file that this one has open for writing while another test starts
        // a process cannot be executed.
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

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn checkpoints(&self) -> PathBuf {
        self.path("d")
    }

    /// The command, away from whatever launcher, session or options this test runs under.
    fn command(&self, arguments: &[&str]) -> Command {
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

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Fails with this status and one line that contains all of these words.
    fn refuses(&self, arguments: &[&str], status: i32, words: &[&str]) {
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

    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeeds(arguments)).unwrap()
    }

    /// Starts ranks as Open MPI's launcher would.
    fn launch(&self, ranks: u32, behaviour: &str, arguments: &[&str]) -> Launched {
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

    /// Waits until status says so.
    fn until_state(&self, state: &str) -> Value {
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

struct Launched {
    children: Vec<Child>,
}

/// What a test that fails leaves must not live on.
impl Drop for Launched {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Launched {
    /// (status, stderr) of one rank; the others are ended, as a launcher would.
    fn wait_for(mut self, rank: usize) -> (Option<i32>, String) {
        let output = self.children.remove(rank).wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// (status, stderr) of each rank.
    fn wait(mut self) -> Vec<(Option<i32>, String)> {
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

    fn end_well(self) {
        for (rank, (status, text)) in self.wait().into_iter().enumerate() {
            assert_eq!(status, Some(0), "rank {rank}: {text}");
        }
    }
}

#[test]
fn a_job_is_run_suspended_and_restarted() {
    let house = House::new();
    let dir = house.checkpoints();
    let dir = dir.to_str().unwrap();
    let first = house.launch(3, "", &["run", "--name", "melt", "--", "sh", "-c", "x"]);
    let shown = house.until_state("running");
    assert_eq!(shown["name"], "melt");
    assert_eq!(shown["command"], serde_json::json!(["sh", "-c", "x"]));
    assert_eq!(shown["coordinator"]["reachable"], true);
    // By directory, by name, and as the only job.
    for target in [Some(dir), Some("melt"), None] {
        let arguments: Vec<&str> = ["checkpoint"].into_iter().chain(target).collect();
        let text = house.succeeds(&arguments);
        assert!(
            text.starts_with("epoch ") && text.contains("write "),
            "{text}"
        );
    }
    assert_eq!(house.json(&["status", "--json"])["jobs"][0]["epoch"], 3);
    assert!(house.succeeds(&["status"]).contains("melt"));
    // A second launch in the same directory is turned away; the first is not disturbed.
    house.refuses(
        &["run", "sh"],
        1,
        &["another job runs in this directory", "'melt'", "--dir"],
    );
    let outcome = house.json(&["suspend", "melt", "--json"]);
    assert_eq!(
        (&outcome["epoch"], &outcome["suspended"]),
        (&4.into(), &true.into())
    );
    assert!(outcome["phases"]["write"].is_f64() && outcome["bytes"].as_u64() > Some(0));
    first.end_well();
    let shown = house.until_state("suspended");
    assert_eq!(
        (&shown["exit_status"], &shown["epochs"]),
        (&0.into(), &serde_json::json!([3, 4]))
    );
    house.refuses(&["suspend", dir], 3, &["does not run, it is suspended"]);
    assert!(
        house
            .succeeds(&["verify", dir])
            .contains("epoch 4 is whole: 3 images")
    );
    let inspected = house.json(&["inspect", dir, "--json"]);
    assert_eq!(inspected["images"][2]["identity"]["rank"], 2);
    assert!(
        house
            .succeeds(&["inspect", dir])
            .contains("2 communicators")
    );
    // Later, in a launch of its own; then once more by the line that a batch script has.
    let second = house.launch(3, "", &["restart", dir]);
    let shown = house.until_state("running");
    assert_eq!(
        (&shown["restarted_from"], &shown["name"]),
        (&4.into(), &"melt".into())
    );
    assert_eq!(shown["job"], inspected["manifest"]["job"]);
    house.succeeds(&["suspend"]);
    second.end_well();
    let third = house.launch(3, "", &["run", "--resume", "sh", "-c", "x"]);
    assert_eq!(house.until_state("running")["restarted_from"], 5);
    house.succeeds(&["suspend"]);
    third.end_well();
}

#[test]
fn every_field_of_a_job_is_documented() {
    let house = House::new();
    let ranks = house.launch(1, "", &["run", "sh"]);
    let shown = house.until_state("running");
    house.succeeds(&["suspend"]);
    ranks.end_well();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/json.md");
    let page = fs::read_to_string(page).unwrap();
    let fields =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    for name in fields(&shown) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/json.md"
        );
    }
    for name in fields(&shown["live"]) {
        assert!(
            page.contains(&format!("`live.{name}`")),
            "live.{name} is not in docs/json.md"
        );
    }
    for name in fields(&shown["live"]["processes"][0]) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/json.md"
        );
    }
}

#[test]
fn resume_starts_afresh_where_nothing_is_to_be_resumed() {
    let house = House::new();
    let ranks = house.launch(2, "", &["run", "--resume", "--keep", "1", "sh"]);
    assert_eq!(house.until_state("running")["restarted_from"], Value::Null);
    house.succeeds(&["checkpoint"]);
    house.succeeds(&["suspend"]);
    ranks.end_well();
    assert_eq!(
        house.until_state("suspended")["epochs"],
        serde_json::json!([2])
    );
}

#[test]
fn a_refusal_is_5_and_a_failure_is_the_applications_own() {
    let house = House::new();
    let ranks = house.launch(2, "refuses", &["run", "sh"]);
    house.until_state("running");
    let output = house.output(&["suspend"]);
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("runs on: all 2 ranks: a window is open"),
        "{text}"
    );
    // What every rank of the job does when its launcher ends it.
    drop(ranks);
    let shown = house.until_state("failed");
    assert!(
        shown["reason"]
            .as_str()
            .unwrap()
            .contains("died without a word"),
        "{shown}"
    );

    let ranks = house.launch(1, "fails", &["run", "sh"]);
    assert_eq!(ranks.wait()[0].0, Some(7));
    let shown = house.until_state("failed");
    assert_eq!(shown["exit_status"], 7);
    house.refuses(&["checkpoint", "d"], 3, &["does not run, it is failed"]);
}

#[test]
fn a_lower_half_that_cannot_start_leaves_no_job_behind() {
    let house = House::new();
    let lower = house.path("stillpoint-lower-openmpi");
    fs::set_permissions(&lower, fs::Permissions::from_mode(0o644)).unwrap();
    house.refuses(
        &["run", "sh"],
        1,
        &["stillpoint-lower-openmpi: cannot be started"],
    );
    let shown = house.until_state("failed");
    assert_eq!(shown["reason"], "rank 0 ended before its application ran");
    fs::remove_file(house.path("stillpoint-lower-openmpi")).unwrap();
    house.refuses(
        &["run", "sh"],
        1,
        &["stillpoint-lower-openmpi is neither in"],
    );
}

#[test]
fn what_cannot_be_run_is_told_in_one_line() {
    let house = House::new();
    house.refuses(
        &["run", "no-such-program"],
        127,
        &["no such program in PATH"],
    );
    house.refuses(
        &["run", "./no-such-program"],
        127,
        &["./no-such-program: no such program"],
    );
    house.refuses(&["run", "/tmp"], 126, &["is a directory"]);
    house.refuses(&["run", "/etc/passwd"], 126, &["not executable"]);
    fs::write(house.path("text"), "hello").unwrap();
    fs::set_permissions(house.path("text"), fs::Permissions::from_mode(0o755)).unwrap();
    house.refuses(&["run", "./text"], 126, &["neither ELF nor a script"]);
    house.refuses(
        &["run", "--dir", "/proc/d", "sh"],
        1,
        &["/proc/d: cannot write", "--dir"],
    );
    house.refuses(&["run", "--dir", "text", "sh"], 1, &["text", "--dir"]);
    house.refuses(
        &["run", "--incremental", "sh"],
        1,
        &["--incremental is not available"],
    );
    house.refuses(
        &["run", "--mpi", "mpich", "sh"],
        1,
        &["no support for mpich"],
    );
    assert!(!house.checkpoints().join("job.json").exists());
}

#[test]
fn what_cannot_be_restarted_is_told_in_one_line_that_says_what_to_do() {
    let house = House::new();
    let dir = house.checkpoints();
    house.refuses(&["restart", "d"], 3, &["no committed epoch"]);
    let ranks = house.launch(1, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["checkpoint"]);
    house.succeeds(&["suspend"]);
    ranks.end_well();
    let more = house.launch(2, "", &["restart", "d"]);
    let (status, text) = more.wait_for(0);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    assert!(
        text.contains("written by 1 rank,") && text.contains("mpirun -n 1"),
        "{text}"
    );
    house.refuses(
        &["restart", "d", "--epoch", "9"],
        3,
        &["no committed epoch 9, only 1, 2"],
    );
    let image = dir.join("epoch-000002/rank-000000.img");
    let whole = fs::read(&image).unwrap();
    fs::write(&image, &whole[..whole.len() - 1]).unwrap();
    let advice = "epoch 1 can be restarted with --epoch 1";
    house.refuses(
        &["restart", "d"],
        1,
        &["rank-000000.img: truncated", advice],
    );
    house.refuses(
        &["verify", "d"],
        1,
        &["epoch 2 is broken", "rank-000000.img"],
    );
    house.succeeds(&["verify", "d", "--epoch", "1"]);
    let mut flipped = whole.clone();
    flipped[70] ^= 4;
    fs::write(&image, &flipped).unwrap();
    house.refuses(&["verify", "d"], 1, &["rank-000000.img", "checksum"]);
    fs::remove_file(&image).unwrap();
    house.refuses(&["restart", "d"], 1, &["rank-000000.img", advice]);
    fs::write(dir.join("epoch-000002/manifest"), "nonsense").unwrap();
    house.refuses(&["restart", "d"], 1, &["not a manifest", advice]);
    house.refuses(&["inspect", "d"], 1, &["not a manifest"]);
}

#[test]
fn a_job_that_is_not_there_is_3_and_one_that_is_not_mine_4() {
    let house = House::new();
    for command in ["checkpoint", "suspend"] {
        house.refuses(&[command], 3, &["no job of yours runs"]);
        house.refuses(&[command, "melt"], 3, &["no job named 'melt'"]);
        house.refuses(
            &[command, "./nowhere"],
            3,
            &["nowhere/job.json: there is no job here"],
        );
    }
    house.refuses(&["status", "melt"], 3, &["no job named 'melt'"]);
    house.refuses(&["verify", "nowhere"], 3, &["nowhere"]);
    assert_eq!(
        house.succeeds(&["status"]),
        "no job of yours runs on this host\n"
    );
    let ranks = house.launch(1, "", &["run", "sh"]);
    house.until_state("running");
    // Another key than the job's.
    let dir = house.checkpoints();
    let job = JobFile::read(&dir).unwrap();
    let mut forged = job.clone();
    forged.key = stillpoint_protocol::Key::random().unwrap();
    forged.write(&dir).unwrap();
    house.refuses(&["suspend", "d"], 4, &["does not hold this job's key"]);
    job.write(&dir).unwrap();
    house.succeeds(&["suspend"]);
    ranks.end_well();
}

#[test]
fn the_directory_holds_what_is_documented_and_nothing_is_open_to_others() {
    let house = House::new();
    let ranks = house.launch(2, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    ranks.end_well();
    house.until_state("suspended");
    let dir = house.checkpoints();
    assert_eq!(
        names(&dir),
        [".lock", "coordinator.log", "epoch-000001", "job.json"]
    );
    let expected = ["manifest", "rank-000000.img", "rank-000001.img"];
    assert_eq!(names(&dir.join("epoch-000001")), expected);
    let open = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(open(&dir), 0);
    for name in names(&dir) {
        assert_eq!(open(&dir.join(&name)), 0, "{name}");
    }
    for name in names(&dir.join("epoch-000001")) {
        assert_eq!(open(&dir.join("epoch-000001").join(&name)), 0, "{name}");
    }
}

#[test]
fn usage_errors_are_2() {
    let house = House::new();
    for arguments in [
        &["frobnicate"][..],
        &["run"],
        &["run", "--keep", "0", "sh"],
        &["run", "--interval", "soon", "sh"],
        &["run", "--name", "a/b", "sh"],
        &["run", "--compress", "gzip", "sh"],
        &["run", "--suspend-signal", "KILL", "sh"],
        &["restart"],
        &["suspend", "--timeout", "x"],
    ] {
        assert_eq!(
            house.output(arguments).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
    let mut command = house.command(&["run", "sh"]);
    let status = command
        .env("STILLPOINT_KEEP", "none")
        .output()
        .unwrap()
        .status;
    assert_eq!(
        status.code(),
        Some(2),
        "an option's variable is checked as the option is"
    );
}

#[test]
fn help_manual_and_completions_know_every_command() {
    let house = House::new();
    let help = house.succeeds(&["--help"]);
    let manual = house.succeeds(&["man"]);
    let pages = house.path("man");
    house.succeeds(&["man", pages.to_str().unwrap()]);
    let pages = names(&pages);
    let shells: Vec<String> = ["bash", "zsh", "fish"]
        .iter()
        .map(|shell| house.succeeds(&["completions", shell]))
        .collect();
    for command in [
        "run",
        "restart",
        "status",
        "checkpoint",
        "suspend",
        "verify",
        "inspect",
        "check",
        "completions",
        "man",
    ] {
        assert!(
            help.contains(&format!("  {command}")),
            "{command} is not in --help"
        );
        assert!(manual.contains(command), "{command} is not in the manual");
        assert!(
            pages.contains(&format!("stillpoint-{command}.1")),
            "{command} has no page"
        );
        for shell in &shells {
            assert!(shell.contains(command), "{command} is not completed");
        }
        assert!(
            house
                .succeeds(&[command, "--help"])
                .contains("Usage: stillpoint")
        );
    }
    assert!(help.contains("Exit status"));
    assert!(
        !help.contains("coordinator"),
        "the coordinator is not for people"
    );
}

#[test]
fn check_shows_rows() {
    let house = House::new();
    let shown: Value = serde_json::from_slice(&house.output(&["check", "--json"]).stdout).unwrap();
    let rows = shown["rows"].as_array().unwrap();
    assert!(
        rows.iter()
            .any(|row| row["what"] == "Open MPI lower half" && row["ok"] == true)
    );
    fs::remove_file(house.path("stillpoint-lower-openmpi")).unwrap();
    let output = house.output(&["check"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("this machine lacks: Open MPI lower half"),
        "{text}"
    );
}
