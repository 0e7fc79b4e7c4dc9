//! The fuzz targets: every reader of bytes from outside, each as a plain function of some bytes.
//!
//! A target never panics, with any bytes, and takes little time and memory. It writes accepted input again, and reads the same
//! from that. It returns whether the bytes were accepted, which shows whether a corpus is useful.
//!
//! The programs in `fuzz/` hand the fuzzer's bytes to these functions; the test of this crate hands them every file of `fuzz/corpus`.

#![forbid(unsafe_code)]

mod blocks;
mod delta;
mod handshake;
mod image;
mod input_directory;
mod manifest;
pub mod parts;
mod plans;
mod program;
mod protocol;
pub mod seeds;
mod texts;

pub use blocks::blocks;
pub use delta::delta;
pub use handshake::handshake;
pub use image::image;
pub use manifest::manifest;
pub use plans::plans;
pub use program::program;
pub use protocol::protocol;
pub use texts::{job_file, launch};

/// Runs one input, and returns whether it was accepted.
pub type Body = fn(&[u8]) -> bool;

/// Every target: its function, and its name, which is also that of its program and its corpus.
pub const TARGETS: [(&str, Body); 10] = [
    ("blocks", blocks),
    ("delta", delta),
    ("handshake", handshake),
    ("image", image),
    ("job_file", job_file),
    ("launch", launch),
    ("manifest", manifest),
    ("plans", plans),
    ("program", program),
    ("protocol", protocol),
];
