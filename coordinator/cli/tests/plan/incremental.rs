//! `stillpoint plan incremental`.

use std::path::Path;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::{Manifest, RankImage};
use stillpoint_incremental::tracking::Tracking;
use stillpoint_incremental::viability::{
    EpochMeasurement, Expected, OfDevices, Predicted, Rates, Record, Taken,
};

use super::{failure, json, plan, text};

/// It writes 1 GB/s and hashes 4 GB/s. Half of its 16 GB is page-dirty, and a quarter of that is changed.
const EXAMPLE: [&str; 11] = [
    "incremental",
    "--beta-ckpt",
    "1GB/s",
    "--beta-hash",
    "4GB/s",
    "--memory",
    "16GB",
    "--dirty",
    "50%",
    "--changed",
    "0.25",
];

fn with(more: &[&'static str]) -> Vec<&'static str> {
    once(&[&EXAMPLE[..], more].concat())
}

#[test]
fn the_model_is_told_in_words() {
    let said = text(&plan(&EXAMPLE));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "checkpoints at 1 GB/s, hashes at 4 GB/s: hashing pays where alpha is above 25 %",
            "16 GB of memory, 8 GB in dirty pages, 25 % of that in changed blocks: alpha is 75 %",
            "METHOD        TO MARK    TO HASH   TO WRITE      TOTAL    WRITTEN",
            "full              0 s        0 s       16 s       16 s      16 GB",
            "page-based        0 s        0 s        8 s        8 s       8 GB",
            "hash-based        0 s        2 s        2 s        4 s       2 GB",
            "fastest: hash-based; full takes 4.00 times as long, page-based takes 2.00 times as long",
            "table of hashes: 39.1 MB, for blocks of 4096 B",
        ]
    );
    let never = text(&plan(&with(&["--dirty-time", "20s"])));
    assert!(
        never.contains("hashing never pays, since alpha would have to be above 175 %")
            && never.contains("fastest: full; page-based takes 1.75 times as long"),
        "{never}"
    );
    let nothing = text(&plan(&with(&["--memory", "0", "--dirty-time", "1s"])));
    assert!(
        nothing.contains("since there is nothing to leave out")
            && nothing.contains("fastest: full; page-based takes 1 s, hash-based takes 1 s"),
        "{nothing}"
    );
}

/// With a GPU, the faster hasher is chosen, if hashing pays.
#[test]
fn who_hashes_is_told_where_there_is_a_choice() {
    for (ckpt, gpu, who, hashes) in [
        ("1GB/s", "2GB/s", "the processor", "4 GB/s"),
        ("1GB/s", "20GB/s", "a GPU", "20 GB/s"),
        ("6GB/s", "20GB/s", "a GPU", "20 GB/s"),
        ("6GB/s", "2GB/s", "nobody", "4 GB/s"),
    ] {
        let said = text(&plan(&with(&["--beta-ckpt", ckpt, "--beta-gpu", gpu])));
        let gpu = gpu.replace("GB", " GB");
        let line = format!("hashed by: {who}; could: the processor at 4 GB/s, a GPU at {gpu}");
        assert!(
            said.lines().any(|one| one == line)
                && said.contains(&format!(", hashes at {hashes}: ")),
            "{said}"
        );
    }
    let value = json(&plan(&with(&["--beta-gpu", "20GB/s", "--json"])));
    assert_eq!(
        (&value["hasher"], &value["beta_hash"]),
        (&"gpu".into(), &20e9.into())
    );
    let (_, failed) = failure(&plan(&with(&["--beta-gpu", "0"])));
    assert!(failed.contains("--beta-gpu"), "{failed}");
}

#[test]
fn the_model_is_there_as_json() {
    let value = json(&plan(&with(&[
        "--block",
        "256",
        "--dirty",
        "100%",
        "--dirty-time",
        "2s",
        "--json",
    ])));
    let number = |name: &str| value[name].as_f64().unwrap_or_else(|| panic!("{name}"));
    for (name, expected) in [
        ("beta_ckpt", 1e9),
        ("beta_hash", 4e9),
        ("memory", 16e9),
        ("c", 16e9),
        ("alpha", 0.75),
        ("t_dirty", 2.0),
        ("ratio", 0.25),
        ("least_alpha", 0.375),
        ("block", 256.0),
        ("table_bytes", 625e6),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
    assert_eq!(value["hasher"], "processor");
    assert_eq!(value["hashers"], serde_json::json!([["processor", 4e9]]));
    assert_eq!(value["pays"], true);
    assert_eq!(value["fastest"], "hash");
    let hash = &value["costs"][2];
    assert_eq!(hash["method"], "hash");
    let parts = ["t_dirty", "t_hash", "t_write", "seconds", "written"];
    let parts = parts.map(|name| hash[name].as_f64().expect("a number"));
    assert_eq!(parts, [2.0, 4.0, 4.0, 10.0, 4e9]);
    let none = json(&plan(&with(&[
        "--dirty",
        "0",
        "--dirty-time",
        "1s",
        "--json",
    ])));
    assert!(none["least_alpha"].is_null() && none["pays"] == false);
}

#[test]
fn the_region_where_hashing_pays_is_drawn() {
    let directory = tempfile::tempdir().expect("directory");
    let draw = |name: &str, more: &[&str]| {
        let file = directory.path().join(name);
        let chart = ["--chart", file.to_str().expect("name")];
        text(&plan(&once(&[&EXAMPLE[..], more, &chart[..]].concat())));
        std::fs::read_to_string(&file).expect("a drawing")
    };
    // The dots of the region, without the one in the legend.
    let dots = |svg: &str| svg.matches("r=\"2\"").count() - 1;
    let (usual, marked) = (
        draw("a.svg", &[]),
        draw("b.svg", &["--dirty", "1", "--dirty-time", "8s"]),
    );
    for text in [
        "Where hashing pays",
        "beta_ckpt / beta_hash",
        "alpha",
        "this machine",
    ] {
        assert!(usual.contains(text), "{text}");
    }
    // Marking that takes half of the time leaves less than half of the region.
    assert!(dots(&usual) > 400, "{}", dots(&usual));
    assert!(
        2 * dots(&marked) < dots(&usual) && dots(&marked) > 100,
        "{}",
        dots(&marked)
    );
    // If the ratio lies far outside the usual range, the axis follows.
    let wide = draw("c.svg", &["--beta-ckpt", "1TB/s"]);
    assert!(
        wide.contains(">\n1000\n</text>") && !wide.contains("NaN"),
        "{wide}"
    );
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let wrong: [(&[&str], i32, &str); 11] = [
        (&["incremental"], 2, "--beta-ckpt <RATE>"),
        (
            &with(&["--block", "3000"]),
            2,
            "3000 bytes are not a block size: use a power of two from 64 to 65536",
        ),
        (
            &with(&["--block", "128KiB"]),
            2,
            "131072 bytes are not a block size",
        ),
        (
            &with(&["--changed", "25"]),
            2,
            "'25' is not a share: write 0 to 1, or 0% to 100%",
        ),
        (&with(&["--dirty", "-1%"]), 2, "'-1%' is not a share"),
        (
            &with(&["--beta-hash", "0"]),
            2,
            "give more than 0 bytes a second",
        ),
        (
            &with(&["--beta-hash", "4 furlongs"]),
            2,
            "unknown unit 'furlongs'",
        ),
        (&with(&["--dirty-time", "-1s"]), 2, "'-1s' is negative"),
        (
            &with(&["--chart", "/nonexistent/a.svg"]),
            1,
            "/nonexistent/a.svg: cannot write",
        ),
        (&with(&["--json", "here"])[..], 2, "cannot be used with"),
        (
            &["incremental", "/nonexistent"],
            3,
            "name a checkpoint directory",
        ),
    ];
    for (arguments, status, part) in wrong {
        let (found, message) = failure(&plan(arguments));
        assert_eq!(
            (found, message.contains(part)),
            (status, true),
            "{arguments:?}: {message}"
        );
    }
}

/// Keeps the later of two equal options, since the command takes each once.
fn once<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut kept: Vec<&str> = Vec::new();
    for pair in arguments[1..].chunks(2) {
        if let Some(at) = kept.iter().position(|word| *word == pair[0]) {
            kept.drain(at..at + 2);
        }
        kept.extend(pair);
    }
    [&arguments[..1], &kept].concat()
}

/// A rank that writes 100 MB/s and hashes 400 MB/s. Of its 4 MB in dirty pages, 3 MB were hashed.
fn record(predicted: bool) -> Record {
    let way = |bytes: f64, hashed: f64| Expected {
        seconds: bytes / 1e8 + hashed / 4e8,
        bytes,
    };
    let said = Predicted {
        rates: Rates::new(1e8, 4e8).expect("rates"),
        alpha: Some(0.5),
        alpha_hashed: Some(0.75),
        full: way(10e6, 0.0),
        page: Some(way(4e6, 0.0)),
        hash: Some(way(2e6, 4e6)),
        taken: way(2e6, 3e6),
    };
    Record {
        tracking: Some(Tracking::WpAsync),
        predicted: predicted.then_some(said),
        regions: Taken {
            full: 1,
            page: 2,
            hash: 3,
            looks: 1,
        },
        outcome: EpochMeasurement {
            touched: 10_000_000,
            page_dirty: predicted.then_some(4_000_000),
            hashed: 3_000_000,
            hash_dirty: 1_500_000,
            written: 2_500_000,
            hash_seconds: 0.0075,
            write_seconds: 0.025,
            alpha: Some(0.5),
        },
        devices: predicted.then_some(OfDevices {
            bytes: 8_000_000,
            by_gpus: 6_000_000,
            gpu_seconds: 0.0001,
            by_processor: 2_000_000,
            processor_seconds: 0.0002,
            came: 3_000_000,
            written: 1_000_000,
        }),
    }
}

fn epoch(directory: &Path, epoch: Epoch, records: [Option<Record>; 2]) {
    let path = directory.join(stillpoint_image::epoch_name(epoch));
    std::fs::create_dir(&path).expect("directory");
    let ranks = Rank::of_each(records).map(|(rank, increment)| RankImage {
        rank,
        file: format!("rank-{rank}"),
        increment,
        ..RankImage::default()
    });
    let manifest = Manifest {
        epoch,
        ranks: ranks.collect(),
        ..Manifest::default()
    };
    manifest.write(&path).expect("manifest");
}

#[test]
fn a_recorded_run_is_told_beside_what_was_expected() {
    let directory = tempfile::tempdir().expect("directory");
    let (path, svg) = (directory.path(), directory.path().join("a.svg"));
    let shown = path.to_str().expect("name");
    epoch(path, Epoch(1), [None, None]);
    let nothing = text(&plan(&["incremental", shown]));
    assert_eq!(
        nothing.lines().collect::<Vec<_>>(),
        [
            "epoch 1, 2 ranks: its manifest has no data for the model",
            "measured: one process writes at an unknown rate and hashes at an unknown rate",
            "the model has no data: these epochs were written without hashing and comparing (--incremental=blocks does both)",
        ]
    );
    epoch(path, Epoch(2), [Some(record(false)); 2]);
    epoch(path, Epoch(3), [Some(record(true)); 2]);
    let chart = ["--chart", svg.to_str().expect("name")];
    let said = text(&plan(&[&["incremental", shown], &chart[..]].concat()));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[1..16],
        [
            "epoch 2, 2 ranks: 20 MB touched, an unknown part of it page-dirty",
            "                SECONDS    WRITTEN    ALPHA",
            "outcome         32.5 ms       5 MB     50 %",
            "epoch 3, 2 ranks: 20 MB touched, 8 MB of it page-dirty; regions: 2 full, 4 page-based, 6 hash-based, 2 of these to find out",
            "                SECONDS    WRITTEN    ALPHA",
            "full             100 ms      20 MB",
            "page-based        40 ms       8 MB",
            "hash-based        30 ms       4 MB     50 %",
            "expected        27.5 ms       4 MB     75 %",
            "outcome         32.5 ms       5 MB     50 %",
            "GPUs: 16 MB; hashed: 12 MB by GPUs at 60 GB/s, 4 MB by processors at 10 GB/s; 6 MB came to the ranks, 2 MB written",
            "measured: one process writes at 100 MB/s and hashes at 400 MB/s",
            "checkpoints at 100 MB/s, hashes at 400 MB/s: hashing pays where alpha is above 25 %",
            "10 MB of memory, 4 MB in dirty pages, 50 % of that in changed blocks: alpha is 50 %",
            "METHOD        TO MARK    TO HASH   TO WRITE      TOTAL    WRITTEN",
        ]
    );
    let drawn = std::fs::read_to_string(&svg).expect("a drawing");
    assert!(drawn.contains("epochs") && drawn.contains("Where hashing pays"));
    let value = json(&plan(&["incremental", shown, "--json"]));
    assert!(value["epochs"][0]["recorded"].is_null());
    assert!(value["epochs"][1]["recorded"]["predicted"].is_null());
    let recorded = &value["epochs"][2]["recorded"];
    assert_eq!(recorded["regions"]["hash"], 6);
    assert_eq!(recorded["outcome"]["page_dirty"], 8_000_000);
    assert_eq!(recorded["devices"]["by_gpus"], 12_000_000);
    let hash = recorded["predicted"]["hash"]["seconds"].as_f64();
    assert!((hash.expect("a time") - 0.03).abs() < 1e-9);
    assert_eq!(value["model"]["ratio"], 0.25);
    assert_eq!(value["model"]["fastest"], "hash");
}
