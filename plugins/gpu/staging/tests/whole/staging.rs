//! Staging, draining and filling in virtual time: every byte, every place, every fault.

use proptest::prelude::*;
use stillpoint_gpu_plan::record::TO_HOST;
use stillpoint_gpu_plan::{Back, Copies, Host, Node, Record, Scheduling, Source, StagingPlace};
use stillpoint_gpu_staging::{
    Bytes, BytesError, DeviceError, Digest, Drain, Error, Settings, Sink, SinkError, Staged,
    digest, fill_back, fill_from, stage,
};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_multilevel::Topology;

use super::virtual_device::{Faults, Machine};

const COPIES: Copies = Copies {
    streams: 3,
    slot: 16 << 10,
};

fn back(_: Back, _: u64, _: u64) -> (Copies, Option<f64>) {
    (COPIES, None)
}

pub fn settings(scheduling: Scheduling) -> Settings<'static> {
    Settings {
        scheduling,
        choice: &|_, _| (COPIES, None),
        drain: COPIES,
    }
}

fn node(machine: &Topology, free: [u64; 8]) -> Node {
    let host = Host {
        room: 64 << 20,
        bandwidth: None,
    };
    let mut node = Node::of(machine, host, 0).expect("GPUs and a host");
    node.gpus
        .iter_mut()
        .zip(free)
        .for_each(|(gpu, free)| gpu.free = free);
    node
}

/// An image: the drained bytes, source by source.
#[derive(Default)]
struct Image {
    sources: Vec<(usize, Vec<u8>)>,
    read: Vec<usize>,
    /// The number of a source that is read wrongly.
    damaged: Option<usize>,
    full: bool,
}

impl Sink for Image {
    fn write(
        &mut self,
        source: usize,
        offset: u64,
        bytes: &[u8],
        said: Option<Digest>,
    ) -> Result<(), SinkError> {
        if self.full {
            return Err(SinkError {
                rank: Rank(0),
                problem: "no space left on device".to_owned(),
            });
        }
        assert_eq!(said, Some(digest(bytes)));
        if self.sources.last().is_none_or(|(last, _)| *last != source) {
            assert!(
                self.sources.last().is_none_or(|(last, _)| *last < source),
                "in order"
            );
            self.sources.push((source, Vec::new()));
        }
        let (_, all) = self.sources.last_mut().expect("just made");
        assert_eq!(offset, all.len() as u64, "in order");
        all.extend_from_slice(bytes);
        Ok(())
    }
}

impl Bytes for Image {
    fn read(&mut self, source: usize, into: &mut [u8]) -> Result<Option<Digest>, BytesError> {
        self.read.resize(self.read.len().max(source + 1), 0);
        let of = self.sources.iter().find(|(of, _)| *of == source);
        let from = self.read[source];
        into.copy_from_slice(&of.expect("drained").1[from..from + into.len()]);
        self.read[source] += into.len();
        let said = digest(into);
        if self.damaged == Some(source) {
            into[0] ^= 0x80;
        }
        Ok(Some(said))
    }
}

/// Returns the bytes of each source.
pub fn contents(machine: &Machine, sources: &[Source]) -> Vec<Vec<u8>> {
    sources
        .iter()
        .map(|source| machine.bytes(source).to_vec())
        .collect()
}

/// Drains everything while the program changes its memory, and returns the drained bytes.
fn drained(machine: &mut Machine, staged: Staged) -> Result<Image, Error> {
    let sources = staged.sources().to_vec();
    sources.iter().for_each(|source| machine.overwrite(source));
    let mut image = Image::default();
    let mut drain = Drain::new(staged);
    let done = drain.run(machine, &mut image);
    drain.end(machine);
    done.map(|()| image)
}

fn compare(image: &Image, before: &[Vec<u8>]) {
    let mut came = image.sources.iter().peekable();
    for (number, bytes) in before.iter().enumerate() {
        let out = came
            .next_if(|(source, _)| *source == number)
            .map(|(_, bytes)| bytes.as_slice());
        assert!(out.unwrap_or(&[]) == bytes.as_slice(), "source {number}");
    }
    assert_eq!(came.next(), None);
}

const SIZES: [(u32, usize, u64); 5] = [
    (0, 0, 300_000),
    (1, 0, 170_001),
    (1, 6, 240_000),
    (2, 3, 90_000),
    (3, 3, 0),
];

pub fn example() -> (Machine, Vec<Source>) {
    let free = [100_000, 137_000, 0, 100_000, 200_000, 0, 50_000, 8_192];
    Machine::new(&node(&Topology::dgx1(), free), &SIZES)
}

#[test]
fn what_is_staged_comes_out_as_it_was_and_the_program_goes_on_with_it() {
    for scheduling in Scheduling::ALL {
        for hashes in [false, true] {
            let (mut machine, sources) = example();
            machine.hashes = hashes;
            let before = contents(&machine, &sources);
            let node = machine.node.clone();
            let staged =
                stage(&mut machine, &node, &sources, &settings(scheduling)).expect("staged");
            // With custom storage, the device gets another mapping at its restore.
            sources.iter().for_each(|source| machine.overwrite(source));
            fill_back(&mut machine, &staged, &sources, &back).expect("filled");
            assert!(contents(&machine, &sources) == before, "{scheduling:?}");
            let image = drained(&mut machine, staged).expect("drained");
            compare(&image, &before);
            assert!(machine.nothing_is_reserved());
            for (&place, &peak) in &machine.peak {
                assert!(
                    place == StagingPlace::Host || peak <= node.room(place),
                    "{place:?}"
                );
            }
        }
    }
}

/// Each rank fills back and drains its own part, in any order; the whole is given back once.
#[test]
fn every_rank_has_its_own_part() {
    let (mut machine, sources) = example();
    let before = contents(&machine, &sources);
    let node = machine.node.clone();
    let staged =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    sources.iter().for_each(|source| machine.overwrite(source));
    for rank in [2, 0, 3, 1].map(Rank) {
        let mine = |source: &&Source| source.rank == rank;
        let targets: Vec<Source> = sources.iter().filter(mine).copied().collect();
        let part = staged.of(rank);
        assert_eq!(part.sources(), targets);
        fill_back(&mut machine, &part, &targets, &back).expect("filled");
        let held = before.iter().zip(&sources).filter(|(_, one)| mine(one));
        let held: Vec<Vec<u8>> = held.map(|(bytes, _)| bytes.clone()).collect();
        assert!(contents(&machine, &targets) == held, "rank {rank}");
        compare(&drained(&mut machine, part).expect("drained"), &held);
    }
    assert!(!machine.nothing_is_reserved(), "others may need it");
    staged.give_back(&mut machine);
    assert!(machine.nothing_is_reserved());
}

/// Some ranks use a GPU and have no memory on it.
#[test]
fn nothing_is_staged_where_there_is_nothing() {
    let (mut machine, _) = example();
    let node = machine.node.clone();
    let staged = stage(&mut machine, &node, &[], &settings(Scheduling::Exact)).expect("nothing");
    assert!(staged.pieces().is_empty() && staged.sources().is_empty());
    fill_back(&mut machine, &staged, &[], &back).expect("nothing");
    compare(&drained(&mut machine, staged).expect("nothing"), &[]);
    assert!(machine.nothing_is_reserved());
}

#[test]
fn a_restart_fills_other_gpus_from_an_image() {
    let (mut machine, sources) = example();
    let before = contents(&machine, &sources);
    let node = machine.node.clone();
    let staged =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    let mut image = drained(&mut machine, staged).expect("drained");
    let other = SIZES.map(|(rank, gpu, bytes)| (rank, 7 - gpu, bytes));
    let (mut fresh, targets) = Machine::new(&node, &other);
    fresh.hashes = true;
    targets.iter().for_each(|target| fresh.overwrite(target));
    fill_from(&mut fresh, &targets, &mut image, &|_, _| COPIES).expect("filled");
    assert!(contents(&fresh, &targets) == before);
    assert!(fresh.nothing_is_reserved());
    (image.damaged, image.read) = (Some(2), Vec::new());
    let error = fill_from(&mut fresh, &targets, &mut image, &|_, _| COPIES).expect_err("damaged");
    assert!(
        matches!(
            error,
            Error::Changed {
                rank: Rank(1),
                number: 2,
                ..
            }
        ),
        "{error}"
    );
    assert!(fresh.nothing_is_reserved());
    image.read.clear();
    (image.damaged, fresh.faults.fail) = (None, Some(fresh.begun() + 5));
    let error = fill_from(&mut fresh, &targets, &mut image, &|_, _| COPIES).expect_err("a fault");
    assert!(
        error.to_string().contains("an uncorrectable error"),
        "{error}"
    );
    assert!(fresh.nothing_is_reserved());
}

#[test]
fn less_room_than_the_driver_says_makes_another_plan() {
    let (mut machine, sources) = example();
    let before = contents(&machine, &sources);
    // GPU 4 has its free memory in pieces; GPU 0 has none.
    machine
        .largest_piece
        .extend([(StagingPlace::Gpu(4), 60_000), (StagingPlace::Gpu(0), 0)]);
    let node = machine.node.clone();
    let staged =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    let of = |place| {
        staged
            .pieces()
            .iter()
            .filter(move |piece| piece.spot.place == place)
    };
    assert_eq!(of(StagingPlace::Gpu(0)).count(), 0);
    let there: u64 = of(StagingPlace::Gpu(4)).map(|piece| piece.bytes).sum();
    assert!((1..=60_000).contains(&there), "{there}");
    compare(&drained(&mut machine, staged).expect("drained"), &before);
    assert!(machine.nothing_is_reserved());
    // Host memory has none either: then the plan fails, and nothing stays reserved.
    machine.largest_piece.insert(StagingPlace::Host, 0);
    let error =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect_err("no room");
    assert!(
        error.to_string().contains("more than the tiers hold"),
        "{error}"
    );
    assert!(machine.nothing_is_reserved());
}

#[test]
fn a_copy_that_fails_or_a_device_that_is_lost_leaves_nothing_half() {
    for faults in [
        Faults {
            fail: Some(9),
            ..Faults::default()
        },
        Faults {
            lose: Some(9),
            ..Faults::default()
        },
    ] {
        let (mut machine, sources) = example();
        machine.faults = faults;
        let before = contents(&machine, &sources);
        let node = machine.node.clone();
        let staged = stage(&mut machine, &node, &sources, &settings(Scheduling::Exact));
        let error = staged.expect_err("a fault").to_string();
        let said = [
            "an uncorrectable error",
            "GPU 0 is lost: it has fallen off the bus",
        ];
        assert!(said.iter().any(|said| error.contains(said)), "{error}");
        assert!(machine.nothing_is_reserved() && contents(&machine, &sources) == before);
    }
}

#[test]
fn a_byte_that_a_copy_changes_is_found_by_a_device_that_hashes() {
    let (mut whole, sources) = example();
    whole.hashes = true;
    let node = whole.node.clone();
    let staged = stage(&mut whole, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    let copies = staged.pieces().len() as u64;
    for corrupt in 0..copies {
        let (mut machine, sources) = example();
        machine.hashes = true;
        machine.faults.corrupt = Some(corrupt);
        let staged = stage(&mut machine, &node, &sources, &settings(Scheduling::Exact));
        let error = staged.expect_err("a changed byte");
        assert!(
            matches!(error, Error::Changed { .. }),
            "copy {corrupt}: {error}"
        );
        assert!(machine.nothing_is_reserved());
    }
    // A byte changes on the way back; afterwards the fill can be tried again.
    for corrupt in 0..copies {
        whole.faults.corrupt = Some(whole.begun() + corrupt);
        let error = fill_back(&mut whole, &staged, &sources, &back).expect_err("a changed byte");
        assert!(
            error.to_string().contains("have changed: a copy failed"),
            "{error}"
        );
    }
    whole.faults = Faults::default();
    fill_back(&mut whole, &staged, &sources, &back).expect("filled");
}

#[test]
fn a_byte_that_changes_between_staging_and_the_end_of_the_drain_is_found() {
    let (mut machine, sources) = example();
    machine.hashes = true;
    let node = machine.node.clone();
    let staged =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    machine.faults.corrupt = Some(staged.pieces().len() as u64 + 3);
    let error = drained(&mut machine, staged).err().expect("a changed byte");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    assert!(machine.nothing_is_reserved());
}

#[test]
fn a_full_disk_ends_a_drain_and_gives_the_memory_back() {
    let (mut machine, sources) = example();
    let node = machine.node.clone();
    let staged =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    let mut image = Image {
        full: true,
        ..Image::default()
    };
    let mut drain = Drain::new(staged);
    let error = drain.run(&mut machine, &mut image).expect_err("full");
    assert_eq!(error.to_string(), "rank 0: no space left on device");
    drain.end(&mut machine);
    assert!(machine.nothing_is_reserved());
}

#[test]
fn only_what_was_staged_is_filled_back() {
    let (mut machine, sources) = example();
    let node = machine.node.clone();
    let staged =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    let mut others = sources.clone();
    others[1].bytes -= 1;
    let error = fill_back(&mut machine, &staged, &others, &back).expect_err("another size");
    assert!(
        matches!(error, Error::NotTheSame { number: 1, .. }),
        "{error}"
    );
    let error = fill_back(&mut machine, &staged, &sources[..4], &back).expect_err("one less");
    assert!(
        matches!(error, Error::NotTheSame { number: 4, .. }),
        "{error}"
    );
}

#[test]
fn a_gpus_memory_is_free_again_before_the_drain_is_over() {
    let (mut machine, sources) = example();
    let node = machine.node.clone();
    let staged =
        stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
    let on_0 = |staged: &Staged| {
        staged
            .pieces()
            .iter()
            .rposition(|piece| piece.spot.place == StagingPlace::Gpu(0))
    };
    let last = on_0(&staged).expect("its own memory is used first");
    let mut drain = Drain::new(staged);
    let mut image = Image::default();
    let free =
        |machine: &mut Machine| stillpoint_gpu_staging::Device::room(machine, StagingPlace::Gpu(0));
    let full = free(&mut machine);
    for _ in 0..=last {
        assert_eq!(free(&mut machine), full);
        assert!(drain.step(&mut machine, &mut image).expect("a step"));
    }
    assert_eq!(free(&mut machine), Ok(node.gpus[0].free));
    drain.end(&mut machine);
    assert!(machine.nothing_is_reserved());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_byte_is_lost_or_doubled_and_no_place_overfilled(
        sizes in proptest::collection::vec((0u32..5, 0usize..8, 0u64..120_000), 1..9),
        free in proptest::array::uniform8(0u64..150_000),
        pieces in proptest::collection::vec((0usize..8, 0u64..100_000), 0..3),
        slot in 1u64..40_000, drained_in in 1u64..60_000, streams in 1u32..6, shared: bool, hashes: bool, which in 0usize..4,
        one_stream in 0.3f64..1.0,
    ) {
        let machine = if shared { Topology::dgx1_shared_pcie() } else { Topology::dgx1() };
        let node = node(&machine, free);
        let (mut machine, sources) = Machine::new(&node, &sizes);
        (machine.hashes, machine.one_stream) = (hashes, one_stream);
        machine.largest_piece.extend(pieces.iter().map(|&(gpu, largest)| (StagingPlace::Gpu(gpu), largest)));
        let copies = Copies { streams, slot };
        let settings = Settings { scheduling: Scheduling::ALL[which], choice: &|_, _| (copies, None), drain: Copies { slot: drained_in, ..copies } };
        let before = contents(&machine, &sources);
        let staged = stage(&mut machine, &node, &sources, &settings).expect("the host has room");
        let bytes: u64 = staged.pieces().iter().map(|piece| piece.bytes).sum();
        prop_assert_eq!(bytes, sizes.iter().map(|(_, _, bytes)| bytes).sum::<u64>());
        for (&place, &peak) in &machine.peak {
            prop_assert!(place == StagingPlace::Host || peak <= node.room(place), "{:?}", place);
        }
        sources.iter().for_each(|source| machine.overwrite(source));
        fill_back(&mut machine, &staged, &sources, &|_, _, _| (copies, None)).expect("filled");
        prop_assert!(contents(&machine, &sources) == before);
        compare(&drained(&mut machine, staged).expect("drained"), &before);
        prop_assert!(machine.nothing_is_reserved());
    }
}

#[test]
fn errors_of_devices_say_what_and_where() {
    let error = DeviceError::OutOfMemory {
        place: StagingPlace::Host,
        bytes: 5,
    };
    assert_eq!(error.to_string(), "Host has no room for 5 bytes");
}

#[test]
fn an_epoch_tells_the_next_ones_model() {
    let (mut machine, sources) = example();
    // Otherwise copies inside a GPU take no time, and no model can be fitted to that.
    machine.to_begin = 1e-6;
    let node = machine.node.clone();
    let mut record = Record::default();
    for epoch in (1..=3).map(Epoch) {
        let staged = stage(&mut machine, &node, &sources, &settings(Scheduling::Exact));
        let staged = staged.expect("staged");
        staged.measured.add_to(&mut record, &node, "1", epoch);
        let ways = staged.measured.ways.len();
        assert!(ways > 5, "{ways}");
        staged.give_back(&mut machine);
        let known: usize = record.gpus.iter().map(|gpu| gpu.copied.len()).sum();
        assert_eq!(known, ways);
        let to_host = record.copied(&node.gpus[6].uuid, "1", TO_HOST);
        assert_eq!(to_host.len() as u64, epoch.0);
        assert!(to_host.iter().all(|copied| copied.sample.seconds > 0.0));
    }
}
