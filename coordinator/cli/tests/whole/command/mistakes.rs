//! Errors take one line, which says what to do.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use stillpoint_protocol::job_file::{JobFile, JobState, Process};

use super::house::House;

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
        text.contains("has 1 rank, but") && text.contains("mpirun -n 1"),
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
    let advice = "you can restart epoch 1 with --epoch 1";
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
    // The file has another key than the job's, and lies where the coordinator does not overwrite it.
    let mut forged = JobFile::read(&house.checkpoints()).unwrap();
    forged.key = stillpoint_protocol::Key::random().unwrap();
    let elsewhere = house.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    forged.directory = Some(elsewhere.clone());
    forged.write(&elsewhere).unwrap();
    house.refuses(
        &["suspend", "elsewhere"],
        4,
        &["does not have this job's key"],
    );
    house.succeeds(&["suspend"]);
    ranks.end_well();
}

#[test]
fn usage_errors_are_2() {
    let house = House::new();
    for arguments in [
        &["frobnicate"][..],
        &["run"],
        &["run", "--keep", "0", "sh"],
        &["run", "--interval", "soon", "sh"],
        &["run", "--interval", "30", "sh"],
        &["suspend", "--all", "--slurm-job", "abc"],
        &["resume", "--all", "--slurm-job", "17;id"],
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
fn an_error_of_usage_says_what_is_right() {
    let house = House::new();
    for (arguments, words) in [
        (
            &["run", "--interval", "30", "sh"][..],
            "'30' has no unit: write 30s, 30m or 30h",
        ),
        (
            &["suspend", "--all", "--slurm-job", "abc"],
            "'abc' is no job of Slurm",
        ),
    ] {
        let output = house.output(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
    house.refuses(
        &["resume"],
        2,
        &["resume starts no job by itself", "stillpoint restart DIR"],
    );
    let ranks = house.launch(1, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    let (status, said) = ranks.wait().remove(0);
    assert_eq!(status, Some(0), "{said}");
    house.refuses(
        &["resume", "./d"],
        2,
        &["mpirun -n 1 stillpoint restart /", "/d"],
    );
}

#[test]
fn launch_starts_launchers_and_nothing_else() {
    let house = House::new();
    house.refuses(
        &["launch", "--", "sh", "-c", "x"],
        2,
        &["sh is no launcher"],
    );
    house.refuses(&["launch", "--", "mpirun", "-n", "2"], 2, &["no program"]);
    house.refuses(
        &["launch", "--", "mpirun", "-odd", "sh"],
        2,
        &["stillpoint run --"],
    );
    house.refuses(
        &[
            "launch",
            "--",
            "mpirun",
            "stillpoint",
            "run",
            "--kep",
            "3",
            "sh",
        ],
        2,
        &["unexpected argument '--kep'"],
    );
    house.refuses(
        &[
            "launch",
            "--keep",
            "2",
            "--",
            "mpirun",
            "stillpoint",
            "run",
            "--keep",
            "3",
            "sh",
        ],
        2,
        &["--keep", "multiple times"],
    );
    let (status, text) = house
        .launch(2, "", &["launch", "--", "mpirun", "sh"])
        .wait_for(0);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("put it first"), "{text}");
    house.refuses(
        &["run", "--", "mpirun", "-n", "2", "sh"],
        2,
        &["stillpoint launch -- mpirun"],
    );
}

#[test]
fn a_request_that_comes_as_the_job_ends_is_told_how_it_has_ended() {
    let house = House::new();
    let ranks = house.launch(1, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    ranks.end_well();
    // This is the state between the job's end and its entry in job.json: the coordinator, here this process, runs and answers no requests.
    let directory = house.checkpoints();
    let ended = JobFile::read(&directory).unwrap();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut running = ended.clone();
    running.state = JobState::Running;
    running.coordinator = Process::this();
    running.addresses = vec![deaf.local_addr().unwrap().to_string()];
    drop(deaf);
    running.write(&directory).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            ended.write(&directory).unwrap();
        });
        house.refuses(
            &["checkpoint", "d"],
            3,
            &["is not running, it is suspended"],
        );
    });
}
