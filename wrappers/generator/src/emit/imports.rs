//! `use` lines: only those that the code below needs.

use std::collections::BTreeSet;
use std::fmt::Write;

/// The lines of a module.
pub struct Imports<'a> {
    code: &'a str,
    words: BTreeSet<&'a str>,
    text: String,
}

impl<'a> Imports<'a> {
    /// Makes the lines for a module with this code.
    pub fn of(code: &'a str) -> Self {
        let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        Self {
            code,
            words: words.collect(),
            text: String::new(),
        }
    }

    /// Imports those of the names that occur.
    pub fn from(&mut self, path: &str, names: &[&str]) {
        let occurs = |name: &&str| self.words.contains(name);
        let names: Vec<&str> = names.iter().copied().filter(occurs).collect();
        self.write(path, &names);
    }

    /// Imports the modules at `path` that the code names.
    pub fn modules(&mut self, path: &str, names: &[&str]) {
        let occurs = |name: &&str| self.code.contains(&format!("{name}::"));
        let names: Vec<&str> = names.iter().copied().filter(occurs).collect();
        self.write(path, &names);
    }

    fn write(&mut self, path: &str, names: &[&str]) {
        let _ = match names {
            [] => Ok(()),
            [name] => writeln!(self.text, "use {path}::{name};"),
            _ => writeln!(self.text, "use {path}::{{{}}};", names.join(", ")),
        };
    }

    /// Adds a line for a name, if that occurs.
    pub fn line(&mut self, name: &str, line: &str) {
        if self.words.contains(name) {
            let _ = writeln!(self.text, "{line}");
        }
    }

    /// Returns the lines.
    pub fn text(self) -> String {
        self.text
    }
}
