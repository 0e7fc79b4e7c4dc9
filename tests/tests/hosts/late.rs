//! A slow checkpoint directory: the job runs on, no epoch is lost, and waiting commands name the cause.

use std::thread;
use std::time::{Duration, Instant};

use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::late::Late;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// The longest time until a message reports a delay.
const SAID: Duration = Duration::from_secs(20);

struct Place<'a> {
    trial: Trial<'a>,
    late: Late,
}

impl Place<'_> {
    fn stillpoint(&self, words: &[&str]) -> Result<Answer, Failed> {
        let target = self.target();
        let words = words.iter().copied().chain([target.as_str()]);
        command::stillpoint(self.trial.directory, words)
    }

    fn target(&self) -> String {
        let path = self.late.path().join("stillpoint.d");
        path.to_string_lossy().into_owned()
    }

    fn waits_for(&self) -> Result<String, Failed> {
        let status = self.stillpoint(&["status", "--json"])?.json()?;
        ensure!(status["state"] == "running", "it does not run: {status}");
        Ok(status["live"]["waits_for"].to_string())
    }

    fn start(&self) -> Result<Job, Failed> {
        let mut command = job::under_stillpoint(self.trial.ranks, self.target().as_ref())?;
        command
            .arg(self.trial.executable())
            .args(&self.trial.arguments);
        let mut job = self.trial.launch(command)?;
        self.trial.ready(&mut job)?;
        Ok(job)
    }

    /// Runs a command while writes are frozen, and thaws the directory when `thaws` returns.
    fn while_frozen(
        &self,
        words: &[&str],
        thaws: impl FnOnce() -> Result<(), Failed>,
    ) -> Result<Answer, Failed> {
        self.late.freeze()?;
        thread::scope(|scope| {
            let asking = scope.spawn(|| self.stillpoint(words));
            let waited = thaws();
            self.late.thaw()?;
            let answer = asking.join();
            waited?;
            answer.map_err(|_| "the thread that asks failed".to_owned())?
        })
    }

    fn until_said(&self, what: &str) -> Result<(), Failed> {
        let began = Instant::now();
        let mut said = String::new();
        while !said.contains(what) {
            ensure!(began.elapsed() < SAID, "'{what}' is not said, but {said}");
            thread::sleep(Duration::from_millis(100));
            said = self.waits_for()?;
        }
        // The command reports every second.
        thread::sleep(Duration::from_millis(1500));
        Ok(())
    }

    fn epochs(&self) -> Vec<u64> {
        command::epochs(self.target().as_ref())
    }
}

#[test]
fn a_directory_that_answers_late_costs_no_epoch_and_is_named() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "uneven_sizes")?;
        Directory::new("late-directory")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?.with(&["4", "4"]);
            let late = Late::new(directory.path())?;
            play(&Place { trial, late })
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn play(place: &Place) -> Result<(), Failed> {
    let job = place.start()?;
    place.stillpoint(&["checkpoint"])?.expect(exit::DONE)?;
    // The command waits, and the epoch is committed when the directory answers again.
    let busy = "is the file system busy?";
    let answer = place.while_frozen(&["checkpoint"], || place.until_said(busy))?;
    let answer = answer.expect(exit::DONE)?;
    ensure!(
        answer
            .stderr
            .contains("waiting until this has passed: epoch 2, ")
            && answer.stderr.contains(busy),
        "{}",
        answer.show()
    );
    // The checkpoint is given up in time: the job runs on, and loses no epoch.
    let patient = || {
        thread::sleep(Duration::from_secs(5));
        Ok(())
    };
    let answer = place.while_frozen(&["checkpoint", "--timeout", "3"], patient)?;
    ensure!(answer.took < Duration::from_secs(5), "{}", answer.show());
    answer.expect_reason(exit::FAILED, busy)?;
    ensure!(place.epochs() == [1, 2], "{:?}", place.epochs());
    place.stillpoint(&["checkpoint"])?.expect(exit::DONE)?;
    let newest = place.epochs().pop().unwrap_or(0);
    ensure!(newest > 2, "no epoch after those that there were");
    // A suspend behaves the same.
    let answer = place.while_frozen(&["suspend"], || place.until_said(busy))?;
    answer.expect(exit::DONE)?;
    let ended = job.end(SAID)?;
    ensure!(ended.status == 0, "{}", ended.show());
    // A restart waits for the directory too.
    place.late.freeze()?;
    let again = place
        .trial
        .launch(job::restarted(place.trial.ranks, place.target().as_ref())?)?;
    thread::sleep(Duration::from_secs(2));
    place.late.thaw()?;
    place.trial.go()?;
    place.trial.ends_well(again)?;
    Ok(())
}
