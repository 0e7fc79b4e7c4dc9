//! Probing: timed copies over one way, for the model of ways without measurements.

use stillpoint_gpu_plan::record::PROBE;
use stillpoint_gpu_plan::{Copied, Copies, StagingPlace};

use crate::device::{Copy, Device, DeviceError, Spot};
use crate::pump::Pump;

/// One timed copy.
#[derive(Clone, std::marker::Copy, PartialEq, Debug)]
pub struct Probe {
    pub bytes: u64,
    pub copies: Copies,
    pub seconds: f64,
}

impl Probe {
    /// Converts it to an entry of the record of copies.
    pub fn copied(&self) -> Copied {
        Copied {
            epoch: PROBE,
            sample: self.copies.sample(self.bytes, self.seconds),
            predicted: None,
            back: false,
        }
    }
}

/// Times copies from a place to another, in unused memory. Sizes without room are left out.
pub fn probe(
    device: &mut dyn Device,
    (from, to): (StagingPlace, StagingPlace),
    sizes: impl IntoIterator<Item = (u64, Copies)>,
) -> Result<Vec<Probe>, DeviceError> {
    let mut probes = Vec::new();
    for (bytes, copies) in sizes {
        match timed(device, (from, to), bytes, copies) {
            Ok(seconds) => probes.push(Probe {
                bytes,
                copies,
                seconds,
            }),
            Err(DeviceError::OutOfMemory { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(probes)
}

fn timed(
    device: &mut dyn Device,
    (from, to): (StagingPlace, StagingPlace),
    bytes: u64,
    copies: Copies,
) -> Result<f64, DeviceError> {
    let from = device.reserve(from, bytes)?;
    let to = match device.reserve(to, bytes) {
        Ok(to) => to,
        Err(error) => {
            device.give_back(from);
            return Err(error);
        }
    };
    let took = copy(device, from, to, bytes, copies);
    if took.is_err() {
        device.settle();
    }
    device.give_back(from);
    device.give_back(to);
    took
}

fn copy(
    device: &mut dyn Device,
    from: Spot,
    to: Spot,
    bytes: u64,
    copies: Copies,
) -> Result<f64, DeviceError> {
    let slot = copies.slot.max(1);
    let mut pump = Pump::default();
    pump.line((from.place, to.place), copies);
    for number in 0..bytes.div_ceil(slot) {
        let done = number * slot;
        let copy = Copy {
            from: from.after(done),
            to: to.after(done),
            bytes: slot.min(bytes - done),
        };
        pump.add(number as usize, copy);
    }
    let began = device.now();
    while pump.next(device)?.is_some() {}
    Ok(device.now().saturating_sub(began).as_secs_f64())
}
