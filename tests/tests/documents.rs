//! The documents hold what they promise: paths and links lead somewhere, every page is in the book, and pages are plain and short.

#[path = "documents/english.rs"]
mod english;
#[path = "documents/links.rs"]
mod links;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Of a hundred sentences, so many may be turned round in pages, and in comments.
const TURNED_ROUND: f64 = 0.3;
const TURNED_ROUND_IN_COMMENTS: f64 = 1.0;
/// Words of the docs that are written by hand.
const DOCS: usize = 35_000;
/// Words of README.md.
const README: usize = 1_000;
/// Words of the page on costs.
const COSTS: usize = 900;
/// Stands before the part of a page that is made from a table.
const GENERATED: &str = "<!-- @generated";

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

/// Every file of the project with this end, by its path from the root, and its text.
fn files(end: &str) -> Vec<(String, String)> {
    let mut there = BTreeSet::new();
    below(&root(), "", &mut there).unwrap();
    let paths = there.iter().filter(|path| path.ends_with(end));
    paths
        .map(|path| {
            let path = &path[1..];
            (
                path.to_owned(),
                fs::read_to_string(root().join(path)).unwrap(),
            )
        })
        .collect()
}

fn pages() -> Vec<(String, String)> {
    files(".md")
}

/// Returns text between backquotes that looks like a path of the project: words with a slash, down to a source file or a folder.
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
    // The changelog keeps the names of then.
    for (name, text) in pages().iter().filter(|(name, _)| name != "CHANGELOG.md") {
        seen += paths(text).count();
        let stale = stale(text, &there);
        wrong.extend(stale.iter().map(|path| format!("{name}: {path}")));
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

#[test]
fn every_link_leads_to_a_page_and_its_heading() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (name, text) in pages() {
        for target in links::targets(&text) {
            if target.starts_with("https://") {
                continue;
            }
            seen += 1;
            if let Some(reason) = broken(&name, &text, &target) {
                wrong.push(format!("{name}: {target} {reason}"));
            }
        }
    }
    assert!(seen > 150, "only {seen} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Why a link of a page leads nowhere.
fn broken(name: &str, text: &str, target: &str) -> Option<&'static str> {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => root().join(name),
        path => root().join(name).parent()?.join(path),
    };
    let Ok(file) = file.canonicalize() else {
        return Some("is not there");
    };
    let docs = root().join("docs").canonicalize().unwrap();
    if name.starts_with("docs/") && !file.starts_with(docs) {
        return Some("leads out of the book");
    }
    let known = match path {
        "" => links::headings(text),
        _ if heading.is_empty() => return None,
        _ => links::headings(&fs::read_to_string(file).ok()?),
    };
    (!known.contains(heading)).then_some("is no heading there")
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let (name, text) = ("docs/index.md", "# Here\n");
    assert_eq!(broken(name, text, "users/install.md"), None);
    assert_eq!(broken(name, text, "#here"), None);
    for target in [
        "users/nothing.md",
        "users/install.md#nothing",
        "#there",
        "../README.md",
    ] {
        assert!(broken(name, text, target).is_some(), "{target}");
    }
}

#[test]
fn every_page_of_the_docs_is_in_the_book_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed = links::targets(&summary);
    let pages = pages();
    let docs = pages
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("docs/"));
    for page in docs.filter(|page| *page != "SUMMARY.md") {
        let times = listed.iter().filter(|listed| *listed == page).count();
        assert_eq!(times, 1, "{page} in docs/SUMMARY.md");
    }
}

/// Asserts that at most this share of the sentences is turned round.
fn plain(sentences: impl Iterator<Item = (String, String)>, at_least: usize, most: f64) {
    let mut all = 0;
    let mut turned = Vec::new();
    for (name, sentence) in sentences {
        all += 1;
        if english::is_turned_round(&sentence) {
            turned.push(format!("{name}: {sentence}"));
        }
    }
    let share = 100.0 * turned.len() as f64 / all as f64;
    assert!(all > at_least, "only {all} sentences were found");
    assert!(
        share <= most,
        "{share:.2} % of {all} sentences are turned round:\n{}",
        turned.join("\n")
    );
}

#[test]
fn pages_are_in_plain_english() {
    let of = |(name, text): (String, String)| {
        let sentences = english::sentences(&text);
        sentences.into_iter().map(move |it| (name.clone(), it))
    };
    plain(pages().into_iter().flat_map(of), 1_000, TURNED_ROUND);
}

#[test]
fn comments_are_in_plain_english() {
    let of = |(name, text): (String, String)| {
        let comments = english::comments(&text);
        let sentences = comments.iter().flat_map(|it| english::sentences(it));
        sentences.map(|it| (name.clone(), it)).collect::<Vec<_>>()
    };
    let sources = files(".rs").into_iter();
    plain(sources.flat_map(of), 10_000, TURNED_ROUND_IN_COMMENTS);
}

/// Words of a page that are written by hand.
fn by_hand(text: &str) -> usize {
    let end = text.find(GENERATED).unwrap_or(text.len());
    text[..end].split_whitespace().count()
}

#[test]
fn pages_are_short() {
    let pages = pages();
    let of = |wanted: &str| {
        let found = pages.iter().filter(|(name, _)| name.starts_with(wanted));
        found.map(|(_, text)| by_hand(text)).sum::<usize>()
    };
    for (wanted, most) in [
        ("README.md", README),
        ("docs/performance.md", COSTS),
        ("docs/", DOCS),
    ] {
        let words = of(wanted);
        assert!(words > most / 2, "{wanted} has only {words} words");
        assert!(words <= most, "{wanted} has {words} words, {most} at most");
    }
}

#[test]
fn generated_parts_do_not_count() {
    assert_eq!(by_hand("three words here"), 3);
    assert_eq!(by_hand("two words <!-- @generated by x --> and more"), 2);
}
