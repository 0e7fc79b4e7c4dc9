//! `stillpoint plan incremental`.

use super::{failure, json, plan, text};

/// 1 GB/s written, 4 GB/s hashed, half of 16 GB page-dirty, a quarter of that changed.
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
            "table of hashes: 62.5 MB, for blocks of 4096 B",
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
        ("table_bytes", 1e9),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
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
    // What stands for the region, beside the one in the legend.
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
    // Where the ratio lies far outside of what is usual, the axis follows.
    let wide = draw("c.svg", &["--beta-ckpt", "1TB/s"]);
    assert!(
        wide.contains(">\n1000\n</text>") && !wide.contains("NaN"),
        "{wide}"
    );
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let wrong: [(&[&str], i32, &str); 9] = [
        (&["incremental"], 2, "--beta-ckpt <RATE>"),
        (
            &with(&["--block", "3000"]),
            2,
            "3000 bytes are no block size: take a power of two from 256 to 65536",
        ),
        (
            &with(&["--block", "128KiB"]),
            2,
            "131072 bytes are no block size",
        ),
        (
            &with(&["--changed", "25"]),
            2,
            "'25' is no share: write 0 to 1, or 0% to 100%",
        ),
        (&with(&["--dirty", "-1%"]), 2, "'-1%' is no share"),
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

/// Of options that come twice the later one: the command takes each once.
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
