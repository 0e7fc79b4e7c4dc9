//! Help, version and `check`: the command's output about itself and about the machine.

use std::fs;

use serde_json::Value;

use super::house::House;
use crate::support::names;

#[test]
fn help_manual_and_completions_know_every_command() {
    let house = House::new();
    let help = house.succeeds(&["--help"]);
    let manual = house.succeeds(&["man"]);
    let pages = house.path("man");
    house.succeeds(&["man", pages.to_str().unwrap()]);
    let pages = names(&pages);
    let shells: Vec<String> = ["bash", "zsh", "fish"]
        .iter()
        .map(|shell| house.succeeds(&["completions", shell]))
        .collect();
    for command in [
        "run",
        "restart",
        "status",
        "checkpoint",
        "suspend",
        "resume",
        "verify",
        "inspect",
        "check",
        "completions",
        "man",
    ] {
        assert!(
            help.contains(&format!("  {command}")),
            "{command} is not in --help"
        );
        assert!(manual.contains(command), "{command} is not in the manual");
        assert!(
            pages.contains(&format!("stillpoint-{command}.1")),
            "{command} has no page"
        );
        for shell in &shells {
            assert!(shell.contains(command), "{command} is not completed");
        }
        assert!(
            house
                .succeeds(&[command, "--help"])
                .contains("Usage: stillpoint")
        );
    }
    assert!(help.contains("Exit status"));
    assert!(
        !help.contains("coordinator"),
        "the coordinator is not for people"
    );
    assert!(!help.contains("of-user"), "nor are helpers");
}

#[test]
fn check_shows_rows() {
    let house = House::new();
    let shown: Value = serde_json::from_slice(&house.output(&["check", "--json"]).stdout).unwrap();
    let rows = shown["rows"].as_array().unwrap();
    assert!(
        rows.iter()
            .any(|row| row["what"] == "Open MPI lower half" && row["ok"] == true)
    );
    fs::remove_file(house.path("stillpoint-lower-openmpi")).unwrap();
    let output = house.output(&["check"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("this machine lacks: Open MPI lower half"),
        "{text}"
    );
}

#[test]
fn the_version_names_the_contracts_of_what_is_installed() {
    let house = House::new();
    let shown = house.succeeds(&["--version"]);
    let mut lines = shown.lines();
    let first = format!("stillpoint {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(lines.next(), Some(first.as_str()), "{shown}");
    let rest: Vec<&str> = lines.collect();
    // The command lists the same upper halves as `check`.
    let known: Value = serde_json::from_slice(&house.output(&["check", "--json"]).stdout).unwrap();
    let known = known["mpi"]["abis"].as_array().unwrap();
    let known: Vec<&str> = known
        .iter()
        .filter(|abi| abi["programs"] == true)
        .map(|abi| abi["name"].as_str().unwrap())
        .collect();
    assert!(known.contains(&"openmpi"), "{known:?}");
    assert_eq!(rest.len(), known.len(), "{shown}");
    for (line, name) in rest.iter().zip(known) {
        // The house has stand-ins, which export no contract, and the command must not invent one.
        let library = format!("/libstillpoint_upper_{name}.so does not state it)");
        assert!(
            line.starts_with("contract unknown (") && line.ends_with(&library),
            "{shown}"
        );
    }
    assert_eq!(house.succeeds(&["-V"]), shown);
}
