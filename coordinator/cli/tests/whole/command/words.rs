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
        "launch",
        "restart",
        "status",
        "checkpoint",
        "suspend",
        "resume",
        "verify",
        "inspect",
        "timeline",
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
fn the_manual_has_its_sections_and_leads_to_pages_that_are_there() {
    let house = House::new();
    let pages = house.path("man");
    house.succeeds(&["man", pages.to_str().unwrap()]);
    let there = names(&pages);
    let main = fs::read_to_string(pages.join("stillpoint.1")).unwrap();
    assert_eq!(main, house.succeeds(&["man"]));
    for section in ["EXAMPLES", "FILES", "ENVIRONMENT", "\"EXIT STATUS\""] {
        assert!(main.contains(&format!(".SH {section}\n")), "no {section}");
    }
    for word in ["STILLPOINT_INTERVAL", "/etc/stillpoint.conf", "in.melt"] {
        assert!(main.contains(word), "no {word}");
    }
    for page in &there {
        let text = fs::read_to_string(pages.join(page))
            .unwrap()
            .replace('\\', "");
        for reference in text.split("(1)").filter_map(|before| before.lines().last()) {
            let name = reference.rsplit(' ').next().unwrap();
            if name.starts_with("stillpoint") && text.contains(&format!("{name}(1)")) {
                assert!(
                    there.contains(&format!("{name}.1")),
                    "{page} leads to {name}(1)"
                );
            }
        }
    }
}

#[test]
fn check_shows_rows() {
    let house = House::new();
    let conf = house.path("conf");
    let shown_with = |text: &str| {
        fs::write(&conf, text).unwrap();
        let mut command = house.command(&["check"]);
        let output = command.env("STILLPOINT_CONF", &conf).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (text, output.status.success())
    };
    // As root only: the file has to be root's.
    if nix::unistd::geteuid().is_root() {
        assert!(
            shown_with("[defaults]\nkeep = 3\n")
                .0
                .contains("keep = 3 (the site)")
        );
        for (setting, words) in [
            ("keep = \"three\"", "keep: invalid value 'three'"),
            ("lazy = \"yes\"", "lazy: 'yes' is neither true nor false"),
            (
                "operators = \"no-such-group\"",
                "operators: there is no group 'no-such-group'",
            ),
        ] {
            let (text, ok) = shown_with(&format!("[defaults]\n{setting}\n"));
            let words = format!("NO   {}: {words}", conf.display());
            assert!(text.contains(&words) && !ok, "{setting}: {text}");
        }
        fs::write(&conf, "[defaults]\nkeep = \"three\"\n").unwrap();
        let mut run = house.command(&["run", "sh"]);
        let output = run.env("STILLPOINT_CONF", &conf).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let words = format!("{}: keep: invalid value 'three'", conf.display());
        assert!(
            text.contains(&words) && text.contains("[site-settings]"),
            "{text}"
        );
    }
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
