//! The node's GPUs for plans, and the record of copies beside the job's epochs.

use std::fs;
use std::path::{Path, PathBuf};

use stillpoint_gpu_copies::{Gpus, survey};
use stillpoint_gpu_driver::devices::Device as Described;
use stillpoint_gpu_driver::{Driver, devices};
use stillpoint_gpu_plan::node::MARGIN;
use stillpoint_gpu_plan::record::TO_HOST;
use stillpoint_gpu_plan::streams::{UNMEASURED, probes};
use stillpoint_gpu_plan::{Copies, Host, Node, Record, StagingPlace};
use stillpoint_gpu_staging::{Device, Measured, MeasuredBack};
use stillpoint_ids::Epoch;

use super::known;
use crate::facts;

/// The divisor for the share of a GPU's memory that stays free; it matters for small GPUs.
const PART: u64 = 16;

/// The divisor for the slots' share of the host memory that staging may take.
pub const ARENA: u64 = 8;

/// GPUs and all facts known about them.
pub struct Surveyed {
    pub gpus: Gpus<'static>,
    pub described: Vec<Described>,
    pub node: Node,
    pub record: Record,
    /// The driver's version, as the record has it.
    pub version: String,
    directory: PathBuf,
}

impl Surveyed {
    /// Opens all GPUs, and probes the ways that neither the directory's record nor `known` contains.
    ///
    /// # Errors
    /// The driver's; the text is for people.
    pub fn begin(
        driver: &'static Driver,
        directory: &Path,
        known: Option<Record>,
    ) -> Result<Surveyed, String> {
        let described = devices::all(driver).map_err(|error| error.to_string())?;
        let room = host_room();
        let mut gpus =
            Gpus::open(driver, described.len(), room).map_err(|error| error.to_string())?;
        let version = facts::of(driver)?.version();
        let mut record = known.unwrap_or_else(|| known::read(directory));
        let before = record.clone();
        let host = Host {
            room,
            bandwidth: None,
        };
        let smallest = described.iter().map(|device| device.bytes).min();
        let margin = MARGIN.min(smallest.unwrap_or(0) / PART);
        let mut least = room;
        for number in 0..described.len() {
            let free = gpus.room(StagingPlace::Gpu(number));
            least = least.min(free.map_err(|error| error.to_string())?);
        }
        // A probe takes at most an eighth of the free memory of any place.
        let largest = probes().map(|(bytes, _)| bytes).max().unwrap_or(1);
        let cut = (8 * largest).div_ceil(least.max(1)).next_power_of_two();
        let node = survey(
            &mut gpus,
            &described,
            &version,
            &mut record,
            host,
            margin,
            cut,
        )
        .map_err(|error| error.to_string())?;
        let surveyed = Surveyed {
            gpus,
            described,
            node,
            record,
            version,
            directory: directory.to_owned(),
        };
        if surveyed.record != before {
            surveyed.write();
        }
        Ok(surveyed)
    }

    /// Checks that there is room for everything that processes may have on the node's GPUs. After this check only the copies lead back. The
    /// driver tells how much memory a process has only once it lends the memory, so memory of other processes counts, too.
    ///
    /// # Errors
    /// There is not enough room; or the driver's error. The text is for people.
    pub fn has_room(&mut self, slots: u64) -> Result<(), String> {
        let (mut used, mut room) = (0, 0);
        for (number, device) in self.described.iter().enumerate() {
            let free = self.gpus.room(StagingPlace::Gpu(number));
            let free = free.map_err(|error| error.to_string())?;
            used += device.bytes.saturating_sub(free);
            room += free.saturating_sub(self.node.margin);
        }
        self.node.host.room = host_room();
        let host = self.gpus.room(StagingPlace::Host);
        let host = host.map_err(|error| error.to_string())?;
        room += self.node.host.room.min(host.saturating_sub(slots));
        match used <= room {
            true => Ok(()),
            false => Err(format!(
                "{used} bytes are in use on this node's GPUs, but GPUs and host memory have room for only {room}"
            )),
        }
    }

    /// Chooses how each of so many ranks drains its staged memory, by the model of the GPU with most memory in use. All ranks together use at
    /// most an eighth of the host memory that staging may take.
    pub fn drain(&mut self, ranks: usize) -> Result<Copies, String> {
        let room = host_room() / ARENA / ranks.max(1) as u64;
        let mut most = (0, 0);
        for (number, device) in self.described.iter().enumerate() {
            let free = self.gpus.room(StagingPlace::Gpu(number));
            let free = free.map_err(|error| error.to_string())?;
            most = most.max((device.bytes.saturating_sub(free), number));
        }
        let (used, number) = most;
        let Some(gpu) = self.node.gpus.get(number) else {
            return Ok(UNMEASURED.within(room));
        };
        let each = used / ranks.max(1) as u64;
        let (copies, _) = (self.record).choose_in(&gpu.uuid, &self.version, TO_HOST, each, room);
        Ok(copies)
    }

    /// Adds the way back to the record.
    pub fn note_back(&mut self, measured: &MeasuredBack, epoch: Epoch) {
        measured.add_to(&mut self.record, &self.node, &self.version, epoch);
        self.write();
    }

    /// Adds an epoch's copies to the record.
    pub fn note(&mut self, measured: &Measured, epoch: Epoch) {
        measured.add_to(&mut self.record, &self.node, &self.version, epoch);
        self.write();
    }

    fn write(&self) {
        known::write(&self.directory, &self.record, &self.described);
    }
}

/// Returns half of the memory that the kernel could give at once.
pub fn host_room() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024 / 2
}
