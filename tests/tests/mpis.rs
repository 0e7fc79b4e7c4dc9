//! Jobs that change their MPI at a restart: from the machine's Open MPI to Debian's MPICH and back. `ci/matrix` does the same with more libraries and all programs.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::mpis::{Across, Mpi, changes};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// Returns the MPICH that `ci/setup` has unpacked.
fn mpich() -> Result<Mpi, Failed> {
    Mpi::named(&place::target().join("mpis"), "mpich-debian")
}

fn there_and_back(kind: Kind, name: &str) {
    let tested = (|| {
        let (own, other) = (Mpi::own(), mpich()?);
        changes(&Program::named(kind, name)?, 2, &[&own, &other, &own])?;
        changes(&Program::named(kind, name)?, 2, &[&other, &own, &other])
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn messages_on_their_way_come_there_and_back() {
    there_and_back(Kind::Still, "message_order");
}

#[test]
fn collective_operations_that_are_pending_come_there_and_back() {
    there_and_back(Kind::Still, "iallreduce_pending");
}

/// MPICH 4.0 itself knows some of these forms in only some calls.
#[test]
fn nobody_is_the_same_under_every_mpi() {
    there_and_back(Kind::Still, "sendrecv_forms");
}

#[test]
fn what_never_holds_still_comes_there_and_back() {
    there_and_back(Kind::Moving, "ring");
}

/// Suspends a program that was built for MPICH on each of these MPIs and continues it on the next. If it works natively, that is tried
/// too.
fn of_mpich(kind: Kind, name: &str, native: bool) {
    let tested = (|| {
        let (own, other) = (Mpi::own(), mpich()?);
        let program = Program::named(kind, name)?.built_for(&other);
        let ranks = program.ranks.first().copied().unwrap_or(2);
        if native {
            alone(&program, ranks, &other)?;
        }
        changes(&program, ranks, &[&other, &other, &own, &other])?;
        changes(&program, ranks, &[&own, &other])
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Runs the program natively, from its beginning to its right end.
fn alone(program: &Program, ranks: u32, on: &Mpi) -> Result<(), Failed> {
    Directory::new(&format!("{}-alone", program.name))?.run(|directory| {
        let trial = Trial::new(program, ranks, directory)?;
        let across = Across { trial };
        let mut job = across.native(on)?;
        across.trial.ready(&mut job)?;
        across.trial.go()?;
        across.trial.ends_well(job).map(drop)
    })
}

#[test]
fn a_program_of_mpich_goes_from_mpich_to_open_mpi_and_back() {
    of_mpich(Kind::Still, "message_order", false);
}

#[test]
fn objects_of_a_program_of_mpich_have_its_numbers() {
    of_mpich(Kind::Still, "attributes", false);
}

#[test]
fn a_fortran_program_of_mpich_goes_there_and_back() {
    of_mpich(Kind::Still, "fortran_use_mpi", true);
}

#[test]
fn functions_with_large_counts_are_carried() {
    of_mpich(Kind::Special, "large_counts", true);
}

/// Not natively, because MPICH 4.0 has no reductions of so many elements.
#[test]
fn reductions_of_more_elements_than_an_int_holds_go_in_parts() {
    of_mpich(Kind::Special, "large_reductions", false);
}

#[test]
fn layouts_with_numbers_that_an_int_does_not_hold_are_carried() {
    of_mpich(Kind::Special, "large_layouts", true);
}

/// The program asks for the bound of tags. Open MPI's is larger, so a job started there could not go on on MPICH.
#[test]
fn what_mpich_allows_and_open_mpi_does_not_is_allowed() {
    let tested = (|| {
        let (own, other) = (Mpi::own(), mpich()?);
        let program = Program::named(Kind::Special, "of_mpich_early")?.built_for(&other);
        alone(&program, 2, &other)?;
        changes(&program, 2, &[&other, &other, &own])
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Not on Open MPI, which takes the driver's name for a part of the path.
#[test]
fn a_file_with_the_name_of_a_driver_is_opened_again_and_deleted() {
    let tested = (|| {
        let other = mpich()?;
        let program = Program::named(Kind::Special, "of_mpich_file")?.built_for(&other);
        alone(&program, 2, &other)?;
        changes(&program, 2, &[&other, &other])
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Not natively, because MPICH 4.0 calls no error handler of a session.
#[test]
fn sessions_are_carried() {
    of_mpich(Kind::Special, "sessions", false);
}

/// Not natively, because MPICH 4.0 ends the job for a null session.
#[test]
fn newer_constants_are_known() {
    of_mpich(Kind::Special, "newer_constants", false);
}

/// Not natively, because MPICH 4.0 lacks these functions.
#[test]
fn requests_that_are_over_are_seen_without_being_ended() {
    of_mpich(Kind::Special, "seen_not_ended", false);
}

/// Not natively, because MPICH 4.0 lacks these functions.
#[test]
fn buffers_of_communicators_and_sessions_and_flushes_are_carried() {
    of_mpich(Kind::Special, "buffers", false);
}

/// Not natively, for the same reason.
#[test]
fn buffers_that_are_in_use_all_the_time_are_carried() {
    of_mpich(Kind::Special, "buffers_in_use", false);
}

/// Runs `partitioned` on an MPI, by `started`, with these arguments.
fn partitioned(
    ranks: u32,
    arguments: &[&str],
    test: impl FnOnce(&Across, &Mpi, &Mpi) -> Result<(), Failed>,
) {
    let tested = (|| {
        let (own, other) = (Mpi::own(), mpich()?);
        let program = Program::named(Kind::Special, "partitioned")?.built_for(&other);
        let name = format!("partitioned-{ranks}-{}", arguments.len());
        Directory::new(&name)?.run(|directory| {
            let trial = Trial::new(&program, ranks, directory)?.with(arguments);
            test(&Across { trial }, &own, &other)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// This holds as long as a partitioned request exists.
#[test]
fn partitioned_communication_refuses_a_checkpoint_by_name_and_the_program_runs_on() {
    partitioned(2, &["always"], |across, _, mpich| {
        let trial = &across.trial;
        let mut job = across.native(mpich)?;
        trial.ready(&mut job)?;
        trial.go()?;
        trial.ends_well(job)?;
        for rank in 0..trial.ranks {
            let ready = trial.directory.file(&format!("ready.{rank}"));
            fs::remove_file(ready).map_err(|error| error.to_string())?;
        }
        fs::remove_file(trial.directory.file("go")).map_err(|error| error.to_string())?;
        let mut job = across.started(mpich)?;
        trial.ready(&mut job)?;
        for answer in [
            command::checkpoint(trial.directory, &trial.epochs_at())?,
            command::suspend(trial.directory, &trial.epochs_at())?,
        ] {
            answer.expect_reason(exit::REFUSED, "4 partitioned request(s) are there")?;
        }
        ensure!(
            command::epochs(&trial.epochs_at()).is_empty(),
            "a refused checkpoint left an epoch"
        );
        trial.go()?;
        trial.ends_well(job).map(drop)
    });
}

/// Asks for a checkpoint or a suspend, and waits for hindrances to pass.
fn patiently(trial: &Trial, what: &str) -> Result<(), Failed> {
    let epochs = trial.epochs_at().display().to_string();
    let words = [what, "--timeout", "30", epochs.as_str()];
    let answer = command::stillpoint(trial.directory, words)?;
    answer.expect(exit::DONE).map(drop)
}

/// A refused checkpoint is tried again until no such request exists.
#[test]
fn between_partitioned_communication_a_job_is_checkpointed_and_restarted() {
    let mut seed = Seed::new();
    let start = seed.start;
    partitioned(3, &[], |across, _, mpich| {
        let trial = &across.trial;
        let mut moment = || thread::sleep(seed.moment(Duration::from_millis(250)));
        let mut job = across.started(mpich)?;
        trial.ready(&mut job)?;
        for _ in 0..3 {
            moment();
            patiently(trial, "checkpoint")?;
        }
        for _ in 0..3 {
            moment();
            patiently(trial, "suspend")?;
            let ended = job.end(stillpoint_tests::trial::PATIENCE)?;
            let right = ended.status == 0 && !ended.stderr.contains("WRONG");
            ensure!(right, "a suspended job: {}", ended.show());
            job = across.restarted(mpich)?;
            trial.runs_again(&mut job)?;
        }
        moment();
        trial.go()?;
        let ended = trial.ends_well(job).map(drop);
        ended.map_err(|failed| format!("{failed}\n(STILLPOINT_TEST_SEED={start})"))
    });
}

/// Open MPI 4.1 has no partitioned communication.
#[test]
fn where_the_library_has_no_partitioned_communication_the_call_is_refused_by_name() {
    partitioned(2, &["always"], |across, own, _| {
        let ended = across
            .started(own)?
            .end(stillpoint_tests::trial::PATIENCE)?;
        let named = ended.stderr.contains("MPI_Psend_init is not carried");
        ensure!(ended.status != 0 && named, "{}", ended.show());
        Ok(())
    });
}

/// A job's lines about its MPI, by `before` or `after` and by topic.
type Said = BTreeMap<(String, String), String>;

fn said(text: &str) -> Said {
    let lines = text.lines().filter_map(|line| {
        let (head, value) = line.split_once(": ")?;
        let (when, what) = head.split_once(' ')?;
        Some(((when.to_owned(), what.to_owned()), value.to_owned()))
    });
    lines.collect()
}

/// Runs `seen` under Open MPI, and then under MPICH, and returns its lines, or the text of the refused restart.
fn seen(argument: Option<&str>) -> Result<Result<Said, String>, Failed> {
    let (own, other) = (Mpi::own(), mpich()?);
    let program = Program::named(Kind::Special, "seen")?;
    let mut told = None;
    Directory::new("seen")?.run(|directory| {
        let mut trial = Trial::new(&program, 2, directory)?;
        trial.arguments.extend(argument.map(str::to_owned));
        let across = Across { trial };
        let trial = &across.trial;
        let mut job = across.started(&own)?;
        trial.ready(&mut job)?;
        let before = job.stdout();
        trial.suspended(job)?;
        trial.go()?;
        let ended = across
            .restarted(&other)?
            .end(stillpoint_tests::trial::PATIENCE)?;
        told = Some(match ended.status {
            0 => Ok(said(&(before + &ended.stdout))),
            _ => {
                // The epoch is unchanged, and the job carries on on its first MPI.
                let epochs = command::epochs(&trial.epochs_at());
                ensure!(epochs.len() == 1, "epochs {epochs:?}: {}", ended.show());
                trial.ends_well(across.restarted(&own)?)?;
                Err(ended.stderr)
            }
        });
        Ok(())
    })?;
    told.ok_or_else(|| "nothing was told".to_owned())
}

/// This checks the table of docs/users/mpi-libraries.md, line by line.
#[test]
fn what_an_application_has_seen_changes_as_the_page_says() {
    let said = seen(None).and_then(|told| told.map_err(|text| format!("refused: {text}")));
    let said = match said {
        Ok(said) => said,
        Err(failed) => panic!("{failed}"),
    };
    let page = place::project().join("docs/users/mpi-libraries.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (what, becomes) = (cells.next()?.strip_prefix('`')?, cells.next()?);
        Some((what.strip_suffix('`')?.to_owned(), becomes.to_owned()))
    });
    let mut checked = 0;
    for (what, becomes) in rows {
        let value = |when: &str| said.get(&(when.to_owned(), what.clone()));
        let (before, after) = (value("before"), value("after"));
        assert!(after.is_some(), "nothing was said of '{what}': {said:?}");
        match becomes.as_str() {
            "stays" => assert_eq!(before, after, "{what}"),
            "changes" => assert_ne!(before, after, "{what}"),
            "is the new library's" => assert!(before.is_none(), "{what}"),
            other => panic!("'{what}' {other}"),
        }
        checked += 1;
    }
    let all = said.keys().filter(|(when, _)| when == "after").count();
    assert_eq!(
        checked, all,
        "each line of the program has one on the page: {said:?}"
    );
}

/// MPICH has fewer tags than Open MPI. A program that has asked for Open MPI's bound can go on only there.
#[test]
fn a_bound_that_was_told_is_kept_or_the_restart_refused() {
    match seen(Some("bound")) {
        Ok(Err(text)) => assert!(text.contains("MPI_TAG_UB"), "{text}"),
        Ok(Ok(said)) => panic!("it carried on: {said:?}"),
        Err(failed) => panic!("{failed}"),
    }
}
