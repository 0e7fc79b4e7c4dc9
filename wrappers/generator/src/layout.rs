//! Formats generated Rust for readers, without any tool: the text must be the same on every machine, because the contract between the halves is computed from
//! it.
//!
//! Emitters write a line for each statement. Here lines are indented by the brackets around them, and long ones are broken at the commas of their longest pair
//! of parentheses, much as `rustfmt` does.

/// The longest line.
const WIDTH: usize = 100;
const STEP: usize = 4;

/// Returns the formatted text.
pub fn laid_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 5 / 4);
    let mut depth: usize = 0;
    for line in text.lines() {
        let line = line.trim();
        let closers = line.bytes().take_while(|b| b")]}".contains(b)).count();
        let opened = brackets(line);
        put(&mut out, line, depth.saturating_sub(closers));
        depth = depth.saturating_add_signed(opened);
    }
    out
}

/// Writes a line, or several if it is too long.
fn put(out: &mut String, line: &str, depth: usize) {
    let long = depth * STEP + line.len() > WIDTH;
    if long && !line.starts_with("//") {
        if let Some((name, kind)) = field(line)
            && (depth + 1) * STEP + kind.len() <= WIDTH
        {
            put(out, name, depth);
            return put(out, kind, depth + 1);
        }
        if let Some((open, close)) = longest(line) {
            put_as_it_is(out, &line[..=open], depth);
            let elements = elements(&line[open + 1..close]);
            let (only, last) = (elements.len() == 1, elements.len() - 1);
            for (index, element) in elements.into_iter().enumerate() {
                let comma = if only && index == last { "" } else { "," };
                put(out, &format!("{element}{comma}"), depth + 1);
            }
            return put_as_it_is(out, &line[close..], depth);
        }
    }
    put_as_it_is(out, line, depth);
}

fn put_as_it_is(out: &mut String, line: &str, depth: usize) {
    if !line.is_empty() {
        out.extend(std::iter::repeat_n(' ', depth * STEP));
    }
    out.push_str(line);
    out.push('\n');
}

/// Returns the name (with its colon) and the type of a structure's field.
fn field(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("pub ")?;
    let colon = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    let kind = rest[colon..].strip_prefix(": ")?;
    line.ends_with(',')
        .then(|| (&line[..line.len() - kind.len() - 1], kind))
}

/// Returns the bytes of a line that are not part of a string, with their places.
fn code(line: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut quoted = false;
    let comment = line.find("//").unwrap_or(line.len());
    line[..comment]
        .bytes()
        .enumerate()
        .filter(move |(_, byte)| {
            quoted ^= *byte == b'"';
            !quoted
        })
}

/// Returns the number of opened minus closed brackets.
fn brackets(line: &str) -> isize {
    code(line)
        .map(|(_, byte)| match byte {
            b'(' | b'[' | b'{' => 1,
            b')' | b']' | b'}' => -1,
            _ => 0,
        })
        .sum()
}

/// Returns the longest pair of parentheses that is not inside another pair.
fn longest(line: &str) -> Option<(usize, usize)> {
    let mut found: Option<(usize, usize)> = None;
    let (mut depth, mut open) = (0, 0);
    for (at, byte) in code(line) {
        match byte {
            b'(' => {
                if depth == 0 {
                    open = at;
                }
                depth += 1;
            }
            b')' => {
                depth -= 1;
                let longer = found.is_none_or(|(from, to)| at - open > to - from);
                if depth == 0 && at > open + 1 && longer {
                    found = Some((open, at));
                }
            }
            _ => {}
        }
    }
    found
}

/// Splits a list at its commas, except for those in brackets and between the bars of a closure's parameters.
fn elements(list: &str) -> Vec<&str> {
    let (mut elements, mut start, mut depth, mut bars) = (Vec::new(), 0, 0, 0);
    for (at, byte) in code(list) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'|' => bars += 1,
            b',' if depth == 0 && bars % 2 == 0 => {
                elements.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    elements.push(list[start..].trim());
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_by_the_brackets_around_them() {
        let text = "fn f() {\nlet a = g(\n\"{\",\n);\n\n// }\nif a { b() } else {\nc();\n}\n}\n";
        let laid = "fn f() {\n    let a = g(\n        \"{\",\n    );\n\n    // }\n    if a { b() } else {\n        c();\n    }\n}\n";
        assert_eq!(laid_out(text), laid);
    }

    #[test]
    fn a_long_line_is_broken_where_most_is_in_parentheses() {
        let word = "w".repeat(30);
        let line = format!(
            "if a(b) && f({word}, [1, 2], {word}, move |x, y| g(x, {word}), {word}) {{\n}}\n"
        );
        let laid = format!(
            "if a(b) && f(\n    {word},\n    [1, 2],\n    {word},\n    move |x, y| g(x, {word}),\n    {word},\n) {{\n}}\n"
        );
        assert_eq!(laid_out(&line), laid);
    }

    #[test]
    fn a_field_whose_type_fits_into_a_line_gets_one_for_it() {
        let (name, kind) = ("n".repeat(30), format!("fn({})", "Word, ".repeat(12)));
        assert_eq!(
            laid_out(&format!("struct S {{\npub {name}: {kind},\n}}\n")),
            format!("struct S {{\n    pub {name}:\n        {kind},\n}}\n")
        );
    }
}
