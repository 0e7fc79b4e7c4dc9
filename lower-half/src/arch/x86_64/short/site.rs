//! The code that makes a call, the code that replaces it, and the code that leads from there to the short way. Pure.

use super::ANY_NUMBER;
use crate::arch::layout::SHORT_WAY;

/// Bytes of an instruction and `syscall`, of which the first five become a jump.
pub const SITE: usize = 7;
/// Bytes of that jump.
pub const JUMP: usize = 5;
/// The size of one call's part of an island.
pub const STONE: usize = 32;

/// The call that a place in the application's code makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makes {
    /// `mov eax, NUMBER; syscall`: that call.
    Number(u32),
    /// `mov r9, [rsp + 8]; syscall`, the end of the C library's `syscall`: any call.
    Any,
}

/// The number of bytes before such code that identify it.
pub const BEFORE: usize = OTHER_ARGUMENTS.len();
/// The C library's `syscall` from its beginning: `mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; mov r8, r9`
const OTHER_ARGUMENTS: [u8; 18] = [
    0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x4d,
    0x89, 0xc8,
];
/// `mov r9, [rsp + 8]`
const LAST_ARGUMENT: [u8; JUMP] = [0x4c, 0x8b, 0x4c, 0x24, 0x08];

/// Returns the code that leads from a call to the short way: `behind` is the address behind its `syscall`. The code contains the instruction that the jump
/// replaces.
pub fn stone(makes: Makes, behind: usize) -> [u8; STONE] {
    let mut code = [0xcc; STONE];
    let (first, way) = match makes {
        Makes::Number(number) => {
            let [a, b, c, d] = number.to_le_bytes();
            ([0xb8, a, b, c, d], SHORT_WAY) // mov eax, imm32
        }
        Makes::Any => (LAST_ARGUMENT, SHORT_WAY + ANY_NUMBER),
    };
    let parts: [&[u8]; 5] = [
        &[0x48, 0xb9], // mov rcx, imm64
        &(behind as u64).to_le_bytes(),
        &first,
        &[0x49, 0xbb], // mov r11, imm64
        &(way as u64).to_le_bytes(),
    ];
    let jump: &[u8] = &[0x41, 0xff, 0xe3]; // jmp r11
    let bytes = parts.into_iter().chain([jump]).flatten();
    for (place, byte) in code.iter_mut().zip(bytes) {
        *place = *byte;
    }
    code
}

/// Returns the jump that replaces the instruction at `from`, or `None` if `to` is too far away.
pub fn jump(from: usize, to: usize) -> Option<[u8; JUMP]> {
    let distance = to.wrapping_sub(from + JUMP) as isize;
    let [a, b, c, d] = i32::try_from(distance).ok()?.to_le_bytes();
    Some([0xe9, a, b, c, d])
}

/// Returns the call that this code makes, if the code is known and not the end of a longer instruction; `before` holds the bytes before it, [`BEFORE`] of them
/// if possible.
pub fn makes(before: &[u8], code: [u8; SITE]) -> Option<Makes> {
    match code {
        [0xb8, a, b, c, d, 0x0f, 0x05] => {
            // A prefix, or the first byte of another operation.
            let longer = matches!(before.last()?, 0x40..=0x4f | 0x0f | 0x66 | 0x67);
            (!longer).then_some(Makes::Number(u32::from_le_bytes([a, b, c, d])))
        }
        [first @ .., 0x0f, 0x05] if first == LAST_ARGUMENT && before == OTHER_ARGUMENTS => {
            Some(Makes::Any)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stone_leads_here_with_number_and_way_back() {
        let stone = stone(Makes::Number(0x101), 0x5531_0180_1234);
        let word = |at: usize| u64::from_le_bytes(stone[at..at + 8].try_into().unwrap());
        assert_eq!(word(2), 0x5531_0180_1234);
        assert_eq!(stone[10..15], [0xb8, 1, 1, 0, 0]);
        assert_eq!(word(17), SHORT_WAY as u64);
        assert_eq!(stone[25..28], [0x41, 0xff, 0xe3]);
    }

    #[test]
    fn a_stone_of_any_call_loads_its_last_argument() {
        let stone = stone(Makes::Any, 0x5531_0180_1234);
        assert_eq!(stone[10..15], LAST_ARGUMENT);
        let way = u64::from_le_bytes(stone[17..25].try_into().unwrap());
        assert_eq!(way, (SHORT_WAY + ANY_NUMBER) as u64);
    }

    #[test]
    fn jumps_reach_two_gibibytes() {
        assert_eq!(jump(0x1000, 0x1005), Some([0xe9, 0, 0, 0, 0]));
        assert_eq!(jump(0x1000, 0xfff), Some([0xe9, 0xfa, 0xff, 0xff, 0xff]));
        assert!(jump(0, i32::MAX as usize + JUMP).is_some());
        assert!(jump(0, i32::MAX as usize + JUMP + 1).is_none());
    }

    #[test]
    fn only_a_whole_instruction_is_a_sites() {
        let code = [0xb8, 3, 0, 0, 0, 0x0f, 0x05];
        assert_eq!(makes(&[0x90], code), Some(Makes::Number(3)));
        assert_eq!(makes(&[], code), None);
        // mov r8d, 3; movabs rax; popcnt
        for before in [0x41, 0x48, 0x0f, 0x66] {
            assert_eq!(makes(&[before], code), None);
        }
        assert_eq!(makes(&[0x90], [0xb9, 3, 0, 0, 0, 0x0f, 0x05]), None);
        assert_eq!(makes(&[0x90], [0xb8, 3, 0, 0, 0, 0x0f, 0x34]), None);
    }

    #[test]
    fn this_machines_c_library_has_a_function_for_any_call() {
        let function = libc::syscall as *const () as *const [u8; BEFORE + SITE];
        // SAFETY: the address is a function's of the C library, which is longer than these bytes and never unmapped.
        let code = unsafe { function.read() };
        let (before, site) = code.split_at(BEFORE);
        assert_eq!(makes(before, site.try_into().unwrap()), Some(Makes::Any));
        assert_eq!(makes(&before[1..], site.try_into().unwrap()), None);
    }
}
