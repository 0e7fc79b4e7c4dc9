//! A process that uses GPUs is stopped, its device memory staged, and given back, while it lives: all that a checkpoint does with it but its image.

use std::time::{Duration, Instant};

use stillpoint_gpu_copies::Gpus;
use stillpoint_gpu_driver::storage::{self, Storage};
use stillpoint_gpu_driver::{Driver, checkpoint, devices};
use stillpoint_gpu_plan::{Gpu, Host, Node, Peer, Source};
use stillpoint_gpu_staging::{Digest, Drain, Settings, Sink, SinkError, fill_back, stage};
use stillpoint_tests::{Failed, ensure};

use super::machine::COPIES;

/// How long a lock may take, in milliseconds.
const PATIENCE: u32 = 10_000;
const HOST_ROOM: u64 = 512 << 20;
/// Small, so that with little memory on a GPU all places are used.
const MARGIN: u64 = 1 << 20;

/// Counts what comes out.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn write(&mut self, _: usize, bytes: &[u8], _: Digest) -> Result<(), SinkError> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}

/// Stages a process's device memory so many times, and says how often that was.
pub fn run(pid: i32, times: usize) -> Result<(), Failed> {
    let driver = Driver::open().map_err(|error| error.to_string())?;
    let found = devices::all(&driver).map_err(|error| error.to_string())?;
    let mut gpus =
        Gpus::open(&driver, found.len(), HOST_ROOM).map_err(|error| error.to_string())?;
    let node = node(&gpus, &found)?;
    wait_until_it_computes(&driver, pid)?;
    let (mut staged, mut peers) = (0, 0);
    for _ in 0..times {
        std::thread::sleep(Duration::from_millis(150));
        let (bytes, on_peers) = once(&driver, &mut gpus, &node, pid)?;
        staged += bytes;
        peers += on_peers;
    }
    println!("staged {times} times, {staged} bytes, {peers} of them on peers");
    Ok(())
}

/// Its devices are held by now, unless it ends first.
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

fn once(driver: &Driver, gpus: &mut Gpus<'_>, node: &Node, pid: i32) -> Result<(u64, u64), Failed> {
    let said = |error: stillpoint_gpu_driver::Error| error.to_string();
    checkpoint::lock(driver, pid, PATIENCE).map_err(said)?;
    let lent = storage::checkpoint(driver, pid).map_err(said)?;
    let sources = sources(&lent);
    let settings = Settings {
        choice: &|_, _| (COPIES, None),
        drain: COPIES,
        ..Settings::default()
    };
    let staged = stage(gpus, node, &sources, &settings).map_err(|error| error.to_string())?;
    storage::complete(driver, lent).map_err(said)?;
    let state = checkpoint::state(driver, pid).map_err(said)?;
    ensure!(
        state == checkpoint::State::Checkpointed,
        "{state:?} after the checkpoint"
    );
    let lent = storage::restore(driver, pid, &[]).map_err(said)?;
    fill_back(gpus, &staged, &self::sources(&lent), COPIES).map_err(|error| error.to_string())?;
    storage::complete(driver, lent).map_err(said)?;
    checkpoint::unlock(driver, pid).map_err(said)?;
    // The program runs; what was staged goes out meanwhile.
    let bytes: u64 = staged.pieces().iter().map(|piece| piece.bytes).sum();
    let on_peer = |piece: &&stillpoint_gpu_staging::Piece| {
        let own = stillpoint_gpu_plan::Place::Gpu(sources[piece.source].gpu);
        piece.spot.place != own && piece.spot.place != stillpoint_gpu_plan::Place::Host
    };
    let peers = staged
        .pieces()
        .iter()
        .filter(on_peer)
        .map(|piece| piece.bytes)
        .sum();
    let mut count = Count::default();
    let mut drain = Drain::new(staged).map_err(|error| error.to_string())?;
    drain
        .run(gpus, &mut count)
        .map_err(|error| error.to_string())?;
    drain.end(gpus);
    ensure!(count.0 == bytes, "{} of {bytes} bytes came out", count.0);
    Ok((bytes, peers))
}

fn sources(storage: &Storage) -> Vec<Source> {
    let source = |lent: &storage::Lent| Source {
        rank: 0,
        gpu: lent.device,
        address: lent.address,
        bytes: lent.bytes,
    };
    storage.lent.iter().map(source).collect()
}

/// What the driver has. Bandwidths are those of nobody: any plan moves the same bytes.
fn node(gpus: &Gpus<'_>, found: &[devices::Device]) -> Result<Node, Failed> {
    let gpu = |device: &devices::Device| Gpu {
        uuid: device
            .uuid
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        free: 0,
        own: None,
        host: 12_000_000_000,
    };
    let mut peers = Vec::new();
    for from in 0..found.len() {
        for to in (0..found.len()).filter(|to| *to != from) {
            peers.push(Peer {
                from,
                to,
                access: gpus.reach(from, to).map_err(|error| error.to_string())?,
                measured: Some(24_000_000_000),
            });
        }
    }
    Ok(Node {
        gpus: found.iter().map(gpu).collect(),
        peers,
        uplinks: Vec::new(),
        host: Host {
            room: HOST_ROOM,
            bandwidth: None,
        },
        margin: MARGIN,
    })
}
