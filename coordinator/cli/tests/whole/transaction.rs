//! The whole transaction over real sockets and files, with ranks that have no application.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Agent, Character, End, Job, PATIENCE, names};
use stillpoint_coordinator::job::Patience;
use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::Manifest;
use stillpoint_protocol::Key;
use stillpoint_protocol::agent::{FromAgent, Hello, ToAgent};
use stillpoint_protocol::client::{AgentConnection, ClientError, CommandConnection};
use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::handshake::HandshakeError;
use stillpoint_protocol::job_file::{JobFile, JobState};
use stillpoint_protocol::{Received, launch::Launch};
use stillpoint_refusals::refusal;

fn ordinary(count: usize) -> Vec<Character> {
    (0..count as u64)
        .map(|rank| Character {
            counts: (rank, count as u64 - 1 - rank),
            clocks: vec![(7, rank)],
            ..Character::default()
        })
        .collect()
}

/// Epochs and parts in the job's directory.
fn epochs(job: &Job) -> Vec<String> {
    names(job.directory.path())
        .into_iter()
        .filter(|name| name.starts_with("epoch"))
        .collect()
}

/// Waits for work on files, which ends a moment after the answer.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn epochs_are_committed_and_the_oldest_go() {
    let job = Job::start(&ordinary(4));
    for epoch in (1..=3).map(Epoch) {
        let answer = job.checkpoint(false, None);
        let ToCommand::Committed(outcome) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(outcome.epoch, epoch);
        assert_eq!(outcome.bytes, 4 * 4096);
    }
    // The oldest epoch has lost its name. Its files are removed while the application runs.
    let kept = ["epoch-000002", "epoch-000003"];
    let named = |name: &String| !name.ends_with(".part");
    let names: Vec<String> = epochs(&job).into_iter().filter(named).collect();
    assert_eq!(names, kept);
    eventually("the oldest epoch's files go", || epochs(&job) == kept);
    let path = job.directory.path().join("epoch-000003");
    let manifest = Manifest::read(&path).unwrap();
    assert_eq!((manifest.ranks.len(), manifest.job.as_str()), (4, "job"));
    assert_eq!(manifest.ranks[2].hostname, "here");
    let answer = job.checkpoint(true, None);
    assert!(matches!(answer, ToCommand::Committed(o) if o.suspended && o.epoch == Epoch(4)));
    let (state, ends, file, _) = job.end();
    assert_eq!(
        (state, file.state, file.epoch),
        (JobState::Suspended, JobState::Suspended, Some(Epoch(4)))
    );
    assert_eq!(ends, [End::Terminated; 4]);
    assert!(file.addresses.is_empty() && file.ended.is_some());
}

#[test]
fn no_limit_is_too_long_for_the_coordinator() {
    let job = Job::start(&ordinary(2));
    for seconds in [u64::MAX, u64::MAX / 2, 1 << 40] {
        let answer = job.checkpoint(false, Some(seconds));
        assert!(matches!(answer, ToCommand::Committed(_)), "{answer:?}");
    }
    job.checkpoint(true, Some(u64::MAX));
    assert_eq!(job.end().0, JobState::Suspended);
}

#[test]
fn raises_and_the_raised_targets_lead_to_the_same_end() {
    let mut characters = ordinary(3);
    characters[1].raises = Some((7, 9));
    characters[2].raises = Some((8, 1));
    let job = Job::start(&characters);
    assert!(matches!(
        job.checkpoint(true, None),
        ToCommand::Committed(_)
    ));
    job.end();
}

#[test]
fn a_refusal_leaves_no_trace_and_the_next_checkpoint_is_not_disturbed() {
    let mut characters = ordinary(2);
    characters[1].refusals = vec![refusal!(MpiWindow, "MPI window 3 is open")];
    let job = Job::start(&characters);
    let answer = job.checkpoint(true, None);
    let ToCommand::Refused { reasons } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(
        reasons,
        [refusal!(MpiWindow, "rank 1: MPI window 3 is open")]
    );
    eventually("the part is left", || epochs(&job).is_empty());
    assert!(matches!(
        job.checkpoint(false, None),
        ToCommand::Refused { .. }
    ));
}

#[test]
fn a_full_disk_keeps_the_older_epoch_and_the_job() {
    let mut characters = ordinary(2);
    let job = Job::start(&characters);
    assert!(matches!(
        job.checkpoint(true, None),
        ToCommand::Committed(_)
    ));
    let (_, _, _, directory) = job.end();
    // The next launch in the same directory, in which a crash has left a part.
    fs::create_dir(directory.path().join("epoch-000007.part")).unwrap();
    characters[0].disk_full = Some(refusal!(NoSpace, "no space left on device"));
    let mut job = Job::in_directory(directory, 2, Patience::default(), None);
    assert_eq!(epochs(&job), ["epoch-000001"]);
    job.add_ranks(&characters);
    let answer = job.checkpoint(false, None);
    let ToCommand::Aborted { reason, .. } = answer else {
        panic!("{answer:?}")
    };
    let reason = reason.to_string();
    assert!(reason.starts_with("rank 0") && reason.ends_with("no space left on device [no-space]"));
    eventually("the part is left", || epochs(&job) == ["epoch-000001"]);
    assert_eq!(
        JobFile::read(job.directory.path()).unwrap().state,
        JobState::Running
    );
}

#[test]
fn a_rank_that_dies_at_any_order_aborts_and_the_others_are_released() {
    for order in ["begin", "targets", "check", "drain", "seal", "write"] {
        let mut characters = ordinary(3);
        let job = Job::start(&characters);
        assert!(matches!(
            job.checkpoint(true, None),
            ToCommand::Committed(_)
        ));
        let (_, _, _, first) = job.end();
        assert_eq!(names(&first.path().join("epoch-000001")).len(), 4);
        characters[1].dies_at = Some(order);
        let job = Job::start(&characters);
        let answer = job.checkpoint(true, None);
        let ToCommand::Aborted { reason, .. } = answer else {
            panic!("{order}: {answer:?}")
        };
        assert!(
            reason.details().contains("rank 1") && reason.details().contains("has died"),
            "{reason}"
        );
        eventually("the part is left", || epochs(&job).is_empty());
    }
}

#[test]
fn ranks_that_die_after_the_commit_of_a_suspend_leave_a_suspended_job() {
    let mut characters = ordinary(2);
    characters[0].dies_at = Some("terminate");
    let job = Job::start(&characters);
    assert!(matches!(
        job.checkpoint(true, None),
        ToCommand::Committed(_)
    ));
    let (state, ends, file, _) = job.end();
    assert_eq!((state, file.exit_status), (JobState::Suspended, Some(0)));
    assert_eq!(ends, [End::Died, End::Terminated]);
}

#[test]
fn a_timeout_names_who_is_waited_for() {
    let mut characters = ordinary(2);
    characters[1].runs_on = true;
    let job = Job::start(&characters);
    let answer = job.checkpoint(false, Some(1));
    let ToCommand::Aborted { reason, .. } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(
        reason,
        refusal!(
            TooLate,
            "given up after 1 s in phase reach: rank 1 still running"
        )
    );
}

#[test]
fn periodic_checkpoints_need_nobody() {
    let interval = Some(Duration::from_millis(30));
    let mut job = Job::coordinator_only(2, Patience::default(), interval);
    job.add_ranks(&ordinary(2));
    eventually("no epochs come", || {
        epochs(&job).contains(&"epoch-000003".to_owned())
    });
    assert!(matches!(
        job.checkpoint(true, None),
        ToCommand::Committed(_)
    ));
    job.end();
}

#[test]
fn strangers_of_every_kind_do_not_disturb_the_job() {
    let job = Job::start(&ordinary(2));
    let address = job.file.addresses[0].clone();
    // These connections send nothing until the end of the test.
    let silent: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(&address).unwrap())
        .collect();
    let garbage: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 4096],
        &[0xff; 45],
        b"STILLPT\x01",
    ];
    for bytes in garbage {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(bytes).unwrap();
        // The coordinator may have ended the connection already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = vec![];
        // The connection is reset or closed. It sends at most a hello, which reveals nothing.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 74, "{}", answer.len());
    }
    let wrong = Key::random().unwrap().into();
    for _ in 0..20 {
        let error = CommandConnection::open(&job.file.addresses, &wrong, PATIENCE).unwrap_err();
        assert!(
            matches!(
                error,
                ClientError::Handshake {
                    source: HandshakeError::WrongKey,
                    ..
                }
            ),
            "{error}"
        );
    }
    // These clients hold the key, but send invalid messages: an agent of a taken rank, one of an unknown rank, and one without a hello.
    for rank in [0, 7].map(Rank) {
        let connection = AgentConnection::open(&job.file.addresses, &job.file.terms(), PATIENCE);
        let (sender, mut receiver) = connection.unwrap().split().unwrap();
        let hello = Hello {
            rank,
            size: 2,
            pid: 1,
            host: "elsewhere".into(),
            namespace: Default::default(),
            launch: "launch".into(),
            restarted_from: None,
            returns: false,
            late: false,
        };
        sender.send(&FromAgent::Hello(hello)).unwrap();
        let answer = receiver.receive().unwrap();
        assert!(
            matches!(answer, Received::Message(ToAgent::Rejected { .. })),
            "{answer:?}"
        );
        sender.send(&FromAgent::Exiting { status: 9 }).unwrap();
    }
    let connection = AgentConnection::open(&job.file.addresses, &job.file.terms(), PATIENCE);
    let (sender, mut receiver) = connection.unwrap().split().unwrap();
    sender.send(&FromAgent::MpiReady).unwrap();
    assert_eq!(receiver.receive().unwrap(), Received::Closed);
    assert!(matches!(
        job.checkpoint(false, None),
        ToCommand::Committed(_)
    ));
    assert!(matches!(
        job.checkpoint(true, None),
        ToCommand::Committed(_)
    ));
    assert_eq!(job.end().0, JobState::Suspended);
    drop(silent);
}

#[test]
fn a_command_that_goes_away_does_not_end_its_checkpoint() {
    let job = Job::start(&ordinary(2));
    {
        let connection =
            CommandConnection::open(&job.file.addresses, &job.file.terms(), PATIENCE).unwrap();
        let (sender, _) = connection.split().unwrap();
        sender
            .send(&FromCommand::Checkpoint {
                suspend: true,
                timeout: None,
                waits: false,
                asked: None,
            })
            .unwrap();
    }
    assert_eq!(job.end().0, JobState::Suspended);
}

#[test]
fn status_tells_ranks_and_epochs() {
    let job = Job::start(&ordinary(2));
    assert!(matches!(
        job.checkpoint(false, None),
        ToCommand::Committed(_)
    ));
    let connection =
        CommandConnection::open(&job.file.addresses, &job.file.terms(), PATIENCE).unwrap();
    let (sender, mut receiver) = connection.split().unwrap();
    sender.send(&FromCommand::Status).unwrap();
    let answer = receiver.receive().unwrap();
    let Received::Message(ToCommand::Status(status)) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (status.epoch, status.committed, status.aborted),
        (Some(Epoch(1)), 1, 0)
    );
    assert_eq!(status.ranks.len(), 2);
    assert_eq!(status.ranks[1].state, "in MPI");
}

#[test]
fn ranks_meet_at_barriers_and_end_well() {
    let mut job = Job::coordinator_only(3, Patience::default(), None);
    let agents: Vec<Agent> = Rank::all(3)
        .map(|rank| Agent::connect(&job.file, rank, Character::default()))
        .collect();
    for agent in agents {
        agent.send(&FromAgent::AtBarrier { name: "end".into() });
        job.ranks.push(thread::spawn(move || agent.live()));
    }
    let (state, ends, file, _) = job.end();
    assert_eq!((state, file.exit_status), (JobState::Finished, Some(0)));
    assert_eq!(ends, [End::Told; 3]);
}

#[test]
fn a_launch_finds_its_coordinator_and_no_other() {
    let job = Job::coordinator_only(1, Patience::default(), None);
    let mut launch = Launch {
        directory: job.directory.path().to_owned(),
        job: "job".into(),
        launch: "launch".into(),
        name: "test".into(),
        rank: Rank(0),
        size: 1,
        awaits: None,
        mpi: "openmpi".into(),
        library: "openmpi".into(),
        library_file: None,
        upper_library: "/nonexistent".into(),
        command: vec![],
        restart: None,
        suspend_signal: 10,
        suspend_on_term: false,
        suspended_status: 0,
        stillpoint: None,
        two_phase: false,
        tiers: None,
        mapped_files: stillpoint_protocol::launch::MappedFiles::Auto,
        tracking: Default::default(),
        sync_files: Default::default(),
        sockets: Default::default(),
        gpu_staging: Default::default(),
        input: Default::default(),
        begun: 0,
    };
    launch.connect(PATIENCE).unwrap();
    launch.launch = "another".into();
    let error = launch.connect(Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("another launch"), "{error}");
}
