//! Room for a plan: reserved in all places before the first byte is copied. If a place has less room than the device reported, the plan is made
//! again with the real room.

use stillpoint_gpu_plan::{Node, Source, Staging, StagingPlace, plan};

use crate::Error;
use crate::device::{Device, DeviceError, Spot};
use crate::stage::{Settings, ranks};

/// Reserved memory: a place, its beginning, its length.
pub(crate) type Reserved = Vec<(StagingPlace, Spot, u64)>;

/// A plan with all of its room reserved. Host memory also has room for slots, behind the staged bytes.
pub(crate) struct ReservedPlan {
    pub plan: Staging,
    pub reserved: Reserved,
    pub slots: Spot,
}

/// Plans with the memory that the device reports as free, and reserves it.
pub(crate) fn reserve(
    device: &mut dyn Device,
    node: &Node,
    sources: &[Source],
    settings: &Settings<'_>,
) -> Result<ReservedPlan, Error> {
    let mut node = node.clone();
    let slots = settings.drain.slots() * ranks(sources).len().max(1) as u64;
    for (at, gpu) in node.gpus.iter_mut().enumerate() {
        gpu.free = device.room(StagingPlace::Gpu(at))?;
    }
    let host = device.room(StagingPlace::Host)?;
    node.host.room = node.host.room.min(host.saturating_sub(slots));
    loop {
        let plan = plan(&node, sources, settings.scheduling)?;
        match take(device, &plan, slots) {
            Ok((reserved, slots)) => {
                return Ok(ReservedPlan {
                    plan,
                    reserved,
                    slots,
                });
            }
            Err(DeviceError::OutOfMemory { place, .. })
                if shrink(device, &mut node, &plan, place, slots)? => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reserves everything, or nothing.
fn take(
    device: &mut dyn Device,
    plan: &Staging,
    slots: u64,
) -> Result<(Reserved, Spot), DeviceError> {
    let mut reserved = Reserved::new();
    let gpus = plan
        .taken
        .iter()
        .filter(|(place, _)| *place != StagingPlace::Host);
    let host = (StagingPlace::Host, plan.taken(StagingPlace::Host) + slots);
    for &(place, bytes) in gpus.chain([&host]) {
        match device.reserve(place, bytes) {
            Ok(spot) => reserved.push((place, spot, bytes)),
            Err(error) => {
                give_back(device, &reserved);
                return Err(error);
            }
        }
    }
    let all = reserved[reserved.len() - 1].1;
    Ok((reserved, all.after(host.1 - slots)))
}

pub(crate) fn give_back(device: &mut dyn Device, reserved: &Reserved) {
    for (_, spot, _) in reserved {
        device.give_back(*spot);
    }
}

/// Reduces the room of a place that had less than the plan needed: to what is free now, and to half of the plan's need, since free memory may
/// be in pieces. Returns false if the plan needed nothing of the place.
fn shrink(
    device: &mut dyn Device,
    node: &mut Node,
    plan: &Staging,
    place: StagingPlace,
    slots: u64,
) -> Result<bool, DeviceError> {
    let asked = plan.taken(place);
    let free = device.room(place)?;
    Ok(match place {
        StagingPlace::Gpu(gpu) => {
            node.gpus[gpu].free = free.min(node.margin + asked / 2);
            asked > 0
        }
        StagingPlace::Host => {
            node.host.room = free.saturating_sub(slots).min(asked / 2);
            asked > 0
        }
    })
}
