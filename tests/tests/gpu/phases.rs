//! Every fault of the emulated devices, in every phase of a checkpoint and of a restart, and the job's fate. Each fault strikes, or the test shows
//! that it did not. If the job survives, its result is the native run's.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use stillpoint_faults::{MARK, VARIABLE};
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::gpu::Fault;
use stillpoint_tests::job::Job;
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

/// The device that is lost.
const LOST: u32 = 1;

/// The phase of a fault. The fault exists from the beginning of the phase until the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The devices are locked.
    Quiet,
    /// Device memory is copied to the rank's own memory.
    Save,
    /// Device memory is copied back from there.
    Restore,
    /// The devices are unlocked.
    Unlock,
    /// Device memory is staged.
    Stage,
    /// Staged memory goes into the image.
    Drain,
    /// Staged memory goes back.
    Unstage,
    /// A restart, with device memory in the rank's own.
    Restart,
    /// A restart, with device memory in a section of the image.
    Refill,
}

/// The job's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// The phase does nothing that the fault could strike.
    Untouched,
    /// The fault strikes, and the epoch is written all the same.
    Written,
    /// There is no epoch, for this reason; the job runs on.
    RunsOn(&'static str),
    /// There is no epoch, for this reason, and the driver fails the program's own calls from then on, as it would without Stillpoint. The program
    /// ends by itself, and carries on from its last epoch.
    Fails(&'static str),
    /// The job ends with this message, and carries on from its last epoch.
    Ends(&'static str),
    /// There is no restart, for this reason; the next one is right.
    Refused(&'static str),
}

use Becomes::{Ends, Fails, Refused, RunsOn, Untouched, Written};

/// The table of fates, which does not compile unless all its cells are there.
fn becomes(phase: Phase, fault: Fault) -> Becomes {
    use Fault::{
        CheckpointBreaks, CheckpointFails, CopyError, DeviceLost, LockTimeout, OutOfMemory,
        RestoreBreaks, RestoreFails,
    };
    const SAVE: &str = "cuCheckpointProcessCheckpoint";
    const STAYS: &str = "may stay with the process";
    const BACK: &str = "do not come back after a checkpoint";
    const STAGE: &str = "could not be staged";
    const DRAIN: &str = "cannot be written down";
    match phase {
        Phase::Quiet => match fault {
            LockTimeout => Written,
            CheckpointFails | CheckpointBreaks | RestoreFails | RestoreBreaks => Untouched,
            OutOfMemory | CopyError | DeviceLost(_) => Untouched,
        },
        Phase::Save => match fault {
            CheckpointFails => RunsOn(SAVE),
            CheckpointBreaks => Ends(BACK),
            CopyError | DeviceLost(_) => Fails(STAYS),
            LockTimeout | RestoreFails | RestoreBreaks | OutOfMemory => Untouched,
        },
        Phase::Restore => match fault {
            RestoreFails | RestoreBreaks | OutOfMemory | CopyError | DeviceLost(_) => Ends(BACK),
            LockTimeout | CheckpointFails | CheckpointBreaks => Untouched,
        },
        Phase::Unlock => match fault {
            LockTimeout | CheckpointFails | CheckpointBreaks | RestoreFails => Untouched,
            RestoreBreaks | OutOfMemory | CopyError | DeviceLost(_) => Untouched,
        },
        Phase::Stage => match fault {
            // There is no fallback to the other way, since the user demanded staging.
            CheckpointFails => RunsOn("--gpu-staging on"),
            // Other places take more.
            OutOfMemory => Written,
            CheckpointBreaks | CopyError | DeviceLost(_) => Ends(STAGE),
            LockTimeout | RestoreFails | RestoreBreaks => Untouched,
        },
        Phase::Drain => match fault {
            CopyError | DeviceLost(_) => Ends(DRAIN),
            LockTimeout | CheckpointFails | CheckpointBreaks => Untouched,
            RestoreFails | RestoreBreaks | OutOfMemory => Untouched,
        },
        Phase::Unstage => match fault {
            RestoreFails | RestoreBreaks | OutOfMemory | CopyError | DeviceLost(_) => Ends(BACK),
            LockTimeout | CheckpointFails | CheckpointBreaks => Untouched,
        },
        Phase::Restart | Phase::Refill => match fault {
            RestoreFails | RestoreBreaks | OutOfMemory | CopyError | DeviceLost(_) => {
                Refused("restart it again")
            }
            LockTimeout | CheckpointFails | CheckpointBreaks => Untouched,
        },
    }
}

impl Phase {
    /// Returns the fault points at which this phase and the next one begin.
    fn points(self) -> (&'static str, Option<&'static str>) {
        match self {
            Phase::Quiet => ("gpu-lock", Some("gpu-save")),
            Phase::Save => ("gpu-save", Some("gpu-back")),
            Phase::Restore => ("gpu-back", Some("gpu-unlock")),
            Phase::Unlock => ("gpu-unlock", None),
            Phase::Stage => ("gpu-stage", Some("gpu-drain")),
            Phase::Drain => ("gpu-drain", Some("gpu-back")),
            Phase::Unstage => ("gpu-unstage", Some("gpu-unlock")),
            Phase::Restart | Phase::Refill => ("restart-gpu", None),
        }
    }

    fn faults(self, of: impl Fn(Becomes) -> bool) -> Vec<Fault> {
        let all = Fault::all(LOST).into_iter();
        all.filter(|fault| of(becomes(self, *fault))).collect()
    }
}

/// The points at which ranks can be held.
const POINTS: [&str; 7] = [
    "gpu-lock",
    "gpu-save",
    "gpu-back",
    "gpu-unlock",
    "gpu-stage",
    "gpu-drain",
    "gpu-unstage",
];

/// Runs one job after the other, on devices with one fault at a time.
struct Table<'a, 'b> {
    heat: &'a mut Heat<'b>,
    options: &'a [&'a str],
}

impl Table<'_, '_> {
    fn hold(&self, point: &str) -> PathBuf {
        self.heat.directory.file(&format!("hold-{point}"))
    }

    /// Returns the fault plan that holds the ranks at every point whose file exists.
    fn plan(&self) -> String {
        let entry = |point: &&str| format!("{point}:hold={}", self.hold(point).display());
        POINTS.iter().map(entry).collect::<Vec<_>>().join(",")
    }

    fn begin(&self) -> Result<Job, Failed> {
        let plan = self.plan();
        let mut job = self.heat.start_with(self.options, &[(VARIABLE, &plan)])?;
        self.heat.waits(&mut job)?;
        Ok(job)
    }

    /// Starts the job from its newest epoch, and waits until it runs.
    fn again(&self) -> Result<Job, Failed> {
        self.heat
            .restarted_with(self.options, &[(VARIABLE, &self.plan())])
    }

    fn arm(&self, faults: &[Fault]) -> Result<(), Failed> {
        faults.iter().try_for_each(|fault| {
            // A lost device stays lost.
            let lost = matches!(fault, Fault::DeviceLost(_));
            let times = (!lost).then_some(1);
            self.heat.gpus.fault(&fault.to_string(), times)
        })
    }

    fn disarm(&self, faults: &[Fault]) -> Result<(), Failed> {
        let mut faults = faults.iter();
        faults.try_for_each(|fault| self.heat.gpus.no_fault(&fault.to_string()))
    }

    fn struck(&mut self, faults: &[Fault]) -> Result<u64, Failed> {
        let mut faults = faults.iter();
        faults.try_fold(0, |sum, fault| Ok(sum + self.heat.gpus.struck(*fault)?))
    }

    /// Asks for a checkpoint with the faults in this phase only.
    fn checkpoint(
        &mut self,
        job: &mut Job,
        phase: Phase,
        faults: &[Fault],
    ) -> Result<Answer, Failed> {
        self.heat.idle(job)?;
        let (first, next) = phase.points();
        let points: Vec<&str> = [Some(first), next].into_iter().flatten().collect();
        let held = |job: &Job, point: &str| {
            let said = job.stderr();
            let mark = format!(" {point}: hold");
            let lines = said.lines();
            lines
                .filter(|line| line.contains(MARK) && line.contains(&mark))
                .count()
        };
        let ranks = self.heat.ranks as usize;
        let wanted: Vec<usize> = points
            .iter()
            .map(|point| held(job, point) + ranks)
            .collect();
        for point in &points {
            fs::write(self.hold(point), "").map_err(|error| error.to_string())?;
        }
        let release = |point: &str| {
            fs::remove_file(self.hold(point)).map_err(|error| format!("{point}: {error}"))
        };
        let (target, directory) = (self.heat.target(), self.heat.directory);
        // The epoch may be reported before the ranks go on.
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let answer = heat::ask("checkpoint", directory, target);
                let done = answer
                    .as_ref()
                    .is_ok_and(|answer| answer.status == exit::DONE);
                failed.store(!done, Ordering::Release);
                answer
            });
            let mut come = |number: usize| {
                job.until(points[number], PATIENCE, |job| {
                    held(job, points[number]) >= wanted[number] || failed.load(Ordering::Acquire)
                })
            };
            let begun = come(0).and_then(|()| self.arm(faults));
            let released = release(points[0]);
            // The next point is not reached if the job has ended.
            if points.len() > 1 {
                let _ = come(1);
            }
            let disarmed = match phase {
                Phase::Unlock => Ok(()),
                _ => self.disarm(faults),
            };
            let released = points[1..]
                .iter()
                .try_for_each(|point| release(point))
                .and(released);
            let answer = asked
                .join()
                .map_err(|_| "the request panicked".to_owned())?;
            if phase == Phase::Unlock {
                self.disarm(faults)?;
            }
            begun.and(released).and(disarmed).and(answer)
        })
    }

    /// Tests faults that the job survives. Faults that strike nothing are injected together.
    fn survives(&mut self, job: &mut Job, phase: Phase) -> Result<(), Failed> {
        let untouched = phase.faults(|becomes| becomes == Untouched);
        let before = self.struck(&untouched)?;
        self.checkpoint(job, phase, &untouched)?
            .expect(exit::DONE)?;
        ensure!(
            self.struck(&untouched)? == before,
            "{phase:?}: one of {untouched:?} has struck: {}",
            job.stderr()
        );
        for fault in phase.faults(|becomes| matches!(becomes, Written | RunsOn(_))) {
            let before = self.struck(&[fault])?;
            let epochs = command::epochs(self.heat.target());
            let answer = self.checkpoint(job, phase, &[fault])?;
            match becomes(phase, fault) {
                RunsOn(word) => {
                    answer.expect_reason(exit::FAILED, word)?;
                    ensure!(
                        command::epochs(self.heat.target()) == epochs,
                        "{phase:?}, {fault}: an epoch too many"
                    );
                }
                _ => drop(answer.expect(exit::DONE)?),
            }
            ensure!(
                self.struck(&[fault])? > before,
                "{phase:?}, {fault}: it did not strike"
            );
            ensure!(job.runs(), "{phase:?}, {fault}: {}", job.stderr());
        }
        Ok(())
    }

    /// Tests faults that end the job, which carries on from its last epoch.
    fn ends(&mut self, mut job: Job, phase: Phase) -> Result<Job, Failed> {
        for fault in phase.faults(|becomes| matches!(becomes, Ends(_) | Fails(_))) {
            let (Ends(word) | Fails(word)) = becomes(phase, fault) else {
                continue;
            };
            let before = self.struck(&[fault])?;
            let answer = self.checkpoint(&mut job, phase, &[fault])?;
            let fails = matches!(becomes(phase, fault), Fails(_));
            if fails {
                answer.clone().expect_reason(exit::FAILED, word)?;
                self.heat.idle(&mut job)?;
                self.heat.let_go()?;
            }
            let ended = job.end(PATIENCE)?;
            if fails {
                self.heat.hold_back()?;
                ensure!(
                    ended.stderr.contains("WRONG") && ended.stderr.contains("CUDA_ERROR"),
                    "{phase:?}, {fault}: not the program's own error: {}",
                    ended.show()
                );
            }
            let said = format!("{}{}", answer.show(), ended.show());
            ensure!(
                ended.status != 0 && said.contains(word) && !ended.stdout.contains("digest"),
                "{phase:?}, {fault}: nothing of '{word}': {said}"
            );
            ensure!(
                self.struck(&[fault])? > before,
                "{phase:?}, {fault}: it did not strike"
            );
            job = self
                .again()
                .map_err(|failed| format!("{phase:?}, {fault}: {failed}"))?;
        }
        Ok(job)
    }

    /// Tests faults of a restart, after a suspend: the restart fails, and the next one is right.
    fn restarts(&mut self, job: Job, phase: Phase) -> Result<Job, Failed> {
        self.heat.suspend(job)?;
        for fault in phase.faults(|becomes| matches!(becomes, Refused(_))) {
            let Refused(word) = becomes(phase, fault) else {
                continue;
            };
            let before = self.struck(&[fault])?;
            self.arm(&[fault])?;
            let ended = self.heat.restart_with(self.options, &[])?.end(PATIENCE)?;
            self.disarm(&[fault])?;
            ensure!(
                ended.status != 0 && ended.stderr.contains(word) && ended.stdout.is_empty(),
                "{phase:?}, {fault}: nothing of '{word}': {}",
                ended.show()
            );
            ensure!(
                self.struck(&[fault])? > before,
                "{phase:?}, {fault}: it did not strike"
            );
        }
        let untouched = phase.faults(|becomes| becomes == Untouched);
        let before = self.struck(&untouched)?;
        self.arm(&untouched)?;
        let job = self.again()?;
        self.disarm(&untouched)?;
        ensure!(
            self.struck(&untouched)? == before,
            "{phase:?}: one of {untouched:?} has struck"
        );
        Ok(job)
    }
}

/// Takes a job through these phases, with all their faults, to its result.
fn through(options: &[&str], phases: &[Phase], last: Phase) {
    heat::on(&node(2), 2, LONG, |heat| {
        let natively = heat.natively()?;
        let mut table = Table { heat, options };
        let mut job = table.begin()?;
        for phase in phases {
            table.survives(&mut job, *phase)?;
        }
        // The job carries on from this epoch.
        table.heat.checkpoint()?.expect(exit::DONE)?;
        for phase in phases {
            job = table.ends(job, *phase)?;
        }
        let job = table.restarts(job, last)?;
        table.heat.ends_as(job, &natively)
    });
}

#[test]
fn with_device_memory_in_the_ranks_own() {
    through(
        &["--gpu-staging", "off"],
        &[Phase::Quiet, Phase::Save, Phase::Restore, Phase::Unlock],
        Phase::Restart,
    );
}

#[test]
fn with_device_memory_staged() {
    through(
        &["--gpu-staging", "on", "--copy", "off"],
        &[Phase::Stage, Phase::Drain, Phase::Unstage],
        Phase::Refill,
    );
}
