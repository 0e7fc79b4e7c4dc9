//! Gathers the blocks of an epoch on fast tiers before a restart, where they are needed.
//!
//! The processes that are about to become the ranks do it together. Each serves the blocks of its host's fast tiers to every process that asks. It fetches
//! into its memory the blocks of its own image that other hosts hold. Each block comes from the nearest place that has it. If the epoch was only staged, each
//! process also makes its image whole on the slow tier. After that, the coordinator names the epoch to restart from.
//!
//! * [`member`] - this process as a rank that is about to start
//! * [`collect`] - brings the blocks of one image to their places
//! * [`error`] - why it cannot be done
//! * [`fetch`] - fetches blocks that other hosts hold
//! * [`fetched`] - keeps these until the restore
//! * [`serve`] - serves blocks that other hosts want

mod collect;
mod error;
mod fetch;
mod fetched;
mod member;
mod serve;

use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::blocks::{Blocks, blocks_name};
use stillpoint_image::epoch_name;
use stillpoint_protocol::job_file::{JobFile, host_name};
use stillpoint_protocol::tier::{Announced, Gathered};

use stillpoint_refusals::Code;

use super::Failure;
use super::launch::LaunchPosition;
use collect::{Collector, lacks};
use error::GatherError;
use fetch::Fetch;
use fetched::Fetched;
use member::Member;
use stillpoint_coordinator::epoch::staged_name;

/// The time that the coordinator, or a peer, may take to answer a new connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// The source from which a rank is restored.
pub struct From {
    pub epoch: Epoch,
    /// The descriptor of a file that holds fetched blocks of its image.
    pub fetched: Option<RawFd>,
}

/// Gathers the blocks of an epoch together with all other ranks, and returns the source to restore from.
pub fn gather(
    place: &LaunchPosition,
    directory: &Path,
    job: &JobFile,
    epoch: Epoch,
) -> Result<From, Failure> {
    let failed = |reason: GatherError| {
        Failure::refuse(
            Code::LostBlocks,
            Failure::FAILED,
            format!(
                "rank {}: cannot gather the blocks of epoch {epoch}: {reason}",
                place.rank
            ),
        )
    };
    let task = Task::new(place, directory, job, epoch);
    let mut member = Member::enter(place, job).map_err(&failed)?;
    let Collected {
        gathered,
        fetched,
        problem,
    } = task.gather(&mut member).map_err(&failed)?;
    let (chosen, reason) = member
        .recovered(epoch, gathered, problem)
        .map_err(&failed)?;
    match chosen {
        Some(chosen) => {
            if place.rank == Rank::FIRST && !reason.is_empty() {
                Failure::refuse(Code::LostBlocks, Failure::FAILED, reason).say();
            }
            let fetched = fetched.filter(|_| chosen == epoch);
            Ok(From {
                epoch: chosen,
                fetched: fetched.and_then(Fetched::hand_over),
            })
        }
        None if place.rank == Rank::FIRST => {
            Err(Failure::refuse(Code::LostBlocks, Failure::FAILED, reason))
        }
        // Rank 0 has reported the reason.
        None => Err(Failure::refuse(
            Code::LostBlocks,
            Failure::FAILED,
            format!("rank {}: there is no epoch to restart from", place.rank),
        )),
    }
}

/// The task of this rank.
struct Task<'a> {
    rank: Rank,
    job: &'a JobFile,
    /// The epoch's directory on the slow tier.
    directory: PathBuf,
    /// Whether the images there are not whole yet.
    staged: bool,
}

/// The result of collecting.
struct Collected {
    gathered: Gathered,
    fetched: Option<Fetched>,
    /// The reason why a staged image is not whole.
    problem: Option<String>,
}

impl<'a> Task<'a> {
    fn new(place: &LaunchPosition, directory: &Path, job: &'a JobFile, epoch: Epoch) -> Task<'a> {
        let staged_path = directory.join(staged_name(epoch));
        let staged = staged_path.exists();
        Task {
            rank: place.rank,
            job,
            directory: match staged {
                true => staged_path,
                false => directory.join(epoch_name(epoch)),
            },
            staged,
        }
    }

    /// Collects the blocks. Returns the places that they are now read from, and what is missing of a staged image.
    fn gather(&self, member: &mut Member) -> Result<Collected, GatherError> {
        let address = serve::start(member.local_ip()?, self.job.terms(), &self.directory)
            .map_err(GatherError::Serve)?;
        let me = Announced {
            host: host_name(),
            directory: String::new(),
            capacity: 0,
            address,
            problem: None,
        };
        let peers = member.peers(me.clone())?;
        let collected = self.collect(&me, &peers);
        // Up to this barrier, others may ask this process for blocks.
        member.barrier("gathered")?;
        Ok(match collected {
            Ok((gathered, fetched)) => Collected {
                gathered,
                fetched: Some(fetched),
                problem: self
                    .staged
                    .then(|| lacks(&self.directory, self.rank))
                    .flatten(),
            },
            Err(problem) => Collected {
                gathered: Gathered::default(),
                fetched: None,
                problem: Some(problem.to_string()),
            },
        })
    }

    fn collect(
        &self,
        me: &Announced,
        peers: &[Announced],
    ) -> Result<(Gathered, Fetched), GatherError> {
        let table = self.directory.join(blocks_name(self.rank));
        let blocks = Blocks::read(&table)?;
        let sharing = peers.iter().filter(|peer| peer.same_node(me)).count() as u64;
        let fetched = Fetched::new(sharing).map_err(GatherError::Memory)?;
        let fetch = Fetch::new(self.rank, &me.host, peers, self.job.terms(), &blocks);
        let collector = Collector::open(self, &blocks, &me.host, fetch, fetched);
        Ok(collector.and_then(Collector::run)?)
    }
}
