//! DIR/timeline.jsonl: the times of epochs, a line of JSON each, for `stillpoint timeline`. The file stays small, as the log does.

use std::io::{self, Write};

use stillpoint_directory::Directory;

/// The file's name in the checkpoint directory, and that of its older part.
pub const NAME: &str = "timeline.jsonl";
pub const OLD: &str = "timeline.jsonl.old";
/// The length from which a file is long. It holds a hundred epochs of a thousand ranks.
pub const LONGEST: u64 = 8 << 20;

/// Adds a line. `at`: the moment, in seconds since 1970, at which the epoch's attempt ended.
pub fn add(directory: &Directory, at: f64, text: &str) -> io::Result<()> {
    let mut file = directory.append(NAME)?;
    if file.metadata()?.len() > LONGEST {
        directory.rename(NAME, OLD, None)?;
        file = directory.append(NAME)?;
    }
    let rest = text.strip_prefix('{').unwrap_or_default();
    file.write_all(format!("{{\"at\":{at:.3},{rest}\n").as_bytes())
}
