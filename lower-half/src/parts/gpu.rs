//! Memory on GPUs, and the driver's state there.

use stillpoint_gpu_messages::{Memory, Uuid};
use stillpoint_image::Reader;
use stillpoint_part::{Done, Failure, Kind, Part, Payload, Saved};
use stillpoint_refusals::{Coded, Refusal, refusal};

use super::put;
use crate::capture::stopped_process::Still;
use crate::gpu::client::Client;
use crate::gpu::fitting::{self, Carried, KIND};
use crate::gpu::{held, returning};
use crate::ground::page::Page;
use crate::restore::back::Back;
use crate::restore::{read_if_there, threads};
use crate::threads::registry;

pub struct Gpu;

impl Part<Still<'_>, Back> for Gpu {
    fn name(&self) -> &'static str {
        "GPUs"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn quiet(&self, given_up: &dyn Fn() -> bool) -> Done {
        // SAFETY: an application runs, so the gate page is mapped and filled.
        let page = unsafe { Page::mapped() };
        held::lock(page, given_up).map_err(|reason| Failure::Hindered(vec![reason]))
    }

    fn save(&self, still: &Still<'_>) -> Done {
        drop(still.enter()?);
        held::save()?;
        Ok(())
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let _inside = still.enter()?;
        match held::carried() {
            Some(carried) => put(payloads, KIND, &carried),
            None => Ok(()),
        }
    }

    fn release(&self) -> Result<(), String> {
        held::release()
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        match read_if_there::<Carried>(saved, &KIND) {
            Ok(None) => {}
            Ok(Some(carried)) => reasons.extend(pairs(&carried).err().unwrap_or_default()),
            Err(reason) => reasons.push(reason),
        }
    }

    fn resume(&self, back: &mut Back) -> Done {
        let Some(carried) = read_if_there::<Carried>(&back.restore, &KIND)? else {
            return Ok(());
        };
        let pairs = pairs(&carried).map_err(Refusal::together)?;
        let thread = registry::each().find(|thread| thread.virtual_tid() == carried.thread);
        let thread = thread.ok_or_else(|| {
            refusal!(
                BrokenImage,
                "its image lacks thread {} of its GPUs' driver: use another epoch",
                carried.thread
            )
        })?;
        threads::go_alone(thread);
        match carried.staged {
            None => returning::bring_back(thread, &pairs, returning::From::Own)?,
            Some(_) => from_image(back.restore.reader(), |memories, read| {
                returning::bring_back(thread, &pairs, returning::From::Image(memories, read))
            })?,
        }
        Ok(())
    }
}

/// Gives `bring_back` the memory of devices in an image.
fn from_image(
    image: &Reader,
    bring_back: impl FnOnce(&[Memory], &mut returning::Read<'_>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let devices = image.devices().iter();
    let memories: Vec<Memory> = devices
        .clone()
        .map(|device| Memory {
            uuid: Uuid(device.uuid.0),
            bytes: image.device_bytes(device),
        })
        .collect();
    // The memories are asked for one after the other: a stream has room for a chunk.
    let mut streams: Vec<_> = devices.map(|device| image.device_stream(device)).collect();
    bring_back(&memories, &mut |number, into| {
        let stream = streams.get_mut(number);
        let stream = stream.ok_or_else(|| format!("its image has no memory {number} of a GPU"))?;
        stream.read(into).map_err(|error| error.to_string())
    })
}

/// Pairs the image's devices with devices of this node.
fn pairs(carried: &Carried) -> Result<Vec<(Uuid, Uuid)>, Vec<Refusal>> {
    let facts = Client::connect().and_then(|mut client| client.facts());
    let facts = facts.map_err(|trouble| {
        let text = format!("its GPU memory cannot be brought back here: {trouble}");
        vec![Refusal::new(trouble.code(), text)]
    })?;
    let mut found = fitting::pairs(&carried.facts, &facts);
    if let Some(reason) = fitting::form(carried, &facts) {
        match &mut found {
            Ok(_) => found = Err(vec![reason]),
            Err(reasons) => reasons.push(reason),
        }
    }
    found
}
