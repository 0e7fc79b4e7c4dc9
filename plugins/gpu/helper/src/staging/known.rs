//! The record of copies, as a file in the job's checkpoint directory. The helpers of all nodes write to it, each about its own GPUs.
//!
//! No checkpoint depends on it, so errors here are ignored.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use stillpoint_gpu_driver::devices::Device as Described;
use stillpoint_gpu_plan::Record;
use stillpoint_gpu_plan::record::{LARGEST, NAME, named};

/// Reads the record. An unreadable one is replaced by an empty one.
pub fn read(directory: &Path) -> Record {
    let file = directory.join(NAME);
    let small = fs::metadata(&file).is_ok_and(|meta| meta.len() <= LARGEST);
    let text = small.then(|| fs::read(&file).ok()).flatten();
    text.and_then(|text| Record::parse(&text).ok())
        .unwrap_or_default()
}

/// Writes the entries of this node's GPUs, and keeps those of other nodes.
pub fn write(directory: &Path, record: &Record, described: &[Described]) {
    // The lock keeps two helpers from reading the same and writing after each other. A file system without locks has no
    // such protection.
    let lock = File::open(directory).and_then(|directory| directory.lock().map(|()| directory));
    let mine: Vec<String> = described.iter().map(|gpu| named(&gpu.uuid)).collect();
    let mut all = record.clone();
    all.take_others(&mine, read(directory));
    let Ok(text) = all.text() else { return };
    let draft = directory.join(format!("{NAME}.{}", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(&text))
        .and_then(|()| fs::rename(&draft, directory.join(NAME)));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    drop(lock);
}

#[cfg(test)]
mod tests {
    use stillpoint_ids::Epoch;

    use stillpoint_gpu_plan::Copied;
    use stillpoint_gpu_plan::record::OWN;
    use stillpoint_gpu_plan::streams::UNMEASURED;

    use super::*;

    fn of(uuid: &[u8; 16], epoch: Epoch) -> Record {
        let mut record = Record::default();
        let copied = Copied {
            epoch,
            sample: UNMEASURED.sample(1, 1.0),
            predicted: None,
            back: false,
        };
        record.add(&named(uuid), "1", OWN, copied);
        record
    }

    #[test]
    fn helpers_of_two_nodes_leave_each_other_s_copies() {
        let directory = std::env::temp_dir().join(format!("gpu-known-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let one = |number: u8| Described {
            uuid: [number; 16],
            name: String::new(),
            bytes: 1,
            is_part: false,
        };
        write(&directory, &of(&[1; 16], Epoch(1)), &[one(1)]);
        write(&directory, &of(&[2; 16], Epoch(1)), &[one(2)]);
        write(&directory, &of(&[1; 16], Epoch(2)), &[one(1)]);
        let found = read(&directory);
        let epoch = |number| found.copied(&named(&[number; 16]), "1", OWN)[0].epoch;
        assert_eq!(
            (found.gpus.len(), epoch(1), epoch(2)),
            (2, Epoch(2), Epoch(1))
        );
        fs::remove_dir_all(&directory).expect("removed");
    }
}
