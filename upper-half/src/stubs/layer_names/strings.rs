//! Strings of Fortran, and lists of them.

use core::ffi::{c_char, c_int};
use core::ptr;

/// `OMPI_ERR_OUT_OF_RESOURCE`.
const NO_MEMORY: c_int = -2;

/// A Fortran string without the blanks around it.
///
/// # Safety
/// The string must have `length` characters.
unsafe fn trimmed<'a>(string: *const c_char, length: c_int) -> &'a [u8] {
    let length = usize::try_from(length).unwrap_or(0);
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller says that so many characters are there.
    let all = unsafe { core::slice::from_raw_parts(string.cast::<u8>(), length) };
    let is_other = |byte: &u8| *byte != b' ';
    let Some(first) = all.iter().position(is_other) else {
        return &[];
    };
    let last = all.iter().rposition(is_other).unwrap_or(first);
    &all[first..=last]
}

/// Copies a text to memory of the application's, with a NUL behind it; the layer frees it. Null: there is no memory.
fn as_c(text: &[u8]) -> *mut c_char {
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    // SAFETY: the memory has room for the text and its NUL.
    unsafe {
        let copy: *mut u8 = libc::malloc(text.len() + 1).cast();
        if !copy.is_null() {
            ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
            *copy.add(text.len()) = 0;
        }
        copy.cast()
    }
}

/// A string for C, which the layer frees.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_string_f2c(
    string: *const c_char,
    length: c_int,
    place: *mut *mut c_char,
) -> c_int {
    // SAFETY: the layer gives a string of that length, and a place.
    unsafe {
        *place = as_c(trimmed(string, length));
        if (*place).is_null() { NO_MEMORY } else { 0 }
    }
}

/// A string for Fortran, with blanks behind it.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_string_c2f(
    from: *const c_char,
    string: *mut c_char,
    length: c_int,
) -> c_int {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: the layer gives a string of C, and room for `length` characters.
    unsafe {
        let bytes = core::ffi::CStr::from_ptr(from).to_bytes();
        let kept = bytes.len().min(length);
        ptr::copy_nonoverlapping(bytes.as_ptr(), string.cast(), kept);
        ptr::write_bytes(string.add(kept).cast::<u8>(), b' ', length - kept);
    }
    0
}

/// A list of strings that grows, with a null at its end, in memory that the layer frees.
struct Strings {
    list: *mut *mut c_char,
    count: usize,
}

impl Strings {
    /// # Safety
    /// The text must come from `malloc`; it becomes the list's.
    unsafe fn push(&mut self, text: *mut c_char) -> bool {
        let bytes = (self.count + 2) * size_of::<*mut c_char>();
        // SAFETY: the list is null or of `malloc`, and has `count` entries and a null.
        unsafe {
            let list: *mut *mut c_char = libc::realloc(self.list.cast(), bytes).cast();
            if text.is_null() || list.is_null() {
                libc::free(text.cast());
                return false;
            }
            *list.add(self.count) = text;
            *list.add(self.count + 1) = ptr::null_mut();
            self.list = list;
        }
        self.count += 1;
        true
    }
}

/// Makes a list of at most `most` strings, which lie `advance` bytes apart; an empty one ends it if `most` is `None`.
///
/// # Safety
/// The array must have the strings, and `place` be writable.
unsafe fn strings(
    array: *const c_char,
    most: Option<usize>,
    length: c_int,
    advance: c_int,
    place: *mut *mut *mut c_char,
) -> c_int {
    let mut made = Strings {
        list: ptr::null_mut(),
        count: 0,
    };
    // SAFETY: the caller says that the strings are there, and that the place can be written.
    unsafe {
        *place = ptr::null_mut();
        let mut at = array;
        while most.is_none_or(|most| made.count < most) {
            let text = trimmed(at, length);
            if most.is_none() && text.is_empty() {
                break;
            }
            if !made.push(as_c(text)) {
                opal_argv_free(made.list);
                return NO_MEMORY;
            }
            at = at.offset(advance as isize);
        }
        *place = made.list;
    }
    0
}

/// Arguments for programs: strings of Fortran up to an empty one.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_argv_blank_f2c(
    array: *const c_char,
    length: c_int,
    advance: c_int,
    place: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: the layer gives an array that an empty string ends, and a place.
    unsafe { strings(array, None, length, advance, place) }
}

/// So many strings of Fortran.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_argv_count_f2c(
    array: *const c_char,
    count: c_int,
    length: c_int,
    advance: c_int,
    place: *mut *mut *mut c_char,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the layer gives an array of so many strings, and a place.
    unsafe { strings(array, Some(count), length, advance, place) }
}

/// The arguments of several programs: a column of the array for each.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_multiple_argvs_f2c(
    programs: c_int,
    array: *const c_char,
    length: c_int,
    place: *mut *mut *mut *mut c_char,
) -> c_int {
    let count = usize::try_from(programs).unwrap_or(0);
    // SAFETY: the layer gives an array with a column for each program, and a place; the list has room for all.
    unsafe {
        let lists: *mut *mut *mut c_char = libc::malloc((count * size_of::<usize>()).max(1)).cast();
        if lists.is_null() {
            return NO_MEMORY;
        }
        for program in 0..count {
            let column = array.add(program * usize::try_from(length).unwrap_or(0));
            let advance = length.wrapping_mul(programs);
            let result = strings(column, None, length, advance, lists.add(program));
            if result != 0 {
                (0..program).for_each(|made| opal_argv_free(*lists.add(made)));
                libc::free(lists.cast());
                return result;
            }
        }
        *place = lists;
    }
    0
}

/// Frees a list of strings.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn opal_argv_free(list: *mut *mut c_char) {
    if list.is_null() {
        return;
    }
    // SAFETY: the list ends with a null; it and its strings come from `malloc`.
    unsafe {
        let mut at = list;
        while !(*at).is_null() {
            libc::free((*at).cast());
            at = at.add(1);
        }
        libc::free(list.cast());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_lose_their_blanks_and_get_them_back() {
        // SAFETY: the strings have the lengths that are told, and every list is freed once.
        unsafe {
            let mut text = ptr::null_mut();
            let from = b"  two words   ";
            ompi_fortran_string_f2c(from.as_ptr().cast(), from.len() as c_int, &raw mut text);
            assert_eq!(core::ffi::CStr::from_ptr(text), c"two words");
            let mut back = [b'#'; 12];
            ompi_fortran_string_c2f(text, back.as_mut_ptr().cast(), 11);
            assert_eq!(&back, b"two words  #");
            libc::free(text.cast());
        }
    }

    #[test]
    fn lists_of_arguments_end_where_fortran_ends_them() {
        // SAFETY: as above.
        unsafe {
            let (one, both) = (b"-a  -bc     rest", b"-a  -x  -b          ");
            let mut list = ptr::null_mut();
            ompi_fortran_argv_blank_f2c(one.as_ptr().cast(), 4, 4, &raw mut list);
            assert_eq!(core::ffi::CStr::from_ptr(*list.add(1)), c"-bc");
            assert!((*list.add(2)).is_null());
            opal_argv_free(list);
            ompi_fortran_argv_count_f2c(one.as_ptr().cast(), 3, 4, 4, &raw mut list);
            assert_eq!(core::ffi::CStr::from_ptr(*list.add(2)), c"");
            assert!((*list.add(3)).is_null());
            opal_argv_free(list);
            let mut lists = ptr::null_mut();
            ompi_fortran_multiple_argvs_f2c(2, both.as_ptr().cast(), 4, &raw mut lists);
            let [first, second] = [*lists, *lists.add(1)];
            assert_eq!(core::ffi::CStr::from_ptr(*first.add(1)), c"-b");
            assert_eq!(core::ffi::CStr::from_ptr(*second), c"-x");
            assert!((*second.add(1)).is_null());
            [first, second]
                .into_iter()
                .for_each(|it| opal_argv_free(it));
            libc::free(lists.cast());
        }
    }
}
