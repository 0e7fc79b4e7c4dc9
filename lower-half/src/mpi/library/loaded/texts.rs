//! Texts of the library: it writes as much as the standard's ABI permits, and the program gets as much as fits into its buffer.

use std::ffi::c_char;
use std::sync::OnceLock;

use stillpoint_wrappers::lengths::{Lengths, STANDARD};

static PROGRAMS: OnceLock<Lengths> = OnceLock::new();

/// Sets the sizes of programs' buffers.
pub fn for_programs_with(lengths: Lengths) {
    let _ = PROGRAMS.set(lengths);
}

/// A place for a text.
pub struct Text {
    own: Vec<u8>,
    place: *mut c_char,
    room: usize,
}

/// # Safety
/// `place` must have the size that programs have for this text, or be null.
pub unsafe fn text(place: *mut c_char, length: impl Fn(&Lengths) -> usize) -> Text {
    Text {
        own: vec![0; STANDARD.longest() + 1],
        place,
        room: length(PROGRAMS.get().unwrap_or(&STANDARD)),
    }
}

impl Text {
    /// Returns the place for MPI to write to.
    pub fn place(&mut self) -> *mut c_char {
        match self.place.is_null() {
            true => self.place,
            false => self.own.as_mut_ptr().cast(),
        }
    }

    /// Copies as much as fits to the program, and the length, if that was asked for.
    ///
    /// # Safety
    /// `length` must be null or writable.
    pub unsafe fn give(&self, length: *mut i32, code: i32) {
        if code != 0 || self.place.is_null() {
            return;
        }
        let all = self.own.split(|byte| *byte == 0).next().unwrap_or(&[]);
        let given = all.len().min(self.room.saturating_sub(1));
        // SAFETY: the program's place has `room` bytes, as the caller of `text` said, and `given` is less; `length` is null or can be written to.
        unsafe {
            self.place.cast::<u8>().copy_from(all.as_ptr(), given);
            self.place.add(given).write(0);
            if !length.is_null() {
                *length = given as i32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_where_the_programs_room_does() {
        let mut place = [7 as c_char; 8];
        let mut length = -1;
        // SAFETY: the place has eight bytes, of which four are said to be room, and the text's own place has more than seven.
        unsafe {
            let mut own = text(place.as_mut_ptr(), |_| 4);
            own.place().copy_from(c"longer".as_ptr(), 7);
            own.give(&raw mut length, 0);
        }
        let expected = [b'l', b'o', b'n', 0, 7, 7, 7, 7].map(|byte| byte as c_char);
        assert_eq!((place, length), (expected, 3));
    }
}
