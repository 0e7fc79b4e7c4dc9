//! `stillpoint plan` as people and scripts call it.

mod incremental;
mod wrong_input;

use std::path::Path;
use std::process::{Command, Output};

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::{Manifest, RankImage};

fn plan(arguments: &[&str]) -> Output {
    plan_in(Path::new("."), arguments)
}

/// Runs the command in the directory of the files that the arguments name.
fn plan_in(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stillpoint"))
        .current_dir(directory)
        .arg("plan")
        .args(arguments)
        .env_clear()
        .output()
        .expect("the command starts")
}

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&text(output)).expect("JSON")
}

/// Exit status and message.
fn failure(output: &Output) -> (i32, String) {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().expect("it exits"), message)
}

const EXAMPLE: [&str; 7] = [
    "staging",
    "--topology",
    "dgx1",
    "--remainder",
    "480M,0,0,0,0,0,240M,0",
    "--spare",
    "0,137M,0,0,480M,0,0,0",
];

#[test]
fn the_papers_example_is_planned_and_its_bottleneck_named() {
    let text = text(&plan(&EXAMPLE));
    assert!(
        text.starts_with("staging on dgx1: blocking time 6.67 ms\n"),
        "{text}"
    );
    assert!(text.contains("bottleneck: G6 has 240 MB to send, and the only ways for it are link G6 -> G4 and link G6 -> host"));
    assert!(text.contains("greedy     20 ms"), "{text}");
    let value = json(&plan(&[&EXAMPLE[..], &["--json"]].concat()));
    assert!((value["optimum_seconds"].as_f64().expect("a time") - 0.02 / 3.0).abs() < 1e-12);
    assert_eq!(value["bottleneck"]["bandwidth"], 36_000_000_000u64);
    let sent: u64 = value["transfers"]
        .as_array()
        .expect("transfers")
        .iter()
        .map(|t| t["bytes"].as_u64().expect("bytes"))
        .sum();
    assert_eq!(sent, 720_000_000);
}

#[test]
fn the_best_interval_comes_with_its_waste_and_a_plot() {
    let arguments = [
        "interval",
        "--mttf",
        "12h",
        "--checkpoint",
        "40s",
        "--restart",
        "60s",
    ];
    let text = text(&plan(&arguments));
    assert!(
        text.contains("a checkpoint every 30.5 min: 4.37 % of the time is wasted"),
        "{text}"
    );
    assert!(
        text.contains("Expected waste") && text.contains("interval (minutes)"),
        "{text}"
    );
    let value = json(&plan(&[&arguments[..], &["--json"]].concat()));
    assert!((value["young"]["seconds"].as_f64().expect("a time") - 1859.0).abs() < 1.0);
}

/// Two epochs of two ranks.
fn epochs(directory: &Path) {
    for epoch in [Epoch(1), Epoch(2)] {
        let path = directory.join(stillpoint_image::epoch_name(epoch));
        std::fs::create_dir(&path).expect("directory");
        let rank = |rank: u32| {
            let file = format!("rank-{rank}");
            std::fs::write(path.join(&file), "image").expect("image");
            RankImage {
                rank: Rank(rank),
                file,
                bytes: epoch.0 * 1000 + u64::from(rank),
                ..RankImage::default()
            }
        };
        let ranks = vec![rank(0), rank(1)];
        std::thread::sleep(std::time::Duration::from_millis(20));
        Manifest {
            epoch,
            ranks,
            ..Manifest::default()
        }
        .write(&path)
        .expect("manifest");
    }
}

#[test]
fn a_directorys_own_epochs_give_sizes_traces_and_costs() {
    let directory = tempfile::tempdir().expect("directory");
    epochs(directory.path());
    let (measured, trace) = (
        directory.path().to_str().expect("name"),
        directory.path().join("trace.csv"),
    );
    let arguments = [
        "staging",
        "--topology",
        "nvswitch:2",
        "--free",
        "2000",
        "--measured",
        measured,
        "--json",
    ];
    let value = json(&plan(
        &[&arguments[..], &["--record", trace.to_str().expect("name")]].concat(),
    ));
    assert_eq!(value["processes"][1]["remainder"], 1);
    let recorded = std::fs::read_to_string(&trace).expect("trace");
    assert_eq!(recorded, "rank 0,rank 1\n1000,1001\n2000,2001\n");
    let arguments = [
        "interval",
        "--mttf",
        "12h",
        "--measured",
        measured,
        "--restart",
        "1s",
        "--json",
    ];
    let checkpoint = json(&plan(&arguments))["costs"]["checkpoint"]
        .as_f64()
        .expect("a time");
    // 20 ms, in clock ticks of the file system.
    assert!((0.01..5.0).contains(&checkpoint), "{checkpoint}");
    let (status, message) = failure(&plan(&[
        "interval",
        "--mttf",
        "12h",
        "--measured",
        "/nonexistent",
    ]));
    assert!(
        status == 3 && message.contains("name a checkpoint directory"),
        "{message}"
    );
}

#[test]
fn a_trace_is_run_through_every_scheduler() {
    let directory = tempfile::tempdir().expect("directory");
    let trace = directory.path().join("trace.csv");
    // The columns are matched by their names.
    std::fs::write(&trace, "G1,G0\n20M,100M\n130M,20M\n").expect("trace");
    let trace = trace.to_str().expect("name");
    let value = json(&plan(&[
        "staging",
        "--topology",
        "nvswitch:2",
        "--free",
        "80M",
        "--trace",
        trace,
        "--json",
    ]));
    let names: Vec<&str> = value
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["scheduler"].as_str())
        .collect();
    assert_eq!(names, ["baseline", "greedy", "min-time", "exact"]);
    assert!(value[0]["overhead"]["mean"].as_f64() > value[3]["overhead"]["mean"].as_f64());
}

#[test]
fn streams_are_fitted_to_measurements() {
    let directory = tempfile::tempdir().expect("directory");
    let samples = directory.path().join("samples.csv");
    // 5 ms, 0.1 ms for each stream, 4 GB/s never hidden, 2 GB/s hidden.
    let mut lines = String::new();
    for megabytes in [1u32, 16, 64, 256] {
        for streams in [1u32, 4, 8] {
            let (bytes, s) = (f64::from(megabytes) * 1e6, f64::from(streams));
            let time = 5e-3 + 1e-4 * (s - 1.0) + bytes / 4e9 + bytes / 2e9 / s;
            lines += &format!("{megabytes}MB,{streams},{time}\n");
        }
    }
    std::fs::write(&samples, lines).expect("samples");
    let value = json(&plan(&[
        "streams",
        "--samples",
        samples.to_str().expect("name"),
        "--json",
    ]));
    assert!((value["model"]["fixed"].as_f64().expect("a time") - 5e-3).abs() < 1e-6);
    assert!(
        (value["streams"][2]["pays_from"].as_f64().expect("a size") - 800_000.0).abs() < 1000.0
    );
    let largest = value["samples"].as_array().expect("samples").iter();
    let residuals = largest.map(|sample| sample["residual"].as_f64().expect("a share").abs());
    assert!(residuals.fold(0.0, f64::max) < 1e-6);
    let said = text(&plan(&[
        "streams",
        "--table",
        samples.to_str().expect("name"),
    ]));
    assert!(
        said.contains("CHOSEN") && said.lines().count() > 12 + 7,
        "{said}"
    );
}

/// The record holds copies of GPUs' memory in the epochs of a directory.
#[test]
fn streams_are_fitted_to_what_epochs_have_measured() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().to_str().expect("name");
    let (status, message) = failure(&plan(&["streams", "--measured", path]));
    assert!(
        status == 1 && message.contains("gpu-streams.json: cannot read"),
        "{message}"
    );
    // 20 us, 5 us for each stream, 10 us for each copy, 24 GB/s never hidden and 72 GB/s hidden. The prediction for the newest copy is 44 ms.
    let mut copied = Vec::new();
    for (megabytes, slot) in [(4u32, 4u32), (32, 4), (128, 16), (1024, 16)] {
        for streams in [1u32, 2, 4, 8] {
            let copies = f64::from(megabytes / slot);
            let used = f64::from(streams).min(copies);
            let bytes = f64::from(megabytes) * 1048576.0;
            let rate = 1.0 / 24e9 + 1.0 / 72e9 / used;
            let seconds = 20e-6
                + 5e-6 * f64::from(streams - 1)
                + 10e-6 * ((copies / used).ceil() - 1.0)
                + bytes * rate;
            copied.push(serde_json::json!({
                "epoch": 0, "size": bytes, "streams": streams, "slot": slot << 20, "seconds": seconds, "predicted": null
            }));
        }
    }
    copied[15]["epoch"] = 3.into();
    copied[15]["predicted"] = 0.044.into();
    let record = serde_json::json!({ "gpus": [
        { "uuid": "GPU-1", "driver": "driver 550.54", "copied": { "to_host": copied, "own": [] } },
    ] });
    std::fs::write(
        directory.path().join("gpu-streams.json"),
        record.to_string(),
    )
    .expect("record");
    let value = json(&plan(&["streams", "--measured", path, "--json"]));
    let (own, to_host) = (&value["ways"][0], &value["ways"][1]);
    assert_eq!(
        (&own["way"], &to_host["way"]),
        (&"own".into(), &"to_host".into())
    );
    assert!(
        own["fitted"].is_null()
            && own["problem"]
                .as_str()
                .is_some_and(|problem| problem.contains("at least four"))
    );
    let constants = &to_host["fitted"]["model"];
    let near = |name: &str, wanted: f64| {
        (constants[name].as_f64().expect(name) / wanted - 1.0).abs() < 1e-3
    };
    assert!(near("fixed", 20e-6) && near("per_stream", 5e-6) && near("per_copy", 10e-6));
    assert!(near("visible", 1.0 / 24e9) && near("hidden", 1.0 / 72e9));
    assert_eq!(
        to_host["fitted"]["samples"].as_array().map(Vec::len),
        Some(16)
    );
    assert_eq!(to_host["newest"]["epoch"], 3);
    let streams = |at: usize| {
        to_host["fitted"]["chosen"][at]["streams"]
            .as_u64()
            .expect("streams")
    };
    assert!(streams(0) == 1 && streams(4) > 4, "{to_host}");
    let said = text(&plan(&["streams", "--measured", path]));
    assert!(
        said.contains("GPU-1, driver 550.54, to_host\nepoch 3: 44 ms expected, "),
        "{said}"
    );
    std::fs::write(directory.path().join("gpu-streams.json"), "{").expect("record");
    let (status, message) = failure(&plan(&["streams", "--measured", path]));
    assert!(
        status == 1 && message.contains("gpu-streams.json: EOF"),
        "{message}"
    );
}

/// A machine on which Algorithm 2 would take minutes.
#[test]
fn comparisons_do_not_keep_the_plan_waiting() {
    let directory = tempfile::tempdir().expect("directory");
    let trace = directory.path().join("trace.csv");
    let names = (0..512).map(|node| format!("node{node}"));
    let sizes = (0..512u64).map(|node| (node * 25_000_000).to_string());
    let sizes = sizes.collect::<Vec<_>>().join(",");
    let text = names.collect::<Vec<_>>().join(",") + "\n" + &sizes + "\n" + &sizes + "\n";
    std::fs::write(&trace, text).expect("trace");
    let cluster = ["staging", "--topology", "cluster:512", "--trace"];
    let traced = [&cluster[..], &[trace.to_str().expect("name")]].concat();
    let said = text_of(&traced, &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("2 snapshots on cluster:512"), "{said}");
    assert!(
        lines[2].starts_with("exact "),
        "the plan comes first: {said}"
    );
    assert!(lines[3].starts_with("baseline ") && lines[4].starts_with("greedy "));
    assert!(
        lines[5].starts_with("min-time   left out in 2 of 2 snapshots: would take more than"),
        "{said}"
    );
    assert!(said.ends_with("(--compare all waits for what was left out)\n"));
    let alone = text_of(&traced, &["--compare", "none"]);
    assert_eq!(alone.lines().count(), 3, "{alone}");
    let value = json(&plan(&[&traced[..], &["--json"]].concat()));
    assert_eq!(
        (&value[2]["scheduler"], &value[2]["left_out"]),
        (&"min-time".into(), &2.into())
    );
    // A single plan.
    let links = (0..512u64).map(|gpu| (gpu % 16 * 16_000_000).to_string());
    let links = links.collect::<Vec<_>>().join(",");
    let pairs = ["staging", "--topology", "all-to-all:512", "--sizes", &links];
    let said = text_of(&pairs, &[]);
    assert!(
        said.contains("\nmin-time   left out: would take more than"),
        "{said}"
    );
    let alone = text_of(&pairs, &["--compare", "none"]);
    assert!(!alone.contains("baseline") && said.starts_with(&alone));
    let value = json(&plan(&[&pairs[..], &["--json"]].concat()));
    assert_eq!(value["left_out"][0]["scheduler"], "min-time");
    assert_eq!(value["others"].as_array().map(Vec::len), Some(2));
    // With `--compare all`, the command waits for it.
    let value = json(&plan(
        &[&EXAMPLE[..], &["--compare", "all", "--json"]].concat(),
    ));
    assert_eq!(value["others"][2]["scheduler"], "min-time");
}

fn text_of(arguments: &[&str], more: &[&str]) -> String {
    text(&plan(&[arguments, more].concat()))
}

#[test]
fn the_models_of_streams_are_there_as_json_too() {
    let models = json(&plan(&["streams", "--json"]));
    assert_eq!(models["fits"].as_array().map(Vec::len), Some(3));
    assert_eq!(models["streaming"][0]["streams"], 4);
}
