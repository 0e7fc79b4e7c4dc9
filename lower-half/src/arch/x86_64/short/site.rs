//! The code that makes a call, what it is changed to, and what leads from there to the short way. Pure.

use crate::arch::layout::SHORT_WAY;

/// Bytes of `mov eax, NUMBER; syscall`, of which the first five become a jump.
pub const SITE: usize = 7;
/// Bytes of that jump.
pub const JUMP: usize = 5;
/// Bytes of one call's part of an island.
pub const STONE: usize = 32;

/// What leads from a call's code here: `behind` is the address behind its `syscall`.
pub fn stone(number: u32, behind: usize) -> [u8; STONE] {
    let mut code = [0xcc; STONE];
    let parts: [&[u8]; 6] = [
        &[0x48, 0xb9], // mov rcx, imm64
        &(behind as u64).to_le_bytes(),
        &[0xb8], // mov eax, imm32
        &number.to_le_bytes(),
        &[0x49, 0xbb], // mov r11, imm64
        &(SHORT_WAY as u64).to_le_bytes(),
    ];
    let jump: &[u8] = &[0x41, 0xff, 0xe3]; // jmp r11
    let bytes = parts.into_iter().chain([jump]).flatten();
    for (place, byte) in code.iter_mut().zip(bytes) {
        *place = *byte;
    }
    code
}

/// The jump that takes the place of `mov eax, NUMBER` at `from`; `None` where `to` is too far away.
pub fn jump(from: usize, to: usize) -> Option<[u8; JUMP]> {
    let distance = to.wrapping_sub(from + JUMP) as isize;
    let [a, b, c, d] = i32::try_from(distance).ok()?.to_le_bytes();
    Some([0xe9, a, b, c, d])
}

/// The number of a call whose code is `mov eax, NUMBER; syscall` and not the end of a longer instruction; `before` is the byte in front of it.
pub fn number(before: u8, code: [u8; SITE]) -> Option<u32> {
    // A prefix, or the first byte of another operation.
    if matches!(before, 0x40..=0x4f | 0x0f | 0x66 | 0x67) {
        return None;
    }
    match code {
        [0xb8, a, b, c, d, 0x0f, 0x05] => Some(u32::from_le_bytes([a, b, c, d])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stone_leads_here_with_number_and_way_back() {
        let stone = stone(0x101, 0x5531_0180_1234);
        let word = |at: usize| u64::from_le_bytes(stone[at..at + 8].try_into().unwrap());
        assert_eq!(word(2), 0x5531_0180_1234);
        assert_eq!(stone[10..15], [0xb8, 1, 1, 0, 0]);
        assert_eq!(word(17), SHORT_WAY as u64);
        assert_eq!(stone[25..28], [0x41, 0xff, 0xe3]);
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
        assert_eq!(number(0x90, code), Some(3));
        // mov r8d, 3; movabs rax; popcnt
        for before in [0x41, 0x48, 0x0f, 0x66] {
            assert_eq!(number(before, code), None);
        }
        assert_eq!(number(0x90, [0xb9, 3, 0, 0, 0, 0x0f, 0x05]), None);
        assert_eq!(number(0x90, [0xb8, 3, 0, 0, 0, 0x0f, 0x34]), None);
    }
}
