//! Jobs with GPUs, combined with all other options of a job: increments, equal memory, several epochs, memory that comes late, storage tiers with a
//! partner and the loss of a node, and the commands for epochs. Device memory is in a section of the image, or in the rank's own memory.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::gpu::Gpus;
use stillpoint_tests::job::Job;
use stillpoint_tests::{Failed, ensure, strike};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

/// Both ways to save device memory.
const WAYS: [&str; 2] = ["--gpu-staging=on", "--gpu-staging=off"];

fn stillpoint(heat: &Heat, words: &[&str]) -> Result<Answer, Failed> {
    command::stillpoint(heat.directory, words)
}

fn verified(heat: &Heat) -> Result<(), Failed> {
    let target = heat.target().display().to_string();
    stillpoint(heat, &["verify", &target])?
        .expect(exit::DONE)
        .map(drop)
}

#[test]
fn increments_equal_memory_and_memory_that_comes_late() {
    for way in WAYS {
        heat::on(&node(2), 2, LONG, |heat| {
            heat.idle = 8;
            let natively = heat.natively()?;
            let options = [way, "--dedup=on", "--keep=2", "--incremental=blocks"];
            let job = heat.start(&options)?;
            for _ in 0..3 {
                heat.checkpoint()?.expect(exit::DONE)?;
            }
            verified(heat)?;
            heat.suspend(job)?;
            let epochs = command::epochs(heat.target());
            ensure!(
                epochs.ends_with(&[3, 4]),
                "{way}: the newest two are kept: {epochs:?}"
            );
            let late = [&options[..], &["--lazy"]].concat();
            let job = heat.restarted_with(&late, &[])?;
            heat.checkpoint()?.expect(exit::DONE)?;
            verified(heat)?;
            heat.suspend(job)?;
            let job = heat.restarted_with(&late, &[])?;
            heat.ends_as(job, &natively)
        });
    }
}

/// A job with each rank on a node of its own, with a fast tier.
struct Tiers<'a, 'b> {
    heat: &'a Heat<'b>,
    way: &'a str,
}

impl Tiers<'_, '_> {
    fn fast(&self, rank: &str) -> PathBuf {
        self.heat.directory.file(&format!("fast.{rank}"))
    }

    fn options(&self) -> Vec<String> {
        vec![
            self.way.to_owned(),
            format!("--tier=fast={},capacity=64M", self.fast("%r").display()),
            format!("--tier=slow={},limit=4MB/s", self.heat.target().display()),
            "--redundancy=partner".to_owned(),
        ]
    }

    /// Asks for an epoch, and kills the job when the epoch is staged on fast tiers but not durable yet.
    fn killed_before_flush(&self, job: Job) -> Result<(), Failed> {
        let target = self.heat.target();
        let shown = target.display().to_string();
        let (asked, killed) = std::thread::scope(|scope| {
            let asked = scope.spawn(|| self.heat.checkpoint());
            let mut job = job;
            let staged = job.until("staged", PATIENCE, |_| {
                let status = stillpoint(self.heat, &["status", "--json", &shown]);
                let status = status.and_then(|answer| answer.json());
                status.is_ok_and(|status| status["staged"] == 1)
            });
            let killed = staged
                .and_then(|()| strike::ranks(target))
                .and_then(|ranks| {
                    let mut ranks = ranks.into_iter();
                    ranks.try_for_each(|rank| strike::signal(rank, Signal::SIGKILL))
                })
                .and_then(|()| job.end(PATIENCE));
            (asked.join(), killed)
        });
        killed?;
        let asked = asked.map_err(|_| "the request panicked".to_owned())??;
        asked.expect_reason(exit::FAILED, "staged")?;
        ensure!(command::epochs(target).is_empty(), "it is durable already");
        Ok(())
    }
}

#[test]
fn fast_tiers_with_a_partner_and_the_loss_of_a_node() {
    for (way, lost) in WAYS.into_iter().zip(["0", "1"]) {
        heat::on(&node(2), 2, LONG, |heat| {
            heat.idle = 8;
            let natively = heat.natively()?;
            let tiers = Tiers { heat, way };
            let options = tiers.options();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            tiers.killed_before_flush(heat.start(&options)?)?;
            fs::remove_dir_all(tiers.fast(lost)).map_err(|error| error.to_string())?;
            let job = heat.restarted_with(&options, &[])?;
            heat.suspend(job)?;
            verified(heat)?;
            // The restart has no tiers, as on nodes without them.
            let job = heat.restarted_with(&[way], &[])?;
            heat.ends_as(job, &natively)?;
            for rank in ["0", "1"] {
                let fast = tiers.fast(rank).display().to_string();
                stillpoint(heat, &["clean", &fast])?.expect(exit::DONE)?;
                let left = fs::read_dir(&fast).into_iter().flatten().count();
                ensure!(left == 0, "{way}: {left} things are left in {fast}");
            }
            Ok(())
        });
    }
}

/// The disk returns a wrong byte of a GPU's memory.
#[test]
fn a_byte_that_is_not_as_it_was_is_found_before_anything_runs() {
    heat::on(&node(2), 2, LONG, |heat| {
        heat.idle = 16;
        let natively = heat.natively()?;
        let job = heat.start(&[WAYS[0], "--compress=none"])?;
        heat.suspend(job)?;
        let target = heat.target().display().to_string();
        let image = heat.target().join("epoch-000001/rank-000001.img");
        let wrong = |error: std::io::Error| format!("{}: {error}", image.display());
        let bytes = fs::read(&image).map_err(wrong)?;
        let mut other = bytes.clone();
        // Staged memory comes last in the image, and is most of it.
        let place = other.len() - (8 << 20);
        other[place] ^= 1;
        fs::write(&image, other).map_err(wrong)?;
        stillpoint(heat, &["verify", &target])?.expect_reason(exit::FAILED, "rank-000001.img")?;
        let ended = heat.restart(&[])?.end(PATIENCE)?;
        ensure!(
            ended.status != 0
                && ended.stderr.contains("rank-000001.img")
                && ended.stdout.is_empty(),
            "{}",
            ended.show()
        );
        fs::write(&image, bytes).map_err(wrong)?;
        heat.ends_as(heat.restarted()?, &natively)
    });
}

/// Every GPU that a rank could use needs a replacement.
#[test]
fn fewer_gpus_than_before_are_refused_by_name() {
    heat::on(&node(3), 2, LONG, |heat| {
        let natively = heat.natively()?;
        let job = heat.start(&[])?;
        heat.suspend(job)?;
        let own = std::mem::replace(&mut heat.gpus, Gpus::start(&node(2))?);
        let ended = heat.restart(&[])?.end(PATIENCE)?;
        ensure!(
            ended.status != 0
                && ended
                    .stderr
                    .contains("no GPU of that kind is free for it here"),
            "{}",
            ended.show()
        );
        heat.gpus = own;
        heat.ends_as(heat.restarted()?, &natively)
    });
}
