//! Checkpoint directories that belong to others, are copies, have gone, or hold unexpected files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use stillpoint_ids::Rank;
use stillpoint_image::Manifest;
use stillpoint_protocol::job_file::{JobFile, JobState};

use super::house::House;
use super::stand_in::STAND_IN;
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
    // As root only: other users cannot give a directory away.
    if chown(&dir, Some(65_534), None).is_ok() {
        for arguments in acting {
            house.refuses(arguments, 4, &["belongs to user 65534"]);
        }
    }
    // Looking at it does no harm.
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
        house.refuses(&["run", "sh"], 4, &["it is a symbolic link"]);
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
            "belongs to another command: 'sh', not 'sh -c x'",
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
    let first = house.launch(3, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    first.end_well();
    finish(&house);
    for again in 0..2 {
        for (words, wanted) in [
            (&["run", "--resume", "sh"][..], 6),
            (&["run", "--resume", "--finished-ok", "sh"], 0),
        ] {
            let ends = house.launch(3, "", words).wait();
            for (rank, (status, text)) in ends.iter().enumerate() {
                assert_eq!(*status, Some(wanted), "time {again}, rank {rank}: {text}");
                let says = text.contains("nothing to continue, and nothing was computed now");
                assert_eq!(says, rank == 0, "time {again}, rank {rank}: {text}");
            }
        }
    }
    house.refuses(
        &["run", "--resume", "true"],
        2,
        &["belongs to another command"],
    );
    let more = house.launch(3, "", &["run", "--resume", "--resume-anyway", "sh"]);
    assert_eq!(house.until_state("running")["restarted_from"], 1);
    house.succeeds(&["suspend"]);
    more.end_well();
}

#[test]
fn an_epoch_under_the_name_of_another_one_is_broken() {
    let house = suspended();
    let dir = house.checkpoints();
    fs::rename(dir.join("epoch-000001"), dir.join("epoch-000005")).unwrap();
    for command in ["verify", "inspect", "restart"] {
        house.refuses(&[command, "d"], 1, &["epoch 5", "epoch 1"]);
    }
}

/// Makes job.json say that the job has finished.
fn finish(house: &House) {
    let dir = house.checkpoints();
    let mut job = JobFile::read(&dir).unwrap();
    job.state = JobState::Finished;
    job.write(&dir).unwrap();
}

#[test]
fn a_directory_is_named_by_templates_and_not_made_in_a_tree_that_is_not_there() {
    let house = House::new();
    house.refuses(
        &["run", "--dir", "typo/d", "sh"],
        1,
        &[
            "typo/d: cannot make this directory",
            "there is no",
            "mkdir -p",
        ],
    );
    assert!(!house.path("typo").exists());
    house.refuses(
        &["run", "--dir", "d-%j", "sh"],
        2,
        &["%j stands for the batch job"],
    );
    house.refuses(&["run", "--dir", "d-%q", "sh"], 2, &["write %%"]);
    let mut command = house.command(&["run", "--dir", "%x-%j-%%d", "sh"]);
    command
        .env("SLURM_JOB_ID", "17")
        .env("SLURM_JOB_NAME", "melt")
        .env(STAND_IN, "");
    let mut rank = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !house.output(&["suspend", "./melt-17-%d"]).status.success() {
        assert!(Instant::now() < deadline, "{:?}", names(&house.path(".")));
    }
    assert_eq!(rank.wait().unwrap().code(), Some(0));
}

#[test]
fn another_job_does_not_begin_where_one_has_epochs_and_has_not_finished() {
    let house = suspended();
    let dir = house.checkpoints();
    let before = names(&dir);
    let words = [
        "epoch 1 here belongs to the job 'sh', which is suspended",
        "--discard",
    ];
    house.refuses(&["run", "true"], 2, &words);
    house.refuses(&["run", "sh"], 2, &words);
    let here = ["restart", "d", "--dir", "other"];
    let other = house.launch(1, "", &here);
    while !house.output(&["suspend", "./other"]).status.success() {}
    other.end_well();
    house.refuses(&["restart", "other", "--dir", "d"], 2, &words);
    assert_eq!(names(&dir), before);
    // The job carries on as if no other had come.
    let ranks = house.launch(1, "", &["run", "--resume", "sh"]);
    assert_eq!(house.until_state("running")["restarted_from"], 1);
    drop(ranks);
    house.until_state("failed");
    let words = ["epoch 1 here belongs to the job 'sh', which has failed"];
    house.refuses(&["run", "sh"], 2, &words);
    let ranks = house.launch(1, "", &["run", "--discard", "true"]);
    let shown = house.until_state("running");
    assert_eq!(shown["epochs"], serde_json::json!([]));
    house.succeeds(&["suspend"]);
    ranks.end_well();
    assert_eq!(
        house.until_state("suspended")["epochs"],
        serde_json::json!([1])
    );
}

#[test]
fn resume_goes_by_the_job_that_was_started_last() {
    let house = suspended();
    finish(&house);
    let ranks = house.launch(1, "", &["run", "sh"]);
    assert_eq!(
        house.until_state("running")["epoch"],
        1,
        "it is still there"
    );
    drop(ranks);
    house.until_state("failed");
    // That job has written no epoch, and the existing one belongs to the job before.
    let ranks = house.launch(1, "", &["run", "--resume", "sh"]);
    let shown = house.until_state("running");
    assert_eq!(shown["restarted_from"], serde_json::Value::Null, "{shown}");
    house.succeeds(&["suspend"]);
    let (status, said) = ranks.wait().remove(0);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("epoch 1 here belongs to another job"),
        "{said}"
    );
    let ranks = house.launch(1, "", &["run", "--resume", "sh"]);
    assert_eq!(house.until_state("running")["restarted_from"], 2);
    house.succeeds(&["suspend"]);
    ranks.end_well();
    // A copy is another job, and goes on with the epochs in it.
    run(
        "cp",
        &[Path::new("-a"), &house.checkpoints(), &house.path("copy")],
    );
    for _ in 0..2 {
        let again = house.launch(1, "", &["run", "--resume", "--dir", "copy", "sh"]);
        let deadline = Instant::now() + Duration::from_secs(20);
        let from = || house.json(&["status", "./copy", "--json"])["restarted_from"].clone();
        while from() != 3 {
            assert!(Instant::now() < deadline, "it carries on from {}", from());
        }
        drop(again);
    }
}

#[test]
fn nothing_that_others_have_written_speaks_to_the_terminal() {
    let house = suspended();
    let dir = house.checkpoints();
    let hostile = "melt\x1b]0;x\x07\u{9b}2J\u{202e}\nepoch 9 committed";
    let mut job = JobFile::read(&dir).unwrap();
    job.name = hostile.into();
    job.command = vec![hostile.into()];
    job.reason = Some(hostile.into());
    job.write(&dir).unwrap();
    let epoch = dir.join("epoch-000001");
    let mut manifest = Manifest::read(&epoch).unwrap();
    manifest.name = hostile.into();
    manifest.command = vec![hostile.into()];
    manifest.stillpoint = hostile.into();
    manifest.write(&epoch).unwrap();
    for arguments in [
        &["status", "./d"][..],
        &["status", "./d", "--json"],
        &["inspect", "d"],
        &["inspect", "d", "--json"],
        &["verify", "d"],
        &["suspend", "./d"],
        &["run", "true"],
        &["run", "--resume", "true"],
    ] {
        let said = house.output(arguments);
        for text in [said.stdout, said.stderr] {
            let text = String::from_utf8(text).unwrap();
            let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(acts), "{arguments:?}: {text:?}");
            let forged = text.lines().any(|line| line.starts_with("epoch 9"));
            assert!(!forged, "{arguments:?}: {text}");
        }
    }
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

/// The stand-ins do not look for another coordinator, so this test plays the agents of the second one.
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
    // The new coordinator removes the part that the dead one was writing.
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
    let agents: Vec<_> = Rank::all(2)
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
    // The job has ended, so no coordinator takes it over any more.
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
            &["and then replaced", "does not touch its path"],
        );
    }
    assert_eq!(names(&house.checkpoints()), before);
    house.succeeds(&["verify", "d"]);
    house.succeeds(&["suspend", "./d"]);
    second.end_well();
    drop(first);
}
