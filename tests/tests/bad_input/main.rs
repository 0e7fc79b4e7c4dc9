//! Whatever is wrong with what Stillpoint is given: one line that says what and what to do, the documented exit
//! status, nothing lost, nothing hanging.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stillpoint_image::image_name;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, broken, ensure, reason, strike};

/// Longest that something that fails may take.
const LONGEST: Duration = Duration::from_secs(30);

fn must(tested: Result<(), Failed>) {
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn io(error: std::io::Error) -> Failed {
    error.to_string()
}

/// A launch that fails at its start ends with `status` and gives one reason.
fn fails(job: Job, status: i32, words: &[&str]) -> Result<(), Failed> {
    let ended = job.end(LONGEST)?;
    ensure!(
        ended.status == status,
        "expected exit status {status}: {}",
        ended.show()
    );
    reason::one(&ended.stderr, words).map_err(|failed| format!("{failed}\n{}", ended.show()))
}

/// `stillpoint run -- PROGRAM` fails with `status` under `mpirun` and by itself.
fn does_not_run(program: &Path, status: i32, words: &[&str]) {
    must((|| {
        let _turn = Turn::take()?;
        Directory::new("does-not-run")?.run(|directory| {
            let target = directory.file("stillpoint.d");
            let mut command = job::under_stillpoint(2, &target)?;
            command.arg(program);
            fails(Job::start(command, directory)?, status, words)?;
            let alone = [
                OsStr::new("run"),
                "--dir".as_ref(),
                target.as_ref(),
                "--".as_ref(),
                program.as_ref(),
            ];
            command::stillpoint(directory, alone)?.expect_one_reason(status, words)?;
            Ok(())
        })
    })());
}

fn file_with(name: &str, text: &[u8], mode: u32) -> PathBuf {
    let place = Directory::new(name).and_then(|directory| {
        // It is the test's for as long as the target directory is there.
        let path = place::target().join("trials").join(format!(
            "{name}.{}",
            directory.path().file_name().unwrap_or_default().display()
        ));
        fs::write(&path, text).map_err(io)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(io)?;
        Ok(path)
    });
    place.unwrap_or_else(|failed| panic!("{failed}"))
}

#[test]
fn no_such_program() {
    let name = Path::new("/nonexistent/program");
    does_not_run(name, 127, &["/nonexistent/program", "no such program"]);
    let name = Path::new("no-such-program-anywhere");
    does_not_run(name, 127, &["no-such-program-anywhere", "PATH"]);
}

#[test]
fn a_file_that_is_not_executable() {
    let file = file_with("not-executable", b"#!/bin/sh\nexit 0\n", 0o644);
    does_not_run(&file, 126, &["not-executable", "not executable"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_file_that_is_no_program() {
    let file = file_with("no-program", b"neither this nor that", 0o755);
    does_not_run(&file, 126, &["no-program", "not a program"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_script_whose_interpreter_is_missing() {
    let file = file_with("no-interpreter", b"#!/nonexistent/interpreter\n", 0o755);
    does_not_run(&file, 127, &["/nonexistent/interpreter"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_program_that_ends_early_in_its_file() {
    let program = Program::named(Kind::Moving, "ring").and_then(|program| program.build());
    let program = program.unwrap_or_else(|failed| panic!("{failed}"));
    let whole = fs::read(program).unwrap_or_else(|error| panic!("{error}"));
    let file = file_with("cut-off", &whole[..3000], 0o755);
    does_not_run(&file, 126, &["cut-off"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_directory() {
    does_not_run(Path::new("/usr"), 126, &["/usr", "directory"]);
}

#[test]
fn a_statically_linked_program() {
    must((|| {
        let source = file_with("static.c", b"int main(void) { return 0; }\n", 0o644);
        let program = source.with_extension("static");
        let made = Command::new("cc")
            .args(["-static", "-x", "c", "-o"])
            .arg(&program)
            .arg(&source)
            .output()
            .map_err(io)?;
        ensure!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        does_not_run(&program, 126, &["static", "link it dynamically"]);
        let _ = (fs::remove_file(source), fs::remove_file(program));
        Ok(())
    })());
}

/// What does not use MPI runs as it does without Stillpoint.
#[test]
fn a_program_without_mpi_just_runs() {
    must((|| {
        let _turn = Turn::take()?;
        Directory::new("without-mpi")?.run(|directory| {
            let mut command = job::under_stillpoint(2, &directory.file("stillpoint.d"))?;
            command.args(["sh", "-c", "echo here; exit 7"]);
            let ended = Job::start(command, directory)?.end(LONGEST)?;
            ensure!(ended.status == 7, "{}", ended.show());
            ensure!(
                ended.stdout.matches("here").count() >= 1,
                "{}",
                ended.show()
            );
            ensure!(reason::lines(&ended.stderr).is_empty(), "{}", ended.show());
            Ok(())
        })
    })());
}

/// A job of the ring program, suspended: what the tests then break and restart.
fn with_suspended(name: &str, test: impl FnOnce(&Trial, &Path) -> Result<(), Failed>) {
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?;
        let _turn = Turn::take()?;
        Directory::new(name)?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let epoch = trial.epochs_at().join("epoch-000001");
            test(&trial, &epoch)?;
            // All that was refused has not spoilt it.
            trial.go()?;
            trial.ends_well(trial.restarted()?)?;
            Ok(())
        })
    })());
}

fn verify(trial: &Trial) -> Result<Answer, Failed> {
    let target = trial.epochs_at();
    command::stillpoint(trial.directory, [Path::new("verify"), target.as_path()])
}

/// Neither `verify` nor `restart` accepts the epoch, and both name the file.
fn both_refuse(trial: &Trial, words: &[&str]) -> Result<(), Failed> {
    verify(trial)?.expect_one_reason(exit::FAILED, words)?;
    fails(trial.restarted()?, exit::FAILED, words).map_err(|failed| format!("restart: {failed}"))
}

#[test]
fn the_wrong_number_of_ranks() {
    with_suspended("wrong-ranks", |trial, _| {
        for ranks in [1, 3] {
            let job = trial.launch(job::restarted(ranks, &trial.epochs_at())?)?;
            fails(job, exit::FAILED, &["2 ranks", "mpirun -n 2"])?;
        }
        Ok(())
    });
}

#[test]
fn missing_and_truncated_images() {
    with_suspended("missing-image", |trial, epoch| {
        for rank in 0..2 {
            let name = image_name(rank);
            let _broken = broken::missing(&epoch.join(&name))?;
            both_refuse(trial, &[&name]).map_err(|failed| format!("missing: {failed}"))?;
        }
        let path = epoch.join(image_name(1));
        let whole = fs::metadata(&path).map_err(io)?.len();
        for keep in [0, 7, 63, 64, whole / 2, whole - 1] {
            let _broken = broken::truncated(&path, keep)?;
            both_refuse(trial, &[&image_name(1)])
                .map_err(|failed| format!("{keep} of {whole} bytes: {failed}"))?;
        }
        Ok(())
    });
}

#[test]
fn missing_and_broken_manifests() {
    with_suspended("broken-manifest", |trial, epoch| {
        let path = epoch.join(stillpoint_image::manifest::NAME);
        let mut seed = Seed::new();
        let whole = fs::metadata(&path).map_err(io)?.len();
        {
            let _broken = broken::missing(&path)?;
            both_refuse(trial, &["manifest"])?;
        }
        {
            let _broken = broken::truncated(&path, whole / 2)?;
            both_refuse(trial, &["manifest"])?;
        }
        let bit = seed.below(whole * 8);
        let _broken = broken::flipped(&path, bit)?;
        both_refuse(trial, &["manifest"])
            .map_err(|failed| format!("{failed}\nbit {bit} (STILLPOINT_TEST_SEED={})", seed.start))
    });
}

#[test]
fn images_with_a_flipped_bit() {
    with_suspended("flipped", |trial, epoch| {
        let mut seed = Seed::new();
        let name = image_name(0);
        let path = epoch.join(&name);
        let bits = fs::metadata(&path).map_err(io)?.len() * 8;
        // One in the header, one in the trailer, others anywhere: most of it is page data.
        let mut chosen = vec![seed.below(64 * 8), bits - 1 - seed.below(24 * 8)];
        chosen.extend((0..4).map(|_| seed.below(bits)));
        for bit in chosen {
            let _broken = broken::flipped(&path, bit)?;
            both_refuse(trial, &[&name]).map_err(|failed| {
                format!(
                    "{failed}\nbit {bit} of {bits} (STILLPOINT_TEST_SEED={})",
                    seed.start
                )
            })?;
        }
        // `verify` is quick: it can look at many.
        for _ in 0..40 {
            let bit = seed.below(bits);
            let _broken = broken::flipped(&path, bit)?;
            verify(trial)?
                .expect_one_reason(exit::FAILED, &[&name])
                .map_err(|failed| format!("bit {bit} of {bits}: {failed}"))?;
        }
        Ok(())
    });
}

#[test]
fn an_image_of_another_version() {
    with_suspended("version", |trial, epoch| {
        let name = image_name(1);
        let _broken = broken::later_version(&epoch.join(&name))?;
        both_refuse(trial, &[&name, "version 2", "release"])
    });
}

/// A feature that programs can use, and that no processor has together with what this one has.
fn lacking() -> Result<&'static str, Failed> {
    let flags = fs::read_to_string("/proc/cpuinfo").map_err(io)?;
    let has = |feature: &str| flags.split_whitespace().any(|flag| flag == feature);
    ["xop", "fma4", "amx_fp16", "avx512_vp2intersect"]
        .into_iter()
        .find(|feature| !has(feature))
        .ok_or_else(|| "this processor has everything".to_owned())
}

#[test]
fn an_image_from_another_processor() {
    with_suspended("processor", |trial, epoch| {
        let feature = lacking()?;
        let _broken = broken::needs_feature(epoch, 1, feature)?;
        // As a file it is whole.
        verify(trial)?.expect(exit::DONE)?;
        fails(trial.restarted()?, exit::FAILED, &[feature, &image_name(1)])
    });
}

#[test]
fn directories_that_cannot_be_written() {
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?.build()?;
        let _turn = Turn::take()?;
        Directory::new("unwritable")?.run(|directory| {
            let file = directory.file("file");
            fs::write(&file, b"").map_err(io)?;
            for target in [file.join("below.d"), file, PathBuf::from("/proc/epochs.d")] {
                let mut command = job::under_stillpoint(2, &target)?;
                command.arg(&program);
                let shown = target.display().to_string();
                fails(
                    Job::start(command, directory)?,
                    exit::FAILED,
                    &[&shown, "--dir"],
                )?;
            }
            Ok(())
        })
    })());
}

/// What a scenario in a mount namespace of its own is told: where it may mount.
const INSIDE: &str = "STILLPOINT_TEST_INSIDE";

/// Runs the test of this name again in a mount namespace of its own, where it may mount what it likes; says whether
/// this is that run.
fn inside_namespace(test: &str) -> Result<bool, Failed> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(true);
    }
    let this = std::env::current_exe().map_err(io)?;
    let run = |options: &[&str]| {
        Command::new("unshare")
            .args(options)
            .arg(&this)
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(INSIDE, "1")
            .output()
            .map_err(io)
    };
    // Without root one becomes it, in a user namespace of one's own.
    let options: &[&str] = match nix::unistd::geteuid().is_root() {
        true => &["--mount"],
        false => &["--mount", "--map-root-user"],
    };
    let output = run(options)?;
    ensure!(
        output.status.success(),
        "in a namespace of its own ({options:?}): {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(false)
}

fn mount_small(directory: &Path, options: &str) -> Result<(), Failed> {
    fs::create_dir_all(directory).map_err(io)?;
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "small"])
        .arg(directory)
        .output()
        .map_err(io)?;
    ensure!(
        mounted.status.success(),
        "cannot mount a tmpfs: {}",
        String::from_utf8_lossy(&mounted.stderr)
    );
    Ok(())
}

fn unmount(directory: &Path) -> Result<(), Failed> {
    // Lazily: the coordinator may be about to close its log.
    let unmounted = Command::new("umount")
        .arg("--lazy")
        .arg(directory)
        .output()
        .map_err(io)?;
    ensure!(
        unmounted.status.success(),
        "cannot unmount: {}",
        String::from_utf8_lossy(&unmounted.stderr)
    );
    Ok(())
}

/// One epoch is committed; after `fill` writing fails for a reason that speaks of `words`; after `free` there is room
/// again.
fn survives(
    trial: &Trial,
    fill: impl FnOnce() -> Result<(), Failed>,
    free: impl FnOnce() -> Result<(), Failed>,
    words: &[&str],
) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    fill()?;
    for ask in [command::checkpoint, command::suspend] {
        ask(trial.directory, &target)?.expect_one_reason(exit::FAILED, words)?;
        ensure!(
            command::epochs(&target) == [1],
            "epochs: {:?}",
            command::epochs(&target)
        );
        ensure!(job.runs(), "the job has ended: {}", job.stderr());
        ensure!(
            command::state(trial.directory, &target)? == "running",
            "it does not run on"
        );
    }
    verify(trial)?.expect(exit::DONE)?;
    free()?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    let epochs = command::epochs(&target);
    ensure!(epochs.len() == 2 && epochs[0] == 1, "epochs: {epochs:?}");
    verify(trial)?.expect(exit::DONE)?;
    trial.go()?;
    trial.ends_well(job)?;
    trial.ends_well(trial.restarted()?)?;
    Ok(())
}

#[test]
fn a_full_disk() {
    must((|| {
        if !inside_namespace("a_full_disk")? {
            return Ok(());
        }
        let program = Program::named(Kind::Moving, "ring")?;
        let _turn = Turn::take()?;
        Directory::new("full-disk")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let small = trial.epochs_at();
            mount_small(&small, "size=100m")?;
            let filler = small.join("filler");
            survives(
                &trial,
                || {
                    // Half a megabyte is left: not enough for one image.
                    let room = free_bytes(&small)?.saturating_sub(512 << 10);
                    fs::write(&filler, vec![1; room as usize]).map_err(io)
                },
                || fs::remove_file(&filler).map_err(io),
                &["no space left", "free some space"],
            )?;
            unmount(&small)
        })
    })());
}

fn free_bytes(directory: &Path) -> Result<u64, Failed> {
    let output = Command::new("df")
        .args(["--output=avail", "--block-size=1"])
        .arg(directory)
        .output()
        .map_err(io)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| format!("df says: {text}"))
}

/// A limit on the size of files (`ulimit -f`) is met by an error, not by the signal that the limit sends.
#[test]
fn a_limit_on_the_size_of_files() {
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?;
        let _turn = Turn::take()?;
        Directory::new("file-size")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let target = trial.epochs_at();
            let limit = |bytes: &str| {
                for rank in strike::ranks(&target)? {
                    let set = Command::new("prlimit")
                        .args(["--pid", &rank.to_string(), &format!("--fsize={bytes}:")])
                        .output()
                        .map_err(io)?;
                    ensure!(
                        set.status.success(),
                        "{}",
                        String::from_utf8_lossy(&set.stderr)
                    );
                }
                Ok::<(), Failed>(())
            };
            survives(
                &trial,
                || limit("100000"),
                || limit("unlimited"),
                &["rank-00000", "too large"],
            )
        })
    })());
}

#[test]
fn a_file_system_that_is_read_only() {
    must((|| {
        if !inside_namespace("a_file_system_that_is_read_only")? {
            return Ok(());
        }
        let program = Program::named(Kind::Moving, "ring")?.build()?;
        let _turn = Turn::take()?;
        Directory::new("read-only")?.run(|directory| {
            let target = directory.file("stillpoint.d");
            mount_small(&target, "ro")?;
            let mut command = job::under_stillpoint(2, &target)?;
            command.arg(&program);
            let shown = target.display().to_string();
            fails(
                Job::start(command, directory)?,
                exit::FAILED,
                &[&shown, "read-only", "--dir"],
            )
        })
    })());
}

#[test]
fn no_such_job_and_no_such_epoch() {
    must((|| {
        Directory::new("no-such-job")?.run(|directory| {
            let empty = directory.file("empty.d");
            fs::create_dir(&empty).map_err(io)?;
            let nowhere = directory.file("nowhere.d");
            let name = Path::new("no-job-has-this-name");
            for target in [empty.as_path(), nowhere.as_path(), name] {
                let shown = target.display().to_string();
                for asked in ["status", "checkpoint", "suspend", "verify", "inspect"] {
                    command::stillpoint(directory, [Path::new(asked), target])?
                        .expect_one_reason(exit::NO_SUCH, &[&shown])?;
                }
            }
            let _turn = Turn::take()?;
            for target in [&empty, &nowhere] {
                let job = Job::start(job::restarted(2, target)?, directory)?;
                fails(job, exit::NO_SUCH, &[&target.display().to_string()])?;
            }
            Ok(())
        })
    })());
}

#[test]
fn an_epoch_that_is_not_there_and_a_job_that_does_not_run() {
    with_suspended("no-such-epoch", |trial, _| {
        let target = trial.epochs_at();
        let words = |command: &'static str| {
            [
                OsStr::new(command),
                target.as_os_str(),
                "--epoch".as_ref(),
                "7".as_ref(),
            ]
        };
        for asked in ["verify", "inspect"] {
            command::stillpoint(trial.directory, words(asked))?
                .expect_one_reason(exit::NO_SUCH, &["epoch 7", "only 1"])?;
        }
        let mut command = job::restarted(2, &target)?;
        command.args(["--epoch", "7"]);
        fails(
            trial.launch(command)?,
            exit::NO_SUCH,
            &["epoch 7", "only 1"],
        )?;
        for ask in [command::checkpoint, command::suspend] {
            ask(trial.directory, &target)?.expect_one_reason(exit::NO_SUCH, &["suspended"])?;
        }
        Ok(())
    });
}

#[test]
fn wrong_usage() {
    must((|| {
        Directory::new("usage")?.run(|directory| {
            let wrong: [&[&str]; 8] = [
                &[],
                &["nonsense"],
                &["run"],
                &["run", "--nonsense", "--", "true"],
                &["run", "--keep", "0", "--", "true"],
                &["run", "--interval", "soon", "--", "true"],
                &["restart"],
                &["checkpoint", "one", "two"],
            ];
            for words in wrong {
                let answer = command::stillpoint(directory, words)?.expect(exit::USAGE)?;
                ensure!(
                    answer.stderr.contains("Usage") || answer.stderr.contains("--help"),
                    "it does not say how: {}",
                    answer.show()
                );
                ensure!(!answer.stderr.contains("panicked"), "{}", answer.show());
            }
            Ok(())
        })
    })());
}

/// A second job must not write among the epochs of one that runs.
#[test]
fn a_directory_in_which_a_job_runs() {
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?;
        let _turn = Turn::take()?;
        Directory::new("in-use")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
            let shown = trial.epochs_at().display().to_string();
            fails(trial.split()?, exit::FAILED, &[&shown])?;
            fails(trial.restarted()?, exit::FAILED, &[&shown])?;
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })());
}

/// What cannot be carried makes the job refuse, with the reason, as often as it is asked; it runs on.
#[test]
fn a_checkpoint_that_is_refused() {
    must((|| {
        let program = Program::named(Kind::Refused, "live_child")?;
        let ranks = program.ranks.first().copied().unwrap_or(2);
        let _turn = Turn::take()?;
        Directory::new("refused")?.run(|directory| {
            let trial = Trial::new(&program, ranks, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            for ask in [command::checkpoint, command::suspend] {
                ask(trial.directory, &trial.epochs_at())?
                    .expect_one_reason(exit::REFUSED, &["rank", "child"])?;
            }
            ensure!(
                command::epochs(&trial.epochs_at()).is_empty(),
                "a refused checkpoint left an epoch"
            );
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })());
}
