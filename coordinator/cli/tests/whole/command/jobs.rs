//! Jobs that are run, suspended, restarted and looked at.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::house::House;
use super::schema;
use crate::support::names;

#[test]
fn a_job_is_run_suspended_and_restarted() {
    let house = House::new();
    let dir = house.checkpoints();
    let dir = dir.to_str().unwrap();
    let first = house.launch(3, "", &["run", "--name", "melt", "--", "sh", "-c", "x"]);
    let shown = house.until_state("running");
    assert_eq!(shown["name"], "melt");
    assert_eq!(shown["command"], serde_json::json!(["sh", "-c", "x"]));
    assert_eq!(shown["coordinator"]["reachable"], true);
    // The target is the directory, the name, or missing for the only job.
    for target in [Some(dir), Some("melt"), None] {
        let arguments: Vec<&str> = ["checkpoint"].into_iter().chain(target).collect();
        let text = house.succeeds(&arguments);
        assert!(
            text.starts_with("epoch ") && text.contains("write "),
            "{text}"
        );
    }
    assert_eq!(house.json(&["status", "--json"])["jobs"][0]["epoch"], 3);
    assert!(house.succeeds(&["status"]).contains("melt"));
    // A second launch in the same directory is turned away; the first is not disturbed.
    house.refuses(
        &["run", "sh"],
        1,
        &["another job runs in this directory", "'melt'", "--dir"],
    );
    let outcome = house.json(&["suspend", "melt", "--json"]);
    assert_eq!(
        (&outcome["epoch"], &outcome["suspended"]),
        (&4.into(), &true.into())
    );
    assert!(outcome["phases"]["write"].is_f64() && outcome["bytes"].as_u64() > Some(0));
    first.end_well();
    let shown = house.until_state("suspended");
    assert_eq!(
        (&shown["exit_status"], &shown["epochs"]),
        (&0.into(), &serde_json::json!([3, 4]))
    );
    house.refuses(&["suspend", dir], 3, &["is not running, it is suspended"]);
    assert!(
        house
            .succeeds(&["verify", dir])
            .contains("epoch 4 is whole: 3 images")
    );
    let short = house.succeeds(&["inspect", dir]);
    assert!(
        short.lines().count() <= 15 && short.contains("-v shows"),
        "{short}"
    );
    let told = house.succeeds(&["timeline", dir]);
    assert!(told.starts_with("epoch 4: suspend of 3 ranks"), "{told}");
    assert!(
        told.contains("  write ") && told.contains("  commit "),
        "{told}"
    );
    house.refuses(&["timeline", dir, "--epoch", "9"], 3, &["only 1, 2, 3, 4"]);
    let (trace, page) = (house.path("trace"), house.path("page"));
    let files = [
        "--trace",
        trace.to_str().unwrap(),
        "--html",
        page.to_str().unwrap(),
    ];
    house.succeeds(&[&["timeline", dir, "--epoch", "3"], &files[..]].concat());
    let trace: Value = serde_json::from_str(&fs::read_to_string(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(
        events.iter().any(|event| event["name"] == "epoch 3"),
        "{trace}"
    );
    assert!(fs::read_to_string(page).unwrap().contains("<svg"));
    assert!(
        house
            .succeeds(&["status", dir, "--watch"])
            .contains("suspended")
    );
    let inspected = house.json(&["inspect", dir, "--json"]);
    assert_eq!(inspected["images"][2]["identity"]["rank"], 2);
    assert!(
        house
            .succeeds(&["inspect", dir, "-v"])
            .contains("2 communicators")
    );
    // The job is restarted later, in a launch of its own, and then once more by the line of a batch script.
    let second = house.launch(3, "", &["restart", dir]);
    let shown = house.until_state("running");
    assert_eq!(
        (&shown["restarted_from"], &shown["name"]),
        (&4.into(), &"melt".into())
    );
    assert_eq!(shown["job"], inspected["manifest"]["job"]);
    house.succeeds(&["suspend"]);
    second.end_well();
    let third = house.launch(3, "", &["run", "--resume", "sh", "-c", "x"]);
    assert_eq!(house.until_state("running")["restarted_from"], 5);
    house.succeeds(&["suspend"]);
    third.end_well();
}

#[test]
fn commands_hear_of_events_and_their_failures_are_told() {
    let house = House::new();
    let heard = house.path("heard");
    let hook = format!(
        "cat >>{0}; [ $(wc -l <{0}) != 3 ] || {{ echo no mail >&2; exit 3; }}",
        heard.display()
    );
    let ranks = house.launch(2, "", &["run", "--on-event", &hook, "sh"]);
    house.until_state("running");
    let until = |lines: usize| loop {
        let text = fs::read_to_string(&heard).unwrap_or_default();
        if text.lines().count() >= lines {
            break text;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    until(1);
    house.succeeds(&["checkpoint"]);
    until(3);
    house.succeeds(&["suspend"]);
    ranks.end_well();
    let text = until(5);
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "checkpoint",
            "checkpoint-begins",
            "started",
            "suspend",
            "suspend-begins"
        ]
    );
    for event in &events {
        assert_eq!((&event["ranks"], &event["name"]), (&2.into(), &"sh".into()));
    }
    let log = fs::read_to_string(house.checkpoints().join("coordinator.log")).unwrap();
    assert!(
        log.contains("--on-event for the event") && log.contains("exit status: 3: no mail"),
        "{log}"
    );
}

#[test]
fn a_command_that_hears_of_the_end_keeps_no_other_launch_out_of_the_directory() {
    let house = House::new();
    let (waits, enough) = (house.path("waits"), house.path("enough"));
    let hook = format!(
        "grep -q '\"event\":\"suspend\"' || exit 0; : >{}; until [ -e {} ]; do sleep 0.05; done",
        waits.display(),
        enough.display()
    );
    let first = house.launch(1, "", &["run", "--on-event", &hook, "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    first.end_well();
    while !waits.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = house.launch(1, "", &["run", "--resume", "sh"]);
    assert_eq!(house.until_state("running")["restarted_from"], 1);
    fs::write(&enough, "").unwrap();
    house.succeeds(&["suspend"]);
    second.end_well();
}

#[test]
fn every_field_of_a_job_is_documented() {
    let house = House::new();
    let ranks = house.launch(1, "", &["run", "sh"]);
    let shown = house.until_state("running");
    house.succeeds(&["suspend"]);
    ranks.end_well();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
    let page = fs::read_to_string(page).unwrap();
    let fields =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    for name in fields(&shown) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/reference/json.md"
        );
    }
    for name in fields(&shown["live"]) {
        assert!(
            page.contains(&format!("`live.{name}`")),
            "live.{name} is not in docs/reference/json.md"
        );
    }
    for name in fields(&shown["live"]["processes"][0]) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/reference/json.md"
        );
    }
}

#[test]
fn resume_starts_afresh_where_nothing_is_to_be_resumed() {
    let house = House::new();
    let ranks = house.launch(2, "", &["run", "--resume", "--keep", "1", "sh"]);
    assert_eq!(house.until_state("running")["restarted_from"], Value::Null);
    house.succeeds(&["checkpoint"]);
    house.succeeds(&["suspend"]);
    ranks.end_well();
    assert_eq!(
        house.until_state("suspended")["epochs"],
        serde_json::json!([2])
    );
}

#[test]
fn a_refusal_is_5_and_a_failure_is_the_applications_own() {
    let house = House::new();
    let ranks = house.launch(2, "refuses", &["run", "sh"]);
    house.until_state("running");
    let output = house.output(&["suspend"]);
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("runs on: all 2 ranks: a window is open [mpi-window]"),
        "{text}"
    );
    let output = house.output(&["suspend", "--no-wait", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema::differences("refused", &told), [""; 0], "{told}");
    assert_eq!(told["reasons"][0]["code"], "mpi-window", "{told}");
    let shown = house.json(&["status", "d", "--json"]);
    let live = &shown["live"];
    assert_eq!(live["last_failure_code"], "mpi-window", "{live}");
    assert_eq!(live["tally"]["refusals"]["mpi-window"], 2, "{live}");
    // The launcher ends every rank of the job.
    drop(ranks);
    let shown = house.until_state("failed");
    assert!(
        shown["reason"]
            .as_str()
            .unwrap()
            .contains("died unexpectedly"),
        "{shown}"
    );

    let ranks = house.launch(1, "fails", &["run", "sh"]);
    assert_eq!(ranks.wait()[0].0, Some(7));
    let shown = house.until_state("failed");
    assert_eq!(shown["exit_status"], 7);
    house.refuses(&["checkpoint", "d"], 3, &["is not running, it is failed"]);
}

#[test]
fn a_lower_half_that_cannot_start_leaves_no_job_behind() {
    let house = House::new();
    let lower = house.path("stillpoint-lower-openmpi");
    fs::set_permissions(&lower, fs::Permissions::from_mode(0o644)).unwrap();
    house.refuses(
        &["run", "sh"],
        1,
        &["stillpoint-lower-openmpi: cannot start this program"],
    );
    let shown = house.until_state("failed");
    assert_eq!(shown["reason"], "rank 0 ended before its application ran");
    fs::remove_file(house.path("stillpoint-lower-openmpi")).unwrap();
    house.refuses(
        &["run", "sh"],
        1,
        &["stillpoint-lower-openmpi is neither in"],
    );
}

#[test]
fn the_directory_holds_what_is_documented_and_nothing_is_open_to_others() {
    let house = House::new();
    let ranks = house.launch(2, "", &["run", "sh"]);
    house.until_state("running");
    house.succeeds(&["suspend"]);
    ranks.end_well();
    house.until_state("suspended");
    let dir = house.checkpoints();
    assert_eq!(
        names(&dir),
        [
            ".launch.json",
            ".lock",
            "coordinator.log",
            "epoch-000001",
            "job.json",
            "timeline.jsonl"
        ]
    );
    let expected = ["manifest", "rank-000000.img", "rank-000001.img"];
    assert_eq!(names(&dir.join("epoch-000001")), expected);
    let open = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(open(&dir), 0);
    for name in names(&dir) {
        assert_eq!(open(&dir.join(&name)), 0, "{name}");
    }
    for name in names(&dir.join("epoch-000001")) {
        assert_eq!(open(&dir.join("epoch-000001").join(&name)), 0, "{name}");
    }
}
