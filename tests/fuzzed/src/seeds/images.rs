//! Small images, written by the writer.

use std::sync::OnceLock;

use stillpoint_ids::Epoch;
use stillpoint_image::descriptors::{
    Description, DescriptorKind, Descriptors, Lock, LockKind, Number, Owner, SocketOption, Watched,
};
use stillpoint_image::devices::Uuid;
use stillpoint_image::format::{ChunkRecord, NOWHERE, RunRecord, SectionKind, SectionRecord};
use stillpoint_image::mapped_files::{self, FileIdentity, MappedFile, MappedFiles, Referred, Sum};
use stillpoint_image::tables::{RegionKind, thread_flags};
use stillpoint_image::{
    Base, Compression, Environment, Identity, PageRun, Region, Thread, Writer, Written, epoch_name,
    image_name,
};

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::delta::RANK;
use crate::input_directory::InputDirectory;
use crate::parts::Parts;

const HEAP: u64 = 0x1000_0000_0000;
/// The address of a private mapping of a file, three pages.
const FILE: u64 = 0x1000_0010_0000;
const PAGE: u64 = 4096;

/// Returns a file of every compression, and one with everything that an image can have.
pub fn in_parts() -> Vec<Parts> {
    let kinds = [
        Compression::None,
        Compression::Lz4,
        Compression::Zstd { level: 1 },
    ];
    let place = InputDirectory::new();
    let written = kinds.into_iter().enumerate().map(|(number, compression)| {
        let path = place.path().join(number.to_string());
        let mut writer = Writer::create(&path, compression).expect("a file for the image");
        let text = b"The still point of the turning world. ".repeat(3);
        let run = |address: u64, bytes: &'static [u8]| PageRun {
            address,
            bytes: bytes.into(),
        };
        let runs = [
            run(HEAP, b"first"),
            PageRun {
                address: HEAP + 100,
                bytes: text[..].into(),
            },
            run(FILE + PAGE, b"the process's own"),
        ];
        writer.memory(&runs).expect("memory");
        rest(writer, Epoch(3));
        Parts::of_file(&std::fs::read(&path).expect("the image")).expect("it is whole")
    });
    written.collect()
}

/// Returns an image with so many stretches that their table is packed.
pub fn scattered() -> Parts {
    let place = InputDirectory::new();
    let path = place.path().join("scattered");
    let mut writer = Writer::create(&path, Compression::Lz4).expect("a file for the image");
    let bytes = [7; 3];
    let stretch = |number: u64| PageRun {
        address: HEAP + 7 * number,
        bytes: bytes[..1 + number as usize * 5 / 3 % 3].into(),
    };
    let stretches: Vec<PageRun<'_>> = (0..1100).map(stretch).collect();
    writer.memory(&stretches).expect("memory");
    rest(writer, Epoch(3));
    Parts::of_file(&std::fs::read(&path).expect("the image")).expect("it is whole")
}

/// Returns an image with memory of two GPUs, mostly zeros.
pub fn of_gpus() -> Parts {
    let place = InputDirectory::new();
    let path = place.path().join("gpus");
    let mut writer = Writer::create(&path, Compression::Lz4).expect("a file for the image");
    let mut write = || {
        for number in 1..3 {
            let gpu = writer.device(Uuid([number; 16]), 3 * PAGE)?;
            writer.device_bytes(gpu, 0, b"first")?;
            writer.device_bytes(gpu, 2 * PAGE - 2, &[number; 7])?;
        }
        Ok::<(), stillpoint_image::ImageError>(())
    };
    write().expect("memory of GPUs");
    rest(writer, Epoch(3));
    Parts::of_file(&std::fs::read(&path).expect("the image")).expect("it is whole")
}

/// Returns the same image, with the first run of its first chunk in memory twice, and the chunk in the file only once.
pub fn sharing(mut parts: Parts) -> Parts {
    let chunks = parts.section(SectionKind::Chunks).expect("its chunks");
    let (mut chunk, _) = ChunkRecord::read_from_prefix(chunks).expect("a chunk");
    let runs = parts.section(SectionKind::Runs).expect("its runs");
    let (first, _) = RunRecord::read_from_prefix(runs).expect("a run");
    chunk.first_run = (runs.len() / size_of::<RunRecord>()) as u32;
    let again = RunRecord {
        address: HEAP + PAGE,
        ..first
    };
    let dead = RunRecord {
        address: 0,
        bytes: chunk.bytes - first.bytes,
        space: NOWHERE,
    };
    runs.extend_from_slice(again.as_bytes());
    if dead.bytes > 0 {
        runs.extend_from_slice(dead.as_bytes());
    }
    chunk.runs = if dead.bytes > 0 { 2 } else { 1 };
    chunk.origin = 1;
    let chunks = parts.section(SectionKind::Chunks).expect("its chunks");
    chunks.extend_from_slice(chunk.as_bytes());
    let mut record = SectionRecord::new_zeroed();
    record.kind = SectionKind::Siblings as u32;
    let siblings = format!("[{RANK}]").into_bytes();
    parts.sections.push((record, siblings));
    parts
}

/// Returns an image of rank 1 of epoch 3.
pub fn image_file() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| in_parts()[1].file())
}

/// Returns that image's digest.
pub fn digest() -> u128 {
    let place = InputDirectory::new();
    let path = place.file("image", image_file());
    stillpoint_image::Reader::open(&path)
        .expect("it is whole")
        .digest()
}

/// Returns epochs 1 to 3, each with a few chunks of its own and the rest in earlier ones.
pub fn epochs() -> Vec<Parts> {
    let place = InputDirectory::new();
    let mut base: Option<Base> = None;
    let mut epochs = vec![];
    for epoch in (1..=3).map(Epoch) {
        let directory = place.path().join(epoch_name(epoch));
        std::fs::create_dir(&directory).expect("a directory for the epoch");
        let path = directory.join(image_name(RANK));
        let mut writer = Writer::create(&path, Compression::Lz4).expect("a file for the image");
        let bytes = [epoch.0 as u8 + 64; 200];
        let changed = match &base {
            None => HEAP..HEAP + 200,
            Some(base) => {
                let changed = HEAP + epoch.0 * 20..HEAP + epoch.0 * 20 + 10;
                writer.carry(base.carry(&[0..changed.start, changed.end..u64::MAX]));
                changed
            }
        };
        let length = (changed.end - changed.start) as usize;
        let run = PageRun {
            address: changed.start,
            bytes: bytes[..length].into(),
        };
        writer.memory(&[run]).expect("memory");
        base = Some(rest(writer, epoch).base(epoch, RANK));
        let file = std::fs::read(&path).expect("the image");
        epochs.push(Parts::of_file(&file).expect("it is whole"));
    }
    epochs
}

/// Writes everything but memory.
fn rest(mut writer: Writer, epoch: Epoch) -> Written {
    let mut write = || {
        let content = PageRun {
            address: 3,
            bytes: b"shared"[..].into(),
        };
        writer.content("/tmp/shared", PAGE, &[content])?;
        writer.identity(&Identity {
            job: "job".into(),
            epoch,
            rank: RANK,
            size: 2,
            command: vec!["app".into()],
        })?;
        writer.environment(&Environment {
            architecture: "x86_64".into(),
            page_bytes: PAGE,
            mpi_abi: "openmpi".into(),
            ..Environment::default()
        })?;
        writer.regions(&regions())?;
        writer.threads(&threads())?;
        writer.descriptors(&descriptors())?;
        writer.inventory(b"{\"communicators\":2}")?;
        writer.blob("gate", 1, b"opaque")?;
        let files = serde_json::to_vec(&files()).expect("JSON");
        writer.blob(mapped_files::NAME, mapped_files::VERSION, &files)
    };
    write().expect("the rest of the image");
    writer.finish().expect("the image")
}

fn regions() -> Vec<Region> {
    let heap = Region {
        start: HEAP,
        end: HEAP + 2 * PAGE,
        protection: 3,
        name: "[heap]".into(),
        ..Region::default()
    };
    let file = Region {
        start: FILE,
        end: FILE + 3 * PAGE,
        protection: 5,
        kind: RegionKind::PrivateFile,
        name: "/lib/x.so".into(),
        file_offset: PAGE,
        ..Region::default()
    };
    let shared = Region {
        start: FILE + 8 * PAGE,
        end: FILE + 9 * PAGE,
        protection: 3,
        kind: RegionKind::SharedFile,
        name: "/tmp/shared".into(),
        content: Some(1),
        ..Region::default()
    };
    vec![heap, file, shared]
}

fn threads() -> [Thread; 2] {
    let thread = |virtual_tid: u32, flags: u32| Thread {
        virtual_tid,
        flags,
        stop_frame: HEAP + 2048,
        thread_pointer: HEAP + 1024,
        ..Thread::default()
    };
    [
        thread(7, thread_flags::MAIN | thread_flags::DRIVER),
        thread(8, 0),
    ]
}

fn files() -> MappedFiles {
    let file = MappedFile {
        path: "/lib/x.so".into(),
        identity: FileIdentity {
            bytes: 9000,
            ..FileIdentity::default()
        },
        mapped: vec![(PAGE, 9000)],
        sum: Some(Sum(5)),
    };
    let referred = Referred {
        start: FILE,
        end: FILE + 3 * PAGE,
        offset: PAGE,
        file: 0,
        own: vec![1, 1],
    };
    MappedFiles {
        begun: 1,
        files: vec![file],
        regions: vec![referred],
        kept: vec![],
    }
}

fn descriptors() -> Descriptors {
    let kinds = [
        DescriptorKind::File {
            path: "/tmp/out".into(),
            bytes: 10,
            cut: true,
        },
        DescriptorKind::SocketPair {
            pair: 1,
            second: false,
            socket_type: 1,
            content: Some(1),
            bytes: 3,
            messages: vec![3],
            shut: 0,
            reset: false,
            options: vec![SocketOption {
                level: 1,
                name: 7,
                value: vec![1],
            }],
        },
        DescriptorKind::UnconnectedSocket {
            family: 1,
            socket_type: 5,
            protocol: 0,
            listens: true,
            name: b"\x01\0\0name".to_vec(),
            peer: vec![],
            mode: None,
            options: vec![],
        },
        DescriptorKind::LostConnection {
            family: 2,
            told: false,
            options: vec![],
        },
        DescriptorKind::Epoll {
            watched: vec![Watched {
                number: 0,
                events: 1,
                data: 2,
                through: None,
                told: false,
            }],
        },
    ];
    let lock = Lock {
        kind: LockKind::Posix,
        write: true,
        start: 0,
        end: None,
    };
    let description = |kind| Description {
        kind,
        flags: 2,
        offset: 10,
        locks: vec![lock.clone()],
        owner: Some(Owner::Thread { virtual_tid: 7 }),
        signal: 0,
    };
    let number = |at: usize| Number {
        number: at as i32,
        description: at,
        close_on_exec: false,
    };
    Descriptors {
        numbers: (0..kinds.len()).map(number).collect(),
        descriptions: kinds.into_iter().map(description).collect(),
    }
}
