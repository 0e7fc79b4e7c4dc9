//! `--tier`, `--staging`, `--redundancy` and `--peer-limit`: the tiers on which images are staged.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use stillpoint_multilevel::units::{parse_bandwidth, parse_bytes};
use stillpoint_protocol::job_file::host_name;
use stillpoint_protocol::tier::Tiers;

use stillpoint_refusals::Code;

use super::launch::LaunchPosition;
use super::{Failure, directory_name};
use stillpoint_coordinator::server::Staging;

#[derive(Clone, Debug, Args)]
pub struct TierOptions {
    /// Stage images: fast=PATH,capacity=SIZE is a node's own storage, slow=PATH the checkpoint directory
    ///
    /// fast=PATH,capacity=SIZE[,limit=BANDWIDTH] and slow=PATH[,capacity=SIZE][,limit=BANDWIDTH]. In PATH of the fast
    /// tier %h stands for the host and %r for the rank; the slow tier takes the templates of `run --dir`. A limit bounds what one rank writes there. In the variable, a semicolon
    /// separates tiers.
    #[arg(
        long,
        env = "STILLPOINT_TIER",
        value_name = "TIER",
        value_delimiter = ';'
    )]
    pub tier: Vec<TierOption>,

    /// Destination of data that does not fit on a node's own fast tier
    #[arg(
        long,
        env = "STILLPOINT_STAGING",
        value_name = "HOW",
        default_value = "exact"
    )]
    pub staging: How,

    /// Second copies of data on fast tiers, until the epoch is durable
    #[arg(
        long,
        env = "STILLPOINT_REDUNDANCY",
        value_name = "WHAT",
        default_value = "none"
    )]
    pub redundancy: Redundancy,

    /// Limit of what a rank sends to peers, and takes from them (100MB/s)
    #[arg(long, env = "STILLPOINT_PEER_LIMIT", value_name = "BANDWIDTH", value_parser = bandwidth)]
    pub peer_limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Peers with room and the slow tier, with the shortest possible wait
    Exact,
    /// The slow tier alone
    Local,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Redundancy {
    None,
    /// On the next node: losing one node's fast tier loses nothing
    Partner,
}

/// One `--tier`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierOption {
    fast: bool,
    path: PathBuf,
    capacity: Option<u64>,
    limit: Option<u64>,
}

fn bandwidth(text: &str) -> Result<u64, String> {
    match parse_bandwidth(text) {
        Ok(0) => Err(format!("'{text}' lets no data through: give more than 0")),
        Ok(bandwidth) => Ok(bandwidth),
        Err(error) => Err(error.to_string()),
    }
}

impl FromStr for TierOption {
    type Err = String;

    fn from_str(text: &str) -> Result<TierOption, String> {
        const FORM: &str = "write fast=PATH,capacity=SIZE or slow=PATH";
        let mut fields = text.split(',');
        let (kind, path) = fields
            .next()
            .and_then(|first| first.split_once('='))
            .ok_or_else(|| format!("'{text}' is not a tier: {FORM}"))?;
        let fast = match kind {
            "fast" => true,
            "slow" => false,
            _ => return Err(format!("'{kind}' is not a kind of tier: {FORM}")),
        };
        if path.is_empty() {
            return Err(format!("{kind}: the path is missing: {FORM}"));
        }
        let mut tier = TierOption {
            fast,
            path: path.into(),
            capacity: None,
            limit: None,
        };
        for field in fields {
            let (name, value) = field
                .split_once('=')
                .ok_or_else(|| format!("'{field}' is not a field: write NAME=VALUE"))?;
            let in_field = |error: String| format!("{name}: {error}");
            match name {
                "capacity" => {
                    let bytes = parse_bytes(value).map_err(|error| in_field(error.to_string()))?;
                    if bytes == 0 {
                        return Err(in_field(format!(
                            "'{value}': a tier needs a capacity above 0"
                        )));
                    }
                    tier.capacity = Some(bytes);
                }
                "limit" => tier.limit = Some(bandwidth(value).map_err(in_field)?),
                _ => {
                    return Err(format!(
                        "'{name}' is not a field of a tier: capacity, limit"
                    ));
                }
            }
        }
        if fast && tier.capacity.is_none() {
            return Err("capacity: a fast tier needs one, such as capacity=8G".to_owned());
        }
        Ok(tier)
    }
}

impl TierOptions {
    /// Refuses options that contradict each other.
    pub fn check(&self) -> Result<(), Failure> {
        let usage = |text: &str| Err(Failure::refuse(Code::WrongOptions, Failure::USAGE, text));
        for (fast, name) in [(true, "fast"), (false, "slow")] {
            if self.tier.iter().filter(|tier| tier.fast == fast).count() > 1 {
                return usage(&format!("--tier {name}=...: give this tier only once"));
            }
        }
        if self.fast().is_none() {
            if self
                .slow()
                .is_some_and(|slow| slow.capacity.is_some() || slow.limit.is_some())
            {
                return usage(
                    "--tier slow=...: capacity and limit need a --tier fast=PATH,capacity=SIZE beside it",
                );
            }
            if self.redundancy != Redundancy::None
                || self.staging != How::Exact
                || self.peer_limit.is_some()
            {
                return usage(
                    "--redundancy, --staging and --peer-limit need a --tier fast=PATH,capacity=SIZE",
                );
            }
        }
        Ok(())
    }

    fn fast(&self) -> Option<&TierOption> {
        self.tier.iter().find(|tier| tier.fast)
    }

    fn slow(&self) -> Option<&TierOption> {
        self.tier.iter().find(|tier| !tier.fast)
    }

    /// The checkpoint directory: that of `--dir`, or the slow tier. If both are given, they must be the same.
    pub fn directory(&self, given: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        let slow = self.slow().map(|slow| directory_name::filled(&slow.path));
        let slow = slow.transpose()?;
        match (given, slow.as_deref()) {
            (Some(given), Some(slow)) => {
                let absolute = |path: &Path| std::path::absolute(path).unwrap_or(path.to_owned());
                if absolute(given) != absolute(slow) {
                    return Err(Failure::refuse(
                        Code::WrongOptions,
                        Failure::USAGE,
                        format!(
                            "--tier slow={}: the slow tier must be the checkpoint directory, which is {}: name the \
                             same directory, or leave one of the two out",
                            slow.display(),
                            given.display()
                        ),
                    ));
                }
                Ok(Some(given.to_owned()))
            }
            (given, slow) => Ok(given.or(slow).map(Path::to_owned)),
        }
    }

    /// The rules for the coordinator.
    pub fn staging(&self) -> Option<Staging> {
        self.fast().map(|_| Staging {
            local_only: self.staging == How::Local,
            partners: self.redundancy == Redundancy::Partner,
        })
    }

    /// The tiers for this rank's agent. It makes the fast tier's directory.
    pub fn of_rank(&self, place: &LaunchPosition) -> Result<Option<Tiers>, Failure> {
        let Some(fast) = self.fast() else {
            return Ok(None);
        };
        let text = fast.path.to_string_lossy();
        let path = text
            .replace("%h", &host_name())
            .replace("%r", &place.rank.to_string());
        let failed = |error: std::io::Error| {
            let text = format!(
                "rank {}: --tier fast={path}: cannot write there: {error}: choose another directory",
                place.rank
            );
            Failure::refuse_because(Code::TierFailed, &error, text)
        };
        let path = std::path::absolute(&path).map_err(failed)?;
        stillpoint_directory::make_shared(&path).map_err(failed)?;
        let mut probe = stillpoint_directory::scratch(&path).map_err(failed)?;
        probe.write_all(b"x").map_err(failed)?;
        Ok(Some(Tiers {
            fast: path,
            capacity: fast.capacity.unwrap_or(0),
            slow_capacity: self.slow().and_then(|slow| slow.capacity),
            fast_limit: fast.limit,
            slow_limit: self.slow().and_then(|slow| slow.limit),
            peer_limit: self.peer_limit,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_read_as_people_write_them() {
        let tier: TierOption = "fast=/dev/shm/x,capacity=8G,limit=2GB/s".parse().unwrap();
        assert_eq!(
            (tier.fast, tier.path.as_path()),
            (true, Path::new("/dev/shm/x"))
        );
        assert_eq!(
            (tier.capacity, tier.limit),
            (Some(8_000_000_000), Some(2_000_000_000))
        );
        let tier: TierOption = "slow=/scratch/x".parse().unwrap();
        assert_eq!((tier.fast, tier.capacity, tier.limit), (false, None, None));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        for (text, field) in [
            ("", "fast=PATH"),
            ("/dev/shm/x", "fast=PATH"),
            ("medium=/x,capacity=1G", "medium"),
            ("fast=,capacity=1G", "path"),
            ("fast=/x", "capacity"),
            ("fast=/x,capacity=-5G", "capacity: '-5G' is negative"),
            ("fast=/x,capacity=0", "capacity"),
            ("fast=/x,capacity=many", "capacity"),
            ("fast=/x,capacity", "capacity"),
            ("fast=/x,capacity=1G,limit=0", "limit"),
            ("slow=/x,limit=5 parsecs", "limit"),
            ("slow=/x,size=5G", "size"),
        ] {
            let error = text.parse::<TierOption>().unwrap_err();
            assert!(error.contains(field), "{text}: {error}");
        }
    }

    #[test]
    fn the_slow_tier_is_the_checkpoint_directory() {
        let options = |slow: &str| TierOptions {
            tier: vec![slow.parse().unwrap()],
            staging: How::Exact,
            redundancy: Redundancy::None,
            peer_limit: None,
        };
        let directory = |slow: &str, given: Option<&str>| {
            options(slow)
                .directory(given.map(Path::new))
                .map_err(|failure| failure.status)
        };
        assert_eq!(directory("slow=/a", None), Ok(Some("/a".into())));
        assert_eq!(directory("slow=/a", Some("/a")), Ok(Some("/a".into())));
        assert_eq!(directory("slow=/a", Some("/b")), Err(Failure::USAGE));
        assert!(options("slow=/a,limit=5M").check().is_err());
    }
}
