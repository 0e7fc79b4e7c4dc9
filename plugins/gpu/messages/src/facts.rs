//! Facts about a node's driver and devices.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A node's driver and devices, as the driver reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The driver's version of CUDA: 13040 is 13.4.
    pub cuda: i32,
    /// The driver's own version, if the kernel tells it.
    pub driver: Option<String>,
    pub devices: Vec<Device>,
    /// The reason why a process's devices cannot be checkpointed by way of its own memory, or `None` if they can.
    pub no_host_mode: Option<String>,
    /// The reason why the process that asks for a checkpoint cannot copy device memory itself, or `None` if it can.
    pub no_custom_storage: Option<String>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub uuid: Uuid,
    pub name: String,
    /// Bytes of its memory.
    pub bytes: u64,
}

impl Facts {
    /// Returns the versions, for people.
    pub fn version(&self) -> String {
        let cuda = format!("CUDA {}.{}", self.cuda / 1000, self.cuda % 1000 / 10);
        match &self.driver {
            Some(driver) => format!("driver {driver} ({cuda})"),
            None => cuda,
        }
    }
}

/// A device's identity, as people write it: `GPU-` and hexadecimal digits in groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

/// Bytes of each group.
const GROUPS: [usize; 5] = [4, 2, 2, 2, 6];

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU")?;
        let mut bytes = self.0.iter();
        for group in GROUPS {
            write!(f, "-")?;
            for byte in bytes.by_ref().take(group) {
                write!(f, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Uuid {
    type Err = String;

    fn from_str(text: &str) -> Result<Uuid, String> {
        let wrong = || format!("'{text}' is not the identity of a GPU");
        let digits: String = text
            .strip_prefix("GPU-")
            .ok_or_else(wrong)?
            .replace('-', "");
        let number = u128::from_str_radix(&digits, 16).map_err(|_| wrong())?;
        let uuid = Uuid(number.to_be_bytes());
        match uuid.to_string() == text {
            true => Ok(uuid),
            false => Err(wrong()),
        }
    }
}

impl Serialize for Uuid {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uuid {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Uuid, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_written_as_people_know_them() {
        let text = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!(uuid.0, core::array::from_fn(|place| place as u8));
        assert_eq!(uuid.to_string(), text);
        for wrong in [
            "",
            "GPU-",
            &text[4..],
            &text[..30],
            "GPU-0001020304050607-08090a0b0c0d0e0f",
        ] {
            assert!(wrong.parse::<Uuid>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn versions_are_told() {
        let mut facts = Facts {
            cuda: 13040,
            ..Facts::default()
        };
        assert_eq!(facts.version(), "CUDA 13.4");
        facts.driver = Some("615.10".to_owned());
        assert_eq!(facts.version(), "driver 615.10 (CUDA 13.4)");
    }
}
