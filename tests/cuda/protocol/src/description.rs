//! The description of a node's devices, which the starter of the devices writes as TOML.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// A node with its driver and its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The driver's version.
    #[serde(default = "driver")]
    pub driver: String,
    /// The driver's version of CUDA: 13040 is 13.4.
    #[serde(default = "cuda")]
    pub cuda: i32,
    /// Whether a checkpoint can be taken with custom storage.
    #[serde(default = "yes")]
    pub custom_storage: bool,
    /// Whether a process with managed memory can be checkpointed.
    #[serde(default = "yes")]
    pub managed: bool,
    /// Bytes that a context takes of its device's memory.
    #[serde(default)]
    pub context: u64,
    /// Faults from the beginning, with the number of times that each strikes, or without a limit if none is given.
    #[serde(default)]
    pub faults: BTreeMap<String, u64>,
    pub devices: Vec<Device>,
    /// Ways between two devices. Without one, a copy goes over the host.
    #[serde(default)]
    pub links: Vec<Link>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub name: String,
    pub uuid: [u8; 16],
    /// The identity of the GPU that this one is a part of (MIG), if it is one.
    #[serde(default)]
    pub part_of: Option<[u8; 16]>,
    /// Bytes.
    pub memory: u64,
    /// Compute capability.
    #[serde(default = "capability")]
    pub capability: [i32; 2],
    /// Bytes a second to and from the host, for each direction; without a limit if none is given.
    #[serde(default)]
    pub host: Option<f64>,
    /// Seconds that each copy takes before its first byte goes. They delay its stream, but no link. So several streams are
    /// quicker than one for small copies.
    #[serde(default)]
    pub latency: f64,
}

/// A way between two devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub between: [u32; 2],
    /// Bytes a second, for each direction; without a limit if none is given.
    #[serde(default)]
    pub bandwidth: Option<f64>,
}

fn driver() -> String {
    "615.10".to_owned()
}

fn cuda() -> i32 {
    13040
}

fn yes() -> bool {
    true
}

fn capability() -> [i32; 2] {
    [9, 0]
}

impl Node {
    /// Makes a node with `count` devices of the same kind, each linked with each, without speed limits.
    pub fn of(count: u32, memory: u64) -> Node {
        let device = |number: u32| Device {
            name: "Emulated GPU".to_owned(),
            uuid: identity(number),
            part_of: None,
            memory,
            capability: capability(),
            host: None,
            latency: 0.0,
        };
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| [one, other]));
        Node {
            driver: driver(),
            cuda: cuda(),
            custom_storage: true,
            managed: true,
            context: 0,
            faults: BTreeMap::new(),
            devices: (0..count).map(device).collect(),
            links: pairs
                .map(|between| Link {
                    between,
                    bandwidth: None,
                })
                .collect(),
        }
    }

    /// Reads a description.
    pub fn read(path: &Path) -> io::Result<Node> {
        toml::from_str(&fs::read_to_string(path)?).map_err(io::Error::other)
    }

    /// Returns the description as the text of a file.
    pub fn text(&self) -> io::Result<String> {
        toml::to_string(self).map_err(io::Error::other)
    }

    /// Returns the link between two devices.
    pub fn link(&self, one: u32, other: u32) -> Option<&Link> {
        let of = |link: &&Link| link.between == [one, other] || link.between == [other, one];
        self.links.iter().find(of)
    }
}

/// Returns the uuid of a device by its number.
pub fn identity(number: u32) -> [u8; 16] {
    let mut bytes = *b"emulated-gpu----";
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::Node;

    #[test]
    fn a_description_says_what_it_was_made_from() {
        let node = Node::of(3, 1 << 30);
        assert_eq!(node.links.len(), 3);
        let text = node.text().unwrap();
        assert_eq!(toml::from_str::<Node>(&text).unwrap(), node);
    }

    #[test]
    fn little_has_to_be_said() {
        let text =
            "[[devices]]\nname = \"A\"\nuuid = [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1]\nmemory = 1000\n";
        let node: Node = toml::from_str(text).unwrap();
        assert_eq!((node.cuda, node.custom_storage), (13040, true));
        assert!(toml::from_str::<Node>("devices = []\nspeling = 1").is_err());
    }
}
