//! Puts measured tables and figures into a folder of `bench/results`, for readers.
//!
//! A page has a table between two marks, and keeps the text around them:
//!
//! ```text
//! <!-- overhead: NAME -->
//! the table
//! <!-- overhead end -->
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::{Failed, place};

/// A table or a figure with its name.
pub type Named = (String, String);

/// Returns the folder for the results of a machine such as `epyc-2core-2026-11`.
fn folder(machine: &str) -> Result<PathBuf, Failed> {
    let folder = place::project().join("bench/results").join(machine);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Puts tables into the page `bench/results/MACHINE/KIND.md`. A table without marks there is added at the end.
pub fn tables(machine: &str, kind: &str, tables: &[Named]) -> Result<(), Failed> {
    let path = folder(machine)?.join(format!("{kind}.md"));
    let failed = |error| format!("{}: {error}", path.display());
    let mut page = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => format!("# {machine}\n"),
        read => read.map_err(failed)?,
    };
    for (name, table) in tables {
        page = with(&page, kind, name, table);
    }
    fs::write(&path, page).map_err(failed)
}

/// Puts figures into `bench/results/MACHINE`.
pub fn figures(machine: &str, figures: &[Named]) -> Result<(), Failed> {
    let folder = folder(machine)?;
    for (name, svg) in figures {
        let path = folder.join(format!("{name}.svg"));
        fs::write(&path, svg).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Returns the page with this text between the marks of that name.
fn with(page: &str, kind: &str, name: &str, text: &str) -> String {
    let (begin, end) = (
        format!("<!-- {kind}: {name} -->\n"),
        format!("<!-- {kind} end -->"),
    );
    let place = page.find(&begin).and_then(|at| {
        let start = at + begin.len();
        Some(start..start + page[start..].find(&end)?)
    });
    match place {
        Some(place) => format!("{}{text}{}", &page[..place.start], &page[place.end..]),
        None => format!("{page}\n## {name}\n\n{begin}{text}{end}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::with;

    #[test]
    fn only_what_lies_between_the_marks_changes() {
        let page = "a\n<!-- overhead: x -->\nold\n<!-- overhead end -->\nb\n<!-- overhead: y -->\n<!-- overhead end -->\n";
        let new = with(page, "overhead", "x", "new\n");
        assert_eq!(new, page.replace("old", "new"));
    }

    #[test]
    fn a_table_without_marks_is_added() {
        let page = with("a\n", "checkpoint", "z", "new\n");
        assert_eq!(
            page,
            "a\n\n## z\n\n<!-- checkpoint: z -->\nnew\n<!-- checkpoint end -->\n"
        );
        assert_eq!(with(&page, "checkpoint", "z", "new\n"), page);
    }
}
