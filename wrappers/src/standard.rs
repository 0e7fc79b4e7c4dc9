//! Values of the standard's ABI (MPI 5.0, chapter 20) that both halves name. `wrappers/table/constants.txt` has all of them.

/// Predefined handles.
pub const MESSAGE_NULL: i32 = 296;
pub const MESSAGE_NO_PROC: i32 = 297;
pub const INFO_NULL: i32 = 304;
pub const INFO_ENV: i32 = 305;
pub const ERRORS_RETURN: i32 = 323;
pub const PACKED: i32 = 519;
pub const BYTE: i32 = 583;
pub const INT64_T: i32 = 600;

/// Numbers.
pub const UNDEFINED: i32 = -32766;
pub const ORDER_C: i32 = 12;
pub const ERR_INTERN: i32 = 17;
pub const T_ERR_INVALID_INDEX: i32 = 1007;
pub const T_ERR_INVALID_NAME: i32 = 1011;

#[cfg(test)]
mod tests {
    /// Reads this file itself, so that no constant is left out.
    #[test]
    fn every_value_is_the_tables() {
        let table = include_str!("../table/constants.txt");
        let in_table = |name: &str| {
            let words = table
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>());
            let mut found = words.filter(|words| words.get(2) == Some(&name));
            found.next().map(|words| words[3].to_owned())
        };
        let mut compared = 0;
        for line in include_str!("standard.rs").lines() {
            let Some(constant) = line.strip_prefix("pub const ") else {
                continue;
            };
            let (name, value) = constant.split_once(": i32 = ").expect("a constant");
            let value = value.trim_end_matches(';').to_owned();
            assert_eq!(in_table(&format!("MPI_{name}")), Some(value), "{name}");
            compared += 1;
        }
        assert_eq!(compared, 13);
    }
}
