//! Memory of GPUs that is staged: copied to wherever the node has room, given back, and drained into images. And what goes wrong meanwhile.

use serde_json::Value;
use stillpoint_faults::{MARK, VARIABLE};
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

const ON: [&str; 2] = ["--gpu-staging", "on"];

/// What `inspect` says of the newest epoch's images.
fn images(heat: &Heat) -> Result<Vec<Value>, Failed> {
    let target = heat.target().display().to_string();
    let answer = command::stillpoint(heat.directory, ["inspect", "--json", &target])?;
    let shown = answer.expect(exit::DONE)?.json()?;
    let images = shown["images"].as_array().cloned();
    images.ok_or_else(|| format!("no images: {shown}"))
}

/// Every rank's device memory lies in a section of its image, and was staged; how much that was, and where to: on its own GPU, on peers, in host memory.
fn was_staged(heat: &Heat) -> Result<[u64; 3], Failed> {
    let mut places = [0; 3];
    for image in images(heat)? {
        let devices = image["devices"].as_array().cloned().unwrap_or_default();
        let bytes: u64 = devices.iter().filter_map(|one| one["bytes"].as_u64()).sum();
        let report = &image["gpu"]["staged"];
        let of = |name: &str| report[name].as_u64().unwrap_or(0);
        let went = ["own_bytes", "peer_bytes", "host_bytes"].map(of);
        ensure!(
            bytes > 0 && went.iter().sum::<u64>() == bytes,
            "not staged: {devices:?}, {report}"
        );
        let expected = report["predicted"].as_f64().unwrap_or(0.0);
        let took = report["seconds"].as_f64().unwrap_or(0.0);
        ensure!(expected > 0.0 && took > 0.0, "no times: {report}");
        for (place, went) in places.iter_mut().zip(went) {
            *place += went;
        }
    }
    Ok(places)
}

/// Every copy to where memory was staged and back is in the record, beside what the model had said of it: `status` and `plan streams` tell that.
fn measured(heat: &Heat, epoch: u64) -> Result<(), Failed> {
    let target = heat.target().display().to_string();
    let answer = command::stillpoint(heat.directory, ["status", "--json", &target])?;
    let gpus = &answer.expect(exit::DONE)?.json()?["gpus"];
    let expected = |leg: &Value| leg["predicted"].is_f64() && leg["seconds"].is_f64();
    ensure!(
        gpus["epoch"] == epoch && expected(&gpus["staged"]) && expected(&gpus["back"]),
        "{gpus}"
    );
    let answer = command::stillpoint(
        heat.directory,
        ["plan", "streams", "--json", "--measured", &target],
    )?;
    let shown = answer.expect(exit::DONE)?.json()?;
    for way in ["own", "to_host", "from_host"] {
        let mut ways = shown["ways"].as_array().into_iter().flatten();
        let known = ways.any(|one| one["way"] == way && one["fitted"].is_object());
        ensure!(known, "{way}: {shown}");
    }
    Ok(())
}

/// Checkpoints and carries on, then is suspended and restarted three times.
fn again_and_again(heat: &Heat, options: &[&str]) -> Result<[u64; 3], Failed> {
    let natively = heat.natively()?;
    let mut job = heat.start(&[&ON, options].concat())?;
    let mut places = [0; 3];
    for _ in 0..2 {
        heat.checkpoint()?.expect(exit::DONE)?;
        places = was_staged(heat)?;
    }
    for _ in 0..3 {
        heat.suspend(job)?;
        was_staged(heat)?;
        job = heat.restarted()?;
    }
    heat.checkpoint()?.expect(exit::DONE)?;
    heat.ends_as(job, &natively)?;
    measured(heat, 6)?;
    Ok(places)
}

#[test]
fn four_ranks_with_a_gpu_each() {
    heat::on(&node(4), 4, LONG, |heat| {
        again_and_again(heat, &["--copy", "on"]).map(drop)
    });
}

#[test]
fn four_ranks_that_share_two_gpus() {
    heat::on(&node(2), 4, LONG, |heat| {
        again_and_again(heat, &["--copy", "off"]).map(drop)
    });
}

/// Where a GPU has no room for what is on it, peers and host memory have.
#[test]
fn what_does_not_fit_goes_elsewhere() {
    let mut narrow = node(2);
    // Two fields of half of 400 x 300 numbers are a rank's, and the driver's own.
    narrow.devices[0].memory = 5 << 18;
    heat::on(&narrow, 2, LONG, |heat| {
        let [_, peer, host] = again_and_again(heat, &[])?;
        ensure!(peer + host > 0, "all of it stayed on its GPU");
        Ok(())
    });
}

#[test]
fn increments_and_other_gpus() {
    heat::on(&node(2), 2, LONG, |heat| {
        let natively = heat.natively()?;
        let job = heat.start(&["--gpu-staging", "on", "--incremental"])?;
        heat.checkpoint()?.expect(exit::DONE)?;
        heat.suspend(job)?;
        was_staged(heat)?;
        let mut other = node(3);
        for (number, device) in other.devices.iter_mut().enumerate() {
            device.uuid = [0xa0 + number as u8; 16];
        }
        heat.gpus = Gpus::start(&other)?;
        let job = heat.restarted()?;
        heat.checkpoint()?.expect(exit::DONE)?;
        was_staged(heat)?;
        heat.ends_as(job, &natively)
    });
}

/// Of device memory that has not changed an epoch has nothing itself: it lies in the one before, which has to be there.
#[test]
fn what_has_not_changed_is_not_written_again() {
    heat::on(&node(2), 2, LONG, |heat| {
        heat.idle = 64;
        let natively = heat.natively()?;
        let options = [
            "--gpu-staging",
            "on",
            "--incremental=blocks",
            "--compress",
            "none",
        ];
        let job = heat.start(&options)?;
        heat.checkpoint()?.expect(exit::DONE)?;
        let own = |image: &Value| {
            let device = &image["devices"][0];
            let of = |name: &str| device[name].as_u64().unwrap_or(0);
            (of("bytes"), of("carried"))
        };
        let first: Vec<_> = images(heat)?.iter().map(own).collect();
        ensure!(
            first
                .iter()
                .all(|(bytes, carried)| *bytes > 64 << 20 && *carried == 0),
            "the first epoch is whole: {first:?}"
        );
        heat.suspend(job)?;
        let second: Vec<_> = images(heat)?.iter().map(own).collect();
        ensure!(
            second
                .iter()
                .all(|(bytes, carried)| bytes - carried < bytes / 16),
            "little has changed: {second:?}"
        );
        eprintln!("device memory and what of it epoch 2 carries: {second:?}");
        command::stillpoint(
            heat.directory,
            ["verify", &heat.target().display().to_string()],
        )?
        .expect(exit::DONE)?;
        let needed = heat.target().join("epoch-000001");
        let away = heat.target().join("away");
        std::fs::rename(&needed, &away).map_err(|error| format!("{error}"))?;
        let refused = heat.restart(&[])?.end(PATIENCE)?;
        ensure!(
            refused.status != 0 && refused.stderr.contains("epoch-000001"),
            "{}",
            refused.show()
        );
        std::fs::rename(&away, &needed).map_err(|error| format!("{error}"))?;
        heat.ends_as(heat.restarted()?, &natively)
    });
}

/// Each GPU's memory is the program's again as soon as nothing is left of it there: that of a rank whose image is drained does not wait for another's, which
/// is held up.
#[test]
fn memory_is_given_back_as_it_is_drained() {
    heat::on(&node(2), 2, LONG, |heat| {
        heat.idle = 64;
        let natively = heat.natively()?;
        let held = heat.directory.file("held");
        std::fs::write(&held, "").map_err(|error| error.to_string())?;
        let plan = format!("gpu-drain:0:hold={}", held.display());
        let options = ["--gpu-staging", "on", "--copy", "on"];
        let mut job = heat.start_with(&options, &[(VARIABLE, &plan)])?;
        let before = heat.gpus.free()?;
        let (target, directory) = (heat.target().to_owned(), heat.directory);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| heat::ask("checkpoint", directory, &target));
            let mut free = vec![];
            let there = job.until("drained on one GPU alone", PATIENCE, |job| {
                free = heat.gpus.free().unwrap_or_default();
                let at_it = job.stderr().contains("gpu-drain: hold");
                at_it && free[0] + (64 << 20) <= before[0] && free[1] == before[1]
            });
            let released = std::fs::remove_file(&held).map_err(|error| error.to_string());
            let answer = asked
                .join()
                .map_err(|_| "the request panicked".to_owned())?;
            there.map_err(|failed| format!("{failed}\nfree {free:?}, before {before:?}"))?;
            released.and(answer?.expect(exit::DONE).map(drop))
        })?;
        let mut free = vec![];
        job.until("given back", PATIENCE, |_| {
            free = heat.gpus.free().unwrap_or_default();
            free == before
        })
        .map_err(|failed| format!("{failed}\nfree {free:?}, before {before:?}"))?;
        was_staged(heat)?;
        heat.ends_as(job, &natively)
    });
}

/// A driver without custom storage: by itself the other way is taken; who demands staging is refused.
#[test]
fn a_driver_that_lends_no_memory() {
    let mut older: Node = node(2);
    (older.custom_storage, older.cuda) = (false, 13030);
    heat::on(&older, 2, LONG, |heat| {
        let natively = heat.natively()?;
        let job = heat.start(&[])?;
        heat.checkpoint()?.expect(exit::DONE)?;
        for image in images(heat)? {
            ensure!(image["gpu"]["staged"].is_null(), "staged: {}", image["gpu"]);
        }
        heat.suspend(job)?;
        heat.ends_as(heat.restarted()?, &natively)
    });
    heat::on(&older, 2, LONG, |heat| {
        let natively = heat.natively()?;
        let job = heat.start(&ON)?;
        heat.checkpoint()?
            .expect_reason(exit::FAILED, "--gpu-staging on")?;
        ensure!(command::epochs(heat.target()).is_empty(), "an epoch");
        heat.ends_as(job, &natively)
    });
}

#[test]
fn switched_off_nothing_is_staged() {
    heat::on(&node(2), 2, LONG, |heat| {
        let natively = heat.natively()?;
        let job = heat.start(&["--gpu-staging", "off"])?;
        heat.checkpoint()?.expect(exit::DONE)?;
        for image in images(heat)? {
            ensure!(image["gpu"]["staged"].is_null(), "staged: {}", image["gpu"]);
        }
        heat.ends_as(job, &natively)
    });
}

/// Something happens in the second checkpoint, while a step of it takes longer in every rank: not before all have come to it, however long that is,
/// since until then they compute, and what happens would happen to the program. No epoch is lost, and the job runs on to its end, or ends, says so, and
/// carries on from an epoch. Gives what the checkpoint said, and whether the job ran on.
fn meanwhile(
    heat: &Heat,
    copy: &str,
    point: &str,
    happens: impl FnOnce(&Job) -> Result<(), Failed>,
) -> Result<(Answer, bool), Failed> {
    let natively = heat.natively()?;
    let options = ["--gpu-staging", "on", "--copy", copy];
    // Behind a program that runs on it is held until that has its memory again, however busy the node is: before, what is staged is the only copy.
    let held = heat.directory.file("held");
    let (action, mut marks) = match copy {
        "on" => ("hold", vec![" gpu-unlock: stall".to_owned()]),
        _ => ("stall", vec![]),
    };
    marks.push(format!(" {point}: {action}"));
    let plan = match copy {
        "on" => format!("{point}@2:hold={},gpu-unlock@2:stall=1", held.display()),
        _ => format!("{point}@2:stall=2000"),
    };
    std::fs::write(&held, "").map_err(|error| format!("{}: {error}", held.display()))?;
    let mut job = heat.start_with(&options, &[(VARIABLE, &plan)])?;
    heat.checkpoint()?.expect(exit::DONE)?;
    was_staged(heat)?;
    let (target, directory) = (heat.target(), heat.directory);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| heat::ask("checkpoint", directory, target));
        let there = |job: &Job| {
            let said = job.stderr();
            let told = |mark: &String| {
                let lines = said.lines();
                let of = lines.filter(|line| line.contains(MARK) && line.contains(mark));
                of.count() >= heat.ranks as usize
            };
            marks.iter().all(told)
        };
        let happened = job.until("at its fault point", PATIENCE, there);
        let happened = happened.and_then(|()| happens(&job));
        let released = std::fs::remove_file(&held).map_err(|error| error.to_string());
        let happened = happened.and(released);
        let answer = asked
            .join()
            .map_err(|_| "the request panicked".to_owned())?;
        happened.and(answer)
    })?;
    ensure!(
        command::epochs(heat.target()).first() == Some(&1),
        "the epoch is lost: {}",
        answer.show()
    );
    heat.let_go()?;
    let ended = job.end(PATIENCE)?;
    if ended.status == 0 {
        let line = ended.stdout.lines().find(|line| line.starts_with("digest"));
        ensure!(line == Some(&natively), "{}", ended.show());
        return Ok((answer, true));
    }
    ensure!(
        ended.stderr.contains("GPU") && ended.stderr.contains("stillpoint restart"),
        "{}",
        ended.show()
    );
    let well = Gpus::start(&node(2))?;
    let mut command = job::restarted(heat.ranks, heat.target())?;
    well.reach(&mut command)?;
    let job = Job::start(command, heat.directory)?;
    heat.ends_as(job, &natively)?;
    Ok((answer, false))
}

/// The helper is ended: before anything is staged the job runs on, and behind its back too; otherwise what it held is lost.
#[test]
fn a_helper_that_dies() {
    for (copy, point, runs_on) in [
        ("off", "gpu-stage", true),
        ("off", "gpu-drain", false),
        ("on", "gpu-drain", true),
        ("off", "gpu-unstage", false),
    ] {
        heat::on(&node(2), 2, LONG, |heat| {
            let ended = |job: &Job| heat.end_helper(job);
            let (answer, ran_on) = meanwhile(heat, copy, point, ended)
                .map_err(|failed| format!("{copy}, {point}: {failed}"))?;
            ensure!(
                ran_on == runs_on && (point == "gpu-unstage" || answer.status != exit::DONE),
                "{copy}, {point}: ran on: {ran_on}, {}",
                answer.show()
            );
            Ok(())
        });
    }
}

/// Where GPUs give less memory than they said, other places get more. A copy that fails ends the job: the driver makes no other one for the helper then.
#[test]
fn copies_that_fail() {
    for (fault, times, runs_on) in [
        ("copy-error", Some(1), false),
        ("out-of-memory", Some(2), true),
        ("device-lost-1", None, false),
    ] {
        heat::on(&node(2), 2, LONG, |heat| {
            let struck = |_: &Job| heat.gpus.fault(fault, times);
            let (answer, ran_on) = meanwhile(heat, "off", "gpu-stage", struck)
                .map_err(|failed| format!("{fault} {times:?}: {failed}"))?;
            ensure!(
                ran_on == runs_on && (answer.status == exit::DONE) == runs_on,
                "{fault} {times:?}: ran on: {ran_on}, {}",
                answer.show()
            );
            Ok(())
        });
    }
}
