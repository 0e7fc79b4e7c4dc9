//! A number of bytes, or of bytes a second, in a file.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;

/// The number as text, to be parsed like one on the command line. The text may be no number at all.
pub(super) struct Quantity(pub(super) String);

/// The expectation in an error message.
const WANTED: &str = "a number of bytes, or text with a unit such as \"8 GiB\"";

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        deserializer.deserialize_any(Number)
    }
}

struct Number;

impl Visitor<'_> for Number {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(WANTED)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity(text.to_owned()))
    }
}
