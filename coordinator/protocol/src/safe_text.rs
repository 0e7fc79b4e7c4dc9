//! Text of others, such as a job's name, its command, a path or a reason, in a form that is safe for a terminal, a log or a shell.
//!
//! Escape sequences can move a terminal's cursor, set its title or answer in the user's name. Marks for the direction of writing change the order in which a
//! line shows. All text that this project shows goes through here.

use std::borrow::Cow;
use std::fmt::Write;

/// The text as one line. A character that does not show as itself becomes its number, such as `\u{1b}`.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// The same for text of several lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

/// The text as one word of a shell, for people who type it from the screen.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// JSON with the same value, in which such characters are JSON's own escapes.
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| acts(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if !acts(c) || c == '\n' {
            plain.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(plain, "\\u{unit:04x}");
        }
    }
    Cow::Owned(plain)
}

fn escaped(text: &str, several: bool) -> Cow<'_, str> {
    let shown = |c: char| !acts(c) || several && c == '\n';
    if text.chars().all(shown) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match shown(c) {
            true => plain.push(c),
            false => plain.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(plain)
}

/// Whether a character affects how its line shows.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Marks for directions, joiners, and characters without a width.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_what_shows_as_itself() {
        let hostile = "a\x1b]0;x\x07b\u{9b}2J\rc\u{202e}d\ne\t\u{200b}";
        let shown = r"a\u{1b}]0;x\u{7}b\u{9b}2J\u{d}c\u{202e}d\u{a}e\u{9}\u{200b}";
        assert_eq!(line(hostile), shown);
        assert_eq!(lines(hostile), shown.replace(r"\u{a}", "\n"));
        for plain in ["melt", "Größe 3 µm", "数値", ""] {
            assert!(matches!(line(plain), Cow::Borrowed(same) if same == plain));
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({ "name": "a\u{9b}b\u{202e}\u{e0041}\x1b", "plain": 1 });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = json(&text);
        assert!(!shown.chars().any(|c| acts(c) && c != '\n'), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, value);
    }

    #[test]
    fn a_word_stays_one_word_whatever_is_in_it() {
        assert_eq!(word("/scratch/run-1.d"), "/scratch/run-1.d");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(word(""), "''");
        assert_eq!(word("--help; id"), "'--help; id'");
    }
}
