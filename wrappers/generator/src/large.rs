//! The functions that have a twin with large counts (`table/large.txt`), and the wider parameters of the twin.

use crate::table::BadLine;

/// A function's twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// The smaller function.
    pub name: String,
    /// Whether the twin is written by hand.
    pub written: bool,
    /// Parameters that are an int in the smaller function, with the lengths of arrays.
    pub wider: Vec<(String, Option<String>)>,
}

impl Twin {
    /// Whether a parameter is wider, and the length if it is an array.
    pub fn widens(&self, parameter: &str) -> Option<Option<&str>> {
        let found = self.wider.iter().find(|it| it.0 == parameter)?;
        Some(found.1.as_deref())
    }
}

/// Reads the table.
pub fn read(text: &str) -> Result<Vec<Twin>, BadLine> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(index, line)| twin(index + 1, line)).collect()
}

fn twin(line: usize, text: &str) -> Result<Twin, BadLine> {
    let mut words = text.split(' ');
    let name = words.next().unwrap_or_default().to_string();
    let words: Vec<&str> = words.collect();
    if words == ["written"] {
        return Ok(Twin {
            name,
            written: true,
            wider: vec![],
        });
    }
    let parameter = |word: &&str| match word.split_once('[') {
        None => Ok((word.to_string(), None)),
        Some((name, length)) => match length.strip_suffix(']') {
            Some(length) => Ok((name.to_string(), Some(length.to_string()))),
            None => Err(BadLine {
                line,
                reason: format!("{word}: a length without an end"),
            }),
        },
    };
    Ok(Twin {
        name,
        written: false,
        wider: words.iter().map(parameter).collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_lengths_where_they_are_arrays() {
        let text = "# told\nMPI_Gatherv sendcount displs[root]\nMPI_Get_count written";
        let twins = read(text).expect("a good table");
        assert_eq!(twins[0].widens("sendcount"), Some(None));
        assert_eq!(twins[0].widens("displs"), Some(Some("root")));
        assert_eq!(twins[0].widens("sendbuf"), None);
        assert!(twins[1].written && !twins[0].written);
    }

    #[test]
    fn a_bad_line_is_named() {
        let bad = read("MPI_Send count\nMPI_Gatherv displs[root").expect_err("a bad line");
        assert_eq!(bad.line, 2);
    }
}
