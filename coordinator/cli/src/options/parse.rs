//! Parses names, times and signals of a launch's options.

use std::str::FromStr;

use nix::sys::signal::Signal;
use stillpoint_protocol::{Silence, safe_text};

use super::Interval;
use crate::units::parse_duration;

/// Parses a name. It must not look like a directory, or TARGET could mean either.
pub fn parse_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains('/') || safe_text::line(text) != text {
        true => Err(
            "a name must not be empty, and must hold only printable characters and no '/'"
                .to_owned(),
        ),
        false => Ok(text.to_owned()),
    }
}

/// Parses a time that needs a unit: a bare 30 may be meant as minutes.
pub fn parse_interval(text: &str) -> Result<Interval, String> {
    if text == "auto" {
        return Ok(Interval::Auto);
    }
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Err(format!(
            "'{text}' has no unit: write {text}s, {text}m or {text}h"
        )),
        false => parse_duration(text).map(Interval::Every),
    }
}

pub fn parse_silence(text: &str) -> Result<Silence, String> {
    let (shortest, longest) = (Silence::SHORTEST, Silence::LONGEST);
    Silence::new(parse_duration(text)?.time()).ok_or_else(|| {
        format!("a host may be silent for {shortest} to {longest}, but {text} is given")
    })
}

pub fn parse_compression(text: &str) -> Result<String, String> {
    stillpoint_image::Compression::from_str(text).map(|_| text.to_owned())
}

/// Parses "USR1", "SIGUSR1" or "10".
pub fn parse_signal(text: &str) -> Result<i32, String> {
    let wrong =
        || format!("'{text}' is not a signal that can be caught: write USR1, SIGUSR1 or 10");
    let signal = match text.parse::<i32>() {
        Ok(number) => Signal::try_from(number).map_err(|_| wrong())?,
        Err(_) => {
            let upper = text.to_uppercase();
            let name = if upper.starts_with("SIG") {
                upper
            } else {
                format!("SIG{upper}")
            };
            Signal::from_str(&name).map_err(|_| wrong())?
        }
    };
    match signal {
        // The gate uses SIGSYS.
        Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGSYS => Err(wrong()),
        signal => Ok(signal as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for text in ["USR1", "usr1", "SIGUSR1", "10"] {
            assert_eq!(parse_signal(text), Ok(10), "{text}");
        }
        for text in ["KILL", "9", "SYS", "0", "", "NOPE", "99"] {
            assert!(parse_signal(text).is_err(), "{text}");
        }
    }
}
