//! The times of epochs, as the coordinator has recorded them.

use std::io;
use std::path::Path;
use stillpoint_ids::Epoch;

use serde::Deserialize;
use stillpoint_coordinator::server::timeline::{LONGEST, NAME, OLD};
use stillpoint_directory::{Directory, RequiredOwner};

use crate::Failure;

/// An epoch. Moments are seconds since its attempt began.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordedEpoch {
    /// When the attempt ended, in seconds since 1970.
    pub at: f64,
    pub epoch: Epoch,
    pub suspend: bool,
    pub seconds: f64,
    /// By rank.
    pub hosts: Vec<String>,
    pub phases: Vec<Phase>,
    pub stop: Option<Stop>,
    pub written: Vec<Option<Written>>,
    pub staging: Option<Staging>,
    /// How long the copy of a staged epoch to the slow tier has taken.
    #[serde(skip)]
    pub flush: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Phase {
    pub name: String,
    pub began: f64,
    pub ended: f64,
    /// By rank: when it had done its part.
    pub ranks: Vec<Option<f64>>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Stop {
    pub began: f64,
    pub seconds: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Written {
    pub stored_bytes: u64,
    pub bytes: u64,
    pub seconds: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Staging {
    pub seconds: f64,
    pub local_bytes: u64,
    pub peer_bytes: u64,
    pub slow_bytes: u64,
}

/// A flush, which ends after its epoch.
#[derive(Deserialize)]
struct Flush {
    epoch: Epoch,
    flush: f64,
}

/// Reads all that is recorded in a checkpoint directory, oldest first.
pub fn read(directory: &Path) -> Result<Vec<RecordedEpoch>, Failure> {
    let shown = directory.display();
    let failed = |error: io::Error| {
        let status = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::MISSING,
            _ => return Failure::because(&error, format!("{shown}: cannot read {NAME}: {error}")),
        };
        Failure::new(
            status,
            format!("{shown}: no times of epochs are recorded here: name a checkpoint directory"),
        )
    };
    let held = Directory::open(directory, RequiredOwner::Anyones).map_err(failed)?;
    // A line more than the limit may have been added.
    let text = held.read(NAME, 4 * LONGEST).map_err(failed)?;
    let older = held.read(OLD, 4 * LONGEST).unwrap_or_default();
    let text = String::from_utf8_lossy(&older).into_owned() + &String::from_utf8_lossy(&text);
    Ok(parsed(&text))
}

/// A line that was cut off, as when a disk was full, is left out.
fn parsed(text: &str) -> Vec<RecordedEpoch> {
    let mut epochs: Vec<RecordedEpoch> = vec![];
    for line in text.lines() {
        if let Ok(epoch) = serde_json::from_str(line) {
            epochs.push(epoch);
        } else if let Ok(Flush { epoch, flush }) = serde_json::from_str(line)
            && let Some(known) = epochs.iter_mut().rfind(|known| known.epoch == epoch)
        {
            known.flush = Some(flush);
        }
    }
    epochs
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Two ranks, of which the second one is late at the write.
    pub const LINE: &str = r#"{"at":1000.5,"epoch":3,"suspend":false,"seconds":2.0,"hosts":["a","b<i>"],
        "phases":[{"name":"flag","began":0.0,"ended":0.1,"ranks":[0.05,0.1]},{"name":"write","began":0.1,"ended":1.9,"ranks":[0.4,1.9]}],
        "stop":{"began":0.1,"seconds":1.8},"written":[{"stored_bytes":10,"bytes":20,"seconds":0.3},{"stored_bytes":1000000,"bytes":2000000,"seconds":1.8}],
        "staging":null}"#;

    pub fn epoch() -> RecordedEpoch {
        serde_json::from_str(LINE).unwrap()
    }

    #[test]
    fn lines_are_read_with_their_flushes_and_half_ones_left_out() {
        let line = LINE.replace('\n', " ");
        let text = format!(
            "{line}\n{{\"at\":1,\"epoch\":3,\"flush\":4.5}}\n{{\"at\":2,\"epoch\":4,\n{line}\n"
        );
        let epochs = parsed(&text);
        assert_eq!(epochs.len(), 2);
        assert_eq!((epochs[0].flush, epochs[1].flush), (Some(4.5), None));
        assert!(parsed("").is_empty());
    }

    #[test]
    fn the_rank_that_the_others_waited_for_is_named() {
        let text = super::super::in_words(&epoch());
        assert!(
            text.contains("the application stood still for 1.800 s"),
            "{text}"
        );
        assert!(
            text.contains("waited for rank 1 on b<i>, 1.500 s longer than for any other"),
            "{text}"
        );
        assert!(
            text.contains("written: 1.0 MB in 1.800 s, 555.6 kB/s"),
            "{text}"
        );
    }
}
