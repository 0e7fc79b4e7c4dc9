//! The table of constants in memory, and the reader of its text form (`wrappers/table/constants.txt`).

use crate::table::BadLine;

/// The sort of constant that a line describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Integer,
    Handle,
    /// A pointer that is not an address.
    Address,
    /// The last predefined value of a set that programs may add to.
    Last,
}

/// Every sort with its name in the table.
const SORTS: [(Sort, &str); 4] = [
    (Sort::Integer, "integer"),
    (Sort::Handle, "handle"),
    (Sort::Address, "address"),
    (Sort::Last, "last"),
];

/// A constant of the standard's ABI, or one of this project's own beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub sort: Sort,
    /// The constants of one set are alternatives of each other: `error`, `rank`, `mode`, ...; a handle's set is its kind.
    pub set: String,
    pub name: String,
    pub standard: i32,
}

/// Reads the table.
pub fn read(text: &str) -> Result<Vec<Constant>, BadLine> {
    let mut constants = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let bad = |reason: &str| BadLine {
            line: index + 1,
            reason: reason.to_string(),
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] | ["#", ..] => {}
            [sort, set, name, standard] => {
                let sort = SORTS.iter().find(|entry| entry.1 == sort);
                constants.push(Constant {
                    sort: sort.ok_or_else(|| bad("no sort of constant"))?.0,
                    set: set.to_string(),
                    name: name.to_string(),
                    standard: standard.parse().map_err(|_| bad("not a number"))?,
                });
            }
            _ => return Err(bad("not four words")),
        }
    }
    Ok(constants)
}
