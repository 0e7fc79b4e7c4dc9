//! What the documents name is there: every path in the guides leads to a file or a folder of the project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file and folder below `folder`, from there; not what is built or hidden.
fn below(folder: &Path, from: &str, found: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target" || (name.starts_with('.') && name != ".ci") {
            continue;
        }
        let path = format!("{from}/{name}");
        if entry.file_type()?.is_dir() {
            below(&entry.path(), &path, found)?;
        }
        found.insert(path);
    }
    Ok(())
}

/// What stands between backquotes and looks like a path of the project: words with a slash, down to a source file or a folder.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        let letters = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
        let inside = word.contains('/') && !word.starts_with('/') && word.chars().all(letters);
        let file = [".rs", ".txt", ".md", ".c", ".h"];
        inside && (word.contains("/src/") || file.iter().any(|end| word.ends_with(end)))
    })
}

/// Paths that lead nowhere. One may begin in the middle.
fn stale<'a>(text: &'a str, there: &BTreeSet<String>) -> Vec<&'a str> {
    let leads = |path: &str| {
        let end = format!("/{}", path.trim_end_matches('/'));
        there.iter().any(|known| known.ends_with(&end))
    };
    paths(text).filter(|path| !leads(path)).collect()
}

#[test]
fn every_path_in_the_documents_leads_somewhere() {
    let mut there = BTreeSet::new();
    below(&root(), "", &mut there).unwrap();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for folder in [root(), root().join("docs")] {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // What has been stays as it was called then.
            if !name.ends_with(".md") || name == "CHANGELOG.md" {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            seen += paths(&text).count();
            wrong.extend(
                stale(&text, &there)
                    .iter()
                    .map(|path| format!("{name}: {path}")),
            );
        }
    }
    assert!(seen > 50, "only {seen} paths were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_path_that_leads_nowhere_is_found() {
    let there = BTreeSet::from(["/a/src/b.rs".to_owned()]);
    let text = "See `src/b.rs`, `a/src/c.rs` and `/proc/self/maps` of `b.rs`.";
    assert_eq!(stale(text, &there), ["a/src/c.rs"]);
}

/// Lines that a merge leaves where two sides had changed the same.
fn left_by_a_merge(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let marks = ["<<<<<<< ", ">>>>>>> ", "||||||| "];
    let lines = text.lines().enumerate();
    lines.filter(move |(_, line)| marks.iter().any(|mark| line.starts_with(mark)))
}

#[test]
fn no_file_has_what_a_merge_left_open() {
    let mut there = BTreeSet::new();
    below(&root(), "", &mut there).unwrap();
    let mut read = 0;
    for path in there {
        let Ok(text) = fs::read_to_string(root().join(&path[1..])) else {
            continue;
        };
        read += 1;
        let left: Vec<_> = left_by_a_merge(&text).collect();
        assert!(left.is_empty(), "{path}: {left:?}");
    }
    assert!(read > 500, "only {read} files were read");
}

#[test]
fn what_a_merge_left_open_is_found() {
    let text = format!(
        "a\n{} ours\nb\n=======\nc\n{} theirs\n",
        "<".repeat(7),
        ">".repeat(7)
    );
    let lines: Vec<usize> = left_by_a_merge(&text).map(|(line, _)| line).collect();
    assert_eq!(lines, [1, 5]);
}
