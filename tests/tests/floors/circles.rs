//! Circles of files: files that import each other, directly or by others.
//!
//! Imports from the file that a folder is named after do not count: it is the folder's own ground.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::Crate;

/// The most files that may stand in one circle.
const MOST: usize = 3;

/// The circles of a crate with more files than may be, each as the names of its modules.
pub fn large(code: &Crate) -> Vec<Vec<String>> {
    let mut below: BTreeMap<&[String], BTreeSet<&[String]>> = BTreeMap::new();
    for import in code.imports() {
        if !import.from.starts_with(&import.to) {
            below.entry(&import.from).or_default().insert(&import.to);
        }
    }
    let reached: BTreeMap<&[String], BTreeSet<&[String]>> = below
        .keys()
        .map(|from| (*from, reached(&below, from)))
        .collect();
    let mut circles = BTreeSet::new();
    for (from, to) in &reached {
        let back = |other: &&&[String]| reached.get(**other).is_some_and(|it| it.contains(from));
        let circle: Vec<String> = to.iter().filter(back).map(|it| it.join("::")).collect();
        if circle.len() > MOST {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// The ties of a circle: each import inside it.
pub fn ties<'a>(code: &'a Crate, circle: &'a [String]) -> impl Iterator<Item = String> + 'a {
    let inside = |module: &[String]| circle.contains(&module.join("::"));
    let ties = code.imports();
    let ties = ties.filter(move |import| {
        inside(&import.from) && inside(&import.to) && !import.from.starts_with(&import.to)
    });
    ties.map(|import| format!("  {} imports {}", import.from.join("::"), import.path))
}

/// Every file that a file imports, directly or by others.
fn reached<'a>(
    below: &BTreeMap<&'a [String], BTreeSet<&'a [String]>>,
    from: &'a [String],
) -> BTreeSet<&'a [String]> {
    let mut found = BTreeSet::new();
    let mut left = vec![from];
    while let Some(at) = left.pop() {
        for next in below.get(at).into_iter().flatten() {
            if found.insert(*next) {
                left.push(next);
            }
        }
    }
    found
}
