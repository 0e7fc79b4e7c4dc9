//! A disk that blocks the writing of an image must not block anything else.

use std::io;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use stillpoint_image::store::Store;

use super::regions::{map, unmap_arena};
use super::*;
use crate::capture::{CaptureError, Dedup, Request, write_image};

/// A disk that accepts nothing until it is told to.
struct Stuck {
    /// The number of blocks that it accepts first.
    writes: u32,
    taken: std::sync::atomic::AtomicU32,
    stands: mpsc::SyncSender<()>,
    goes_on: Arc<Barrier>,
}

impl Stuck {
    fn stand(&self) {
        self.stands.send(()).unwrap();
        self.goes_on.wait();
    }
}

impl Store for Stuck {
    fn write_all_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        let before = self.taken.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if before == self.writes {
            self.stand();
        }
        Ok(())
    }

    fn finish(&self, _file_bytes: u64) -> io::Result<()> {
        if self.writes == u32::MAX {
            self.stand();
        }
        Ok(())
    }
}

/// Revokes the access while the disk blocks, then unmaps the memory itself.
fn taken_back(writes: u32) {
    let _alone = PROCESS.lock();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    map(0, 8 << 20, libc::PROT_READ | libc::PROT_WRITE, flags, -1).fill(1);
    let (stands, stood) = mpsc::sync_channel(1);
    let goes_on = Arc::new(Barrier::new(2));
    let request = Request {
        path: "/nowhere/image".into(),
        store: Some(Box::new(Stuck {
            writes,
            taken: Default::default(),
            stands,
            goes_on: Arc::clone(&goes_on),
        })),
        identity: Identity::default(),
        environment: environment::here(),
        incremental: Default::default(),
        dedup: Dedup::Off,
        compression: Compression::None,
        workers: 1,
        threads: vec![],
        inventory: vec![],
        payloads: vec![],
        mappings: maps::upper().unwrap(),
        mapped_files: Default::default(),
        descriptors: vec![],
    };
    let access = Access::default();
    thread::scope(|scope| {
        // SAFETY: the test's memory is only written to after the access is revoked.
        let writing = scope.spawn(|| unsafe { write_image(request, &access, None) });
        stood.recv_timeout(Duration::from_secs(20)).unwrap();
        access.revoke();
        unmap_arena();
        goes_on.wait();
        let written = writing.join().unwrap();
        match writes {
            // The disk had accepted everything already.
            u32::MAX => assert!(written.is_ok()),
            _ => {
                let Err(CaptureError::Image(error)) = written else {
                    panic!("{written:?}")
                };
                assert!(error.to_string().contains("given up"), "{error}");
            }
        }
    });
}

#[test]
fn memory_is_given_back_while_the_disk_holds_a_write_up() {
    taken_back(2);
}

#[test]
fn memory_is_given_back_while_the_disk_holds_the_sync_up() {
    taken_back(u32::MAX);
}
