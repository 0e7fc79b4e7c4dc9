//! Memory of devices in an image. It lies in contents, and a section of its own says which device each content belongs to.
//!
//! Their bytes are pages in chunks like any other, so that compression, checksums and tiers need to know nothing of devices. Unchanged
//! pages may lie in earlier epochs' images, as with memory ([`crate::delta`]).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A device's identity, as its driver reports it: 32 hexadecimal digits in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<Uuid> for String {
    fn from(uuid: Uuid) -> String {
        uuid.to_string()
    }
}

impl TryFrom<String> for Uuid {
    type Error = String;

    fn try_from(text: String) -> Result<Uuid, String> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(&text, 16) {
            Ok(number) if digits => Ok(Uuid(number.to_be_bytes())),
            _ => Err(format!("'{text}' is not the identity of a device")),
        }
    }
}

/// A device, and the content that holds its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMemory {
    pub uuid: Uuid,
    /// The number of the content.
    pub content: u32,
}
