//! An image for tests.

pub mod patch;

use std::path::Path;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::descriptors::{Description, DescriptorKind, Descriptors, Number};
use stillpoint_image::devices::Uuid;
use stillpoint_image::tables::{RegionKind, thread_flags};
use stillpoint_image::{
    Compression, Crew, Environment, Identity, PageRun, Region, Thread, Writer, Written, features,
};

pub const PAGE: usize = 4096;

/// Returns bytes that compress a little, different for every seed.
pub fn some_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|index| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if index % 3 == 0 { state as u8 | 1 } else { 7 }
        })
        .collect()
}

pub fn environment() -> Environment {
    Environment {
        kernel: "6.1".into(),
        architecture: "x86_64".into(),
        hostname: "node1".into(),
        page_bytes: 4096,
        springboard: 11,
        gate_version: 1,
        mpi_abi: "openmpi".into(),
        mpi_library: "Open MPI".into(),
        mpi_thread_level: 0,
        cpu: features::here(0, 0),
        stillpoint: "0.1.0".into(),
    }
}

pub fn identity() -> Identity {
    Identity {
        job: "job".into(),
        epoch: Epoch(3),
        rank: Rank(1),
        size: 2,
        command: vec!["app".into(), "x y".into()],
    }
}

pub fn regions() -> Vec<Region> {
    let private = Region {
        start: 0x1000_0000_0000,
        end: 0x1000_0010_0000,
        protection: 3,
        name: "[heap]".into(),
        ..Region::default()
    };
    let shared = Region {
        start: 0x1000_0020_0000,
        end: 0x1000_0020_2000,
        protection: 3,
        kind: RegionKind::SharedFile,
        name: "/tmp/shared".into(),
        content: Some(1),
        ..Region::default()
    };
    vec![private, shared]
}

pub fn threads() -> Vec<Thread> {
    vec![Thread {
        virtual_tid: 7,
        flags: thread_flags::MAIN | thread_flags::DRIVER,
        stop_frame: 0x1000_0000_8000,
        thread_pointer: 0x1000_0000_1000,
        ..Thread::default()
    }]
}

pub fn descriptors() -> Descriptors {
    Descriptors {
        descriptions: vec![Description {
            kind: DescriptorKind::File {
                path: "/tmp/out".into(),
                bytes: 10,
                cut: true,
            },
            flags: 2,
            offset: 10,
            locks: vec![],
            owner: None,
            signal: 0,
        }],
        numbers: vec![Number {
            number: 3,
            description: 0,
            close_on_exec: false,
        }],
    }
}

/// Writes a small image with one of everything.
pub fn write(path: &Path, compression: Compression) -> Written {
    let memory = some_bytes(1, 40 * PAGE);
    let mut writer = Writer::create(path, compression).unwrap();
    writer
        .memory(&[
            PageRun {
                address: 0x1000_0000_0000,
                bytes: memory[..8 * PAGE].into(),
            },
            PageRun {
                address: 0x1000_0004_0000,
                bytes: memory[8 * PAGE..].into(),
            },
        ])
        .unwrap();
    the_rest(writer, &identity())
}

/// Writes everything but memory.
pub fn the_rest(mut writer: Writer, identity: &Identity) -> Written {
    let shared = some_bytes(2, 2 * PAGE);
    writer
        .content(
            "/tmp/shared",
            shared.len() as u64,
            &[PageRun {
                address: 0,
                bytes: shared[..].into(),
            }],
        )
        .unwrap();
    writer.identity(identity).unwrap();
    writer.environment(&environment()).unwrap();
    writer.regions(&regions()).unwrap();
    writer.threads(&threads()).unwrap();
    writer.descriptors(&descriptors()).unwrap();
    writer.inventory(b"{\"communicators\":2}").unwrap();
    writer.blob("gate", 1, b"opaque").unwrap();
    writer.finish().unwrap()
}

/// Writes an image with memory of devices, which the writer gets in parts of that many bytes.
pub fn write_with_devices(
    path: &Path,
    compression: Compression,
    part: usize,
    devices: &[(Uuid, Vec<u8>)],
) -> Written {
    write_beside(path, compression, &identity(), |writer| {
        for (uuid, bytes) in devices {
            let number = writer.device(*uuid, bytes.len() as u64).unwrap();
            for (index, some) in bytes.chunks(part).enumerate() {
                let offset = (index * part) as u64;
                writer.device_bytes(number, offset, some).unwrap();
            }
        }
    })
}

/// Writes an image without memory, and whatever `more` adds behind its first content.
pub fn write_beside(
    path: &Path,
    compression: Compression,
    identity: &Identity,
    more: impl FnOnce(&mut Writer),
) -> Written {
    let mut writer = Writer::create(path, compression).unwrap();
    writer.use_crew(Crew::of(2));
    let shared = some_bytes(2, 2 * PAGE);
    let run = PageRun {
        address: 0,
        bytes: shared[..].into(),
    };
    writer
        .content("/tmp/shared", shared.len() as u64, &[run])
        .unwrap();
    more(&mut writer);
    writer.identity(identity).unwrap();
    writer.environment(&environment()).unwrap();
    writer.regions(&regions()).unwrap();
    writer.threads(&threads()).unwrap();
    writer.descriptors(&descriptors()).unwrap();
    writer.finish().unwrap()
}
