//! One loss: a job over four nodes loses one of them in the middle of its second checkpoint. The rest of the job ends by itself, and the newest durable
//! epoch is carried on on the three remaining nodes.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stillpoint_tests::command::exit;
use stillpoint_tests::job::Job;
use stillpoint_tests::{Failed, ensure};

use crate::job::{Hosts, SILENCE, on_hosts};
use crate::scene::{Blow, Moment, NODES, RANKS, Scene, Storage};

/// The time from the loss to mpirun's end: it asks a silent daemon for 5 s, and then ends the others, which end their ranks. The rest is for a busy
/// machine.
const MPIRUN: Duration = Duration::from_secs(20);
/// The time from there until a restart has the directory. A coordinator notices within `SILENCE`, waits 2 s for the silent to come back, and no restart
/// waits longer than 10 s.
const BEGUN: Duration = Duration::from_secs(20);
/// The time from the moment when a lost node answers again until no process of the job is left there. mpirun's daemon notices at its next retransmission
/// of unacknowledged data.
const REMAINS: Duration = Duration::from_secs(40);
/// The longest time until a point is passed.
const PASSED: Duration = Duration::from_secs(10);

/// The outcome of a loss.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub scene: Scene,
    /// The newest durable epoch when the node was lost, and when the job had ended.
    pub before: u64,
    pub after: u64,
    /// The epoch that was carried on.
    pub carried_on: u64,
    /// From the loss to mpirun's end, and to the next epoch of the job that carries on.
    pub mpirun: Duration,
    pub resumed: Duration,
}

/// Plays a scene.
pub fn lose(scene: &Scene) -> Result<Outcome, Failed> {
    let mut outcome = None;
    on_hosts(
        &format!("lost-{}", scene.number),
        NODES,
        RANKS,
        "4",
        |hosts| prepare(hosts, scene),
        |hosts| {
            outcome = Some(play(hosts, scene)?);
            Ok(())
        },
    )?;
    outcome.ok_or_else(|| "nothing was played".to_owned())
}

fn prepare(hosts: &mut Hosts, scene: &Scene) {
    hosts.fault = scene.fault();
    if scene.storage == Storage::Plain {
        return;
    }
    let fast = hosts.trial.directory.file("fast.%h");
    hosts.options = vec![
        format!("--tier=fast={},capacity=200M", fast.display()),
        format!("--tier=slow={},limit=20MB/s", hosts.target().display()),
    ];
    if scene.storage == Storage::Partner {
        hosts.options.push("--redundancy=partner".to_owned());
    }
}

fn play(hosts: &Hosts, scene: &Scene) -> Result<Outcome, Failed> {
    let mut job = hosts.start(&scene.before())?;
    hosts.checkpoint()?.expect(exit::DONE)?;
    let before = hosts.newest();
    ensure!(before == 1, "the first checkpoint is epoch {before}");
    let (lost, answer) = thread::scope(|scope| {
        let asking = scope.spawn(|| hosts.checkpoint());
        let lost = strike(hosts, scene, &job);
        let answer = asking.join();
        lost.and_then(|lost| Ok((lost, answer.map_err(|_| "the thread that asks failed")??)))
    })?;
    // A reported commit is a commit.
    let told = if answer.status == exit::DONE { 2 } else { 1 };
    // Processes on the lost node stay until they end by themselves.
    job.until_over(MPIRUN)?;
    let took = lost.elapsed();
    // The lost node may still hold the directory for a moment.
    let (launch, _) = hosts.recorded()?;
    let mut again = hosts.restart(&scene.after())?;
    let after = hosts.newest();
    ensure!(
        after >= told,
        "epoch {told} was committed, and the newest is {after}: {}",
        hosts.log()
    );
    again
        .until("another launch", BEGUN, |_| {
            hosts.recorded().is_ok_and(|(new, _)| new != launch)
        })
        .map_err(|failed| format!("{failed}\n{}\n{}", job.stderr(), hosts.log()))?;
    // The job is like any other. All its ranks are there once it has a checkpoint, and then its status names the epoch
    // that it carries on.
    let answer = hosts.checkpoint()?;
    let answer = answer.expect(exit::DONE);
    answer.map_err(|failed| format!("{failed}\n{}\n{}", again.stderr(), hosts.log()))?;
    let resumed = lost.elapsed();
    let carried_on = hosts.status()?["restarted_from"].as_u64().unwrap_or(0);
    ensure!(
        carried_on >= after,
        "epoch {carried_on} is carried on, and the newest was {after}: {}",
        hosts.log()
    );
    if scene.blow == Blow::Cut {
        comes_back(hosts, scene.lost)?;
    }
    hosts.trial.go()?;
    hosts.trial.ends_well(again)?;
    Ok(Outcome {
        scene: scene.clone(),
        before,
        after,
        carried_on,
        mpirun: took,
        resumed,
    })
}

/// Checks that when the lost node answers again, the processes there notice that the job is over, and leave the directory alone.
fn comes_back(hosts: &Hosts, lost: u32) -> Result<(), Failed> {
    let recorded = hosts.recorded()?;
    let epochs = hosts.newest();
    hosts.network.mend(lost)?;
    let began = Instant::now();
    loop {
        let left = hosts.network.processes(lost)?;
        if left.is_empty() {
            break;
        }
        ensure!(
            began.elapsed() < REMAINS,
            "{left:?} are left on the node that has come back: {}",
            hosts.log()
        );
        thread::sleep(Duration::from_millis(50));
    }
    ensure!(
        hosts.recorded()? == recorded && hosts.newest() == epochs,
        "{recorded:?} with epoch {epochs} has become {:?} with {}: {}",
        hosts.recorded()?,
        hosts.newest(),
        hosts.log()
    );
    hosts.checkpoint()?.expect(exit::DONE)?;
    Ok(())
}

/// Waits for the moment, takes the node away, and returns the time.
fn strike(hosts: &Hosts, scene: &Scene, job: &Job) -> Result<Instant, Failed> {
    match scene.moment {
        Moment::After(time) => thread::sleep(time),
        Moment::At(point) => {
            let mark = format!(" {point}: stall");
            let asked = Instant::now();
            // If this rank does not pass the point in this checkpoint, the end of the wait is the moment.
            while asked.elapsed() < PASSED
                && !job.stderr().contains(&mark)
                && !hosts.log().contains(&mark)
            {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
    hosts.network.cut(scene.lost)?;
    let lost = Instant::now();
    if scene.blow == Blow::Dead {
        for process in hosts.network.processes(scene.lost)? {
            // It may have ended in the meantime.
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
    Ok(lost)
}

/// Describes the parts of the bound, for the page.
pub fn bound() -> String {
    let (mpirun, begun) = (MPIRUN.as_secs(), BEGUN.as_secs());
    format!(
        "{mpirun} s and {begun} s, with a silence of {} s",
        SILENCE.as_secs()
    )
}
