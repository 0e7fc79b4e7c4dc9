//! Puts tables and figures where readers look for them: between marks of `docs/performance.md`, and into `docs/figures`.
//!
//! ```text
//! <!-- overhead: NAME -->
//! what was measured last
//! <!-- overhead end -->
//! ```

use std::fs;

use stillpoint_tests::{Failed, place};

/// A table with its group's name.
pub type Named = (String, String);

/// Replaces the tables that are given, and leaves the others as they are.
pub fn tables(tables: &[Named]) -> Result<(), Failed> {
    let path = place::project().join("docs").join("performance.md");
    let failed = |error| format!("{}: {error}", path.display());
    let mut page = fs::read_to_string(&path).map_err(failed)?;
    for (name, table) in tables {
        page = replaced(&page, name, table)
            .ok_or_else(|| format!("{}: no place for '{name}'", path.display()))?;
    }
    fs::write(&path, page).map_err(failed)
}

/// The page with what stands between the marks of that name replaced.
fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let mark = format!("<!-- overhead: {name} -->\n");
    let start = page.find(&mark)? + mark.len();
    let end = start + page[start..].find("<!-- overhead end -->")?;
    Some(format!("{}{text}{}", &page[..start], &page[end..]))
}

/// Writes the figures.
pub fn figures(figures: &[Named]) -> Result<(), Failed> {
    let folder = place::project().join("docs").join("figures");
    for (name, svg) in figures {
        let path = folder.join(format!("{name}.svg"));
        fs::write(&path, svg).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_what_lies_between_the_marks_changes() {
        let page = "a\n<!-- overhead: x -->\nold\n<!-- overhead end -->\nb\n<!-- overhead: y -->\n<!-- overhead end -->\n";
        let new = replaced(page, "x", "new\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(replaced(page, "z", ""), None);
    }
}
