//! Before a restart from a staged epoch: its images are made whole.
//!
//! The processes that are about to become the ranks do it together. Each copies what the fast tiers of its host still
//! hold of some ranks' images to the slow tier; when all have, each looks whether its own image is whole there. The
//! coordinator says how it goes on.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use stillpoint_image::blocks::{Blocks, SLOW, blocks_name, read_block};
use stillpoint_image::{ImageError, Manifest, image_name};
use stillpoint_protocol::agent::{FromAgent, Hello, ToAgent};
use stillpoint_protocol::client::AgentConnection;
use stillpoint_protocol::job_file::{JobFile, host_name};
use stillpoint_protocol::{Received, Receiver, Sender};

use super::Failure;
use super::launch::Place;
use crate::epoch::Epochs;

const PATIENCE: Duration = Duration::from_secs(60);
const BARRIER: &str = "gathered";

/// Makes the staged epoch whole with all other ranks; the epoch to carry on from.
pub fn recover(place: &Place, directory: &Path, job: &JobFile, epoch: u64) -> Result<u64, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!(
            "rank {}: epoch {epoch} cannot be made whole: {error}",
            place.rank
        ))
    };
    let staged = Epochs::new(directory).staged_path(epoch);
    let connection = AgentConnection::open(&job.addresses, &job.key, PATIENCE)
        .map_err(|error| failed(&error))?;
    let (sender, receiver) = connection.split().map_err(|error| failed(&error))?;
    let mut member = Member { sender, receiver };
    member.enter(place).map_err(|reason| failed(&reason))?;
    let gathered = gather(&staged, place);
    member.barrier().map_err(|reason| failed(&reason))?;
    // What could not be copied here another host may have copied: what counts is whether the image is whole.
    let problem = match whole(&staged, place.rank) {
        Ok(()) => None,
        Err(error) => Some(match gathered {
            Ok(()) => error.to_string(),
            Err(gathered) => format!("{error} ({gathered})"),
        }),
    };
    let (chosen, reason) = member
        .answer(epoch, problem)
        .map_err(|reason| failed(&reason))?;
    match chosen {
        Some(chosen) => {
            if place.rank == 0 && !reason.is_empty() {
                eprintln!("stillpoint: {reason}");
            }
            Ok(chosen)
        }
        None if place.rank == 0 => Err(Failure::failed(reason)),
        // Rank 0 has said why.
        None => Err(Failure::failed(format!(
            "rank {}: there is no epoch to restart from",
            place.rank
        ))),
    }
}

/// Copies to the slow tier what the fast tiers of this host hold of the images that fall to this rank: it shares them
/// with the other ranks of its host.
fn gather(staged: &Path, place: &Place) -> Result<(), ImageError> {
    let host = host_name();
    let ranks = Manifest::read(staged)?.ranks.len() as u32;
    let mut first_error = None;
    for rank in (0..ranks).filter(|rank| rank % place.host_ranks == place.rank_on_host) {
        if let Err(error) = gather_image(staged, rank, &host) {
            first_error.get_or_insert(error);
        }
    }
    first_error.map_or(Ok(()), Err)
}

fn gather_image(staged: &Path, rank: u32, host: &str) -> Result<(), ImageError> {
    let blocks = Blocks::read(&staged.join(blocks_name(rank)))?;
    let image = image_name(rank);
    let fast: Vec<Option<File>> = blocks
        .places
        .iter()
        .map(|held| (held.host == host).then(|| File::open(held.directory.join(&image)).ok())?)
        .collect();
    if fast.iter().all(Option::is_none) {
        return Ok(());
    }
    let path = staged.join(&image);
    let io = |action| ImageError::io(&path, action);
    let slow = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(io("open the image"))?;
    let mut missing = blocks.records.iter().filter(|record| record.place != SLOW);
    missing.try_for_each(|record| {
        if read_block(&slow, record).is_some() {
            return Ok(());
        }
        let held = [record.place, record.copy]
            .into_iter()
            .filter(|held| *held != SLOW)
            .filter_map(|held| fast.get(held as usize - 1)?.as_ref())
            .find_map(|file| read_block(file, record));
        match held {
            Some(bytes) => slow
                .write_all_at(&bytes, record.offset)
                .map_err(io("write the image")),
            None => Ok(()),
        }
    })?;
    slow.sync_all().map_err(io("sync the image"))
}

/// Whether a rank's image is whole on the slow tier: every block of it.
fn whole(staged: &Path, rank: u32) -> Result<(), ImageError> {
    let blocks = Blocks::read(&staged.join(blocks_name(rank)))?;
    let path = staged.join(image_name(rank));
    let slow = File::open(&path).map_err(ImageError::io(&path, "open the image"))?;
    let lost: Vec<_> = blocks
        .records
        .iter()
        .filter(|record| read_block(&slow, record).is_none())
        .collect();
    let Some(first) = lost.first() else {
        return Manifest::read(staged)?.open_image(staged, rank).map(drop);
    };
    let bytes: u64 = lost.iter().map(|record| u64::from(record.bytes)).sum();
    let held = match (first.place as usize).checked_sub(1) {
        Some(place) => format!(
            "{} on {}",
            blocks.places[place].directory.display(),
            blocks.places[place].host
        ),
        None => "the slow tier".to_owned(),
    };
    Err(ImageError::Unwritable {
        path,
        problem: format!(
            "{bytes} bytes in {} blocks are lost, the first with {held}",
            lost.len()
        ),
    })
}

/// This process as a rank that is about to start.
struct Member {
    sender: Sender<FromAgent>,
    receiver: Receiver<ToAgent>,
}

impl Member {
    fn enter(&mut self, place: &Place) -> Result<(), String> {
        self.say(&FromAgent::Hello(Hello {
            rank: place.rank,
            size: place.size,
            pid: std::process::id(),
            host: host_name(),
            launch: place.launch.clone(),
            restarted_from: None,
        }))?;
        self.wait(|message| match message {
            ToAgent::Welcome => Some(Ok(())),
            ToAgent::Rejected { reason } => Some(Err(reason)),
            _ => None,
        })?
    }

    fn barrier(&mut self) -> Result<(), String> {
        self.say(&FromAgent::AtBarrier {
            name: BARRIER.to_owned(),
        })?;
        self.wait(|message| match message {
            ToAgent::BarrierPassed { name } if name == BARRIER => Some(()),
            _ => None,
        })
    }

    fn answer(
        &mut self,
        epoch: u64,
        problem: Option<String>,
    ) -> Result<(Option<u64>, String), String> {
        self.say(&FromAgent::Recovered { epoch, problem })?;
        self.wait(|message| match message {
            ToAgent::CarryOn { epoch, reason } => Some((epoch, reason)),
            _ => None,
        })
    }

    fn say(&self, message: &FromAgent) -> Result<(), String> {
        self.sender.send(message).map_err(|error| error.to_string())
    }

    /// The first message that means something here. However long it takes: other hosts may have much to copy.
    fn wait<T>(&mut self, mut wanted: impl FnMut(ToAgent) -> Option<T>) -> Result<T, String> {
        loop {
            match self.receiver.receive().map_err(|error| error.to_string())? {
                Received::Message(message) => {
                    if let Some(answer) = wanted(message) {
                        return Ok(answer);
                    }
                }
                Received::Nothing => {}
                Received::Closed => return Err("the coordinator went away".to_owned()),
            }
        }
    }
}
