//! How plain the English of a page is: counts sentences that are turned round, which open with a relative word or put their subject last.

/// Words that open such a sentence by themselves.
const ALONE: [&str; 11] = [
    "Who", "What", "Whose", "Whom", "Whoever", "Whatever", "Such", "Nor", "Neither", "None",
    "Nobody",
];

/// Words that do so before certain others.
const BEFORE: [(&str, &[&str]); 4] = [
    ("Of", &["what", "which", "whom", "these", "those", "all"]),
    ("That", &["which"]),
    (
        "Where",
        &[
            "it", "that", "there", "one", "no", "nothing", "somebody", "a", "the",
        ],
    ),
    ("Only", &["then", "there", "where", "who"]),
];

/// Words behind a "So" that turns a sentence round; "so" before a subject is plain.
const BEHIND_SO: [&str; 8] = ["is", "does", "do", "are", "was", "has", "have", "that"];

/// Sentences of more than three words in a page of Markdown, without code and tables. A colon and a semicolon end one too.
pub fn sentences(page: &str) -> Vec<String> {
    let mut text = String::new();
    let mut in_code = false;
    for line in page.lines() {
        let inner = line.trim_start();
        if inner.starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !inner.starts_with('|') && !line.starts_with("    ") {
            // A list's item begins a sentence.
            let item = ["* ", "- "]
                .iter()
                .find_map(|mark| inner.strip_prefix(mark));
            text.push_str(&item.map_or_else(|| line.to_owned(), |item| format!(". {item}")));
            text.push(' ');
        }
    }
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(last) = sentences.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
        if word.ends_with(['.', '!', '?', ':', ';']) {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| sentence.split(' ').count() > 3);
    sentences
}

/// Comments of a Rust file: lines of them that follow each other are one, without the reasons why an unsafe block is sound.
pub fn comments(source: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in source.lines() {
        match (line.trim_start().strip_prefix("//"), found.last_mut()) {
            (Some(comment), Some(last)) => {
                let words = comment.strip_prefix(['/', '!']).unwrap_or(comment);
                last.push_str(words.strip_prefix(' ').unwrap_or(words));
                last.push('\n');
            }
            (None, Some(last)) if !last.is_empty() => found.push(String::new()),
            _ => {}
        }
    }
    found.retain(|comment| !comment.is_empty() && !comment.contains("SAFETY"));
    found
}

/// Whether a sentence is turned round. A question is not.
pub fn is_turned_round(sentence: &str) -> bool {
    let marks = ['*', '-', '_', '>', '`', '"', ' '];
    let mut words = sentence
        .trim_start_matches(marks)
        .split(' ')
        .map(|word| word.split(|letter: char| !letter.is_alphanumeric()).next());
    let (Some(first), second, third) = (
        words.next().flatten(),
        words.next().flatten().unwrap_or_default(),
        words.next().flatten().unwrap_or_default(),
    ) else {
        return false;
    };
    let pair = |(word, others): &(&str, &[&str])| *word == first && others.contains(&second);
    let so = || first == "So" && (BEHIND_SO.contains(&second) || (second, third) == ("it", "is"));
    !sentence.ends_with('?') && (ALONE.contains(&first) || BEFORE.iter().any(pair) || so())
}

#[test]
fn code_and_tables_are_no_sentences() {
    let page = "# A page\n\nIt has two sentences. Here is\nthe second one.\n\n```\nWhat is this, after all?\n```\n\n| What | is | a | table |\n\n    What is code is left out.\n";
    let found = sentences(page);
    assert_eq!(
        found,
        ["# A page It has two sentences.", "Here is the second one."]
    );
}

#[test]
fn lines_of_a_comment_are_one() {
    let source = "//! A file.\n\nfn f() {\n    // It says this,\n    // and that.\n    f();\n    // SAFETY: nothing.\n}\n";
    assert_eq!(
        comments(source),
        ["A file.\n", "It says this,\nand that.\n"]
    );
}

#[test]
fn an_item_of_a_list_begins_a_sentence() {
    let found =
        sentences("It says the following:\n* who asks is told at once\n- the rest waits for it\n");
    let last = &found[1..];
    assert_eq!(
        last,
        ["who asks is told at once .", "the rest waits for it"]
    );
}

#[test]
fn sentences_that_are_turned_round_are_found() {
    for turned in [
        "Who asks hears nothing of it.",
        "**What it only gets** is carried out ahead.",
        "Of these, the first is right.",
        "So is the second one here.",
        "So it is with every file.",
        "Where the kernel tells, it is known.",
        "Only then is it committed.",
        "None of them is left.",
        "`Nobody` waits for that here.",
    ] {
        assert!(is_turned_round(turned), "{turned}");
    }
}

#[test]
fn plain_sentences_are_not() {
    for plain in [
        "The coordinator asks every agent.",
        "So the agent reads the cell.",
        "Where does it lie, then?",
        "Only root may do that here.",
        "Whole pages of zeros take no room.",
        "If the job has finished, it is left alone.",
        "That is the reason for it.",
    ] {
        assert!(!is_turned_round(plain), "{plain}");
    }
}
