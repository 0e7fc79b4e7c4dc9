//! Ranks that come, go, become other programs and wait for each other.

use super::*;

#[test]
fn a_job_that_never_starts_ends_as_a_failure() {
    let mut world = World::starting();
    world.sleep();
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Failed);
    assert_eq!(
        world.job.fate().reason.as_deref(),
        Some("all 3 ranks never connected to the coordinator")
    );
    assert_eq!(world.job.deadline(), None);
}

#[test]
fn a_job_whose_starter_fails_does_not_wait_for_ranks_for_long() {
    let mut world = World::starting();
    world.input(Input::StarterGone);
    world.sleep();
    assert_eq!(world.now, Patience::default().grace);
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Failed);
    // If ranks are connected, their own ends count.
    let mut world = World::running();
    world.input(Input::StarterGone);
    assert!(!world.has(&Output::Ended));
    assert_eq!(world.job.fate().reason, None);
}

#[test]
fn a_program_that_becomes_another_before_mpi_keeps_its_rank() {
    let mut world = World::starting();
    for rank in 0..RANKS {
        world.job.admit(hello(rank), world.now).unwrap();
    }
    world.input(Input::Disconnected { rank: Rank(1) });
    world.job.admit(hello(1), world.now).unwrap();
    assert_eq!(world.job.fate().reason, None);
    // A process that is dead does not come back.
    world.input(Input::ProcessGone { rank: Rank(1) });
    assert_eq!(world.job.fate().reason, None);
    world.input(Input::Disconnected { rank: Rank(2) });
    world.input(Input::ProcessGone { rank: Rank(2) });
    let reason = world.job.fate().reason.clone().unwrap();
    assert!(
        reason.starts_with("rank 2") && reason.contains("died"),
        "{reason}"
    );
}

#[test]
fn the_program_that_one_becomes_is_waited_for_by_a_checkpoint_that_waits() {
    for waits in [false, true] {
        let mut world = World::starting();
        for rank in 0..RANKS {
            world.job.admit(hello(rank), world.now).unwrap();
        }
        world.input(Input::Checkpoint {
            watcher: 1,
            suspend: true,
            timeout: None,
            waits,
            asked: None,
        });
        world.input(Input::Disconnected { rank: Rank(0) });
        let told = world.told(1);
        let reasons = match (waits, &told[..]) {
            (false, [ToCommand::Refused { reasons }]) => reasons,
            (true, [ToCommand::Hindered { reasons }]) => reasons,
            _ => panic!("{told:?}"),
        };
        assert!(
            reasons[0]
                .details()
                .contains("was replaced by another program"),
            "{reasons:?}"
        );
    }
}

#[test]
fn a_program_that_starts_no_mpi_in_the_place_of_a_rank_is_waited_for_and_named() {
    let mut world = World::starting();
    for rank in 0..RANKS {
        world.job.admit(hello(rank), world.now).unwrap();
    }
    world.input(Input::Disconnected { rank: Rank(1) });
    let ask = |world: &mut World, watcher| {
        world.input(Input::Checkpoint {
            watcher,
            suspend: false,
            timeout: None,
            waits: true,
            asked: None,
        });
    };
    ask(&mut world, 1);
    while world.told(1).is_empty() {
        world.sleep();
    }
    assert_eq!(world.now, Duration::from_secs(120));
    let Some(ToCommand::Aborted { reason, .. }) = world.told(1).last() else {
        panic!("{:?}", world.told(1));
    };
    let text = reason.to_string();
    assert!(
        text.starts_with("rank 1 (process 11 on h) has become another program"),
        "{text}"
    );
    // One that comes late is served.
    ask(&mut world, 2);
    let late = Hello {
        late: true,
        ..hello(1)
    };
    world.job.admit(late, world.now).unwrap();
    for rank in 0..RANKS {
        world.agent(rank, FromAgent::MpiReady);
    }
    world.up_to_commit(1);
}

#[test]
fn a_process_that_becomes_a_program_without_an_agent_refuses_at_once() {
    let mut world = World::starting();
    for rank in 0..RANKS {
        world.job.admit(hello(rank), world.now).unwrap();
    }
    world.input(Input::Disconnected { rank: Rank(1) });
    let back = Hello {
        returns: true,
        ..hello(1)
    };
    // Another process is not the rank.
    let other = Hello {
        pid: 99,
        ..back.clone()
    };
    world.job.admit(hello(1), world.now).unwrap();
    world.job.admit(other, world.now).unwrap_err();
    world.input(Input::Disconnected { rank: Rank(1) });
    world.job.admit(back, world.now).unwrap();
    let program = "/a/tool".to_owned();
    world.agent(1, FromAgent::BecomesUnsplit { program });
    world.input(Input::Disconnected { rank: Rank(1) });
    world.input(Input::Checkpoint {
        watcher: 1,
        suspend: true,
        timeout: None,
        waits: true,
        asked: None,
    });
    let [ToCommand::Refused { reasons }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(reasons[0].code(), Code::UnsplitProgram);
    assert!(reasons[0].details().contains("has become /a/tool"));
    world.input(Input::ProcessGone { rank: Rank(1) });
    let reason = world.job.fate().reason.clone().unwrap();
    assert!(reason.contains("has ended as /a/tool"), "{reason}");
}

#[test]
fn a_job_whose_starter_has_become_another_program_ends_with_that_program() {
    for program in [None, Some("/a/tool".to_owned())] {
        let mut world = World::starting();
        for rank in 0..RANKS {
            world.job.admit(hello(rank), world.now).unwrap();
        }
        let expected = match &program {
            Some(_) => "has ended as /a/tool",
            None => "has ended as another program, which never started MPI",
        };
        if let Some(program) = program {
            world.agent(0, FromAgent::BecomesUnsplit { program });
        }
        for rank in 0..RANKS {
            world.input(Input::Disconnected { rank: Rank(rank) });
        }
        // The end of the process as a starter may be seen before its end as a rank.
        world.input(Input::StarterGone);
        world.sleep();
        let reason = world.job.fate().reason.clone().unwrap();
        assert!(reason.starts_with("rank 0 (process 10 on h) "), "{reason}");
        assert!(reason.contains(expected), "{reason}");
        assert!(world.has(&Output::Ended));
    }
}

#[test]
fn the_first_failure_is_the_jobs() {
    let mut world = World::running();
    world.agent(1, FromAgent::Exiting { status: 3 });
    world.input(Input::Disconnected { rank: Rank(1) });
    world.input(Input::Disconnected { rank: Rank(0) });
    world.agent(2, FromAgent::Exiting { status: 143 });
    assert!(!world.has(&Output::Ended));
    world.input(Input::Disconnected { rank: Rank(2) });
    assert!(world.has(&Output::Ended));
    let fate = world.job.fate();
    assert_eq!((fate.state, fate.exit_status), (JobState::Failed, Some(3)));
}

#[test]
fn a_job_whose_ranks_end_well_is_finished() {
    let mut world = World::running();
    for rank in 0..RANKS {
        world.agent(rank, FromAgent::MpiFinalized);
        world.agent(rank, FromAgent::Exiting { status: 0 });
        world.input(Input::Disconnected { rank: Rank(rank) });
    }
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Finished);
}

#[test]
fn a_barrier_opens_when_all_have_come_and_can_be_used_again() {
    let mut world = World::running();
    let passed = Output::Broadcast(ToAgent::BarrierPassed {
        name: "mapped".into(),
    });
    for _ in 0..2 {
        world.outputs.clear();
        for rank in 0..RANKS {
            assert!(!world.has(&passed));
            world.agent(
                rank,
                FromAgent::AtBarrier {
                    name: "mapped".into(),
                },
            );
        }
        assert!(world.has(&passed));
    }
}

#[test]
fn ranks_of_one_host_hear_as_what_the_others_are_known() {
    let mut world = World::running();
    let born = |rank| Namespace::told_of(7, ["one", "two"][rank as usize / 2 % 2], "");
    for rank in 0..RANKS {
        let told = |it: &Output| {
            matches!(
                it,
                Output::Send {
                    message: ToAgent::Neighbours(_),
                    ..
                }
            )
        };
        assert!(!world.outputs.iter().any(told));
        let known = KnownAs {
            pid: 100 + rank,
            born: born(rank),
        };
        world.agent(rank, FromAgent::KnownAs(known));
    }
    for rank in 0..RANKS {
        let others = (0..RANKS).filter(|other| *other != rank && born(*other) == born(rank));
        let others = others.map(|other| Neighbour {
            known: 100 + other,
            pid: hello(other).pid,
            namespace: hello(other).namespace,
        });
        let (rank, message) = (Rank(rank), ToAgent::Neighbours(others.collect()));
        assert!(world.has(&Output::Send { rank, message }), "rank {rank}");
    }
}

#[test]
fn two_processes_that_start_mpi_as_one_rank_can_not_be_checkpointed() {
    let mut world = World::running();
    let program = |pid| Hello {
        pid,
        late: true,
        ..hello(1)
    };
    let mut world_of_scripts = World::starting();
    for rank in 0..RANKS {
        world_of_scripts.job.admit(hello(rank), world.now).unwrap();
    }
    // A script hands over to one program, and is asked for a checkpoint while a second one comes.
    let scripts = &mut world_of_scripts;
    scripts.job.admit(program(21), world.now).unwrap();
    for rank in 0..RANKS {
        scripts.agent(rank, FromAgent::MpiReady);
    }
    scripts.ask(1, true);
    let refused = scripts.job.admit(program(22), world.now).unwrap_err();
    assert!(
        refused
            .details()
            .contains("two processes start MPI as rank 1"),
        "{refused}"
    );
    scripts.input(Input::Tick);
    assert!(matches!(scripts.told(1)[..], [ToCommand::Refused { .. }]));
    assert!(matches!(scripts.orders().last(), Some(Order::Abort { .. })));
    scripts.all_say(1, Progress::Released);
    scripts.ask(2, false);
    let [ToCommand::Refused { reasons }] = scripts.told(2)[..] else {
        panic!("{:?}", scripts.told(2));
    };
    assert_eq!(reasons, &[refused]);
    // A program with MPI that the rank starts becomes the rank.
    world.job.admit(program(21), world.now).unwrap_err();
    world.ask(1, true);
    world.up_to_commit(1);
}

#[test]
fn the_beginning_is_told_once_in_a_launch_whoever_coordinates() {
    let told = |has_begun| {
        let mut world = World::of(Settings {
            has_begun,
            ..World::settings(None)
        });
        world.connect_all();
        let begins =
            |output: &&Output| matches!(output, Output::Happens(it) if it.name == "started");
        world.outputs.iter().filter(begins).count()
    };
    assert_eq!((told(false), told(true)), (1, 0));
}
