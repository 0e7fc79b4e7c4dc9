//! The environment that the program was started with, without the variables that are for its loader alone.
//!
//! If the program inherited the library by accident, nothing marks such variables, and nothing happens.

use core::ffi::{CStr, c_char};

/// The variable from which on all are for the loader alone (`stillpoint_wrappers::gate::FOR_LOADER`); their number is even.
const FOR_LOADER: &CStr = c"STILLPOINT_FOR_LOADER=";

/// An entry of the auxiliary vector that says nothing (`elf.h`).
const AT_IGNORE: usize = 1;

/// Removes from the environment the variables that are for the dynamic loader alone ([`FOR_LOADER`]). The auxiliary vector lies behind the list's NULL
/// and cannot be moved, for the loader knows where it is. So the NULL goes where the first of these variables was, and the words from
/// there on become entries of the vector that say nothing. Code that walks on from the list finds the vector, as on every stack that the
/// kernel has made.
///
/// # Safety
/// `environment` must be a null-terminated list of strings, writable, the one that the program was started with; or null.
pub unsafe fn leave(environment: *mut *mut c_char) {
    if environment.is_null() {
        return;
    }
    // SAFETY: within the list, up to its NULL.
    unsafe {
        let (mut entries, mut first) = (0, None);
        while let Some(text) = (*environment.add(entries)).as_ref() {
            if first.is_none() && is_mark(text) {
                first = Some(entries);
            }
            entries += 1;
        }
        let Some(first) = first.filter(|first| (entries - first) % 2 == 0) else {
            return;
        };
        *environment.add(first) = core::ptr::null_mut();
        let mut pair = first + 1;
        while pair < entries {
            *environment.add(pair) = core::ptr::without_provenance_mut(AT_IGNORE);
            *environment.add(pair + 1) = core::ptr::null_mut();
            pair += 2;
        }
    }
}

/// Whether a string is [`FOR_LOADER`].
///
/// # Safety
/// The string must end in NUL.
unsafe fn is_mark(text: *const c_char) -> bool {
    let mut at = text;
    FOR_LOADER.to_bytes_with_nul().iter().all(|byte| {
        // SAFETY: no byte up to here was the string's last one.
        let same = unsafe { *at } as u8 == *byte;
        at = at.wrapping_add(1);
        same
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list as a walker finds it, and the two words behind its NULL.
    fn left(list: &[&CStr]) -> (Vec<String>, [usize; 2]) {
        let mut words: Vec<*mut c_char> =
            list.iter().map(|text| text.as_ptr().cast_mut()).collect();
        words.resize(list.len() + 3, core::ptr::null_mut());
        // SAFETY: the list ends with a null, and two words lie behind it; the strings live until the test is over.
        unsafe {
            leave(words.as_mut_ptr());
            let entries: Vec<String> = words
                .iter()
                .take_while(|text| !text.is_null())
                .map(|text| CStr::from_ptr(*text).to_str().unwrap().to_owned())
                .collect();
            let behind = entries.len() + 1;
            (entries, [words[behind].addr(), words[behind + 1].addr()])
        }
    }

    #[test]
    fn what_is_for_the_loader_becomes_an_entry_of_the_auxiliary_vector() {
        let ours = c"LD_PRELOAD=/a/libstillpoint_preload.so:/b/libx.so";
        let (entries, behind) = left(&[c"A=1", c"LD_PRELOAD=/b/libx.so", FOR_LOADER, ours]);
        assert_eq!(entries, ["A=1", "LD_PRELOAD=/b/libx.so"]);
        assert_eq!(behind, [AT_IGNORE, 0]);
        assert_eq!(left(&[FOR_LOADER, ours]), (vec![], [AT_IGNORE, 0]));
        let two = left(&[c"A=1", FOR_LOADER, c"GLIBC_TUNABLES=", ours, FOR_LOADER]);
        assert_eq!(two, (vec!["A=1".to_owned()], [AT_IGNORE, 0]));
    }

    #[test]
    fn the_lower_half_sets_this_mark() {
        assert_eq!(FOR_LOADER, stillpoint_wrappers::gate::FOR_LOADER);
    }

    #[test]
    fn an_environment_without_the_mark_stays() {
        assert_eq!(left(&[c"A=1", c"B=2"]).0, ["A=1", "B=2"]);
        assert_eq!(left(&[FOR_LOADER]).0.len(), 1);
        assert_eq!(left(&[]).0.len(), 0);
        // SAFETY: null stands for no list, which the function allows.
        unsafe { leave(core::ptr::null_mut()) };
    }
}
