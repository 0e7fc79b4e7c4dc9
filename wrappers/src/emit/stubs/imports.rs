//! The `use` lines of a file of stubs.

use std::fmt::Write;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::{kind, stub};
use crate::table::Function;

/// The `use` lines of a file: only what its stubs need.
pub fn imports(functions: &[&Function]) -> String {
    let mut bodies = String::new();
    for function in functions {
        stub(&mut bodies, function);
    }
    let uses = |word: &str| {
        bodies
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|found| found == word)
    };
    let list = |words: &[&'static str]| -> Vec<&'static str> {
        words.iter().copied().filter(|word| uses(word)).collect()
    };
    let mut text = String::new();
    let mut import = |path: &str, words: Vec<&str>| {
        if !words.is_empty() {
            let _ = writeln!(text, "use {path}::{{{}}};", words.join(", "));
        }
    };
    import("core::ffi", list(&["c_char", "c_int", "c_void"]));
    let mut types: Vec<&str> = Vec::new();
    let mut names: Vec<String> = functions
        .iter()
        .flat_map(|function| {
            let parameters = function.parameters.iter().map(kind::application_type);
            parameters.chain([kind::return_type(function)])
        })
        .map(|name| name.rsplit([' ', '*']).next().unwrap_or("").to_string())
        .filter(|name| name.chars().next().is_some_and(char::is_uppercase))
        .collect();
    names.sort();
    names.dedup();
    types.extend(names.iter().map(String::as_str));
    import("crate::ground::abi", types);
    let mut text = text.replace("crate::ground::abi::{", "crate::ground::abi::{self, ");
    if !uses("abi") {
        text = text.replace("{self, ", "{");
    }
    if uses("abi") && !text.contains("{self, ") {
        text.push_str("use crate::ground::abi;\n");
    }
    for (floor, module) in [
        ("stubs", "calls"),
        ("ground", "crossing"),
        ("operations", "direct"),
        ("objects", "errhandler"),
        ("stubs", "pass"),
        ("ground", "refuse"),
    ] {
        if bodies.contains(&format!("{module}::")) {
            let _ = writeln!(text, "use crate::{floor}::{module};");
        }
    }
    if uses("Place") {
        text.push_str("use crate::ground::crossing::Place;\n");
    }
    text.push_str("use crate::ground::export::export;\n");
    if uses("HandleKind") {
        text.push_str("use stillpoint_wrappers::gate::HandleKind;\n");
    }
    text
}
