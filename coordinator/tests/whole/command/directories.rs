//! Checkpoint directories that are somebody else's, copies, gone, or full of things that nobody expects.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use stillpoint_protocol::job_file::{JobFile, JobState};

use super::house::House;
use crate::support::{Agent, Character, End, names};

/// A directory with one committed epoch of `sh`, of a job that was suspended.
fn suspended() -> House {
    let house = House::new();
    let ranks = house.launch(1, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    ranks.end_well();
    house
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn run(program: &str, arguments: &[&Path]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

#[test]
fn nothing_is_carried_on_from_where_others_may_have_written() {
    let house = suspended();
    let dir = house.checkpoints();
    let acting = [
        &["run", "--resume", "sh"][..],
        &["run", "sh"],
        &["restart", "d"],
    ];
    mode(&dir, 0o777);
    for arguments in acting {
        house.refuses(arguments, 4, &["others may write to it", "chmod go-w"]);
    }
    mode(&dir, 0o700);
    mode(&dir.join("epoch-000001"), 0o770);
    house.refuses(
        &["restart", "d"],
        4,
        &["epoch-000001", "others may write to it"],
    );
    mode(&dir.join("epoch-000001"), 0o700);
    // As root only: nobody else can give a directory away.
    if chown(&dir, Some(65_534), None).is_ok() {
        for arguments in acting {
            house.refuses(arguments, 4, &["belongs to user 65534"]);
        }
    }
    // To look at it does no harm.
    house.succeeds(&["verify", "d"]);
    house.succeeds(&["status", "./d"]);
}

#[test]
fn nothing_is_written_through_a_link() {
    for name in [".lock", "coordinator.log"] {
        let house = House::new();
        let victim = house.path("victim");
        fs::write(&victim, "precious").unwrap();
        fs::create_dir(house.checkpoints()).unwrap();
        symlink(&victim, house.checkpoints().join(name)).unwrap();
        house.refuses(&["run", "sh"], 4, &["it is a link"]);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
    }
}

#[test]
fn nobody_waits_for_a_fifo() {
    let house = suspended();
    let dir = house.checkpoints();
    let began = Instant::now();
    let put_a_fifo = |name: &str| {
        let path = dir.join(name);
        fs::remove_file(&path).unwrap();
        run("mkfifo", &[&path]);
    };
    put_a_fifo("epoch-000001/manifest");
    for command in ["verify", "inspect", "restart"] {
        house.refuses(&[command, "d"], 1, &["manifest", "not a regular file"]);
    }
    house.refuses(
        &["run", "--resume", "sh"],
        1,
        &["manifest", "not a regular file"],
    );
    put_a_fifo("job.json");
    for command in ["status", "checkpoint", "suspend"] {
        house.refuses(&[command, "./d"], 1, &["job.json", "not a regular file"]);
    }
    for name in [".lock", "coordinator.log"] {
        put_a_fifo(name);
        house.refuses(&["run", "sh"], 1, &["not a regular file"]);
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "it took {took:?}");
}

#[test]
fn another_programs_epoch_is_not_carried_on_unasked() {
    let house = suspended();
    let other = ["run", "--resume", "sh", "-c", "x"];
    house.refuses(
        &other,
        2,
        &[
            "is of another command: 'sh', not 'sh -c x'",
            "--resume-anyway",
        ],
    );
    let anyway = ["run", "--resume", "--resume-anyway", "sh", "-c", "x"];
    let ranks = house.launch(1, "", &anyway);
    let shown = house.until_state("running");
    assert_eq!(
        (&shown["restarted_from"], &shown["command"]),
        (&1.into(), &serde_json::json!(["sh"]))
    );
    house.succeeds(&["suspend"]);
    ranks.end_well();
    let alone = house.output(&["run", "--resume-anyway", "sh"]);
    assert_eq!(
        alone.status.code(),
        Some(2),
        "it says nothing without --resume"
    );
}

#[test]
fn a_job_that_has_finished_is_not_begun_again() {
    let house = House::new();
    let dir = house.checkpoints();
    let first = house.launch(3, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    first.end_well();
    let mut job = JobFile::read(&dir).unwrap();
    job.state = JobState::Finished;
    job.write(&dir).unwrap();
    for again in 0..2 {
        let ends = house.launch(3, "", &["run", "--resume", "sh"]).wait();
        for (rank, (status, text)) in ends.iter().enumerate() {
            assert_eq!(*status, Some(0), "time {again}, rank {rank}: {text}");
            let says = text.contains("has finished: there is nothing to carry on");
            assert_eq!(says, rank == 0, "time {again}, rank {rank}: {text}");
        }
    }
    house.refuses(&["run", "--resume", "true"], 2, &["is of another command"]);
    let more = house.launch(3, "", &["run", "--resume", "--resume-anyway", "sh"]);
    assert_eq!(house.until_state("running")["restarted_from"], 1);
    house.succeeds(&["suspend"]);
    more.end_well();
}

#[test]
fn a_restart_can_work_in_another_directory() {
    let house = suspended();
    let dir = house.checkpoints();
    let before = (names(&dir), fs::read(dir.join("job.json")).unwrap());
    mode(&dir, 0o500);
    let ranks = house.launch(1, "", &["restart", "d", "--dir", "new"]);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !house.output(&["checkpoint", "./new"]).status.success() {
        assert!(Instant::now() < deadline, "it does not run");
    }
    house.succeeds(&["suspend", "./new"]);
    ranks.end_well();
    mode(&dir, 0o700);
    assert_eq!(
        before,
        (names(&dir), fs::read(dir.join("job.json")).unwrap())
    );
    // Numbers go on from the epoch that was read.
    let shown = house.json(&["status", "./new", "--json"]);
    assert_eq!(
        (&shown["restarted_from"], &shown["epochs"]),
        (&1.into(), &serde_json::json!([2, 3]))
    );
    let job = |name: &str| JobFile::read(&house.path(name)).unwrap().job;
    assert_ne!(job("d"), job("new"), "both may run at once");
}

#[test]
fn a_copy_is_restarted_while_the_original_runs() {
    let house = House::new();
    let original = house.launch(1, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["checkpoint", "./d"]);
    run(
        "cp",
        &[Path::new("-a"), &house.checkpoints(), &house.path("copy")],
    );
    for command in ["suspend", "checkpoint"] {
        house.refuses(&[command, "./copy"], 3, &["is a copy of", "/d"]);
    }
    assert_eq!(
        house.json(&["status", "./copy", "--json"])["state"],
        "failed"
    );
    let copy = house.launch(1, "", &["restart", "copy", "--dir", "copy"]);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !house.output(&["checkpoint", "./copy"]).status.success() {
        assert!(Instant::now() < deadline, "the copy does not run");
    }
    let of = |name: &str| house.json(&["status", name, "--json"]);
    assert_eq!(of("./d")["epochs"], serde_json::json!([1]));
    assert_eq!(of("./copy")["epochs"], serde_json::json!([1, 2]));
    assert_ne!(of("./d")["job"], of("./copy")["job"]);
    for (name, ranks) in [("./copy", copy), ("./d", original)] {
        house.succeeds(&["suspend", name]);
        ranks.end_well();
    }
}

/// The stand-ins do not look for another coordinator: this test plays the agents of the second one.
#[test]
fn another_coordinator_takes_a_job_over() {
    let house = House::new();
    let dir = house.checkpoints();
    let ranks = house.launch(2, "stays", &["run", "--keep", "5", "--name", "melt", "sh"]);
    house.until_state("running");
    house.succeeds(&["checkpoint"]);
    let before = JobFile::read(&dir).unwrap();
    let succeed = ["coordinator", "--succeed", "d"];
    let output = house.output(&succeed);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("another job runs in this directory"),
        "{text}"
    );
    run(
        "kill",
        &[
            Path::new("-9"),
            Path::new(&before.coordinator.pid.to_string()),
        ],
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    while before.coordinator.alive() == Some(true) {
        assert!(Instant::now() < deadline, "it does not die");
    }
    // What it was writing goes.
    fs::create_dir(dir.join("epoch-000002.0badcafe.part")).unwrap();
    let output = house.output(&succeed);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text, "\"Serving\"\n");
    let job = JobFile::read(&dir).unwrap();
    assert_eq!(
        (
            &job.key,
            &job.job,
            &job.launch,
            job.predecessors,
            job.started
        ),
        (&before.key, &before.job, &before.launch, 1, before.started)
    );
    assert_ne!(job.coordinator, before.coordinator);
    let agents: Vec<_> = (0..2)
        .map(|rank| Agent::connect(&job, rank, Character::default()))
        .map(|agent| std::thread::spawn(move || agent.live()))
        .collect();
    house.succeeds(&["checkpoint", "melt"]);
    let outcome = house.json(&["suspend", "--json"]);
    assert_eq!(
        (&outcome["epoch"], &outcome["suspended"]),
        (&3.into(), &true.into())
    );
    for agent in agents {
        assert!(agent.join().unwrap() == End::Terminated);
    }
    house.until_state("suspended");
    let epochs = ["epoch-000001", "epoch-000002", "epoch-000003"];
    let found = names(&dir);
    let found: Vec<&str> = found
        .iter()
        .map(String::as_str)
        .filter(|n| n.starts_with("epoch"))
        .collect();
    assert_eq!(found, epochs);
    // The job has ended: nobody takes it over any more.
    let output = house.output(&succeed);
    assert!(String::from_utf8_lossy(&output.stdout).contains("the job is suspended"));
    drop(ranks);
}

#[test]
fn a_directory_made_again_by_another_job_keeps_its_epochs() {
    let house = House::new();
    let first = house.launch(1, "", &["run", "--keep", "1", "--name", "one", "sh"]);
    house.until_state("running");
    house.succeeds(&["checkpoint", "./d"]);
    fs::rename(house.checkpoints(), house.path("removed")).unwrap();
    let second = house.launch(1, "", &["run", "--name", "two", "sh"]);
    while house.until_state("running")["name"] != "two" {}
    for _ in 0..2 {
        house.succeeds(&["checkpoint", "./d"]);
    }
    let before = names(&house.checkpoints());
    for command in ["checkpoint", "suspend"] {
        house.refuses_last(
            &[command, "./removed"],
            1,
            &["another one made in its place", "left alone"],
        );
    }
    assert_eq!(names(&house.checkpoints()), before);
    house.succeeds(&["verify", "d"]);
    house.succeeds(&["suspend", "./d"]);
    second.end_well();
    drop(first);
}
