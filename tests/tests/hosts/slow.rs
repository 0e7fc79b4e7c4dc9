//! Hosts that are slow, or out of reach for a while: the job neither fails nor loses an epoch, and waiting commands name the host.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stillpoint_tests::command::exit;
use stillpoint_tests::job::Job;
use stillpoint_tests::{Failed, ensure, strike};

use crate::job::{Hosts, SILENCE, on_hosts};

/// The longest time until a message reports a delay.
const SAID: Duration = Duration::from_secs(20);

fn on_two_hosts(name: &str, test: impl FnOnce(&Hosts, Job) -> Result<(), Failed>) {
    let patient = |hosts: &mut Hosts| hosts.patient = true;
    let tested = on_hosts(name, 2, 2, "4", patient, |hosts| {
        let job = hosts.start(&[(0, 1), (1, 1)])?;
        hosts.checkpoint()?.expect(exit::DONE)?;
        test(hosts, job)
    });
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Waits until the job's status contains a message.
fn until_said(hosts: &Hosts, what: &str) -> Result<(), Failed> {
    let began = Instant::now();
    loop {
        let status = hosts.status()?;
        if status["live"]["waits_for"].to_string().contains(what) {
            return Ok(());
        }
        ensure!(began.elapsed() < SAID, "'{what}' is not said: {status}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn carries_on(hosts: &Hosts, job: Job, newest: u64) -> Result<(), Failed> {
    hosts.suspend()?.expect(exit::DONE)?;
    let ended = job.end(SAID)?;
    ensure!(ended.status == 0, "{}", ended.show());
    ensure!(hosts.newest() == newest, "{}", hosts.newest());
    hosts.trial.go()?;
    // Both ranks are now on one host.
    hosts.trial.ends_well(hosts.restart(&[(1, 2)])?)?;
    Ok(())
}

#[test]
fn a_rank_that_does_not_run_for_long_is_waited_for_by_name() {
    on_two_hosts("slow", |hosts, job| {
        let rank = strike::ranks(&hosts.target())?[1];
        // The rank's host keeps answering for it, so it is slow and not gone.
        strike::signal(rank, Signal::SIGSTOP)?;
        let answer = thread::scope(|scope| {
            let asking = scope.spawn(|| hosts.checkpoint());
            let said = until_said(hosts, "rank 1 did not answer");
            thread::sleep(SILENCE * 2);
            strike::signal(rank, Signal::SIGCONT)?;
            let answer = asking.join();
            said?;
            answer.map_err(|_| "the thread that asks failed".to_owned())?
        })?;
        let answer = answer.expect(exit::DONE)?;
        ensure!(
            answer.stderr.contains("rank 1 did not answer"),
            "{}",
            answer.show()
        );
        ensure!(!hosts.log().contains("reached"), "{}", hosts.log());
        // A host that runs a tenth of the time, on a very slow line.
        hosts.network.pace(1, "400kbit")?;
        let answer = thread::scope(|scope| {
            let asking = scope.spawn(|| hosts.checkpoint());
            while !asking.is_finished() {
                strike::signal(rank, Signal::SIGSTOP)?;
                thread::sleep(Duration::from_millis(90));
                strike::signal(rank, Signal::SIGCONT)?;
                thread::sleep(Duration::from_millis(10));
            }
            let answer = asking.join();
            answer.map_err(|_| "the thread that asks failed".to_owned())?
        })?;
        answer.expect(exit::DONE)?;
        carries_on(hosts, job, 4)
    });
}

#[test]
fn a_host_that_is_out_of_reach_for_a_while_comes_back_and_its_checkpoint_is_committed() {
    on_two_hosts("outage", |hosts, job| {
        hosts.network.cut(1)?;
        let answer = thread::scope(|scope| {
            let asking = scope.spawn(|| hosts.checkpoint_within("100"));
            let said = until_said(hosts, "cannot be reached");
            hosts.network.mend(1)?;
            let answer = asking.join();
            said?;
            answer.map_err(|_| "the thread that asks failed".to_owned())?
        })?;
        answer.expect(exit::DONE)?;
        ensure!(
            hosts.log().contains("can be reached again"),
            "{}",
            hosts.log()
        );
        carries_on(hosts, job, hosts.newest() + 1)
    });
}
