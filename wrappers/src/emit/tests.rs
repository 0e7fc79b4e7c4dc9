//! Guards of the tables and of what was generated from them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::string::{String, ToString};
use std::{format, fs};

use super::{input, outputs};
use crate::table::Form;

#[test]
fn generated_files_are_what_the_generator_makes_of_the_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a parent folder");
    let input = input().expect("the tables can be read");
    for output in outputs(&input) {
        let there = fs::read_to_string(root.join(&output.path)).unwrap_or_default();
        assert!(
            there == output.text,
            "{} is stale: run `generate`",
            output.path
        );
    }
}

#[test]
fn the_table_is_written_as_it_is_read() {
    for line in include_str!("../../table/functions.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let function = &crate::table::read(line).expect("a good line")[0];
        assert_eq!(function.to_string(), line);
    }
}

#[test]
fn a_bad_line_is_named() {
    let error = crate::table::read("# head\nMPI_Bcast collective sideways code").unwrap_err();
    assert_eq!(error.to_string(), "line 2: unknown form");
}

/// `nm`'s dynamic symbols of the installed library.
pub fn exported() -> BTreeSet<String> {
    let library = library();
    let output = Command::new("nm")
        .args(["-D", "--defined-only", &library])
        .output()
        .expect("nm runs");
    assert!(output.status.success(), "nm {library}");
    String::from_utf8(output.stdout)
        .expect("symbol names are ASCII")
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(str::to_string)
        .collect()
}

fn library() -> String {
    let cache = Command::new("/sbin/ldconfig")
        .arg("-p")
        .output()
        .expect("ldconfig runs");
    let cache = String::from_utf8_lossy(&cache.stdout).to_string();
    let line = cache
        .lines()
        .find(|line| line.trim_start().starts_with("libmpi.so.40 "));
    line.and_then(|line| line.split("=> ").nth(1))
        .expect("Open MPI is installed")
        .to_string()
}

#[test]
fn the_table_has_every_function_of_the_installed_mpi_and_no_other() {
    let exported = exported();
    let functions = input().expect("the tables can be read").functions;
    let table: BTreeSet<String> = functions
        .iter()
        .filter(|f| f.form != Form::Absent)
        .map(|f| f.name.clone())
        .collect();
    let installed: BTreeSet<String> = exported
        .iter()
        .filter_map(|name| name.strip_prefix('P'))
        .filter(|name| name.starts_with("MPI_") || name.starts_with("MPIX_"))
        .map(str::to_string)
        .collect();
    assert_eq!(table, installed);
    for function in functions.iter().filter(|f| f.form == Form::Absent) {
        assert!(
            !exported.contains(&function.name),
            "{} is exported",
            function.name
        );
    }
}

#[test]
fn every_stub_has_a_class_and_the_page_names_it() {
    let input = input().expect("the tables can be read");
    let page = super::coverage::emit(&input).text;
    for function in &input.functions {
        assert_eq!(
            page.matches(&format!("| `{}` |", function.name)).count(),
            1,
            "{}",
            function.name
        );
    }
}
