//! Whether a node's devices can take what an image was written from. Pure.

use serde::{Deserialize, Serialize};
use stillpoint_gpu_messages::{Device, Facts, Report, Uuid};
use stillpoint_part::Kind;
use stillpoint_refusals::{Refusal, refusal};

/// The image's part about the rank's GPUs: JSON, a [`Carried`].
pub const KIND: Kind = Kind {
    name: "gpu",
    version: 1,
    always: false,
};

/// The devices and the driver of a rank that used them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    pub facts: Facts,
    /// The thread that the driver restores with, by the id that the application knows.
    pub thread: u32,
    /// How device memory was staged, so that it is a section of the image; `None`: it is in the rank's own memory.
    #[serde(default)]
    pub staged: Option<Report>,
}

/// Returns why this node cannot take device memory in the image's form.
pub fn form(carried: &Carried, now: &Facts) -> Option<Refusal> {
    let reason = now.no_custom_storage.as_ref()?;
    carried.staged.as_ref()?;
    Some(refusal!(
        OtherGpu,
        "its GPU memory was staged (--gpu-staging), and this node's driver cannot take it in that form: {reason}"
    ))
}

/// Returns which device takes the place of which; nothing if all are the same.
///
/// # Errors
/// Every reason why they cannot, in words for people.
pub fn pairs(before: &Facts, now: &Facts) -> Result<Vec<(Uuid, Uuid)>, Vec<Refusal>> {
    let mut reasons = Vec::new();
    if (before.cuda, &before.driver) != (now.cuda, &now.driver) {
        reasons.push(refusal!(OtherGpu, "its GPU memory was put down by {}, this node has {}: restart it on a node with the driver that it was suspended with",
            before.version(),
            now.version()
        ));
    }
    let unsupported = now.no_host_mode.iter();
    reasons.extend(unsupported.map(|reason| refusal!(GpuUnsupported, "{reason}")));
    let (mut pairs, mut taken) = (Vec::new(), vec![false; now.devices.len()]);
    // A device that is still there keeps its place. The others are matched in their order, which is the same for every rank of a node.
    let (same, other): (Vec<&Device>, Vec<&Device>) =
        (before.devices.iter()).partition(|old| now.devices.iter().any(|new| new.uuid == old.uuid));
    for old in same {
        for (new, taken) in now.devices.iter().zip(&mut taken) {
            *taken |= new.uuid == old.uuid;
        }
        pairs.push((old.uuid, old.uuid));
    }
    let moved = !other.is_empty();
    for old in other {
        let fits = |new: &Device| new.name == old.name && new.bytes >= old.bytes;
        let mut free = now
            .devices
            .iter()
            .zip(&mut taken)
            .filter(|(_, taken)| !**taken);
        match free.find(|(new, _)| fits(new)) {
            Some((new, taken)) => {
                *taken = true;
                pairs.push((old.uuid, new.uuid));
            }
            None => reasons.push(lacking(old, now)),
        }
    }
    match (reasons.is_empty(), moved) {
        (false, _) => Err(reasons),
        (true, false) => Ok(Vec::new()),
        (true, true) => Ok(pairs),
    }
}

fn lacking(old: &Device, now: &Facts) -> Refusal {
    let there: Vec<&str> = now.devices.iter().map(|one| one.name.as_str()).collect();
    let there = match there.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    refusal!(
        OtherGpu,
        "it ran beside GPU {} ({}, {} MiB), and no GPU of that kind is free for it here (there is: {there}): restart it on a node with the same GPUs",
        old.uuid,
        old.name,
        old.bytes >> 20
    )
}

#[cfg(test)]
mod tests {
    use stillpoint_refusals::in_words;

    use super::*;

    fn node(devices: &[(u8, &str)]) -> Facts {
        let device = |(number, name): &(u8, &str)| Device {
            uuid: Uuid([*number; 16]),
            name: (*name).to_owned(),
            bytes: 1 << 30,
        };
        Facts {
            cuda: 13040,
            devices: devices.iter().map(device).collect(),
            ..Facts::default()
        }
    }

    fn found(before: &Facts, now: &Facts) -> Vec<(u8, u8)> {
        let pairs = pairs(before, now).unwrap();
        pairs
            .iter()
            .map(|(old, new)| (old.0[0], new.0[0]))
            .collect()
    }

    #[test]
    fn the_same_devices_need_no_pairs() {
        let node_now = node(&[(1, "A"), (2, "A")]);
        assert_eq!(found(&node_now, &node_now), []);
        assert_eq!(found(&node_now, &node(&[(3, "A"), (2, "A"), (1, "A")])), []);
    }

    #[test]
    fn others_of_the_same_kind_are_taken_once() {
        let before = node(&[(1, "A"), (2, "B"), (3, "A")]);
        let now = node(&[(4, "A"), (5, "A"), (6, "B")]);
        assert_eq!(found(&before, &now), [(1, 4), (2, 6), (3, 5)]);
        let now = node(&[(4, "A"), (1, "A"), (6, "B")]);
        assert_eq!(found(&before, &now), [(1, 1), (2, 6), (3, 4)]);
    }

    #[test]
    fn another_kind_and_another_driver_are_refused_by_name() {
        let before = node(&[(1, "A"), (2, "A")]);
        let mut now = node(&[(3, "A"), (4, "B")]);
        let reasons = in_words(&pairs(&before, &now).unwrap_err());
        assert!(
            reasons.contains("(A, 1024 MiB)") && reasons.contains("there is: A, B"),
            "{reasons}"
        );
        now = before.clone();
        now.driver = Some("600.1".to_owned());
        let reasons = in_words(&pairs(&before, &now).unwrap_err());
        assert!(
            reasons.contains("this node has driver 600.1 (CUDA 13.4)"),
            "{reasons}"
        );
        now = before.clone();
        for device in &mut now.devices {
            *device = Device {
                uuid: Uuid([9; 16]),
                bytes: 1 << 20,
                ..device.clone()
            };
        }
        assert!(pairs(&before, &now).is_err(), "smaller ones");
    }
}
