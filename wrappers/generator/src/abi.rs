//! The description of an MPI's own ABI in memory, and the reader of its text form (`wrappers/abi/`). The head of each file describes the notation.

use crate::constants::{Constant, Sort};
use crate::table::BadLine;

/// The described ABIs: their names and descriptions.
pub const ABIS: [(&str, &str); 3] = [
    ("openmpi", include_str!("../../abi/openmpi.txt")),
    ("abi", include_str!("../../abi/abi.txt")),
    ("mpich", include_str!("../../abi/mpich.txt")),
];

/// An integer constant: its value in the standard's ABI and in this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integer {
    pub set: String,
    pub name: String,
    pub standard: i32,
    pub own: i32,
}

/// A pointer that is not an address, in a data symbol of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub set: String,
    pub name: String,
    pub standard: i32,
    pub symbol: String,
}

/// A predefined handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    pub kind: String,
    pub name: String,
    pub standard: i32,
    pub is: Is,
    /// The handle's number in `mpif.h`.
    pub fortran: i32,
}

/// The form of a predefined handle in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Is {
    /// The address of a data symbol of so many bytes.
    Symbol { name: String, bytes: usize },
    /// The same number as in `mpif.h`.
    Number,
}

/// A type of C, or a constant, with its documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    /// The type in Rust.
    pub kind: String,
    pub value: String,
    pub documentation: String,
}

/// Bits of a value that lie in a field: in packed statuses, several values share one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The value, its lowest bit in this piece, and the number of bits.
    pub value: String,
    pub from: u32,
    pub bits: u32,
    /// The field, and the lowest bit of the piece in it.
    pub field: String,
    pub at: u32,
}

/// A function of the library that only its Fortran and C++ layers call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Internal {
    pub name: String,
    /// Names and types in Rust.
    pub parameters: Vec<(String, String)>,
    /// The type in Rust, if there is one.
    pub result: Option<String>,
    pub documentation: String,
}

/// An ABI.
#[derive(Clone, Debug, Default)]
pub struct Abi {
    pub word: String,
    pub library: String,
    pub types: Vec<Named>,
    pub status_bytes: usize,
    /// Fields of the status; the value is the offset.
    pub status: Vec<Named>,
    /// Values of a status that are packed into other fields.
    pub packed: Vec<Packed>,
    pub integers: Vec<Integer>,
    pub addresses: Vec<Integer>,
    pub held: Vec<Held>,
    pub last: Vec<Integer>,
    pub handles: Vec<Handle>,
    pub values: Vec<Named>,
    pub internals: Vec<Named>,
    pub internal_functions: Vec<Internal>,
    /// Data symbols of the library that its Fortran and C++ layers read.
    pub internal_data: Vec<Named>,
    pub undeclared: Vec<String>,
    /// Names for its Fortran layers, and data: written by hand.
    pub of_layers: Vec<String>,
    /// Whether it lacks all functions that the table calls absent.
    pub older: bool,
    /// Whether its functions have twins with large counts.
    pub large: bool,
    /// Prefixes of names in the table, and their form in this ABI.
    pub called: Vec<(String, String)>,
    /// Functions of the table that it lacks.
    pub without: Vec<String>,
    /// Functions that the table calls absent and that are written by hand for this ABI.
    pub own: Vec<String>,
    /// Functions of this ABI that the table lacks and that are written by hand.
    pub beside: Vec<String>,
    /// Functions of this ABI that are refused when they are called; the value is the reason.
    pub refused: Vec<Named>,
    /// Names of a later release for functions of the table; the value is the table's name.
    pub also: Vec<Named>,
    /// Whether a null pointer among an attribute's functions means a function that does nothing.
    pub null_functions: bool,
    /// The value that stands for a function that copies an attribute unchanged, if that is not a function's address.
    pub duplicates: Option<usize>,
}

impl Abi {
    /// Whether the library knows a function or constant that its header does not declare.
    pub fn is_undeclared(&self, name: &str) -> bool {
        self.undeclared
            .iter()
            .any(|told| match told.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == told,
            })
    }
}

/// Reads a description. Its integers and addresses come in the order of the table.
pub fn read(text: &str, constants: &[Constant]) -> Result<Abi, BadLine> {
    let mut abi = Abi::default();
    let mut given = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let bad = |reason: &str| BadLine {
            line: index + 1,
            reason: reason.to_string(),
        };
        let (line, documentation) = line.split_once('#').unwrap_or((line, ""));
        let words: Vec<&str> = line.split_whitespace().collect();
        let named = |name: &str, kind: &str, value: &str| Named {
            name: name.to_string(),
            kind: kind.replace("mut_", "mut "),
            value: value.to_string(),
            documentation: documentation.trim().to_string(),
        };
        let size = |word: &str| word.parse::<usize>().map_err(|_| bad("not a size"));
        let number = |word: &str| word.parse::<i32>().map_err(|_| bad("not a number"));
        let mut of = |sort, name| {
            let key = (sort, name);
            if given.contains(&key) {
                return Err(bad("told twice"));
            }
            given.push(key);
            named_so(constants, sort, name).ok_or_else(|| bad("not in the table"))
        };
        match words[..] {
            [] => {}
            ["abi", word] if word.len() == 8 => abi.word = word.to_string(),
            ["library", name] => abi.library = name.to_string(),
            ["type", name, kind] => abi.types.push(named(name, kind, "")),
            ["status", bytes] => abi.status_bytes = size(bytes)?,
            ["field", name, offset, kind] => abi.status.push(named(name, kind, offset)),
            ["packed", value, bits, field, at] => {
                let packed = packed(&abi, value, size(bits)?, field, size(at)?);
                abi.packed.push(packed.map_err(bad)?);
            }
            ["value", name, kind, value] => abi.values.push(named(name, kind, value)),
            ["internal", "function", ..] => {
                let mut function = function(line).ok_or_else(|| bad("no signature"))?;
                function.documentation = documentation.trim().to_string();
                abi.internal_functions.push(function);
            }
            ["internal", "data", name, kind] => abi.internal_data.push(named(name, kind, "")),
            ["internal", name, kind, value] => abi.internals.push(named(name, kind, value)),
            ["undeclared", name] => abi.undeclared.push(name.to_string()),
            ["layer", name] => abi.of_layers.push(name.to_string()),
            ["older"] => abi.older = true,
            ["large"] => abi.large = true,
            ["called", table, own] => abi.called.push((table.to_string(), own.to_string())),
            ["without", name] => abi.without.push(name.to_string()),
            ["beside", name] => abi.beside.push(name.to_string()),
            ["own", name] => abi.own.push(name.to_string()),
            ["also", name, table] => abi.also.push(named(name, "", table)),
            ["refused", name, reason] => abi.refused.push(named(name, "", reason)),
            ["null_functions"] => abi.null_functions = true,
            ["duplicates", number] => abi.duplicates = Some(size(number)?),
            ["integer", name, own] => {
                let integers = valued(&of(Sort::Integer, name)?, number(own)?);
                abi.integers.extend(integers);
            }
            ["address", name, own] => {
                let addresses = valued(&of(Sort::Address, name)?, number(own)?);
                abi.addresses.extend(addresses);
            }
            ["held", name, symbol] => {
                let held = of(Sort::Address, name)?;
                abi.held.extend(held.into_iter().map(|constant| Held {
                    set: constant.set.clone(),
                    name: constant.name.clone(),
                    standard: constant.standard,
                    symbol: symbol.to_string(),
                }));
            }
            ["last", name, own] => {
                let last = valued(&of(Sort::Last, name)?, number(own)?);
                abi.last.extend(last);
            }
            ["handle", name, symbol, bytes, fortran] => {
                let is = Is::Symbol {
                    name: symbol.to_string(),
                    bytes: size(bytes)?,
                };
                let handles = handles(&of(Sort::Handle, name)?, &is, number(fortran)?);
                abi.handles.extend(handles);
            }
            ["handle", name, value] => {
                let value = bits(value).ok_or_else(|| bad("not a number"))?;
                let handles = handles(&of(Sort::Handle, name)?, &Is::Number, value);
                abi.handles.extend(handles);
            }
            _ => return Err(bad("nothing that an ABI is described by")),
        }
    }
    let place = |it: &Integer| {
        constants
            .iter()
            .position(|constant| constant.set == it.set && constant.name == it.name)
    };
    abi.integers.sort_by_key(place);
    abi.addresses.sort_by_key(place);
    Ok(abi)
}

/// Reads `internal function NAME(PARAMETER: TYPE, ...) -> RESULT`, without its documentation.
fn function(line: &str) -> Option<Internal> {
    let signature = line.trim().strip_prefix("internal")?.trim();
    let signature = signature.strip_prefix("function")?.trim();
    let (name, rest) = signature.split_once('(')?;
    let (parameters, result) = rest.rsplit_once(')')?;
    let parameter = |text: &str| {
        let (name, kind) = text.split_once(':')?;
        Some((name.trim().to_string(), kind.trim().to_string()))
    };
    let result = match result.trim() {
        "" => None,
        result => Some(result.strip_prefix("->")?.trim().to_string()),
    };
    Some(Internal {
        name: name.to_string(),
        parameters: parameters
            .split(',')
            .filter(|text| !text.trim().is_empty())
            .map(parameter)
            .collect::<Option<_>>()?,
        result,
        documentation: String::new(),
    })
}

/// Reads the next bits of a value.
fn packed(
    abi: &Abi,
    value: &str,
    bits: usize,
    field: &str,
    at: usize,
) -> Result<Packed, &'static str> {
    let told = abi.status.iter().find(|it| it.name == field);
    let told = told.ok_or("a field that is not told before")?;
    let width = width(&told.kind).ok_or("a field that is no integer")?;
    let before = abi.packed.iter().filter(|it| it.value == value);
    let from: u32 = before.map(|it| it.bits).sum();
    if bits == 0 || at.saturating_add(bits) > width as usize || from as usize + bits > 64 {
        return Err("more bits than there are");
    }
    let (bits, at) = (bits as u32, at as u32);
    let shared = |it: &&Packed| it.field == field && it.at < at + bits && at < it.at + it.bits;
    if abi.packed.iter().any(|it| shared(&it)) {
        return Err("bits that are told twice");
    }
    Ok(Packed {
        value: value.to_string(),
        from,
        bits,
        field: field.to_string(),
        at,
    })
}

/// Returns the number of bits of an integer type.
pub fn width(kind: &str) -> Option<u32> {
    match kind {
        "i32" | "u32" => Some(32),
        "i64" | "u64" | "isize" | "usize" => Some(64),
        _ => None,
    }
}

/// Returns the constants of the table that a line gives a value to: several if sets share a name.
fn named_so<'a>(constants: &'a [Constant], sort: Sort, name: &str) -> Option<Vec<&'a Constant>> {
    let so = |constant: &&Constant| constant.sort == sort && constant.name == name;
    let found: Vec<&Constant> = constants.iter().filter(so).collect();
    (!found.is_empty()).then_some(found)
}

fn valued(constants: &[&Constant], own: i32) -> Vec<Integer> {
    let value = |constant: &&Constant| Integer {
        set: constant.set.clone(),
        name: constant.name.clone(),
        standard: constant.standard,
        own,
    };
    constants.iter().map(value).collect()
}

fn handles(constants: &[&Constant], is: &Is, fortran: i32) -> Vec<Handle> {
    let handle = |constant: &&Constant| Handle {
        kind: constant.set.clone(),
        name: constant.name.clone(),
        standard: constant.standard,
        is: is.clone(),
        fortran,
    };
    constants.iter().map(handle).collect()
}

/// Reads a number, or 32 bits in hexadecimal digits.
fn bits(word: &str) -> Option<i32> {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(|it| it as i32),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
