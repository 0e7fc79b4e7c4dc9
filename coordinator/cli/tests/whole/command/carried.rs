//! Epochs whose images have chunks in earlier ones.

use std::fs;
use std::path::PathBuf;
use stillpoint_ids::Epoch;

use serde_json::{Value, json};

use super::house::House;
use crate::support::names;

/// The epochs in the checkpoint directory.
fn epochs(house: &House) -> Vec<String> {
    let names = names(&house.checkpoints()).into_iter();
    names.filter(|name| name.starts_with("epoch")).collect()
}

fn path(house: &House, epoch: Epoch) -> PathBuf {
    house.checkpoints().join(format!("epoch-{epoch:06}"))
}

fn needs(house: &House, directory: &str, epoch: Epoch) -> Value {
    let epoch = epoch.to_string();
    house.json(&["inspect", directory, "--epoch", &epoch, "--json"])["manifest"]["needs"].clone()
}

/// Two ranks that have written six epochs, the last one for a suspend.
fn six_epochs() -> House {
    let house = House::new();
    let ranks = house.launch(2, "builds", &["run", "sh"]);
    house.until_state("running");
    for _ in 1..=5 {
        house.succeeds(&["checkpoint"]);
    }
    house.succeeds(&["suspend"]);
    ranks.end_well();
    house
}

#[test]
fn what_the_kept_epochs_need_stays_and_is_read() {
    let house = six_epochs();
    // Each epoch needs two at most. Two are kept, and those that they need.
    assert_eq!(needs(&house, "d", Epoch(6)), json!([4, 5]));
    assert_eq!(needs(&house, "d", Epoch(5)), json!([3, 4]));
    let expected = [3, 4, 5, 6].map(|epoch| format!("epoch-{epoch:06}"));
    assert_eq!(epochs(&house), expected);
    for epoch in ["5", "6"] {
        let said = house.succeeds(&["verify", "d", "--epoch", epoch]);
        assert!(
            said.contains("is whole: 2 images") && said.contains("of memory"),
            "{said}"
        );
    }
    // An epoch that stays only because it is needed lacks an epoch that it needs itself.
    house.refuses_last(
        &["verify", "d", "--epoch", "3"],
        1,
        &["epoch-000003/rank-000001.img", "it needs epoch"],
    );
    // The images here are like those of an earlier release: they do not record written memory.
    let said = house.succeeds(&["inspect", "d", "--regions"]);
    let known = "the touched and the written parts are unknown";
    assert!(
        said.contains(known) && said.contains("regions of rank 1:"),
        "{said}"
    );
    let shown = house.json(&["inspect", "d", "--json"]);
    assert!(
        shown["images"][0]["regions"][0]["bytes"].is_null(),
        "{shown}"
    );
    assert!(
        shown["images"][0]["bytes"].is_null()
            && shown["manifest"]["ranks"][0]["increment"].is_null()
    );
    let image = &shown["images"][1];
    let carried = image["carried"].as_array().unwrap();
    let of: Vec<u64> = carried
        .iter()
        .map(|share| share["epoch"].as_u64().unwrap())
        .collect();
    assert_eq!(of, [4, 5]);
    let bytes: u64 = carried
        .iter()
        .map(|share| share["bytes"].as_u64().unwrap())
        .sum();
    let own = image["sizes"]["own_page_bytes"].as_u64().unwrap();
    assert_eq!(bytes + own, 4 * 4096);
    assert!(own >= 300 && bytes > 300);
    let text = house.succeeds(&["inspect", "d", "-v"]);
    for words in [
        "written in this epoch, reused:",
        "from epoch 4",
        "from epoch 5",
        "\nrank 1: ",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
    let page = fs::read_to_string(page).unwrap();
    for fields in [&carried[0], &image["sizes"]] {
        for name in fields.as_object().unwrap().keys() {
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not in docs/reference/json.md"
            );
        }
    }
}

#[test]
fn a_restart_builds_upon_the_epoch_that_it_carries_on_from() {
    let house = six_epochs();
    let restarted = |arguments: &[&str], from: u64| {
        let ranks = house.launch(2, "builds", arguments);
        assert_eq!(house.until_state("running")["restarted_from"], from);
        house.succeeds(&["suspend"]);
        ranks.end_well();
    };
    restarted(&["restart", "d"], 6);
    assert_eq!(needs(&house, "d", Epoch(7)), json!([5, 6]));
    // After a restart from an older epoch, later ones are no part of the new one.
    restarted(&["restart", "d", "--epoch", "6"], 6);
    assert_eq!(needs(&house, "d", Epoch(8)), json!([5, 6]));
    house.succeeds(&["verify", "d"]);
    assert_eq!(
        epochs(&house),
        [5, 6, 7, 8].map(|epoch| format!("epoch-{epoch:06}"))
    );
}

#[test]
fn another_directory_gets_epochs_that_need_nothing_of_the_first() {
    let house = six_epochs();
    let before = epochs(&house);
    let new = house.path("new");
    let ranks = house.launch(2, "builds", &["restart", "d", "--dir", "new"]);
    loop {
        let output = house.output(&["checkpoint", "./new"]);
        if output.status.success() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    house.succeeds(&["suspend", "./new"]);
    ranks.end_well();
    assert_eq!(epochs(&house), before);
    fs::rename(house.checkpoints(), house.path("gone")).unwrap();
    let written: Vec<String> = names(&new)
        .into_iter()
        .filter(|name| name.starts_with("epoch"))
        .collect();
    assert_eq!(written.len(), 2, "{written:?}");
    house.succeeds(&["verify", "new"]);
    let shown = house.json(&["inspect", "new", "--json"]);
    assert_eq!(shown["manifest"]["needs"].as_array().unwrap().len(), 1);
}

/// Checks that a restart of both ranks is refused before either begins.
fn refused(house: &House, status: i32, words: &[&str]) {
    let ranks = house.launch(2, "builds", &["restart", "d"]);
    let (found, text) = ranks.wait_for(0);
    assert_eq!((found, text.lines().count()), (Some(status), 1), "{text}");
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

#[test]
fn what_has_lost_an_earlier_epoch_is_refused_by_name() {
    let house = six_epochs();
    let aside = house.path("aside");
    fs::rename(path(&house, Epoch(4)), &aside).unwrap();
    let words = [
        "epoch 6",
        "it needs epoch 4",
        "epoch-000004/rank-00000",
        "put that epoch's",
    ];
    house.refuses_last(&["verify", "d"], 1, &words[1..]);
    refused(
        &house,
        1,
        &["cannot restart epoch", "epoch-000004", "no other epoch"],
    );
    fs::create_dir(path(&house, Epoch(4))).unwrap();
    refused(&house, 1, &words);
    fs::remove_dir(path(&house, Epoch(4))).unwrap();
    fs::rename(&aside, path(&house, Epoch(4))).unwrap();
    house.succeeds(&["verify", "d"]);

    // Another whole image under the name of the needed one.
    let image = path(&house, Epoch(4)).join("rank-000001.img");
    let sound = fs::read(&image).unwrap();
    fs::copy(path(&house, Epoch(5)).join("rank-000001.img"), &image).unwrap();
    refused(&house, 1, &["it needs epoch 4", "rank-000001.img"]);
    // Changed bytes are detected when they are read.
    let mut changed = sound.clone();
    changed[70] ^= 1;
    fs::write(&image, &changed).unwrap();
    house.refuses(
        &["verify", "d"],
        1,
        &["epoch-000004/rank-000001.img", "page data"],
    );
    fs::write(&image, &sound).unwrap();
    house.succeeds(&["verify", "d"]);

    // A needed directory that others may write to is refused too.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(path(&house, Epoch(4)), open).unwrap();
    refused(&house, 4, &["epoch-000004", "others may write to it"]);
}
