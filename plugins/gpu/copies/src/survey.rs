//! A survey of a node for the plans: its GPUs by uuid, the GPUs that each can reach, and the speed of the ways. It probes each way that is not in
//! the record once: the record is for all epochs under this driver.

use stillpoint_gpu_driver::Error;
use stillpoint_gpu_driver::devices::Device as Described;
use stillpoint_gpu_plan::record::named;
use stillpoint_gpu_plan::streams::probes;
use stillpoint_gpu_plan::{Back, Copies, CopyRoute, Gpu, Host, Node, Peer, Record, StagingPlace};
use stillpoint_gpu_staging::{DeviceError, probe};

use crate::Gpus;

/// An error of the driver during a survey.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error(transparent)]
    Call(#[from] Error),
    #[error(transparent)]
    Copy(#[from] DeviceError),
}

/// Surveys the node. `described` are the devices that `gpus` has, in the same order, and `driver` its version; `cut` makes probes smaller on
/// GPUs that are slow or full.
///
/// # Errors
/// The driver's.
pub fn survey(
    gpus: &mut Gpus<'_>,
    described: &[Described],
    driver: &str,
    record: &mut Record,
    host: Host,
    margin: u64,
    cut: u64,
) -> Result<Node, SurveyError> {
    let mut node = Node {
        gpus: described.iter().map(unmeasured).collect(),
        peers: Vec::new(),
        uplinks: Vec::new(),
        host,
        margin,
    };
    for from in 0..described.len() {
        for to in (0..described.len()).filter(|to| *to != from) {
            node.peers.push(Peer {
                from,
                to,
                access: gpus.reach(from, to)?,
                measured: None,
            });
        }
    }
    let all = |from| {
        (0..described.len())
            .map(StagingPlace::Gpu)
            .chain([StagingPlace::Host])
            .map(move |to| CopyRoute { from, to })
    };
    for way in (0..described.len()).flat_map(all) {
        let closed = |peer: &Peer| {
            StagingPlace::Gpu(peer.to) == way.to && peer.from == way.from && !peer.access
        };
        if node.peers.iter().any(closed) {
            continue;
        }
        let uuid = node.gpus[way.from].uuid.clone();
        let name = node.way_name(way).to_owned();
        let between = (StagingPlace::Gpu(way.from), way.to);
        know(gpus, between, (&uuid, driver, &name), record, cut)?;
        measured(&mut node, way, record.bandwidth(&uuid, driver, &name));
    }
    for gpu in 0..described.len() {
        let back = Back {
            from: StagingPlace::Host,
            to: gpu,
        };
        let (uuid, name) = node.back_name(back);
        let between = (back.from, StagingPlace::Gpu(gpu));
        know(gpus, between, (uuid, driver, name), record, cut)?;
    }
    Ok(node)
}

/// Probes a way that is not in the record.
fn know(
    gpus: &mut Gpus<'_>,
    between: (StagingPlace, StagingPlace),
    (uuid, driver, name): (&str, &str, &str),
    record: &mut Record,
    cut: u64,
) -> Result<(), DeviceError> {
    if !record.copied(uuid, driver, name).is_empty() {
        return Ok(());
    }
    let smaller = |(bytes, copies): (u64, Copies)| {
        let slot = (copies.slot / cut).max(1);
        (bytes / cut, Copies { slot, ..copies })
    };
    for probe in probe(gpus, between, probes().map(smaller))? {
        record.add(uuid, driver, name, probe.copied());
    }
    Ok(())
}

fn unmeasured(device: &Described) -> Gpu {
    Gpu {
        uuid: named(&device.uuid),
        free: 0,
        own: None,
        // The bus could not be measured, as on a GPU without free memory. It exists, and counts as slow.
        host: 1 << 30,
    }
}

fn measured(node: &mut Node, way: CopyRoute, bandwidth: Option<u64>) {
    let Some(bandwidth) = bandwidth else { return };
    match way.to {
        StagingPlace::Host => node.gpus[way.from].host = bandwidth,
        StagingPlace::Gpu(to) if to == way.from => node.gpus[to].own = Some(bandwidth),
        StagingPlace::Gpu(to) => {
            let this = |peer: &&mut Peer| (peer.from, peer.to) == (way.from, to);
            if let Some(peer) = node.peers.iter_mut().find(this) {
                peer.measured = Some(bandwidth);
            }
        }
    }
}
