//! Entries of the environment variable: the faults that it asks for.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{NOBODY, Point};

/// One fault, which strikes once.
#[derive(Debug)]
pub(crate) struct Entry {
    point: Point,
    pass: u32,
    rank: Option<u32>,
    pub action: Action,
    struck: AtomicBool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Fail,
    Die,
    /// The thread writes to an address without memory.
    Crash,
    /// For so many milliseconds.
    Stall(u64),
    /// For as long as a file exists; also at later passes.
    Hold(PathBuf),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Fail => write!(f, "fail"),
            Action::Die => write!(f, "die"),
            Action::Crash => write!(f, "crash"),
            Action::Stall(milliseconds) => write!(f, "stall={milliseconds}"),
            Action::Hold(file) => write!(f, "hold={}", file.display()),
        }
    }
}

impl Entry {
    /// Whether this entry strikes now. It does so once, unless it holds.
    pub fn strikes(&self, point: Point, passes: u32, rank: u32) -> bool {
        self.point == point
            && self.pass <= passes
            && (rank == NOBODY || self.rank.is_none_or(|mine| mine == rank))
            && match &self.action {
                Action::Hold(file) => file.exists(),
                _ => !self.struck.swap(true, Ordering::Relaxed),
            }
    }

    /// Lets the entry strike once more.
    pub fn begin_anew(&self) {
        self.struck.store(false, Ordering::Relaxed);
    }
}

/// Parses every entry of the variable.
pub(crate) fn all(text: &str) -> Result<Vec<Entry>, String> {
    let entries = text.split(',').map(str::trim);
    entries.filter(|entry| !entry.is_empty()).map(one).collect()
}

fn one(text: &str) -> Result<Entry, String> {
    let mut fields = text.split(':');
    let place = fields.next().unwrap_or_default();
    let (name, pass) = match place.split_once('@') {
        None => (place, 1),
        Some((name, pass)) => match pass.parse() {
            Ok(pass) => (name, pass),
            Err(_) => return Err(format!("'{text}': after '@' comes a number")),
        },
    };
    let known = Point::ALL.iter().copied();
    let point = known.into_iter().find(|point| point.name() == name);
    let point = point.ok_or_else(|| format!("there is no fault point '{name}'"))?;
    let mut rank = None;
    let mut action = match point.can_fail() {
        true => Action::Fail,
        false => Action::Die,
    };
    for field in fields {
        match field.parse() {
            Ok(number) => rank = Some(number),
            Err(_) => action = action_of(field).ok_or_else(|| unknown(text))?,
        }
    }
    if action == Action::Fail && !point.can_fail() {
        return Err(format!(
            "'{text}': this step can die, crash, stall or be held, not fail"
        ));
    }
    Ok(Entry {
        point,
        pass,
        rank,
        action,
        struck: AtomicBool::new(false),
    })
}

fn action_of(text: &str) -> Option<Action> {
    match text {
        "fail" => Some(Action::Fail),
        "die" => Some(Action::Die),
        "crash" => Some(Action::Crash),
        _ => match text.split_once('=')? {
            ("stall", time) => time.parse().ok().map(Action::Stall),
            ("hold", file) => Some(Action::Hold(file.into())),
            _ => None,
        },
    }
}

fn unknown(text: &str) -> String {
    format!("'{text}': say name[@pass][:rank][:fail|:die|:crash|:stall=MILLISECONDS|:hold=FILE]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_understood_is_told() {
        for (text, word) in [
            ("nowhere", "nowhere"),
            ("seal@x", "number"),
            ("seal:0:explode", "explode"),
            ("seal:stall", "MILLISECONDS"),
            ("released:fail", "can die, crash, stall or be held"),
        ] {
            let error = all(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn entries_of_one_point_strike_in_turn() {
        let entries = all("seal:fail, seal:1:stall=20 ,seal@4:die,").unwrap();
        let next = |passes, rank| {
            let entry = entries
                .iter()
                .find(|entry| entry.strikes(Point::Seal, passes, rank));
            entry.map(|entry| entry.action.clone())
        };
        assert_eq!(next(1, 0), Some(Action::Fail));
        assert_eq!(next(2, 0), None);
        assert_eq!(next(2, 1), Some(Action::Stall(20)));
        assert_eq!(next(3, 1), None);
        assert_eq!(next(4, NOBODY), Some(Action::Die));
        assert_eq!(next(5, 1), None);
    }
}
