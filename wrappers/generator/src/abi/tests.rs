//! Tests of the reader of descriptions.

use super::*;

fn reason(text: &str) -> String {
    let table =
        "integer rank MPI_ROOT -4\ninteger split MPI_UNDEFINED -3\ninteger rank MPI_UNDEFINED -3";
    let constants = crate::constants::read(table).expect("a good table");
    match read(text, &constants) {
        Ok(abi) => format!(
            "{:?}",
            abi.integers
                .iter()
                .map(|it| (&it.set, it.own))
                .collect::<Vec<_>>()
        ),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_value_is_that_of_every_set_that_has_the_constant() {
    let both = "integer MPI_UNDEFINED -7\ninteger MPI_ROOT 5  # why";
    assert_eq!(
        reason(both),
        r#"[("rank", 5), ("split", -7), ("rank", -7)]"#
    );
}

#[test]
fn a_bad_line_is_named() {
    for (text, expected) in [
        ("\ninteger MPI_ROOT x", "line 2: not a number"),
        ("integer MPI_RUT 1", "line 1: not in the table"),
        ("handle MPI_ROOT a 1 2", "line 1: not in the table"),
        ("handle MPI_ROOT 0x1g", "line 1: not a number"),
        (
            "integer MPI_ROOT 1\ninteger MPI_ROOT 1",
            "line 2: told twice",
        ),
        (
            "packed bytes 1 count 0",
            "line 1: a field that is not told before",
        ),
        (
            "field flags 0 [i32;2]\npacked cancelled 1 flags 0",
            "line 2: a field that is no integer",
        ),
        (
            "field count 0 i32\npacked bytes 32 count 1",
            "line 2: more bits than there are",
        ),
        (
            "field count 0 i32\npacked bytes 31 count 1\npacked cancelled 2 count 0",
            "line 3: bits that are told twice",
        ),
        ("internal function f(a) -> b", "line 1: no signature"),
        ("internal function f(a: b) b", "line 1: no signature"),
        ("abi short", "line 1: nothing that an ABI is described by"),
    ] {
        assert_eq!(reason(text), expected);
    }
}
