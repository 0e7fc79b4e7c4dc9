//! A scene by seed: the ranks' places, the lost node, the moment, and the nodes of the restart.

use std::fmt;
use std::time::Duration;

use stillpoint_tests::seed::Seed;

/// Ranks of the job.
pub const RANKS: u32 = 6;
/// Nodes of the network.
pub const NODES: u32 = 4;

/// The number of ranks on each node, at the start.
const STARTS: [[u32; 4]; 4] = [[2, 2, 1, 1], [1, 2, 1, 2], [2, 1, 2, 1], [1, 1, 2, 2]];
/// The number of ranks on each of the three remaining nodes.
const RESTARTS: [[u32; 3]; 4] = [[3, 2, 1], [1, 2, 3], [2, 2, 2], [4, 1, 1]];

/// Points of a checkpoint at which a node is lost.
const PLAIN: [&str; 11] = [
    "flag",
    "check",
    "seal",
    "apart",
    "image-create",
    "image-sync",
    "written",
    "commit",
    "manifest-rename",
    "epoch-rename",
    "committed",
];
/// Points of a checkpoint on storage tiers.
const STAGED: [&str; 11] = [
    "flag",
    "size",
    "stage",
    "fast-sync",
    "blocks-write",
    "written",
    "staged-rename",
    "flush",
    "flush-sync",
    "flushed",
    "durable-rename",
];
/// Points that the coordinator passes, on the node of rank 0.
const OF_THE_COORDINATOR: [&str; 6] = [
    "commit",
    "manifest-rename",
    "epoch-rename",
    "committed",
    "staged-rename",
    "durable-rename",
];

/// The destination of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// To the checkpoint directory.
    Plain,
    /// By way of the nodes' fast tiers.
    Tiers,
    /// The same, with a second copy of every block.
    Partner,
}

/// The fate of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// Its link is taken away; its processes live.
    Cut,
    /// The same, and its processes die.
    Dead,
}

/// The moment of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// When this point, which then takes a while, is passed.
    At(&'static str),
    /// This long after a checkpoint was requested.
    After(Duration),
}

/// A loss.
#[derive(Clone, Debug)]
pub struct Scene {
    pub number: u64,
    pub storage: Storage,
    pub start: [u32; 4],
    pub lost: u32,
    pub blow: Blow,
    pub moment: Moment,
    pub restart: [u32; 3],
}

impl Scene {
    /// Returns the scene of a seed.
    pub fn of(number: u64) -> Scene {
        let mut seed = Seed::from(number);
        let storage = [Storage::Plain, Storage::Tiers, Storage::Partner][seed.below(3) as usize];
        let start = STARTS[seed.below(4) as usize];
        let points = match storage {
            Storage::Plain => PLAIN,
            _ => STAGED,
        };
        let moment = match seed.below(4) {
            0 => Moment::After(seed.moment(Duration::from_millis(500))),
            _ => Moment::At(points[seed.below(11) as usize]),
        };
        let blow = match seed.below(3) {
            0 => Blow::Dead,
            _ => Blow::Cut,
        };
        Scene {
            number,
            storage,
            start,
            lost: seed.below(u64::from(NODES)) as u32,
            blow,
            moment,
            restart: RESTARTS[seed.below(4) as usize],
        }
    }

    /// Returns the nodes and their ranks, at the start.
    pub fn before(&self) -> Vec<(u32, u32)> {
        (0..).zip(self.start).collect()
    }

    /// Returns the remaining nodes and their ranks, in the restart.
    pub fn after(&self) -> Vec<(u32, u32)> {
        let left = (0..NODES).filter(|node| *node != self.lost);
        left.zip(self.restart).collect()
    }

    /// Returns the first rank of the lost node.
    fn first_rank(&self) -> u32 {
        self.start[..self.lost as usize].iter().sum()
    }

    /// Returns the fault that makes the second checkpoint take a while at its point.
    pub fn fault(&self) -> Option<String> {
        let Moment::At(point) = self.moment else {
            return None;
        };
        let rank = match OF_THE_COORDINATOR.contains(&point) {
            true => String::new(),
            false => format!(":{}", self.first_rank()),
        };
        Some(format!("{point}@2{rank}:stall=700"))
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = match self.storage {
            Storage::Plain => "directory",
            Storage::Tiers => "tiers",
            Storage::Partner => "tiers, partner",
        };
        let numbers = |ranks: &[u32]| {
            let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
            ranks.join("+")
        };
        let blow = match self.blow {
            Blow::Cut => "link",
            Blow::Dead => "power",
        };
        let moment = match self.moment {
            Moment::At(point) => point.to_owned(),
            Moment::After(time) => format!("{} ms", time.as_millis()),
        };
        write!(
            f,
            "{} | {storage} | {} | {}, {blow} | {moment} | {}",
            self.number,
            numbers(&self.start),
            self.lost + 1,
            numbers(&self.restart)
        )
    }
}
