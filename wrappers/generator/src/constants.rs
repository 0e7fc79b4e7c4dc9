//! The table of constants in memory, and the reader of its text form (`table/constants.txt`).

use crate::table::BadLine;

/// An integer constant: its value in the standard's ABI and in Open MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integer {
    /// Constants of one set stand for each other's alternatives: `error`, `rank`, `mode`, ...
    pub set: String,
    pub name: String,
    pub standard: i32,
    pub openmpi: i32,
}

/// A predefined handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    pub kind: String,
    pub name: String,
    pub standard: i32,
    /// Open MPI's data symbol whose address is the handle, and how many bytes it has.
    pub symbol: String,
    pub bytes: usize,
    /// The handle's number in `mpif.h`.
    pub fortran: i32,
}

/// Reads the table.
pub fn read(text: &str) -> Result<(Vec<Integer>, Vec<Handle>), BadLine> {
    let mut integers = Vec::new();
    let mut handles = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let bad = |reason: &str| BadLine {
            line: index + 1,
            reason: reason.to_string(),
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse::<i32>().map_err(|_| bad("not a number"));
        match words[..] {
            [] => {}
            ["#", ..] => {}
            ["integer", set, name, standard, openmpi] => integers.push(Integer {
                set: set.to_string(),
                name: name.to_string(),
                standard: number(standard)?,
                openmpi: number(openmpi)?,
            }),
            ["handle", kind, name, standard, symbol, bytes, fortran] => handles.push(Handle {
                kind: kind.to_string(),
                name: name.to_string(),
                standard: number(standard)?,
                symbol: symbol.to_string(),
                bytes: bytes.parse().map_err(|_| bad("not a size"))?,
                fortran: number(fortran)?,
            }),
            _ => return Err(bad("neither an integer nor a handle")),
        }
    }
    Ok((integers, handles))
}
