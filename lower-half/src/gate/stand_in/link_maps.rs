//! The application's loader's own list of loaded libraries. It knows a file by device and inode, which lie side by side in the entry of the library
//! (`struct link_map`, behind the part that `link.h` shows).
//!
//! Rules of this place: runs in the trap's handler of the loader's own call, so no other thread changes the list: the loader holds its lock. All of it is read
//! as the application's memory.

use core::ops::Range;

use crate::gate::user;

/// Words of an entry in which device and inode are looked for; glibc's entries have about 150.
const ENTRY: usize = 160;
/// The most entries that are followed.
const MOST: usize = 1 << 14;
/// The place of the next entry in one.
const NEXT: usize = 3;
/// The place of the first entry in `struct r_debug`.
const FIRST: usize = 1;

const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_HASH: usize = 4;

/// Has the loader know the library that it knows by `before` by `now` instead. Returns whether it has such a library.
pub fn know(loader: Range<usize>, before: [u64; 2], now: [u64; 2]) -> bool {
    let place = debug(&loader).and_then(|debug| place_of(debug, before));
    place.is_some_and(|place| user::write(place, now.map(|word| word as usize)).is_ok())
}

/// Returns the address of the two words.
fn place_of(debug: usize, known: [u64; 2]) -> Option<usize> {
    let known = known.map(|word| word as usize);
    let mut entry = word(debug.checked_add(8 * FIRST)?)?;
    for _ in 0..MOST {
        if entry == 0 {
            return None;
        }
        for index in 0..ENTRY {
            let place = entry.checked_add(8 * index)?;
            let Ok(pair) = user::read::<[usize; 2]>(place) else {
                break;
            };
            if pair == known {
                return Some(place);
            }
        }
        entry = word(entry.checked_add(8 * NEXT)?)?;
    }
    None
}

/// Returns the address of the loader's `_r_debug`, by the table of names that it has in memory.
fn debug(loader: &Range<usize>) -> Option<usize> {
    let base = loader.start;
    let at = |offset: usize| base.checked_add(offset);
    let segments = word(at(32)?)?;
    let count = word(at(56)?)? & 0xffff;
    let dynamic = (0..count).find_map(|index| {
        let header = at(segments.checked_add(56 * index)?)?;
        (word(header)? as u32 == PT_DYNAMIC).then(|| word(header.checked_add(16)?))?
    })?;
    let (mut strings, mut symbols, mut hash) = (None, None, None);
    for index in 0..128 {
        let [tag, value] = user::read::<[usize; 2]>(at(dynamic)?.checked_add(16 * index)?).ok()?;
        // The loader has made addresses of the offsets, or has not.
        let address = if loader.contains(&value) {
            Some(value)
        } else {
            at(value)
        };
        match tag {
            0 => break,
            DT_STRTAB => strings = address,
            DT_SYMTAB => symbols = address,
            DT_HASH => hash = address,
            _ => {}
        }
    }
    let (strings, symbols) = (strings?, symbols?);
    // The second word of the old hash table is the number of names; without that table, names lie before their strings.
    let count = match hash {
        Some(hash) => word(hash)? >> 32,
        None => strings.checked_sub(symbols)? / 24,
    };
    (0..count.min(MOST)).find_map(|index| {
        let symbol = symbols.checked_add(24 * index)?;
        let name = strings.checked_add(word(symbol)? as u32 as usize)?;
        let is_it = user::begins(name, b"_r_debug\0", &mut { user::NO_PAGE }) == Some(true);
        is_it.then(|| at(word(symbol.checked_add(8)?)?))?
    })
}

fn word(address: usize) -> Option<usize> {
    let [word] = user::read::<[usize; 1]>(address).ok()?;
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_this_process_says_what_it_has_loaded() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let of = |name: &str| -> Vec<(usize, usize)> {
            let lines = maps.lines().filter(|line| line.contains(name));
            lines
                .map(|line| {
                    let (start, rest) = line.split_once('-').unwrap();
                    let end = rest.split_once(' ').unwrap().0;
                    let hex = |text| usize::from_str_radix(text, 16).unwrap();
                    (hex(start), hex(end))
                })
                .collect()
        };
        let linker = of("/ld-linux");
        let linker = linker[0].0..linker.last().unwrap().1;
        let path = maps.lines().find(|line| line.contains("/libc.so")).unwrap();
        let about = std::fs::metadata(&path[path.find('/').unwrap()..]).unwrap();
        use std::os::unix::fs::MetadataExt;
        let libc = [about.dev(), about.ino()];
        let debug = debug(&linker).unwrap();
        assert!(place_of(debug, libc).is_some());
        assert_eq!(place_of(debug, [libc[0], u64::MAX]), None);
        assert!(!know(linker, [libc[0], u64::MAX], libc));
    }
}
