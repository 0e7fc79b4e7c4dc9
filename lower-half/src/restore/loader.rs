//! Adapts the application's dynamic loader to another processor: what it found out about the first processor must be true here.

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use stillpoint_image::{Reader, Region};

use super::RestoreError;
use crate::arch::lazy;

/// Register sizes that are plausible.
const BELIEVED: Range<u64> = 512..1 << 16;

/// Gives the loader as much space for registers as this processor needs. The loader's memory must be in place.
pub fn make_room(reader: &Reader) -> Result<(), RestoreError> {
    let Some(room) = lazy::room_for_registers() else {
        return Ok(());
    };
    let numbers: Vec<u64> = loaders_code(reader.regions())
        .into_iter()
        .flat_map(|range| {
            // SAFETY: the caller says that the loader's memory is in place: these regions of its code are mapped and readable.
            let code = unsafe {
                let start = std::ptr::with_exposed_provenance::<u8>(range.start as usize);
                std::slice::from_raw_parts(start, (range.end - range.start) as usize)
            };
            lazy::numbers(code, range.start)
        })
        .filter(|address| is_mapped(reader, *address))
        .collect();
    widen(&numbers, room).map_err(|source| RestoreError::System {
        what: "cannot set this processor's register sizes in the program's dynamic loader"
            .to_owned(),
        source,
    })
}

/// Raises the numbers to that size, unless they are larger. They lie where the loader has write-protected its memory.
fn widen(numbers: &[u64], room: u64) -> io::Result<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/proc/self/mem")?;
    for &address in numbers {
        let mut number = [0; 8];
        memory.read_exact_at(&mut number, address)?;
        let before = u64::from_le_bytes(number);
        if BELIEVED.contains(&before) && before < room {
            memory.write_all_at(&room.to_le_bytes(), address)?;
        }
    }
    Ok(())
}

/// Returns the ranges of the loader's code. Neighbouring regions, which exist because the gate changed a page between them, are joined.
fn loaders_code(regions: &[Region]) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = vec![];
    for region in regions.iter().filter(|it| is_loaders_code(it)) {
        match found.last_mut() {
            Some(last) if last.end == region.start => last.end = region.end,
            _ => found.push(region.start..region.end),
        }
    }
    found
}

fn is_loaders_code(region: &Region) -> bool {
    let executable = libc::PROT_READ | libc::PROT_EXEC;
    let name = Path::new(&region.name).file_name();
    let name = name.map_or(String::new(), |name| name.to_string_lossy().into_owned());
    region.protection as i32 & executable == executable
        && name.starts_with("ld")
        && name.contains(".so")
}

fn is_mapped(reader: &Reader, address: u64) -> bool {
    let mut regions = reader.regions().iter();
    regions.any(|region| region.start <= address && address + 8 <= region.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_grows_and_never_shrinks() {
        let numbers = [1024u64, 4096, 3];
        let addresses: Vec<u64> = numbers
            .iter()
            .map(|it| std::ptr::from_ref(it).expose_provenance() as u64)
            .collect();
        widen(&addresses, 2048).unwrap();
        // SAFETY: the number is alive (a reference); the kernel has changed it behind the compiler's back, so it is read volatile.
        let now: Vec<u64> = numbers
            .iter()
            .map(|it| unsafe { std::ptr::from_ref(it).read_volatile() })
            .collect();
        assert_eq!(now, [2048, 4096, 3]);
    }
}
