//! What `/proc` tells, as text. A thread's name in it may be any bytes, so it need not be UTF-8.

use std::io;

/// The text of a file of `/proc`; what is not UTF-8 is replaced.
pub fn by(path: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}
