//! The kernels in PTX: their names, and the sizes of their parameters.

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Size and alignment of each parameter.
    pub parameters: Vec<(usize, usize)>,
}

impl Entry {
    /// Returns the offset and size of each parameter in a buffer that holds all of them.
    pub fn places(&self) -> Vec<(usize, usize)> {
        let mut at = 0;
        let place = |&(size, alignment): &(usize, usize)| {
            let start = usize::next_multiple_of(at, alignment);
            at = start + size;
            (start, size)
        };
        self.parameters.iter().map(place).collect()
    }
}

/// Returns the kernels of a text, or nothing if it is no PTX, or not understood.
pub fn entries(text: &str) -> Option<Vec<Entry>> {
    let text = without_comments(text);
    if !text.contains(".version") {
        return None;
    }
    let mut found = vec![];
    for part in text.split(".entry").skip(1) {
        // A kernel without parameters may have no parentheses at all.
        let body = part.find('{').unwrap_or(part.len());
        let open = part.find('(').filter(|open| *open < body);
        let name = part[..open.unwrap_or(body)].split_whitespace().next()?;
        let list = match open {
            Some(open) => &part[open + 1..part.find(')')?],
            None => "",
        };
        let declared = list.split(',').filter(|one| !one.trim().is_empty());
        found.push(Entry {
            name: name.to_owned(),
            parameters: declared.map(parameter).collect::<Option<_>>()?,
        });
    }
    Some(found)
}

/// Returns the oldest device capability that a text is for: `.target sm_75` is 7.5.
pub fn target(text: &str) -> Option<[i32; 2]> {
    let text = without_comments(text);
    let (_, rest) = text.split_once(".target")?;
    let digits = rest.trim_start().strip_prefix("sm_")?;
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number: i32 = digits[..end.unwrap_or(digits.len())].parse().ok()?;
    Some([number / 10, number % 10])
}

/// Parses a parameter: `.param .align 8 .b8 name[16]` has 16 bytes at a multiple of 8.
fn parameter(declaration: &str) -> Option<(usize, usize)> {
    let mut size = None;
    let mut alignment = None;
    let mut words = declaration.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            ".align" => alignment = Some(words.next()?.parse().ok()?),
            word if word.starts_with('.') => {
                let digits = word.trim_start_matches(|c: char| !c.is_ascii_digit());
                if let Ok(bits) = digits.parse::<usize>() {
                    size = Some(bits.div_ceil(8));
                }
            }
            _ => {}
        }
    }
    let one = size?;
    let count = match declaration.split_once('[') {
        Some((_, count)) => count.split(']').next()?.trim().parse().ok()?,
        None => 1,
    };
    Some((one * count, alignment.unwrap_or(one).max(1)))
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(start) = rest.find("/*") {
        kept.push_str(&rest[..start]);
        rest = rest[start..]
            .find("*/")
            .map_or("", |end| &rest[start + end + 2..]);
    }
    kept.push_str(rest);
    let lines = kept
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
        // .entry not_this(.param .u64 a)\n/* .entry nor_this */\n\
        .visible .entry heat(\n .param .u64 heat_param_0,\n .param .u32 heat_param_1,\n .param .f64 heat_param_2,\n\
        .param .align 8 .b8 heat_param_3[24]\n)\n{\n ret;\n}\n.visible .entry nothing()\n{ ret; }\n.entry bare\n{ ret; }\n";

    #[test]
    fn kernels_and_their_parameters_are_found() {
        let entries = entries(TEXT).unwrap();
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["heat", "nothing", "bare"]);
        assert_eq!(entries[0].parameters, [(8, 8), (4, 4), (8, 8), (24, 8)]);
        assert_eq!(entries[0].places(), [(0, 8), (8, 4), (16, 8), (24, 24)]);
        assert!(entries[1].parameters.is_empty() && entries[2].parameters.is_empty());
    }

    #[test]
    fn targets_are_found() {
        assert_eq!(target(TEXT), Some([7, 0]));
        assert_eq!(
            target(".version 8.0 .target  sm_103a, debug\n"),
            Some([10, 3])
        );
        for none in ["", ".target", ".target sm_", "// .target sm_70"] {
            assert_eq!(target(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_no_ptx_is_none() {
        assert_eq!(entries("int main() {}"), None);
        assert_eq!(entries(".version 7.0\n.entry x(.param what)"), None);
    }
}
