//! Links between Markdown pages: a page's links, and the headings that links can lead to.

use std::collections::BTreeSet;

/// Returns the targets of a page's links, as written, except for those in code.
pub fn targets(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
    }
    found
}

/// Returns the names of a page's headings, as GitHub and mdBook make them.
pub fn headings(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in prose(page).filter(|line| line.starts_with('#')) {
        let text = line.trim_start_matches('#').trim();
        let name = text.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
            _ => None,
        });
        let name: String = name.collect();
        let again = (1..).map(|number| format!("{name}-{number}"));
        let name = std::iter::once(name.clone())
            .chain(again)
            .find(|name| !found.contains(name));
        found.extend(name);
    }
    found
}

/// Returns the lines of a page that are not code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence && !line.starts_with("    ")
    })
}

#[test]
fn links_are_found_outside_of_code() {
    let page = "See [a](b.md#c) and ![d](e.svg).\n```\n[x](y)\n```\n    [x](y)\n";
    assert_eq!(targets(page), ["b.md#c", "e.svg"]);
}

#[test]
fn headings_are_named_as_sites_name_them() {
    let page = "# Podman, and Docker's profile\n## A stop: `--precopy`\n## Twice\n## Twice\n```\n# code\n```\n";
    let names: Vec<String> = headings(page).into_iter().collect();
    assert_eq!(
        names,
        [
            "a-stop---precopy",
            "podman-and-dockers-profile",
            "twice",
            "twice-1"
        ]
    );
}
