//! Refusals: the reasons why there is no checkpoint, start or restart. Each has a code that never changes.
//!
//! A [`Refusal`] cannot be made without a [`Code`]. One table (`codes.rs`) lists all codes, each with its meaning and advice for the user.
//! `stillpoint explain` and the page about refusals are made from it.

#![forbid(unsafe_code)]

mod codes;
mod page;

use std::{fmt, io};

pub use codes::{Code, Section};
pub use page::{page, plain};

/// One reason: its code, and details for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Refusal {
    code: Code,
    details: String,
}

/// Makes a [`Refusal`] from a code's variant and the arguments of `format!`.
#[macro_export]
macro_rules! refusal {
    ($code:ident, $($details:tt)+) => {
        $crate::Refusal::new($crate::Code::$code, format!($($details)+))
    };
}

impl Refusal {
    pub fn new(code: Code, details: impl Into<String>) -> Refusal {
        let details = details.into();
        Refusal { code, details }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    /// The details, without the code.
    pub fn details(&self) -> &str {
        &self.details
    }

    /// Returns the same reason in other words.
    pub fn reworded(self, words: impl FnOnce(&str) -> String) -> Refusal {
        Refusal::new(self.code, words(&self.details))
    }

    /// Reads a line that [`fmt::Display`] has written. A line without a known code gets the code `otherwise`.
    pub fn read(line: &str, otherwise: Code) -> Refusal {
        let parted = line.strip_suffix(']').and_then(|line| {
            let (details, name) = line.rsplit_once(" [")?;
            Some(Refusal::new(Code::named(name)?, details))
        });
        parted.unwrap_or_else(|| Refusal::new(otherwise, line))
    }

    /// Joins several reasons into one, with the code of the last.
    pub fn together(mut reasons: Vec<Refusal>) -> Refusal {
        let last = reasons.pop();
        let last = last.unwrap_or_else(|| refusal!(Internal, "no reason was given"));
        if reasons.is_empty() {
            return last;
        }
        last.reworded(|details| format!("{}; {details}", in_words(&reasons)))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.details, self.code)
    }
}

impl std::error::Error for Refusal {}

/// An error with a code for each of its kinds.
pub trait Coded {
    fn code(&self) -> Code;

    /// Returns the error as a refusal.
    fn refusal(&self) -> Refusal
    where
        Self: fmt::Display,
    {
        Refusal::new(self.code(), self.to_string())
    }
}

impl Code {
    /// Returns the code of a system error: the code of a refusal inside it, a code for its kind, or else `otherwise`.
    pub fn of(error: &io::Error, otherwise: Code) -> Code {
        let inside = error
            .get_ref()
            .and_then(|inside| inside.downcast_ref::<Refusal>());
        if let Some(refusal) = inside {
            return refusal.code;
        }
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::NoSpace,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Code::PermissionDenied
            }
            _ => otherwise,
        }
    }
}

/// Joins all reasons into one line.
pub fn in_words(reasons: &[Refusal]) -> String {
    let words: Vec<String> = reasons.iter().map(Refusal::to_string).collect();
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_as_it_is_written() {
        let refusal = refusal!(OpenSocket, "descriptor {} is a TCP socket", 3);
        let line = refusal.to_string();
        assert_eq!(line, "descriptor 3 is a TCP socket [open-socket]");
        assert_eq!(Refusal::read(&line, Code::MpiObject), refusal);
        for line in [
            "no code",
            "of no code [nobody]",
            "[open-socket]",
            "x open-socket]",
        ] {
            let read = Refusal::read(line, Code::MpiObject);
            assert_eq!((read.code(), read.details()), (Code::MpiObject, line));
        }
    }

    #[test]
    fn several_reasons_keep_their_codes() {
        let one = || refusal!(OpenSocket, "a");
        let both = Refusal::together(vec![one(), refusal!(LiveChild, "b")]);
        assert_eq!(both.to_string(), "a [open-socket]; b [live-child]");
        assert_eq!(Refusal::together(vec![one()]), one());
    }
}
