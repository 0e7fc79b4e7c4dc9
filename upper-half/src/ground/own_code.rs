//! The addresses of this library's code, according to its own program headers.

use core::ops::Range;

use libc::{Elf64_Ehdr, Elf64_Phdr, PF_X, PT_LOAD};

unsafe extern "C" {
    /// The library's beginning, by the linker.
    #[link_name = "__ehdr_start"]
    static HEADER: Elf64_Ehdr;
}

/// All of it: first address, and first one past it.
pub fn range() -> Range<usize> {
    let start = (&raw const HEADER).addr();
    // SAFETY: the loader maps the headers with the library's first segment, and no code changes them.
    let headers = unsafe {
        let header = &HEADER;
        let first = (&raw const HEADER)
            .byte_add(header.e_phoff as usize)
            .cast::<Elf64_Phdr>();
        core::slice::from_raw_parts(first, header.e_phnum.into())
    };
    let code = headers
        .iter()
        .filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0)
        .map(|segment| {
            let first = start + segment.p_vaddr as usize;
            first..first + segment.p_memsz as usize
        });
    code.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))
        .unwrap_or(0..0)
}
