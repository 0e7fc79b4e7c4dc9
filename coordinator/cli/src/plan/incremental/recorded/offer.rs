//! The offer of a GPU to hash memory of the host.

use std::path::Path;

use serde::Serialize;
use stillpoint_multilevel::units::show_bandwidth;

use super::RecordedEpoch;
use crate::copies;

/// A GPU as a hasher of memory of the host, in bytes a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Offer {
    /// The rate at which such memory comes to a GPU.
    pub from_host: f64,
    /// The rate at which GPUs have hashed their own memory.
    pub kernel: f64,
    /// The rate of both steps, one after the other. The copy of the memory to a place that a GPU can reach does not count: a processor makes it, which would
    /// have hashed meanwhile.
    pub beta_gpu: f64,
}

impl Offer {
    pub fn of(from_host: f64, kernel: f64) -> Option<Offer> {
        let beta_gpu = 1.0 / (1.0 / from_host + 1.0 / kernel);
        (beta_gpu > 0.0 && beta_gpu.is_finite()).then_some(Offer {
            from_host,
            kernel,
            beta_gpu,
        })
    }

    /// Computes the offer from the directory's record of copies, and from the epochs' records of GPUs that have hashed.
    pub fn measured(directory: &Path, epochs: &[RecordedEpoch]) -> Option<Offer> {
        let from_host = copies::record(directory)?.from_host()?;
        let all = epochs.iter().filter_map(|epoch| epoch.recorded?.devices);
        let (bytes, seconds) = all.fold((0.0, 0.0), |(bytes, seconds), one| {
            (bytes + one.by_gpus as f64, seconds + one.gpu_seconds)
        });
        Offer::of(from_host as f64, bytes / seconds)
    }

    pub fn in_words(&self) -> String {
        let rate = |rate: f64| show_bandwidth(rate as u64);
        format!(
            "a GPU would hash memory of the host at {}: it comes there at {} and is hashed at {}\n",
            rate(self.beta_gpu),
            rate(self.from_host),
            rate(self.kernel)
        )
    }
}
