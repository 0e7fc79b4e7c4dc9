//! The libraries that an executable's file needs (`DT_NEEDED`), in its order. The file's bytes may be invalid.

use std::fs::File;
use std::os::unix::fs::FileExt;

use libc::Elf64_Phdr;

use crate::ground::elf::PT_LOAD;

const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
/// The largest number of entries, and the longest name: more than any linker writes.
const MOST_ENTRIES: usize = 4096;
const LONGEST: usize = 1024;

/// Returns the names; none if the file's dynamic section cannot be read.
pub fn libraries(file: &File, segments: &[Elf64_Phdr]) -> Vec<String> {
    read(file, segments).unwrap_or_default()
}

fn read(file: &File, segments: &[Elf64_Phdr]) -> Option<Vec<String>> {
    let dynamic = segments
        .iter()
        .find(|segment| segment.p_type == PT_DYNAMIC)?;
    let mut bytes = vec![0; (dynamic.p_filesz as usize).min(16 * MOST_ENTRIES)];
    file.read_exact_at(&mut bytes, dynamic.p_offset).ok()?;
    let (words, _) = bytes.as_chunks::<8>();
    let (entries, _) = words.as_chunks::<2>();
    let entries = entries
        .iter()
        .map(|[tag, value]| (u64::from_le_bytes(*tag), u64::from_le_bytes(*value)))
        .take_while(|(tag, _)| *tag != 0);
    let strings = entries.clone().find(|(tag, _)| *tag == DT_STRTAB)?.1;
    let strings = in_file(segments, strings)?;
    let names = entries.filter(|(tag, _)| *tag == DT_NEEDED);
    names
        .map(|(_, at)| text(file, strings.checked_add(at)?))
        .collect()
}

/// Returns the offset in the file of the data that is loaded at this address.
fn in_file(segments: &[Elf64_Phdr], address: u64) -> Option<u64> {
    let loads = segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    loads.into_iter().find_map(|load| {
        let within = address.checked_sub(load.p_vaddr)?;
        (within < load.p_filesz).then(|| load.p_offset.checked_add(within))?
    })
}

fn text(file: &File, at: u64) -> Option<String> {
    let mut bytes = vec![0; LONGEST];
    let read = file.read_at(&mut bytes, at).ok()?;
    let name = bytes.get(..read)?.split(|byte| *byte == 0).next()?;
    String::from_utf8(name.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::elf;

    #[test]
    fn this_program_needs_the_c_library() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let header = elf::header(&bytes).unwrap();
        let segments: Vec<Elf64_Phdr> = (0..header.segments)
            .map(|index| elf::segment(&bytes, &header, index).unwrap())
            .collect();
        let file = File::open("/proc/self/exe").unwrap();
        let found = libraries(&file, &segments);
        assert!(found.iter().any(|name| name == "libc.so.6"), "{found:?}");
        let cut = File::open("/dev/null").unwrap();
        assert!(libraries(&cut, &segments).is_empty());
    }
}
