//! GPU memory is hashed where it is staged, and unchanged blocks are not copied to host memory.

use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, node};

/// MiB of each rank that are not written to again.
const IDLE: u64 = 64;

const OPTIONS: [&str; 6] = ["--gpu-staging", "on", "--compress", "none", "--copy", "on"];

/// Returns the entries of the newest epoch's manifest for each rank's GPU memory.
fn of_devices(heat: &Heat) -> Result<Vec<Value>, Failed> {
    let target = heat.target().display().to_string();
    let answer = command::stillpoint(heat.directory, ["inspect", "--json", &target])?;
    let shown = answer.expect(exit::DONE)?.json()?;
    let ranks = shown["manifest"]["ranks"].as_array().cloned();
    let ranks = ranks.ok_or_else(|| format!("no ranks: {shown}"))?;
    let of = |rank: &Value| rank["increment"]["devices"].clone();
    Ok(ranks.iter().map(of).collect())
}

fn sum(of: &[Value], name: &str) -> u64 {
    of.iter().filter_map(|one| one[name].as_u64()).sum()
}

/// Counts the bytes copied to host memory.
fn down(heat: &mut Heat) -> Result<u64, Failed> {
    let traffic = heat.gpus.traffic()?;
    let down = traffic.iter().filter(|one| one.to == "host");
    Ok(down.map(|one| one.bytes).sum())
}

/// Makes a checkpoint, and returns its manifest's entries and the bytes copied to host memory.
fn epoch(heat: &mut Heat) -> Result<(Vec<Value>, u64), Failed> {
    let before = down(heat)?;
    heat.checkpoint()?.expect(exit::DONE)?;
    Ok((of_devices(heat)?, down(heat)? - before))
}

/// The first epoch copies everything to host memory, later ones only changed blocks. A restart uses all of it.
#[test]
fn what_has_not_changed_stays_on_its_gpu() {
    heat::on(&node(2), 2, LONG, |heat| {
        heat.idle = IDLE as u32;
        let natively = heat.natively()?;
        let job = heat.start(&[&OPTIONS[..], &["--incremental=blocks"]].concat())?;
        let (first, _) = epoch(heat)?;
        let all = sum(&first, "bytes");
        ensure!(
            all > 2 * (IDLE << 20) && sum(&first, "by_gpus") == all && sum(&first, "came") == all,
            "the first epoch is whole, and hashed: {first:?}"
        );
        let (second, went) = epoch(heat)?;
        ensure!(
            sum(&second, "by_gpus") == all && sum(&second, "came") < all / 16,
            "little has changed: {second:?}"
        );
        // The hashes take 16 bytes for each 64 KiB; the program itself copies its field's edges to host memory.
        ensure!(went < all / 8, "{went} bytes of {all} went down");
        let came = sum(&second, "came");
        eprintln!("of {all} bytes {went} went down, {came} came to the ranks");
        heat.suspend(job)?;
        let third = of_devices(heat)?;
        ensure!(sum(&third, "came") < all / 16, "{third:?}");
        let target = heat.target().display().to_string();
        command::stillpoint(heat.directory, ["verify", &target])?.expect(exit::DONE)?;
        let plan = command::stillpoint(heat.directory, ["plan", "incremental", &target])?;
        let said = plan.expect(exit::DONE)?.stdout.clone();
        ensure!(said.contains(" by GPUs at "), "{said}");
        heat.ends_as(heat.restarted()?, &natively)
    });
}

/// Each rank's model chooses the hasher by measured rates, and an emulated GPU has the rate of a busy processor. Without measurements it chooses GPUs. With
/// either choice, each byte is hashed in place and copied only if it has changed, or it is copied, and the restart has all bytes.
#[test]
fn whoever_hashes_by_the_model() {
    heat::on(&node(2), 2, LONG, |heat| {
        heat.idle = 16;
        let natively = heat.natively()?;
        let job = heat.start(&[&OPTIONS[..], &["--incremental=auto"]].concat())?;
        let (first, _) = epoch(heat)?;
        ensure!(sum(&first, "by_gpus") == sum(&first, "bytes"), "{first:?}");
        for _ in 0..2 {
            for of in epoch(heat)?.0 {
                let [all, by_gpus, came] =
                    ["bytes", "by_gpus", "came"].map(|name| of[name].as_u64().unwrap_or(0));
                let on_gpu = by_gpus == all && came < all / 4;
                ensure!(all > 0 && (on_gpu || by_gpus == 0 && came == all), "{of}");
            }
        }
        heat.suspend(job)?;
        heat.ends_as(heat.restarted()?, &natively)
    });
}

/// Memory staged in host memory and on peers is hashed too, and blocks that are split between places are copied.
#[test]
fn wherever_it_is_staged() {
    let mut narrow = node(2);
    narrow.devices[0].memory = 40 << 20;
    heat::on(&narrow, 2, LONG, |heat| {
        heat.idle = 24;
        let natively = heat.natively()?;
        let job = heat.start(&[&OPTIONS[..], &["--incremental=blocks"]].concat())?;
        epoch(heat)?;
        let (second, _) = epoch(heat)?;
        let all = sum(&second, "bytes");
        let hashed = sum(&second, "by_gpus") + sum(&second, "by_processor");
        ensure!(
            hashed >= all && sum(&second, "by_gpus") < all && sum(&second, "came") < all / 8,
            "{second:?}"
        );
        heat.suspend(job)?;
        heat.ends_as(heat.restarted()?, &natively)
    });
}

/// If GPUs are too old for the kernel, everything is copied, and the ranks' processors hash it.
#[test]
fn gpus_that_do_not_hash() {
    let mut older = node(2);
    for device in &mut older.devices {
        device.capability = [7, 0];
    }
    heat::on(&older, 2, LONG, |heat| {
        heat.idle = 16;
        let natively = heat.natively()?;
        let job = heat.start(&[&OPTIONS[..], &["--incremental=blocks"]].concat())?;
        epoch(heat)?;
        let (second, _) = epoch(heat)?;
        let all = sum(&second, "bytes");
        ensure!(
            sum(&second, "by_gpus") == 0
                && sum(&second, "by_processor") == all
                && sum(&second, "came") == all
                && sum(&second, "written") < all / 4,
            "{second:?}"
        );
        heat.suspend(job)?;
        heat.ends_as(heat.restarted()?, &natively)
    });
}

/// With tracking by pages nothing is known of GPU memory: all of it is copied, and none is hashed.
#[test]
fn whoever_does_not_hash_takes_everything() {
    heat::on(&node(2), 2, LONG, |heat| {
        let job = heat.start(&[&OPTIONS[..], &["--incremental=pages"]].concat())?;
        let natively = heat.natively()?;
        epoch(heat)?;
        let (second, _) = epoch(heat)?;
        ensure!(
            sum(&second, "by_gpus") == 0 && sum(&second, "came") == sum(&second, "bytes"),
            "{second:?}"
        );
        heat.ends_as(job, &natively)
    });
}
