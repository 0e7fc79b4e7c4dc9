//! Topologies from TOML files, with the line of every invalid field.
//!
//! ```toml
//! name = "two nodes"
//!
//! [[process]]              # or a node whose ranks share one fast tier
//! name = "n0"
//! free = "8 GiB"           # what its fast tier still takes
//! size = "12 GiB"          # its checkpoint; may be left out and given with --sizes
//! write = "4 GB/s"         # its own writes to its fast tier; may be left out
//!
//! [[tier]]
//! name = "scratch"
//! capacity = "10 TB"       # may be left out: never full
//! bandwidth = "5 GB/s"     # all writers together; may be left out
//!
//! [[switch]]               # whatever is shared: network, PCIe switch, gateway
//! name = "network"
//! bandwidth = "40 GB/s"    # all that crosses it; may be left out
//!
//! [[link]]
//! from = "n0"
//! to = "network"
//! bandwidth = "100 Gbit/s"
//! both = true              # the same bandwidth backwards; false where left out
//! ```

mod quantity;

use super::{End, Link, Process, Switch, Tier, Topology, TopologyError};
use crate::units::{UnitError, parse_bandwidth, parse_bytes};
use quantity::Quantity;
use serde::Deserialize;
use std::collections::HashMap;
use std::ops::Range;
use toml::Spanned;

/// A topology and the checkpoint sizes that its file gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopologyFile {
    pub topology: Topology,
    /// One size for each process, or `None` unless every process has one.
    pub sizes: Option<Vec<u64>>,
    /// The line of each process's size or name in the file.
    pub lines: Vec<usize>,
}

/// An error in a topology file, and its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {field}: {problem}")]
pub struct FileError {
    /// The line, counted from one.
    pub line: usize,
    /// The field, such as `link[2].bandwidth`; entries are counted from zero.
    pub field: String,
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Option<Spanned<String>>,
    #[serde(default)]
    process: Vec<Spanned<ProcessEntry>>,
    #[serde(default)]
    tier: Vec<Spanned<TierEntry>>,
    #[serde(default)]
    switch: Vec<Spanned<SwitchEntry>>,
    #[serde(default)]
    link: Vec<Spanned<LinkEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessEntry {
    name: Spanned<String>,
    free: Spanned<Quantity>,
    size: Option<Spanned<Quantity>>,
    write: Option<Spanned<Quantity>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TierEntry {
    name: Spanned<String>,
    capacity: Option<Spanned<Quantity>>,
    bandwidth: Option<Spanned<Quantity>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchEntry {
    name: Spanned<String>,
    bandwidth: Option<Spanned<Quantity>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    from: Spanned<String>,
    to: Spanned<String>,
    bandwidth: Spanned<Quantity>,
    #[serde(default)]
    both: bool,
}

/// Reads a topology file's text.
pub fn read_topology(text: &str) -> Result<TopologyFile, FileError> {
    let place = Place { text };
    let document: Document = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        place.error(
            &span,
            &place.key(&span),
            error.message().replace('\n', "; "),
        )
    })?;
    let mut names = Names::new();
    let processes = place.processes(&mut names, &document.process)?;
    let tiers = place.tiers(&mut names, &document.tier)?;
    let switches = place.switches(&mut names, &document.switch)?;
    let mut links = Vec::new();
    for (at, entry) in document.link.iter().enumerate() {
        links.extend(place.link(&names, at, entry.get_ref())?);
    }
    let name = match &document.name {
        Some(name) => place.name(name, "name")?,
        None => "unnamed",
    };
    let Processes {
        processes,
        sizes,
        lines,
    } = processes;
    let sizes = (sizes.len() == processes.len()).then_some(sizes);
    let topology =
        Topology::new(name, processes, tiers, switches, links).map_err(|error| whole(&error))?;
    Ok(TopologyFile {
        topology,
        sizes,
        lines,
    })
}

/// The entries of processes.
#[derive(Default)]
struct Processes {
    processes: Vec<Process>,
    /// The sizes of the processes that have one.
    sizes: Vec<u64>,
    lines: Vec<usize>,
}

/// The places of links' ends, by name.
type Names = HashMap<String, End>;

/// Reports an error of the whole file, which has no line of its own.
fn whole(error: &TopologyError) -> FileError {
    let (field, problem) = match error {
        TopologyError::Empty => ("process".to_owned(), "there is none".to_owned()),
        TopologyError::TooLarge { what } => (what.clone(), "larger than 2^62".to_owned()),
        other => ("file".to_owned(), other.to_string()),
    };
    FileError {
        line: 1,
        field,
        problem,
    }
}

/// The text, for finding lines in it.
struct Place<'a> {
    text: &'a str,
}

impl Place<'_> {
    fn error(&self, span: &Range<usize>, field: &str, problem: impl ToString) -> FileError {
        let line = self.line(span);
        FileError {
            line,
            field: field.to_owned(),
            problem: problem.to_string(),
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Returns the key in the line of an error, with its table if it is in one. The TOML reader has found the error and knows no
    /// fields.
    fn key(&self, span: &Range<usize>) -> String {
        let at = span.start.min(self.text.len());
        let start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        let mut tables: Vec<&str> = Vec::new();
        for header in self.text[..start].lines().chain([line]) {
            let name = header.trim().strip_prefix("[[");
            tables.extend(
                name.and_then(|name| name.split_once("]]"))
                    .map(|(name, _)| name.trim()),
            );
        }
        let table = tables.last().map(|table| {
            let number = tables.iter().filter(|other| *other == table).count() - 1;
            format!("{table}[{number}]")
        });
        let key = line.split_once('=').map(|(key, _)| key.trim());
        match (table, key.filter(|key| !key.is_empty())) {
            (Some(table), Some(key)) => format!("{table}.{key}"),
            (None, Some(key)) => key.to_owned(),
            (Some(table), None) => table,
            (None, None) => "file".to_owned(),
        }
    }

    fn quantity(
        &self,
        value: &Spanned<Quantity>,
        field: &str,
        parse: fn(&str) -> Result<u64, UnitError>,
    ) -> Result<u64, FileError> {
        parse(&value.get_ref().0).map_err(|problem| self.error(&value.span(), field, problem))
    }

    fn bytes(&self, value: &Spanned<Quantity>, field: &str) -> Result<u64, FileError> {
        self.quantity(value, field, parse_bytes)
    }

    fn bandwidth(&self, value: &Spanned<Quantity>, field: &str) -> Result<u64, FileError> {
        match self.quantity(value, field, parse_bandwidth)? {
            0 => Err(self.error(
                &value.span(),
                field,
                "must be greater than zero; leave out what is not connected",
            )),
            bandwidth => Ok(bandwidth),
        }
    }

    /// Returns a name, which must not be empty.
    fn name<'a>(&self, name: &'a Spanned<String>, field: &str) -> Result<&'a str, FileError> {
        match name.get_ref().trim() {
            "" => Err(self.error(&name.span(), field, "is empty")),
            _ => Ok(name.get_ref()),
        }
    }

    fn introduce(
        &self,
        names: &mut Names,
        name: &Spanned<String>,
        end: End,
        field: &str,
    ) -> Result<(), FileError> {
        match names.insert(self.name(name, field)?.to_owned(), end) {
            None => Ok(()),
            Some(_) => Err(self.error(
                &name.span(),
                field,
                format!("'{}' is already taken", name.get_ref()),
            )),
        }
    }

    fn processes(
        &self,
        names: &mut Names,
        entries: &[Spanned<ProcessEntry>],
    ) -> Result<Processes, FileError> {
        let mut read = Processes::default();
        for (at, entry) in entries.iter().enumerate() {
            let field = |field: &str| format!("process[{at}].{field}");
            let entry = entry.get_ref();
            self.introduce(names, &entry.name, End::Process(at), &field("name"))?;
            let span = entry.size.as_ref().map_or(entry.name.span(), Spanned::span);
            read.lines.push(self.line(&span));
            let size = entry.size.as_ref();
            let size = size.map(|size| self.bytes(size, &field("size")));
            read.sizes.extend(size.transpose()?);
            let write = entry.write.as_ref();
            read.processes.push(Process {
                name: entry.name.get_ref().clone(),
                free: self.bytes(&entry.free, &field("free"))?,
                write: write
                    .map(|write| self.bandwidth(write, &field("write")))
                    .transpose()?,
            });
        }
        Ok(read)
    }

    fn tiers(
        &self,
        names: &mut Names,
        entries: &[Spanned<TierEntry>],
    ) -> Result<Vec<Tier>, FileError> {
        let tier = |(at, entry): (usize, &Spanned<TierEntry>)| {
            let field = |field: &str| format!("tier[{at}].{field}");
            let entry = entry.get_ref();
            self.introduce(names, &entry.name, End::Tier(at), &field("name"))?;
            let (size, rate) = (entry.capacity.as_ref(), entry.bandwidth.as_ref());
            Ok(Tier {
                name: entry.name.get_ref().clone(),
                capacity: size
                    .map(|size| self.bytes(size, &field("capacity")))
                    .transpose()?,
                bandwidth: rate
                    .map(|rate| self.bandwidth(rate, &field("bandwidth")))
                    .transpose()?,
            })
        };
        entries.iter().enumerate().map(tier).collect()
    }

    fn switches(
        &self,
        names: &mut Names,
        entries: &[Spanned<SwitchEntry>],
    ) -> Result<Vec<Switch>, FileError> {
        let switch = |(at, entry): (usize, &Spanned<SwitchEntry>)| {
            let field = |field: &str| format!("switch[{at}].{field}");
            let entry = entry.get_ref();
            self.introduce(names, &entry.name, End::Switch(at), &field("name"))?;
            let rate = entry.bandwidth.as_ref();
            Ok(Switch {
                name: entry.name.get_ref().clone(),
                bandwidth: rate
                    .map(|rate| self.bandwidth(rate, &field("bandwidth")))
                    .transpose()?,
            })
        };
        entries.iter().enumerate().map(switch).collect()
    }

    /// Returns the one or two links of an entry.
    fn link(&self, names: &Names, at: usize, entry: &LinkEntry) -> Result<Vec<Link>, FileError> {
        let find = |name: &Spanned<String>, field: &str| {
            let problem = || format!("no process, tier or switch is called '{}'", name.get_ref());
            let field = format!("link[{at}].{field}");
            names
                .get(name.get_ref())
                .copied()
                .ok_or_else(|| self.error(&name.span(), &field, problem()))
        };
        let (from, to) = (find(&entry.from, "from")?, find(&entry.to, "to")?);
        let bandwidth = self.bandwidth(&entry.bandwidth, &format!("link[{at}].bandwidth"))?;
        if from == to {
            let problem = "leads from a place to itself";
            return Err(self.error(&entry.to.span(), &format!("link[{at}].to"), problem));
        }
        if matches!(from, End::Tier(_)) || (entry.both && matches!(to, End::Tier(_))) {
            let (name, field) = if matches!(from, End::Tier(_)) {
                (&entry.from, "from")
            } else {
                (&entry.to, "both")
            };
            let problem = "a tier receives and never sends";
            return Err(self.error(&name.span(), &format!("link[{at}].{field}"), problem));
        }
        let mut links = vec![Link {
            from,
            to,
            bandwidth,
        }];
        if entry.both {
            links.push(Link {
                from: to,
                to: from,
                bandwidth,
            });
        }
        Ok(links)
    }
}

#[cfg(test)]
mod tests;
