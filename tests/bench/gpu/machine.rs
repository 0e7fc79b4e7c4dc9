//! The paper's DGX-1 as emulated GPUs, and as a node for plans.

use stillpoint_gpu_copies::Gpus as Copying;
use stillpoint_gpu_driver::Driver;
use stillpoint_gpu_plan::{Copies, Host, Node, Source, StagingPlace};
use stillpoint_gpu_staging::{Bytes, BytesError, Device, Digest, fill_from};
use stillpoint_ids::Rank;
use stillpoint_multilevel::Topology;
use stillpoint_tests::Failed;
use stillpoint_tests::gpu::{Device as Emulated, Link, Node as Described};

/// The divisor of the paper's sizes.
pub const SMALLER: u64 = 16;
/// The divisor of bandwidths: two cores emulate the parallel copies of eight GPUs.
pub const SLOWER: u64 = 8000;
/// Every GPU's memory: the sources, and the rest, which a margin keeps off the plan.
const MEMORY: u64 = 64 << 20;
/// Host memory for bytes that do not fit on GPUs.
const HOST_ROOM: u64 = 512 << 20;

/// Two streams keep an emulated link busy.
pub const COPIES: Copies = Copies {
    streams: 2,
    slot: 64 << 10,
};

/// Makes eight GPUs with the links of a DGX-1, without speed limits if no time is measured.
pub fn dgx1(quick: bool) -> Described {
    let topology = Topology::dgx1();
    let node = Node::of(&topology, host(), 0);
    let node = node.unwrap_or_else(|| unreachable!("a DGX-1 is GPUs and a host"));
    let rate = |bandwidth: u64| (!quick).then(|| bandwidth as f64 / SLOWER as f64);
    let mut described = Described::of(8, MEMORY);
    let device = |(old, gpu): (&Emulated, &stillpoint_gpu_plan::Gpu)| Emulated {
        host: rate(gpu.host),
        ..old.clone()
    };
    described.devices = described
        .devices
        .iter()
        .zip(&node.gpus)
        .map(device)
        .collect();
    let once = node.peers.iter().filter(|peer| peer.from < peer.to);
    described.links = once
        .map(|peer| Link {
            between: [peer.from as u32, peer.to as u32],
            bandwidth: peer.measured.and_then(rate),
        })
        .collect();
    described
}

fn host() -> Host {
    Host {
        room: HOST_ROOM,
        bandwidth: None,
    }
}

/// Opens all GPUs.
pub fn open(driver: &Driver) -> Result<Copying<'_>, Failed> {
    let gpus = Copying::open(driver, 8, HOST_ROOM).map_err(|error| error.to_string())?;
    for from in 0..8 {
        for to in (0..8).filter(|to| *to != from) {
            gpus.reach(from, to).map_err(|error| error.to_string())?;
        }
    }
    Ok(gpus)
}

/// Makes the ranks' memory: one of that size on each GPU, with bytes that are the rank's own.
pub fn sources(gpus: &mut Copying<'_>, sizes: &[u64; 8]) -> Result<Vec<Source>, Failed> {
    let mut sources = Vec::new();
    for (gpu, &bytes) in sizes.iter().enumerate() {
        // The driver gives no empty memory.
        let spot = gpus
            .reserve(StagingPlace::Gpu(gpu), bytes.max(1))
            .map_err(|error| error.to_string())?;
        sources.push(Source {
            rank: Rank::at(gpu),
            gpu,
            address: spot.address,
            bytes,
        });
    }
    let mut own = Own::default();
    let copies = Copies {
        streams: 4,
        slot: 1 << 20,
    };
    fill_from(gpus, &sources, &mut own, &|_, _| copies).map_err(|error| error.to_string())?;
    Ok(sources)
}

/// Bytes that tell ranks and places apart.
#[derive(Default)]
pub struct Own {
    at: [u64; 8],
}

/// Writes a rank's bytes from an offset on.
pub fn own(source: usize, from: u64, into: &mut [u8]) {
    for (at, byte) in (from..).zip(into) {
        let mixed = (at / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (source as u64) << 7;
        *byte = mixed.to_le_bytes()[(at % 8) as usize];
    }
}

impl Bytes for Own {
    fn read(&mut self, source: usize, into: &mut [u8]) -> Result<Option<Digest>, BytesError> {
        own(source, self.at[source], into);
        self.at[source] += into.len() as u64;
        Ok(None)
    }
}

/// Makes a node for plans, with the description's bandwidths and so much of each GPU's free memory for staging.
pub fn node(gpus: &mut Copying<'_>, room: u64) -> Result<Node, Failed> {
    let node = Node::of(&Topology::dgx1(), host(), 0);
    let mut node = node.unwrap_or_else(|| unreachable!("a DGX-1 is GPUs and a host"));
    for gpu in &mut node.gpus {
        gpu.host /= SLOWER;
    }
    for peer in &mut node.peers {
        peer.measured = peer.measured.map(|bandwidth| bandwidth / SLOWER);
    }
    // Free memory differs from GPU to GPU, but the margin is the same for all, so the rest is allocated.
    let mut least = u64::MAX;
    for gpu in 0..8 {
        least = least.min(
            gpus.room(StagingPlace::Gpu(gpu))
                .map_err(|error| error.to_string())?,
        );
    }
    for gpu in 0..8 {
        let free = gpus
            .room(StagingPlace::Gpu(gpu))
            .map_err(|error| error.to_string())?;
        if free > least {
            gpus.reserve(StagingPlace::Gpu(gpu), free - least)
                .map_err(|error| error.to_string())?;
        }
    }
    node.margin = least
        .checked_sub(room)
        .ok_or("the emulated GPUs have too little memory")?;
    Ok(node)
}
