//! The job's key: 256 random bits, made by the coordinator, kept in job.json (mode 0600).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The job's key: every process that holds it may act for the job. It is written as 64 hexadecimal digits, and `Debug` never shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(pub(crate) [u8; 32]);

/// The text is not a key.
#[derive(Debug, thiserror::Error)]
#[error("a job key must have 64 hexadecimal digits")]
pub struct NotAKey;

impl Key {
    /// A new key from the system's random number generator.
    pub fn random() -> std::io::Result<Key> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
        Ok(Key(bytes))
    }
}

impl FromStr for Key {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Key, NotAKey> {
        let text = text.as_bytes();
        if text.len() != 64 {
            return Err(NotAKey);
        }
        let mut key = [0; 32];
        for (byte, digits) in key.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |d: u8| (d as char).to_digit(16).ok_or(NotAKey);
            *byte = (digit(digits[0])? * 16 + digit(digits[1])?) as u8;
        }
        Ok(Key(key))
    }
}

impl TryFrom<String> for Key {
    type Error = NotAKey;

    fn try_from(text: String) -> Result<Key, NotAKey> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_text() {
        let key = Key::random().unwrap();
        let text = String::from(key.clone());
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse::<Key>().unwrap(), key);
        assert_ne!(Key::random().unwrap(), key);
    }

    #[test]
    fn what_is_not_a_key_is_refused_and_a_key_is_never_shown() {
        for text in ["", "00", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
        assert_eq!(format!("{:?}", Key([7; 32])), "Key(..)");
    }
}
