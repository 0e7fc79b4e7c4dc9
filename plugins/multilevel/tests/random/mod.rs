//! Random machines and checkpoints, from a seed.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use stillpoint_multilevel::topology::{End, Link, Process, Switch, Tier, Topology};

const GB: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;

/// Draws instances.
pub struct Dice(Pcg64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Pcg64::seed_from_u64(seed))
    }

    /// A number from `range`.
    pub fn from(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        range.start() + self.0.next_u64() % (range.end() - range.start() + 1)
    }

    /// True in `percent` of a hundred throws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.from(1..=100) <= percent
    }

    fn bandwidth(&mut self) -> u64 {
        match self.from(0..=2) {
            0 => 12 * GB * self.from(1..=4),
            1 => GB * self.from(1..=50),
            _ => self.from(GB / 10..=50 * GB),
        }
    }

    fn maybe_bandwidth(&mut self, percent: u64) -> Option<u64> {
        self.chance(percent).then(|| self.bandwidth())
    }

    /// A machine of 2 to 24 processes, up to three slow tiers and up to four switches, and sizes for it: multiples of `unit`.
    pub fn instance(&mut self, unit: u64) -> (Topology, Vec<u64>) {
        let count = 2 + (self.from(0..=22) * self.from(0..=22) / 22) as usize;
        let free = self.from(1..=200) * MB;
        let even = self.chance(50);
        let bytes = |dice: &mut Dice, most: u64| dice.from(0..=most) / unit * unit;
        let processes = (0..count)
            .map(|at| Process {
                name: format!("p{at}"),
                free: if even {
                    free / unit * unit
                } else {
                    bytes(self, 2 * free)
                },
                write: self.chance(5).then(|| 100 * self.bandwidth()),
            })
            .collect::<Vec<_>>();
        let tiers = (0..self.from(0..=3))
            .map(|at| Tier {
                name: format!("t{at}"),
                capacity: self.chance(30).then(|| bytes(self, free * count as u64)),
                bandwidth: self.maybe_bandwidth(20),
            })
            .collect::<Vec<_>>();
        let switches = (0..self.from(0..=4))
            .map(|at| Switch {
                name: format!("s{at}"),
                bandwidth: self.maybe_bandwidth(40),
            })
            .collect::<Vec<_>>();
        let links = self.links(count, tiers.len(), switches.len());
        let sizes = (0..count).map(|_| bytes(self, 2 * free)).collect();
        (
            Topology::new("random", processes, tiers, switches, links).expect("well-formed"),
            sizes,
        )
    }

    fn links(&mut self, processes: usize, tiers: usize, switches: usize) -> Vec<Link> {
        let mut links = Vec::new();
        let mut add = |dice: &mut Dice, from, to, percent| {
            if from != to && dice.chance(percent) {
                links.push(Link {
                    from,
                    to,
                    bandwidth: dice.bandwidth(),
                });
            }
        };
        let (direct, slow, ports) = (self.from(0..=100), self.from(50..=100), self.from(10..=100));
        for a in 0..processes {
            for b in 0..processes {
                add(self, End::Process(a), End::Process(b), direct);
            }
            for tier in 0..tiers {
                add(self, End::Process(a), End::Tier(tier), slow);
            }
            for switch in 0..switches {
                add(self, End::Process(a), End::Switch(switch), ports);
                add(self, End::Switch(switch), End::Process(a), ports);
            }
        }
        for a in 0..switches {
            for b in 0..switches {
                add(self, End::Switch(a), End::Switch(b), 40);
            }
            for tier in 0..tiers {
                add(self, End::Switch(a), End::Tier(tier), 40);
            }
        }
        links
    }
}
