//! The classes that MPI itself has, by their neutral values. Each is its own class, whatever the library below knows of it, and has a text here if the library
//! has none.

use crate::ground::crossing;

/// Whether it is one of them: the standard's ABI has them side by side, those of the tool interface from 1001 on.
pub fn is_one(neutral: i32) -> bool {
    matches!(neutral, 0..=62 | 1001..=1018)
}

/// Whether the library below has a class.
///
/// # Safety
/// Inside a stub.
pub unsafe fn is_known_below(neutral: i32) -> bool {
    let mut class = 0;
    // SAFETY: the caller is inside a stub, and `class` is a local variable.
    let code = unsafe { crossing::cross(|d| (d.error_class)(neutral, &raw mut class)) };
    code == 0 && class == neutral
}

/// The meaning of a class for which a library may have no text: those newer than MPI 3.1, and that of the tool interface that few give a text.
pub fn text(neutral: i32) -> &'static str {
    match neutral {
        46 => "memory cannot be attached to the window",
        48 => "the memory is no part of the window, or not exposed",
        49 => "memory cannot be shared",
        57 => "the window has another flavour",
        58 => "a process that takes part has aborted",
        59 => "a value is too large to be stored",
        60 => "no such session",
        61 => "no such error handler",
        62 => "the binary interface does not allow it",
        1002 => "the tool interface: what was asked for is not accessible",
        1004 => "the tool interface: what was asked for is not supported",
        1001..=1018 => "an error of the tool interface",
        _ => "an error of MPI",
    }
}

/// Texts of the first classes, in their order.
const FIRST: [&str; 57] = [
    "no error",
    "invalid buffer",
    "invalid count",
    "invalid datatype",
    "invalid tag",
    "invalid communicator",
    "invalid rank",
    "invalid request",
    "invalid root",
    "invalid group",
    "invalid operation",
    "invalid topology",
    "invalid dimensions",
    "invalid argument",
    "unknown error",
    "message truncated on receive",
    "other error",
    "internal error",
    "operation pending",
    "the error is in the status",
    "permission denied",
    "invalid access mode",
    "invalid assertion",
    "invalid file name",
    "invalid base",
    "conversion of data failed",
    "invalid displacement",
    "data representation defined twice",
    "the file exists",
    "the file is in use",
    "invalid file",
    "the info's key is too long",
    "no such key in the info",
    "the info's value is too long",
    "invalid info",
    "input or output failed",
    "invalid keyval",
    "invalid type of lock",
    "no such service name",
    "no memory left",
    "arguments differ among processes",
    "no space left",
    "no such file",
    "invalid port",
    "quota exceeded",
    "the file is read-only",
    "memory cannot be attached to the window",
    "conflicting accesses to a window",
    "memory outside of the window",
    "memory cannot be shared",
    "wrong synchronization of a window",
    "service name not published",
    "invalid size",
    "processes cannot be spawned",
    "unsupported data representation",
    "unsupported operation",
    "invalid window",
];

/// The meaning of a class, for calls while no library can be asked.
pub fn early_text(neutral: i32) -> &'static str {
    let first = usize::try_from(neutral).ok().and_then(|it| FIRST.get(it));
    first.copied().unwrap_or_else(|| text(neutral))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::abi;

    #[test]
    fn classes_have_numbers_here_that_lead_back_to_them() {
        // Open MPI 4.1 has no values for these, which cross as they are.
        let missing: &[i32] = match cfg!(application = "openmpi") {
            true => &[61, 62, 1002, 1004],
            false => &[],
        };
        let has = |it: &i32| is_one(*it) && !missing.contains(it);
        for neutral in (0..2000).filter(has) {
            let own = abi::error_from_neutral(neutral);
            assert_eq!(abi::error_to_neutral(own), neutral, "{own}");
            assert!(!text(neutral).is_empty());
        }
        assert!(!is_one(-1) && !is_one(63) && !is_one(1000) && !is_one(1019));
    }
}
