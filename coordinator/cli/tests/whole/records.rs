//! job.json and the log, on a disk that stalls and on one that fails.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use stillpoint_coordinator::job::Patience;
use stillpoint_coordinator::server::{InDirectory, Records};
use stillpoint_ids::Epoch;
use stillpoint_protocol::Received;
use stillpoint_protocol::command::{FromCommand, JobStatus, ToCommand};
use stillpoint_protocol::job_file::{JobFile, JobFileError, JobState};

use crate::support::{Character, Job, PATIENCE, in_directory, names};

/// A disk that does no work while it stalls.
#[derive(Clone, Default)]
struct Disk(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    stalls: bool,
    /// The number of times that job.json has been written and synced.
    synced: u32,
}

impl Disk {
    fn stalls(&self, stalls: bool) {
        self.0.0.lock().unwrap().stalls = stalls;
        self.0.1.notify_all();
    }

    fn work(&self, synced: u32) {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap();
        let mut state = changed.wait_while(state, |state| state.stalls).unwrap();
        state.synced += synced;
        changed.notify_all();
    }

    fn until_synced(&self, times: u32) {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap();
        drop(
            changed
                .wait_while(state, |state| state.synced < times)
                .unwrap(),
        );
    }
}

/// Records on such a disk. Others see a file before it is synced.
struct Stalling(InDirectory, Disk);

impl Records for Stalling {
    fn line(&mut self, at: u64, text: &str) {
        self.0.line(at, text);
        // The line before the first job.json does not stall, since nobody could see the job yet.
        if JobFile::path(self.0.directory.path()).exists() {
            self.1.work(0);
        }
    }

    fn trace(&mut self, at: f64, text: &str) {
        self.0.trace(at, text);
    }

    fn job(&mut self, file: &JobFile) -> Result<(), JobFileError> {
        self.0.job(file)?;
        self.1.work(1);
        Ok(())
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

fn job_on(disk: &Disk) -> (Job, std::sync::mpsc::Receiver<Result<(), String>>) {
    let directory = tempfile::tempdir().unwrap();
    let (records, fence) = in_directory(directory.path());
    let records = Stalling(records, disk.clone());
    Job::with_records(directory, 3, Patience::default(), None, records, fence)
}

fn status(job: &Job) -> JobStatus {
    match job.ask(&FromCommand::Status).receive_within(PATIENCE) {
        Ok(Received::Message(ToCommand::Status(status))) => status,
        other => panic!("no status: {other:?}"),
    }
}

#[test]
fn while_the_disk_stalls_ranks_run_and_commands_are_answered_but_no_commit_is_told() {
    let disk = Disk::default();
    let (mut job, ready) = job_on(&disk);
    ready.recv().unwrap().unwrap();
    job.add_ranks(&vec![Character::default(); 3]);
    // Once when it began, and once when all ranks had come.
    disk.until_synced(2);
    disk.stalls(true);
    let mut asked = job.ask(&FromCommand::Checkpoint {
        suspend: false,
        timeout: None,
        waits: false,
        asked: None,
    });
    let began = Instant::now();
    loop {
        let status = status(&job);
        if status.committed == 1 && status.phase.is_none() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "not released: {status:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(names(job.directory.path()).contains(&"epoch-000001".to_owned()));
    loop {
        match asked.receive_within(Duration::from_millis(200)).unwrap() {
            Received::Message(ToCommand::Phase { .. }) => {}
            Received::Nothing => break,
            other => panic!("told before job.json was on the disk: {other:?}"),
        }
    }
    disk.stalls(false);
    let told = asked.receive_within(PATIENCE).unwrap();
    assert!(
        matches!(&told, Received::Message(ToCommand::Committed(outcome)) if outcome.epoch == Epoch(1)),
        "{told:?}"
    );
    let file = JobFile::read(job.directory.path()).unwrap();
    assert_eq!(file.epoch, Some(Epoch(1)));
    job.checkpoint(true, None);
    assert_eq!(job.end().0, JobState::Suspended);
}

#[test]
fn whoever_sees_job_json_is_answered_though_it_is_not_on_the_disk_yet() {
    let disk = Disk::default();
    disk.stalls(true);
    let (mut job, ready) = job_on(&disk);
    assert!(status(&job).ranks.iter().all(|rank| rank.host.is_empty()));
    job.add_ranks(&vec![Character::default(); 3]);
    assert!(ready.try_recv().is_err(), "rank 0 heard too early");
    disk.stalls(false);
    ready.recv().unwrap().unwrap();
    job.checkpoint(true, None);
    assert_eq!(job.end().0, JobState::Suspended);
}
