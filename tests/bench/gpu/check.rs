//! One checkpoint on emulated GPUs, with every byte compared.

use stillpoint_gpu_driver::Driver;
use stillpoint_gpu_plan::{Scheduling, Source, StagingPlace};
use stillpoint_gpu_staging::{Device, Digest, Drain, Settings, Sink, SinkError, fill_back, stage};
use stillpoint_tests::{Failed, ensure};

use super::machine::{COPIES, node, open, own, sources};

/// Different sizes: some fit, some do not.
const SIZES: [u64; 8] = [
    9_000_001, 0, 5_000_000, 7_654_321, 1, 4_000_000, 8_000_000, 6_000_000,
];

/// Free bytes for staging on each GPU.
const ROOM: u64 = 5_000_000;

/// Compares the drained bytes with the originals.
struct Compare {
    at: [u64; 8],
    wrong: u64,
}

impl Sink for Compare {
    fn write(
        &mut self,
        source: usize,
        offset: u64,
        bytes: &[u8],
        _: Option<Digest>,
    ) -> Result<(), SinkError> {
        let mut wanted = vec![0; bytes.len()];
        own(source, offset, &mut wanted);
        self.wrong += u64::from(wanted != bytes || self.at[source] != offset);
        self.at[source] += bytes.len() as u64;
        Ok(())
    }
}

pub fn run(fault: Option<&str>) -> Result<(), Failed> {
    let said = |error: &dyn std::fmt::Display| Failed::from(error.to_string());
    let driver = Driver::open().map_err(|error| said(&error))?;
    let mut gpus = open(&driver)?;
    let sources = sources(&mut gpus, &SIZES)?;
    let node = node(&mut gpus, ROOM)?;
    let free = rooms(&mut gpus)?;
    let settings = Settings {
        scheduling: Scheduling::Exact,
        choice: &|_, _| (COPIES, None),
        drain: COPIES,
    };
    if let Some(fault) = fault {
        let folder = std::env::var_os(stillpoint_emulated_gpu_protocol::VARIABLE);
        let folder = std::path::PathBuf::from(folder.unwrap_or_default());
        let file = folder
            .join(stillpoint_emulated_gpu_protocol::FAULTS)
            .join(fault);
        std::fs::write(&file, "").map_err(|error| said(&error))?;
        let staged = stage(&mut gpus, &node, &sources, &settings);
        std::fs::remove_file(&file).map_err(|error| said(&error))?;
        match staged {
            Ok(staged) => {
                let pieces = staged.pieces().iter();
                let host = pieces.filter(|piece| piece.spot.place == StagingPlace::Host);
                println!(
                    "in host memory: {}",
                    host.map(|piece| piece.bytes).sum::<u64>()
                );
                drained(&mut gpus, staged)?;
            }
            Err(error) => println!("{error}"),
        }
        return Ok(());
    }
    let staged = stage(&mut gpus, &node, &sources, &settings).map_err(|error| said(&error))?;
    let on_peers = staged.pieces().iter().filter(|piece| {
        piece.spot.place != StagingPlace::Host
            && piece.spot.place != StagingPlace::Gpu(sources[piece.source].gpu)
    });
    ensure!(on_peers.count() > 0, "nothing went to a peer");
    // The program's memory is overwritten meanwhile.
    wipe(&mut gpus, &sources)?;
    fill_back(&mut gpus, &staged, &sources, &|_, _, _| (COPIES, None))
        .map_err(|error| said(&error))?;
    // Twice: first the staged memory, then the program's memory after it was filled back.
    drained(&mut gpus, staged)?;
    let again = stage(&mut gpus, &node, &sources, &settings).map_err(|error| said(&error))?;
    drained(&mut gpus, again)?;
    ensure!(rooms(&mut gpus)? == free, "memory was not given back");
    println!("every byte is where it was");
    Ok(())
}

fn drained(
    gpus: &mut stillpoint_gpu_copies::Gpus<'_>,
    staged: stillpoint_gpu_staging::Staged,
) -> Result<(), Failed> {
    let mut compare = Compare {
        at: [0; 8],
        wrong: 0,
    };
    let mut drain = Drain::new(staged);
    let done = drain.run(gpus, &mut compare);
    drain.end(gpus);
    done.map_err(|error| error.to_string())?;
    ensure!(compare.at == SIZES, "{:?} bytes came out", compare.at);
    ensure!(
        compare.wrong == 0,
        "{} pieces are not what they were",
        compare.wrong
    );
    Ok(())
}

/// Overwrites the ranks' memory with zeros.
fn wipe(gpus: &mut stillpoint_gpu_copies::Gpus<'_>, sources: &[Source]) -> Result<(), Failed> {
    struct Zeros;
    impl stillpoint_gpu_staging::Bytes for Zeros {
        fn read(
            &mut self,
            _: usize,
            into: &mut [u8],
        ) -> Result<Option<Digest>, stillpoint_gpu_staging::BytesError> {
            into.fill(0);
            Ok(None)
        }
    }
    let filled = stillpoint_gpu_staging::fill_from(gpus, sources, &mut Zeros, &|_, _| COPIES);
    filled.map_err(|error| error.to_string())
}

fn rooms(gpus: &mut stillpoint_gpu_copies::Gpus<'_>) -> Result<Vec<u64>, Failed> {
    let room = |gpu| {
        gpus.room(StagingPlace::Gpu(gpu))
            .map_err(|error| error.to_string())
    };
    (0..8).map(room).collect()
}
