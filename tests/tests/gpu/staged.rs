//! Staged GPU memory: it is copied to any place with room, given back, and drained into images. Also faults meanwhile.

use serde_json::Value;
use stillpoint_faults::{MARK, VARIABLE};
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

const ON: [&str; 2] = ["--gpu-staging", "on"];

/// Returns `inspect`'s description of the newest epoch's images.
fn images(heat: &Heat) -> Result<Vec<Value>, Failed> {
    let target = heat.target().display().to_string();
    let answer = command::stillpoint(heat.directory, ["inspect", "--json", &target])?;
    let shown = answer.expect(exit::DONE)?.json()?;
    let images = shown["images"].as_array().cloned();
    images.ok_or_else(|| format!("no images: {shown}"))
}

/// Checks that every rank's device memory lies in a section of its image and was staged. Returns the bytes on its own GPU, on peers, and in host memory.
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

/// Checks that every copy to a staged place and back is in the record, beside the model's prediction: `status` and `plan streams` show it.
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

/// Checkpoints a job and lets it carry on, then suspends and restarts it three times.
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

/// If a GPU has no room for its memory, peers and host memory have.
#[test]
fn what_does_not_fit_goes_elsewhere() {
    let mut narrow = node(2);
    // A rank has two fields of half of 400 x 300 numbers, and the driver has memory of its own.
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

/// An epoch contains no unchanged device memory: that lies in the epoch before, which must exist.
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

/// Each GPU's memory is free for the program again as soon as its staged bytes have gone. A rank whose image is drained does not wait for another one, which
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

/// The driver has no custom storage. By default the other way is taken; a job that demands staging is refused.
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

/// Makes an event happen in the second checkpoint, while a step of it takes longer in every rank. It waits, however long, until all ranks have come to
/// the step, since until then they compute, and the event would strike the program. No epoch is lost. The job runs on to its end, or it ends with a
/// message and carries on from an epoch. Returns the checkpoint's answer, and whether the job ran on.
fn meanwhile(
    heat: &Heat,
    copy: &str,
    point: &str,
    happens: impl FnOnce(&Job) -> Result<(), Failed>,
) -> Result<(Answer, bool), Failed> {
    let natively = heat.natively()?;
    let options = ["--gpu-staging", "on", "--copy", copy];
    // If the program runs on meanwhile, the step is held until the program has its memory again, however busy the node is. Before that, the staged
    // memory is the only copy.
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

/// The helper is killed. Before anything is staged the job runs on, also while it is drained in the background; otherwise
/// the helper's memory is lost.
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

/// If GPUs have less memory than they reported, other places take more. A failed copy ends the job, since the driver then makes no other copy for the
/// helper.
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
