//! Stages and gives back the device memory of a live process, as a checkpoint does, but without an image.

use std::path::Path;
use std::time::{Duration, Instant};

use stillpoint_gpu_copies::{Gpus, survey};
use stillpoint_gpu_driver::storage::{self, Storage};
use stillpoint_gpu_driver::{Driver, checkpoint, devices};
use stillpoint_gpu_plan::{Host, Node, Record, Source, StagingPlace};
use stillpoint_gpu_staging::{Digest, Drain, Piece, Settings, Sink, SinkError, fill_back, stage};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_tests::{Failed, ensure};

use super::machine::COPIES;

/// The time limit of a lock, in milliseconds.
const PATIENCE: u32 = 10_000;
const HOST_ROOM: u64 = 512 << 20;
/// A small margin, so that with little memory on a GPU all places are used.
const MARGIN: u64 = 1 << 20;

/// Counts the drained bytes.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn write(
        &mut self,
        _: usize,
        _: u64,
        bytes: &[u8],
        _: Option<Digest>,
    ) -> Result<(), SinkError> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}

/// The divisor of probes, since the process has left little memory free.
const CUT: u64 = 64;

/// The state that all epochs share.
struct Staging<'d> {
    driver: &'d Driver,
    version: String,
    gpus: Gpus<'d>,
    node: Node,
    record: Record,
}

/// Stages a process's device memory so many times, prints the number of times, and writes the measurements to a file.
pub fn run(pid: i32, times: usize, file: Option<&Path>) -> Result<(), Failed> {
    let driver = Driver::open().map_err(|error| error.to_string())?;
    let found = devices::all(&driver).map_err(|error| error.to_string())?;
    let mut gpus =
        Gpus::open(&driver, found.len(), HOST_ROOM).map_err(|error| error.to_string())?;
    wait_until_it_computes(&driver, pid)?;
    let version = devices::version(&driver)
        .map_err(|error| error.to_string())?
        .to_string();
    let mut record = Record::default();
    let host = Host {
        room: HOST_ROOM,
        bandwidth: None,
    };
    let node = survey(&mut gpus, &found, &version, &mut record, host, MARGIN, CUT)
        .map_err(|error| error.to_string())?;
    let mut staging = Staging {
        driver: &driver,
        version,
        gpus,
        node,
        record,
    };
    let (mut staged, mut beyond) = (0, 0);
    for epoch in 1..=times {
        std::thread::sleep(Duration::from_millis(150));
        let (bytes, not_own) = staging.once(pid, epoch as u64)?;
        staged += bytes;
        beyond += not_own;
    }
    println!("staged {times} times, {staged} bytes, {beyond} of them not on their own GPU");
    let Some(file) = file else { return Ok(()) };
    let text = staging.record.text().map_err(|error| error.to_string())?;
    std::fs::write(file, text).map_err(|error| error.to_string())
}

/// Waits until the process holds its devices, unless it ends first.
fn wait_until_it_computes(driver: &Driver, pid: i32) -> Result<(), Failed> {
    let began = Instant::now();
    while checkpoint::state(driver, pid) != Ok(checkpoint::State::Running) {
        ensure!(
            began.elapsed() < Duration::from_secs(30),
            "process {pid} does not use a GPU"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

impl Staging<'_> {
    fn once(&mut self, pid: i32, epoch: u64) -> Result<(u64, u64), Failed> {
        let said = |error: stillpoint_gpu_driver::Error| error.to_string();
        let (driver, gpus) = (self.driver, &mut self.gpus);
        checkpoint::lock(driver, pid, PATIENCE).map_err(said)?;
        let lent = storage::checkpoint(driver, pid).map_err(said)?;
        let sources = sources(&lent);
        let staged = {
            let settings = Settings {
                choice: &self.record.choice(&self.node, &self.version),
                drain: COPIES,
                ..Settings::default()
            };
            stage(gpus, &self.node, &sources, &settings).map_err(|error| error.to_string())?
        };
        storage::complete(driver, lent).map_err(said)?;
        let state = checkpoint::state(driver, pid).map_err(said)?;
        ensure!(
            state == checkpoint::State::Checkpointed,
            "{state:?} after the checkpoint"
        );
        let lent = storage::restore(driver, pid, &[]).map_err(said)?;
        let filled = {
            let back = self.record.way_back(&self.node, &self.version);
            let filled = fill_back(gpus, &staged, &self::sources(&lent), &back);
            filled.map_err(|error| error.to_string())?
        };
        storage::complete(driver, lent).map_err(said)?;
        checkpoint::unlock(driver, pid).map_err(said)?;
        // The program runs while its staged memory is drained.
        staged
            .measured
            .add_to(&mut self.record, &self.node, &self.version, Epoch(epoch));
        filled.add_to(&mut self.record, &self.node, &self.version, Epoch(epoch));
        let bytes: u64 = staged.pieces().iter().map(|piece| piece.bytes).sum();
        let beyond =
            |piece: &&Piece| piece.spot.place != StagingPlace::Gpu(sources[piece.source].gpu);
        let beyond = staged
            .pieces()
            .iter()
            .filter(beyond)
            .map(|piece| piece.bytes)
            .sum();
        let mut count = Count::default();
        let mut drain = Drain::new(staged);
        let drained = drain.run(gpus, &mut count);
        drain.end(gpus);
        drained.map_err(|error| error.to_string())?;
        ensure!(count.0 == bytes, "{} of {bytes} bytes came out", count.0);
        Ok((bytes, beyond))
    }
}

fn sources(storage: &Storage) -> Vec<Source> {
    let source = |lent: &storage::Lent| Source {
        rank: Rank::FIRST,
        gpu: lent.device,
        address: lent.address,
        bytes: lent.bytes,
    };
    storage.lent.iter().map(source).collect()
}
