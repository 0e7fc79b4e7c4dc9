//! How a dynamic loader saves the processor's registers while it looks up a function that is called for the first time.
//!
//! glibc's loader reserves stack space for the registers of the processor that it was started on, and keeps that number. On a processor with more registers it
//! writes past that space, over its own arguments. So a program that continues there needs another number.
//!
//! ```text
//! and  rsp, -64
//! sub  rsp, [rip + the number]
//! xsavec ...
//! ```

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};

use memchr::memmem;

/// `and rsp, -64; sub rsp, [rip + ...]`, up to the distance.
const TAKES_ROOM: [u8; 7] = [0x48, 0x83, 0xe4, 0xc0, 0x48, 0x2b, 0x25];
/// The legacy part of the registers, the header behind it, and the data that loaders put below (`STATE_SAVE_OFFSET`, at most).
const BEFORE: u64 = 512 + 64 + 256;
/// The components behind the legacy part that loaders save: all except the tiles (`arch_prctl(2)`).
const COMPONENTS: [core::ops::Range<u32>; 2] = [2..17, 19..20];
/// The alignment of saved registers.
const LINE: u64 = 64;

/// Returns the addresses of the sizes that the code at this address subtracts from its stack pointer in this way.
pub fn numbers(code: &[u8], address: u64) -> Vec<u64> {
    let found = memmem::find_iter(code, &TAKES_ROOM).filter_map(|offset| {
        let at = offset + TAKES_ROOM.len();
        let distance = code.get(at..)?.first_chunk::<4>()?;
        let behind = address + (at + distance.len()) as u64;
        Some(behind.wrapping_add_signed(i64::from(i32::from_le_bytes(*distance))))
    });
    let mut found: Vec<u64> = found.collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the bytes that this processor's registers need in any format, or `None` if there is only the legacy part.
pub fn room_for_registers() -> Option<u64> {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return None;
    }
    let (low, high): (u32, u32);
    // SAFETY: the kernel has enabled it, as the flag says.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack))
    };
    let enabled = u64::from(high) << 32 | u64::from(low);
    let (mut compact, mut far) = (BEFORE, BEFORE);
    for component in COMPONENTS.into_iter().flatten() {
        if enabled >> component & 1 != 0 {
            let leaf = __cpuid_count(13, component);
            let (size, offset) = (u64::from(leaf.eax), u64::from(leaf.ebx));
            compact = compact.next_multiple_of(LINE) + size;
            far = far.max(BEFORE + offset + size);
        }
    }
    Some(compact.max(far).next_multiple_of(LINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_behind_and_before_the_code() {
        let mut code = vec![0x90u8; 64];
        code[8..15].copy_from_slice(&TAKES_ROOM);
        code[15..19].copy_from_slice(&0x100i32.to_le_bytes());
        code[30..37].copy_from_slice(&TAKES_ROOM);
        code[37..41].copy_from_slice(&(-0x20i32).to_le_bytes());
        assert_eq!(
            numbers(&code, 0x1000),
            [0x1000 + 41 - 0x20, 0x1000 + 19 + 0x100]
        );
        assert!(numbers(&code[..16], 0x1000).is_empty(), "cut off");
    }

    #[test]
    fn this_machine_s_loader_has_such_numbers_which_suffice_here() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let loader = |line: &&str| line.contains("ld-linux") && line.contains(" r-xp ");
        let Some(line) = maps.lines().find(loader) else {
            // Linked without a loader, or with another libc's.
            return;
        };
        let (range, _) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let parse = |text| usize::from_str_radix(text, 16).unwrap();
        let (start, end) = (parse(start), parse(end));
        // SAFETY: the line shows this range mapped and readable, and the loader is never unmapped.
        let code = unsafe { std::slice::from_raw_parts(start as *const u8, end - start) };
        let found = numbers(code, start as u64);
        assert!(!found.is_empty(), "{line}");
        for address in found {
            // SAFETY: the loader's code refers to this word of its data, which is never unmapped.
            let number = unsafe { (address as *const u64).read() };
            let room = room_for_registers().unwrap();
            assert!(number >= 512 && number <= room, "{number}, {room}");
        }
    }
}
