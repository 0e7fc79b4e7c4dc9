//! The contents of a record, and its answers.

use super::*;
use crate::streams::probes;
use stillpoint_ids::Epoch;

fn copied(epoch: Epoch, size: u64, copies: Copies, seconds: f64) -> Copied {
    Copied {
        epoch,
        sample: Sample {
            size: size as f64,
            streams: copies.streams,
            seconds,
            slot: Some(copies.slot as f64),
        },
        predicted: None,
        back: false,
    }
}

/// Returns the time on a bus with this bandwidth, which two streams fill.
fn seconds(size: u64, copies: Copies, bandwidth: f64) -> f64 {
    let model = Model {
        fixed: 30e-6,
        per_stream: 4e-6,
        per_copy: 9e-6,
        visible: 1.0 / bandwidth,
        hidden: 0.2 / bandwidth,
    };
    copies.seconds(&model, size)
}

#[test]
fn epochs_refit_the_model_and_what_is_old_is_forgotten() {
    let mut record = Record::default();
    let choose = |record: &Record| record.choose("GPU-1", "550.1", TO_HOST, 1 << 30);
    assert_eq!(choose(&record), (UNMEASURED, None));
    for (size, copies) in probes() {
        let probe = copied(PROBE, size, copies, seconds(size, copies, 12e9));
        record.add("GPU-1", "550.1", TO_HOST, probe);
    }
    let (copies, first) = choose(&record);
    let first = first.expect("a dozen probes");
    assert!((first / seconds(1 << 30, copies, 12e9) - 1.0).abs() < 1e-6);
    // From now on the bus is shared, and half as fast.
    for epoch in (1..=200).map(Epoch) {
        let copied = copied(epoch, 1 << 30, copies, seconds(1 << 30, copies, 6e9));
        record.add("GPU-1", "550.1", TO_HOST, copied);
    }
    let second = choose(&record).1.expect("fitted");
    assert!(second > 1.6 * first, "{second} after {first}");
    let kept = record.copied("GPU-1", "550.1", TO_HOST);
    assert_eq!(kept.len(), 12 + KEPT);
    assert_eq!(kept[12].epoch, Epoch(201 - KEPT as u64));
    // The record knows nothing about another driver, GPU or way.
    for (uuid, driver, way) in [
        ("GPU-1", "560.0", TO_HOST),
        ("GPU-2", "550.1", TO_HOST),
        ("GPU-1", "550.1", OWN),
    ] {
        assert_eq!(
            record.choose(uuid, driver, way, 1 << 30),
            (UNMEASURED, None)
        );
    }
    let rate = record.bandwidth("GPU-1", "550.1", TO_HOST).expect("fitted");
    assert!((6_000_000_000..12_000_000_000).contains(&rate), "{rate}");
    assert_eq!(record.bandwidth("GPU-1", "550.1", OWN), None);
    assert!((record.text().expect("text").len() as u64) < LARGEST / 16);
}

#[test]
fn the_newest_epoch_is_told_by_its_longest_way() {
    let mut record = Record::default();
    assert_eq!(record.newest(), None);
    record.add("GPU-1", "1", OWN, copied(PROBE, 9, UNMEASURED, 9.0));
    assert_eq!(record.newest(), None);
    for (epoch, gpu, way, size, seconds, back) in [
        (1, "GPU-1", OWN, 7, 7.0, false),
        (2, "GPU-1", OWN, 1, 1.0, false),
        (2, "GPU-1", TO_HOST, 2, 3.0, false),
        (2, "GPU-2", OWN, 4, 2.0, false),
        (2, "GPU-2", FROM_HOST, 8, 5.0, true),
    ] {
        let mut one = copied(Epoch(epoch), size, UNMEASURED, seconds);
        (one.predicted, one.back) = (back.then_some(4.0), back);
        record.add(gpu, "1", way, one);
    }
    let newest = record.newest().expect("an epoch");
    let leg = |bytes, seconds, predicted| {
        Some(Leg {
            bytes,
            seconds,
            predicted,
        })
    };
    assert_eq!(newest.epoch, Epoch(2));
    assert_eq!(newest.staged, leg(7, 3.0, None));
    assert_eq!(newest.back, leg(8, 5.0, Some(4.0)));
    // Another node's record keeps its own GPUs.
    let mut other = Record::default();
    other.add("GPU-2", "1", OWN, copied(Epoch(1), 1, UNMEASURED, 1.0));
    other.add("GPU-3", "1", OWN, copied(Epoch(1), 1, UNMEASURED, 1.0));
    other.take_others(&["GPU-3".to_owned()], record.clone());
    assert_eq!(
        other.copied("GPU-2", "1", OWN),
        record.copied("GPU-2", "1", OWN)
    );
    assert_eq!(other.gpus.len(), 3);
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let mut record = Record::default();
    let mut second = copied(Epoch(3), 1 << 20, UNMEASURED, 0.5);
    (second.sample.slot, second.predicted) = (None, Some(0.25));
    record.add("GPU-1", "1", OWN, copied(PROBE, 1 << 20, UNMEASURED, 0.125));
    record.add("GPU-1", "1", "GPU-2", second);
    let again = Record::parse(&record.text().expect("text")).expect("record");
    assert_eq!(again, record);
}

#[test]
fn what_no_copy_can_have_been_is_refused_and_never_added() {
    let mut record = Record::default();
    record.add("GPU-1", "1", OWN, copied(Epoch(1), 5, UNMEASURED, f64::NAN));
    record.add("GPU-1", "1", OWN, copied(Epoch(1), 0, UNMEASURED, 1.0));
    assert_eq!(record, Record::default());
    let text = r#"{"gpus":[{"uuid":"GPU-1","driver":"1","copied":{"own":[{"epoch":1,"size":1.0,"streams":0,"seconds":1.0,"predicted":null}]}}]}"#;
    let error = Record::parse(text.as_bytes()).expect_err("no streams");
    assert!(
        error.to_string().starts_with("GPU-1, own: number 1 "),
        "{error}"
    );
    assert!(Record::parse(b"{").is_err());
}
