//! A suspended job, as a batch system sees it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, command, ensure, job, strike};

/// The longest time for a launch.
const PATIENCE: Duration = Duration::from_secs(100);

fn on_trial(
    program: &str,
    kind: Kind,
    ranks: u32,
    test: impl FnOnce(&Trial, &Directory) -> Result<(), Failed>,
) {
    let tested = (|| {
        let program = Program::named(kind, program)?;
        Directory::new("suspended")?.run(|directory| {
            let trial = Trial::new(&program, ranks, directory)?;
            test(&trial, directory)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// An unfinished job must not look finished: jobs that depend on its success would start on half a result.
#[test]
fn a_suspended_job_is_no_success_where_a_batch_system_sees_it() {
    on_trial("ring", Kind::Moving, 2, |trial, directory| {
        let target = trial.epochs_at();
        let suspended = |mut job: job::Job, status: i32| {
            job.until("running", PATIENCE, |_| {
                let said = strike::job_file(&target).unwrap_or_default();
                let ranks = said["processes"].as_array().map_or(0, Vec::len);
                said["state"] == "running" && ranks == 2
            })?;
            for rank in strike::ranks(&target)? {
                strike::signal(rank, Signal::SIGUSR1)?;
            }
            let ended = job.end(PATIENCE)?;
            ensure!(ended.status == status, "not {status}: {}", ended.show());
            let state = command::state(directory, &target)?;
            ensure!(state == "suspended", "it is '{state}'");
            let said = &strike::job_file(&target)?["exit_status"];
            ensure!(*said == status, "job.json says {said}");
            Ok(())
        };
        let mut command = job::under_stillpoint(2, &target)?;
        command.arg(trial.executable());
        // The variable is LSF's, and Open MPI's mpirun ignores it.
        command.env("LSB_JOBID", "17");
        command.env_remove("STILLPOINT_SUSPENDED_STATUS");
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        suspended(job, 75)?;
        let mut command = job::restarted(2, &target)?;
        command.args(["--suspended-status", "3"]);
        suspended(trial.launch(command)?, 3)?;
        let job = trial.restarted()?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    });
}

/// The application does not notice the signal in any wait. The kernel ends some waits whenever a handler has run, even Stillpoint's.
#[test]
fn a_signal_that_asks_for_a_suspend_ends_no_wait_of_the_program() {
    on_trial("waits_when_asked", Kind::Special, 4, |trial, _| {
        let target = trial.epochs_at();
        let mut command = job::under_stillpoint(4, &target)?;
        command.arg(trial.executable());
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        for rank in strike::ranks(&target)? {
            strike::signal(rank, Signal::SIGUSR1)?;
        }
        let ended = job.end(PATIENCE)?;
        let state = command::state(trial.directory, &target)?;
        ensure!(
            state == "suspended",
            "the suspend is lost, it is '{state}': {}",
            ended.show()
        );
        let job = trial.restarted()?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    });
}

/// A script that becomes one program after the other gets a signal at every moment, and so does the last program.
#[test]
fn a_signal_while_programs_become_others_suspends_the_last_one() {
    on_trial("self_messages", Kind::Still, 1, |trial, directory| {
        let target = trial.epochs_at();
        let chain = directory.file("chain");
        let script = "#!/bin/bash\nleft=$1; shift\n[ $left = 0 ] && exec \"$@\"\nexec \"$0\" $((left - 1)) \"$@\"\n";
        fs::write(&chain, script).map_err(|error| error.to_string())?;
        fs::set_permissions(&chain, fs::Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        let mut command = job::under_stillpoint(1, &target)?;
        command.arg(&chain).arg("12").arg(trial.executable());
        let mut job = trial.launch(command)?;
        let there = || {
            strike::ranks(&target)
                .ok()
                .and_then(|ranks| ranks.first().copied())
        };
        job.until("there", PATIENCE, |_| there().is_some())?;
        let rank = there().ok_or("it has gone")?;
        // The signals come at many moments of many programs, until the last one has ended.
        let mut heard = 0;
        while heard < 40 && strike::signal(rank, Signal::SIGUSR1).is_ok() {
            heard += 1;
            std::thread::sleep(Duration::from_millis(2));
        }
        ensure!(heard > 0, "nobody could be signalled");
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "{}", ended.show());
        let state = command::state(directory, &target)?;
        ensure!(state == "suspended", "it is '{state}': {}", ended.show());
        trial.go()?;
        trial.ends_well(trial.restarted()?)?;
        Ok(())
    });
}

/// Slurm is asked after the commit, and not at all for a job that its user has cancelled.
#[test]
fn a_suspended_job_is_requeued_once_it_is_committed_unless_it_was_cancelled() {
    for (state, requeued) in [("RUNNING", true), ("COMPLETING", false)] {
        on_trial("self_messages", Kind::Still, 1, |trial, directory| {
            let target = trial.epochs_at();
            let told = directory.file("told");
            // The script gives Slurm's answers, and notes its requests while the epoch was there and the rank still
            // lived.
            let script = format!(
                "#!/bin/sh\nif [ \"$1\" = requeue ]; then\n\
                 ls -d {target}/epoch-000001 >>{told} 2>&1; grep -c '\"suspended\"' {target}/job.json >>{told}\n\
                 kill -0 \"$(cat {pid})\" && echo \"$*\" >>{told}\n\
                 else echo JobId=17 JobState={state} Reason=None PreemptTime=None; fi\n",
                target = target.display(),
                told = told.display(),
                pid = directory.file("rank").display(),
            );
            let bin = directory.file("bin");
            fs::create_dir(&bin).map_err(|error| error.to_string())?;
            let scontrol = bin.join("scontrol");
            fs::write(&scontrol, script).map_err(|error| error.to_string())?;
            fs::set_permissions(&scontrol, fs::Permissions::from_mode(0o755))
                .map_err(|error| error.to_string())?;
            let search = std::env::var("PATH").unwrap_or_default();
            let mut command = job::mpirun(1);
            command.arg(place::stillpoint()?);
            command.args(["run", "--requeue", "--dir"]).arg(&target);
            command.arg("--").arg(trial.executable());
            command.env_remove("STILLPOINT_SUSPENDED_STATUS");
            command.env("PATH", format!("{}:{search}", bin.display()));
            command.env("SLURM_JOB_ID", "17");
            command.env_remove("SLURM_ARRAY_JOB_ID");
            let mut job = trial.launch(command)?;
            trial.ready(&mut job)?;
            let rank = strike::ranks(&target)?[0];
            fs::write(directory.file("rank"), rank.to_string())
                .map_err(|error| error.to_string())?;
            strike::signal(rank, Signal::SIGUSR1)?;
            let ended = job.end(PATIENCE)?;
            ensure!(ended.status == 75, "{}", ended.show());
            let said = fs::read_to_string(&told).unwrap_or_default();
            let epoch = target.join("epoch-000001");
            let expected = format!("{}\n1\nrequeue 17\n", epoch.display());
            let expected = if requeued { expected } else { String::new() };
            ensure!(said == expected, "scontrol was told '{said}'");
            let reason = &strike::job_file(&target)?["reason"];
            ensure!(reason.is_null() == requeued, "{reason}");
            Ok(())
        });
    }
}

/// A script in the place of `scontrol`, in a directory that is first in PATH.
fn scontrol(directory: &Directory, script: &str) -> Result<String, Failed> {
    let bin = directory.file("bin");
    let made = fs::create_dir(&bin)
        .and_then(|()| fs::write(bin.join("scontrol"), script))
        .and_then(|()| {
            fs::set_permissions(bin.join("scontrol"), fs::Permissions::from_mode(0o755))
        });
    made.map_err(|error| error.to_string())?;
    let search = std::env::var("PATH").unwrap_or_default();
    Ok(format!("{}:{search}", bin.display()))
}

/// Slurm's controller may be away for a while, as when it starts anew. The ranks stay until it answers, and everybody who waits is told.
#[test]
fn a_controller_that_is_away_is_asked_again_until_it_answers() {
    on_trial("self_messages", Kind::Still, 1, |trial, directory| {
        let target = trial.epochs_at();
        let asked = directory.file("asked");
        let script = format!(
            "#!/bin/sh\necho \"$1\" >>{asked}\n\
             if [ \"$(wc -l <{asked})\" -le 3 ]; then\n\
             echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1; fi\n\
             [ \"$1\" = requeue ] || echo JobId=17 JobState=RUNNING Reason=None PreemptTime=None\n",
            asked = asked.display(),
        );
        let path = scontrol(directory, &script)?;
        let mut command = job::mpirun(1);
        command.arg(place::stillpoint()?);
        command.args(["run", "--requeue", "--dir"]).arg(&target);
        command.arg("--").arg(trial.executable());
        command.env("PATH", path).env("SLURM_JOB_ID", "17");
        command.env_remove("SLURM_ARRAY_JOB_ID");
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        let answer = command::suspend(directory, &target)?.expect(command::exit::DONE)?;
        let away = "Unable to contact slurm controller";
        ensure!(answer.stderr.contains(away), "not told: {}", answer.show());
        let again =
            "the batch system starts it again (scontrol requeue 17), and you need not do anything";
        ensure!(answer.stdout.contains(again), "{}", answer.show());
        let ended = job.end(PATIENCE)?;
        let waits = "suspended, and waiting for the batch system";
        ensure!(
            ended.stderr.contains(waits) && ended.stderr.contains(away),
            "{}",
            ended.show()
        );
        let asked = fs::read_to_string(&asked).unwrap_or_default();
        ensure!(
            asked.ends_with("--oneliner\nrequeue\n") && asked.matches("requeue").count() == 1,
            "{asked}"
        );
        let file = strike::job_file(&target)?;
        ensure!(file["requeued"] == "scontrol requeue 17", "{file}");
        ensure!(file["reason"].is_null(), "{file}");
        Ok(())
    });
}

/// At its limit, everything of a job is killed, its coordinator too. The reason why it was not suspended is on its stderr and in `status` then.
#[test]
fn a_job_that_was_not_suspended_before_its_limit_has_said_why() {
    on_trial("tcp_socket", Kind::Refused, 2, |trial, directory| {
        let target = trial.epochs_at();
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        let mut everything = strike::ranks(&target)?;
        for rank in &everything {
            strike::signal(*rank, Signal::SIGUSR1)?;
        }
        job.until("told", PATIENCE, |job| {
            job.stderr().contains("a signal asks for a suspend")
        })?;
        let kept = || strike::job_file(&target).is_ok_and(|file| file["not_suspended"].is_string());
        job.until("noted", PATIENCE, |_| kept())?;
        everything.insert(0, strike::coordinator(&target)?);
        for process in everything {
            strike::signal(process, Signal::SIGKILL)?;
        }
        let ended = job.end(PATIENCE)?;
        ensure!(ended.stderr.contains("socket"), "{}", ended.show());
        let status = command::stillpoint(directory, ["status".as_ref(), target.as_os_str()])?;
        let why = "no suspend";
        ensure!(
            status.stdout.contains(why) && status.stdout.contains("[open-socket]"),
            "{}",
            status.show()
        );
        Ok(())
    });
}

/// This holds even if the request finds the ranks ending: `mpirun` sees no failure, and the job is over or suspended.
#[test]
fn a_job_that_is_suspended_while_it_ends_is_finished_or_suspended() {
    for milliseconds in (0..24).step_by(2) {
        on_trial("ends_soon", Kind::Special, 8, |trial, directory| {
            let target = trial.epochs_at();
            let mut command = job::under_stillpoint(8, &target)?;
            command
                .arg(trial.executable())
                .arg(milliseconds.to_string());
            let mut job = trial.launch(command)?;
            let files: Vec<_> = (0..8)
                .map(|rank| directory.file(&format!("ready.{rank}")))
                .collect();
            job.until("ready", PATIENCE, |_| {
                files.iter().all(|file| file.exists())
            })?;
            let answer = command::suspend(directory, &target)?;
            let state = |ended: job::Ended| {
                let told = format!("asked after {milliseconds} ms: {}", answer.show());
                ensure!(ended.status == 0, "{told}\n{}", ended.show());
                command::state(directory, &target)
            };
            let mut state = state(job.end(PATIENCE)?)?;
            if state == "suspended" {
                trial.ends_well(trial.restarted()?)?;
                state = command::state(directory, &target)?;
            }
            ensure!(state == "finished", "it is '{state}'");
            Ok(())
        });
    }
}

/// A suspend request may reach every rank, more than once, and until the job has ended. That is one suspend, and none for the next launch.
#[test]
fn what_asks_for_a_suspend_again_asks_nothing_of_the_next_launch() {
    for signal in [Signal::SIGUSR1, Signal::SIGTERM] {
        on_trial("ring", Kind::Moving, 2, |trial, directory| {
            let target = trial.epochs_at();
            let run = |mut command: Command| {
                command.env("STILLPOINT_ON_TERM", "suspend");
                trial.launch(command)
            };
            let mut command = job::under_stillpoint(2, &target)?;
            command.arg(trial.executable());
            let mut job = run(command)?;
            trial.ready(&mut job)?;
            let ranks = strike::ranks(&target)?;
            // Some signals arrive before the ranks stand still, some while they stand, some while they end. This differs from rank to
            // rank.
            let mut ranks: Vec<_> = ranks.iter().map(|rank| (*rank, true)).collect();
            for moment in 0..60 {
                for (place, (rank, there)) in ranks.iter_mut().enumerate() {
                    if *there && moment >= 2 * place {
                        *there = strike::signal(*rank, signal).is_ok();
                    }
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            let ended = job.end(PATIENCE)?;
            let state = command::state(directory, &target)?;
            ensure!(
                ended.status == 0 && state == "suspended",
                "{state}: {}",
                ended.show()
            );
            let log = target.join("coordinator.log");
            let asked = || fs::read_to_string(&log).map(|log| log.matches(": suspend").count());
            let before = asked().map_err(|error| error.to_string())?;
            ensure!(before > 0, "nobody has asked");
            let mut job = run(job::restarted(2, &target)?)?;
            trial.runs_again(&mut job)?;
            // An old request would come with the first instruction.
            std::thread::sleep(Duration::from_millis(300));
            trial.go()?;
            trial.ends_well(job)?;
            let after = asked().map_err(|error| error.to_string())?;
            ensure!(
                after == before,
                "{signal}: asked {before} times, then {after}"
            );
            Ok(())
        });
    }
}

/// Whether a rank's MPI has its shared memory, which it removes when it ends, before it tells `mpirun`.
fn has_its_segment(rank: i32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{rank}/maps")).unwrap_or_default();
    maps.lines()
        .any(|line| line.contains("/vader_segment.") && !line.ends_with("(deleted)"))
}

/// `PMIx_Finalize` waits 2 s for `mpirun`. A rank that ends after that has failed, as far as `mpirun` knows.
#[test]
fn a_launcher_that_stands_still_while_the_ranks_end_hears_that_they_ended_well() {
    on_trial("ring", Kind::Moving, 2, |trial, _| {
        let target = trial.epochs_at();
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        let ranks = strike::ranks(&target)?;
        ensure!(ranks.iter().all(|rank| has_its_segment(*rank)), "no vader");
        for rank in &ranks {
            strike::signal(*rank, Signal::SIGUSR1)?;
        }
        let began = Instant::now();
        while ranks.iter().all(|rank| has_its_segment(*rank)) {
            ensure!(began.elapsed() < PATIENCE, "the ranks do not end");
            std::thread::sleep(Duration::from_micros(200));
        }
        strike::signal(job.id(), Signal::SIGSTOP)?;
        std::thread::sleep(Duration::from_millis(3500));
        strike::signal(job.id(), Signal::SIGCONT)?;
        let ended = job.end(PATIENCE)?;
        let wanted = &strike::job_file(&target)?["exit_status"];
        ensure!(*wanted == ended.status, "not {wanted}: {}", ended.show());
        let job = trial.restarted()?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    });
}
