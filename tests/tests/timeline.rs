//! `stillpoint timeline` shows which rank the others waited for.

use std::ffi::OsStr;
use std::fs;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

fn shown(directory: &Directory) -> Result<(), Failed> {
    let program = Program::named(Kind::Special, "uneven_memory")?;
    let mut trial = Trial::new(&program, 3, directory)?;
    trial.settings = vec![("STILLPOINT_COPY", "off")];
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    let target = trial.epochs_at();
    command::checkpoint(directory, &target)?.expect(exit::DONE)?;
    let page = directory.file("page.html");
    let timeline = |more: &[&OsStr]| {
        let words = [OsStr::new("timeline"), target.as_os_str()];
        let words = words.into_iter().chain(more.iter().copied());
        command::stillpoint(directory, words)?.expect(exit::DONE)
    };
    let said = timeline(&[])?.stdout;
    let write = said.lines().find(|line| line.trim().starts_with("write "));
    ensure!(
        write.is_some_and(|line| line.contains("waited for rank 1 on ")),
        "{said}"
    );
    timeline(&[OsStr::new("--html"), page.as_os_str()])?;
    let drawn = fs::read_to_string(&page).map_err(|error| error.to_string())?;
    for words in ["rank 0 waits for rank 1", "rank 2 waits for rank 1"] {
        ensure!(drawn.contains(words), "no '{words}': {drawn}");
    }
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

#[test]
fn an_epoch_with_a_straggler_names_it() {
    if let Err(failed) = Directory::new("timeline").and_then(|place| place.run(shown)) {
        panic!("{failed}");
    }
}
