//! The page about fault points has the table that follows from their list.

use std::fs;

use stillpoint_faults::page;

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/fault-points.md"
);
/// The beginning of the table in the page.
const BEGINS: &str = "| no. | name |";

#[test]
fn the_page_says_what_the_list_says() {
    let written = fs::read_to_string(PATH).unwrap();
    let (before, table) = written.split_at(written.find(BEGINS).unwrap());
    if std::env::var_os("STILLPOINT_WRITE_PAGE").is_some() {
        fs::write(PATH, before.to_owned() + &page()).unwrap();
        return;
    }
    assert!(
        table == page(),
        "docs/reference/fault-points.md is not what the list says: STILLPOINT_WRITE_PAGE=1 writes it"
    );
}
