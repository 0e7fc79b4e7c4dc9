//! What the user is told on stderr.

use std::fmt::Display;
use std::io::Write;

use stillpoint_protocol::plain;

/// One line, in one write: the launcher passes on what all ranks say, and takes what comes in two writes for two pieces. Where nobody can be
/// told, that is no reason to end.
pub fn line(text: impl Display) {
    let text = text.to_string();
    let line = format!("stillpoint: {}\n", plain::line(&text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
