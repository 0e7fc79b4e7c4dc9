//! A test that the page about refusals matches the table.

use std::fs;

use stillpoint_refusals::page;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/users/refusals.md");

#[test]
fn the_page_says_what_the_table_says() {
    if std::env::var_os("STILLPOINT_WRITE_PAGE").is_some() {
        fs::write(PATH, page()).unwrap();
    }
    assert!(
        fs::read_to_string(PATH).unwrap() == page(),
        "docs/users/refusals.md is not what the table says: STILLPOINT_WRITE_PAGE=1 writes it"
    );
}
