//! `stillpoint explain`.

use std::ffi::OsStr;
use std::fmt::Write;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};
use serde_json::{Value, json};
use stillpoint_refusals::{Code, Section, plain};

use super::{CommandResult, print, print_json};

/// Tell what a refusal means, and what to do
///
/// The message of a refusal ends in its code, such as [open-socket]. Without CODE, all codes are listed.
#[derive(Debug, Args)]
pub struct Explain {
    /// Code at the end of the message
    #[arg(value_parser = Codes, hide_possible_values = true)]
    code: Option<Code>,

    /// Print the result as JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

/// Reads a code, with or without brackets.
#[derive(Clone)]
struct Codes;

impl TypedValueParser for Codes {
    type Value = Code;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Code, clap::Error> {
        let value = value.to_string_lossy();
        let name = value.trim_matches(['[', ']']);
        Code::named(name).ok_or_else(|| {
            let text = format!("'{name}' is not a code: `stillpoint explain` lists all codes");
            clap::Error::raw(ErrorKind::InvalidValue, text + "\n").with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Code::ALL.iter().map(|code| code.name());
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

impl Explain {
    pub fn execute(self) -> CommandResult {
        match (self.code, self.json) {
            (Some(code), true) => print_json(&shown(code)),
            (None, true) => {
                let all = Code::ALL.iter().map(|code| shown(*code));
                print_json(&json!({ "codes": all.collect::<Vec<_>>() }))
            }
            (Some(code), false) => print(&told(code)),
            (None, false) => print(&listed()),
        }
    }
}

fn shown(code: Code) -> Value {
    json!({
        "code": code,
        "refused": code.section().words(),
        "meaning": plain(code.meaning()),
        "remedy": plain(code.remedy()),
    })
}

fn told(code: Code) -> String {
    format!(
        "{code}: {} is refused\n  reason: {}\n  what to do: {}\n",
        code.section().words(),
        plain(code.meaning()),
        plain(code.remedy())
    )
}

fn listed() -> String {
    let mut text = String::new();
    for section in Section::ALL {
        let _ = writeln!(text, "{} is refused:", section.words());
        for code in Code::ALL.iter().filter(|code| code.section() == section) {
            let _ = writeln!(text, "  {:<22} {}", code.name(), plain(code.meaning()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition;

    #[test]
    fn a_code_is_explained_with_and_without_its_brackets() {
        for word in ["open-socket", "[open-socket]"] {
            let words = ["stillpoint", "explain", word];
            assert!(definition().try_get_matches_from(words).is_ok(), "{word}");
        }
        let wrong = definition().try_get_matches_from(["stillpoint", "explain", "nothing"]);
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.contains("'nothing' is not a code"), "{wrong}");
        assert!(told(Code::LiveChild).contains("let it end"));
    }

    #[test]
    fn every_code_is_listed() {
        let listed = listed();
        for code in Code::ALL {
            assert!(listed.contains(&format!("  {code} ")), "{code}");
        }
    }
}
