//! The function table in memory, and the reader and writer of its text form (`table/functions.txt`).
//!
//! One line for each function, words separated by blanks:
//!
//! ```text
//! MPI_Bcast collective blocking code buffer:buffer= count:int datatype:datatype root:rank comm:comm
//! name      class      form     ret parameters: name:kind, then > (out) or = (in and out), then ! (only for the root), then [length]
//! ```
//!
//! A length is another parameter's name, a number, `*` if no code needs it, or one of `peers`, `sources`, `destinations` (of the communicator).

use std::fmt;

/// The subject of a function; each function has exactly one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Environment,
    Local,
    Query,
    PointToPoint,
    Completion,
    Collective,
    NonblockingCollective,
    PersistentCollective,
    Object,
    Conversion,
    OneSided,
    File,
    Dynamic,
    Session,
    Partitioned,
    Tool,
}

/// Every class with its name in the table.
pub const CLASSES: [(Class, &str); 16] = [
    (Class::Environment, "environment"),
    (Class::Local, "local"),
    (Class::Query, "query"),
    (Class::PointToPoint, "point-to-point"),
    (Class::Completion, "completion"),
    (Class::Collective, "collective"),
    (Class::NonblockingCollective, "nonblocking-collective"),
    (Class::PersistentCollective, "persistent-collective"),
    (Class::Object, "object"),
    (Class::Conversion, "conversion"),
    (Class::OneSided, "one-sided"),
    (Class::File, "file"),
    (Class::Dynamic, "dynamic"),
    (Class::Session, "session"),
    (Class::Partitioned, "partitioned"),
    (Class::Tool, "tool"),
];

/// How the upper half's stub is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By hand: `crate::calls::x`.
    Written,
    /// Generated: convert, cross, convert back.
    Plain,
    /// Generated: a blocking collective operation, clocked.
    Blocking,
    /// Generated: a nonblocking collective operation, clocked, gives a request.
    Started,
    /// Generated: a persistent collective operation, gives a request that can be made again.
    Persistent,
    /// No installed MPI exports it; the line is documentation.
    Absent,
}

/// Every form with its name in the table.
pub const FORMS: [(Form, &str); 6] = [
    (Form::Written, "written"),
    (Form::Plain, "plain"),
    (Form::Blocking, "blocking"),
    (Form::Started, "started"),
    (Form::Persistent, "persistent"),
    (Form::Absent, "absent"),
];

/// The direction in which a parameter's value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
    InOut,
}

/// A parameter in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// A word of the vocabulary in `emit/kind.rs`.
    pub kind: String,
    pub direction: Direction,
    /// Significant at the root only: other ranks may pass any value.
    pub root_only: bool,
    /// Given for arrays.
    pub length: Option<String>,
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Its name in the ABI at hand; the table's own name unless the ABI has another.
    pub called: String,
    pub class: Class,
    pub form: Form,
    /// The result: `code` (an error code), `double`, `fint` or a kind of handle.
    pub returns: String,
    pub parameters: Vec<Parameter>,
}

impl Function {
    /// The name in Rust: without `MPI_`, lower-cased; `MPIX_` becomes `x_`.
    pub fn rust_name(&self) -> String {
        let name = self.name.to_lowercase();
        match name.strip_prefix("mpi_") {
            Some(rest) => rest.to_string(),
            None => name.strip_prefix("mpi").unwrap_or(&name).to_string(),
        }
    }

    /// The name of the class as the table has it.
    pub fn class_name(&self) -> &'static str {
        CLASSES[CLASSES
            .iter()
            .position(|entry| entry.0 == self.class)
            .unwrap_or(0)]
        .1
    }
}

/// A line that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for BadLine {}

/// Reads the table.
pub fn read(text: &str) -> Result<Vec<Function>, BadLine> {
    let mut functions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |reason: String| BadLine {
            line: index + 1,
            reason,
        };
        functions.push(read_line(line).map_err(bad)?);
    }
    Ok(functions)
}

fn read_line(line: &str) -> Result<Function, String> {
    let mut words = line.split_whitespace();
    let mut next = |what: &str| words.next().ok_or_else(|| format!("no {what}"));
    let name = next("name")?.to_string();
    let class = next("class")?;
    let form = next("form")?;
    let returns = next("return type")?.to_string();
    let class = CLASSES
        .iter()
        .find(|entry| entry.1 == class)
        .ok_or("unknown class")?
        .0;
    let form = FORMS
        .iter()
        .find(|entry| entry.1 == form)
        .ok_or("unknown form")?
        .0;
    let parameters = words.map(read_parameter).collect::<Result<_, _>>()?;
    Ok(Function {
        called: name.clone(),
        name,
        class,
        form,
        returns,
        parameters,
    })
}

fn read_parameter(word: &str) -> Result<Parameter, String> {
    let (name, rest) = word
        .split_once(':')
        .ok_or_else(|| format!("no kind in {word}"))?;
    let (rest, length) = match rest.split_once('[') {
        Some((rest, length)) => (rest, Some(length.trim_end_matches(']').to_string())),
        None => (rest, None),
    };
    let (rest, root_only) = match rest.strip_suffix('!') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let (rest, direction) = if let Some(rest) = rest.strip_suffix('>') {
        (rest, Direction::Out)
    } else if let Some(rest) = rest.strip_suffix('=') {
        (rest, Direction::InOut)
    } else {
        (rest, Direction::In)
    };
    Ok(Parameter {
        name: name.to_string(),
        kind: rest.to_string(),
        direction,
        root_only,
        length,
    })
}

impl fmt::Display for Parameter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.name, self.kind)?;
        match self.direction {
            Direction::In => {}
            Direction::Out => write!(out, ">")?,
            Direction::InOut => write!(out, "=")?,
        }
        if self.root_only {
            write!(out, "!")?;
        }
        match &self.length {
            Some(length) => write!(out, "[{length}]"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = FORMS[FORMS
            .iter()
            .position(|entry| entry.0 == self.form)
            .unwrap_or(0)]
        .1;
        write!(
            out,
            "{} {} {} {}",
            self.name,
            self.class_name(),
            form,
            self.returns
        )?;
        for parameter in &self.parameters {
            write!(out, " {parameter}")?;
        }
        Ok(())
    }
}
