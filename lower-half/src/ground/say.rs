//! Messages to the user on stderr.

use std::fmt::Display;
use std::io::Write;

use stillpoint_protocol::safe_text;

/// Prints one line, in one write: the launcher passes on the messages of all ranks, and treats two writes as two pieces. If the line cannot be printed, the
/// process continues.
pub fn line(text: impl Display) {
    let text = text.to_string();
    let line = format!("stillpoint: {}\n", safe_text::line(&text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
