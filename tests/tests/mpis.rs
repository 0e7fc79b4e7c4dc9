//! Jobs that change their MPI at a restart: from the machine's Open MPI to Debian's MPICH and back. `ci/matrix` does the same with more libraries and all programs.

use std::collections::BTreeMap;
use std::fs;

use stillpoint_tests::command;
use stillpoint_tests::mpis::{Across, Mpi, changes};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

/// Unpacked by `ci/setup`.
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

/// MPICH 4.0 itself knows some of this in some calls only.
#[test]
fn nobody_is_the_same_under_every_mpi() {
    there_and_back(Kind::Still, "sendrecv_forms");
}

#[test]
fn what_never_holds_still_comes_there_and_back() {
    there_and_back(Kind::Moving, "ring");
}

/// What a job has said of its MPI, by `before` or `after` and what it is about.
type Said = BTreeMap<(String, String), String>;

fn said(text: &str) -> Said {
    let lines = text.lines().filter_map(|line| {
        let (head, value) = line.split_once(": ")?;
        let (when, what) = head.split_once(' ')?;
        Some(((when.to_owned(), what.to_owned()), value.to_owned()))
    });
    lines.collect()
}

/// `seen` under Open MPI, and then under MPICH: what it said of each. Or the text of the restart that was refused.
fn seen(argument: Option<&str>) -> Result<Result<Said, String>, Failed> {
    let (own, other) = (Mpi::own(), mpich()?);
    let program = Program::named(Kind::Special, "seen")?;
    let _turn = Turn::take()?;
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
                // The epoch is as it was: it carries on where it was.
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

/// The table of docs/mpi-families.md, line by line.
#[test]
fn what_an_application_has_seen_changes_as_the_page_says() {
    let said = seen(None).and_then(|told| told.map_err(|text| format!("refused: {text}")));
    let said = match said {
        Ok(said) => said,
        Err(failed) => panic!("{failed}"),
    };
    let page = place::project().join("docs/mpi-families.md");
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

/// MPICH has fewer tags than Open MPI: who has been told of Open MPI's goes on there only.
#[test]
fn a_bound_that_was_told_is_kept_or_the_restart_refused() {
    match seen(Some("bound")) {
        Ok(Err(text)) => assert!(text.contains("MPI_TAG_UB"), "{text}"),
        Ok(Ok(said)) => panic!("it carried on: {said:?}"),
        Err(failed) => panic!("{failed}"),
    }
}
