//! The functions that a library of this process imports, as the dynamic linker has bound them. The library calls each through a word of its memory; a function
//! that is put into that word is called by this library alone.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::{IMPORTS, PAGE};

// `elf.h`.
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NULL: usize = 0;
const DT_PLTRELSZ: usize = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;
const DT_JMPREL: usize = 23;

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: usize,
    kind: u32,
    symbol: u32,
    addend: isize,
}

/// The words through which a library calls a function.
pub struct Import {
    words: Vec<&'static AtomicUsize>,
}

impl Import {
    /// Finds the words through which the library that contains `inside`, and stays loaded, calls the function of that name. Memory that the linker has
    /// write-protected is made writable, permanently.
    pub fn find(inside: *const (), name: &CStr) -> Option<Self> {
        let library = Library::with(inside.addr())?;
        let words: Vec<_> = library
            .relocations()
            .filter(|it| IMPORTS.contains(&it.kind) && library.name_of(it.symbol) == Some(name))
            .map(|it| ptr::with_exposed_provenance(library.base.wrapping_add(it.offset)))
            .collect();
        let opened = words.iter().all(|word| open(*word));
        // SAFETY: each word is aligned data of a library that stays loaded, and everything that changes it is one atomic write.
        let words: Vec<_> = words.into_iter().map(|word| unsafe { &*word }).collect();
        (opened && !words.is_empty()).then_some(Self { words })
    }

    /// Returns the function that is called now.
    pub fn leads_to(&self) -> usize {
        self.words
            .first()
            .map_or(0, |word| word.load(Ordering::SeqCst))
    }

    /// Has this function called from now on.
    ///
    /// # Safety
    /// It must have the same type.
    pub unsafe fn lead_to(&self, function: usize) {
        for word in &self.words {
            word.store(function, Ordering::SeqCst);
        }
    }
}

/// Makes the page of a library's word writable.
fn open(word: *const AtomicUsize) -> bool {
    let page = word.cast_mut().map_addr(|at| at & !(PAGE - 1));
    // SAFETY: the page holds data of a library, which stays readable and becomes writable.
    unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// A library at its address in memory.
struct Library {
    /// An address of its code or data.
    inside: usize,
    base: usize,
    dynamic: usize,
}

impl Library {
    fn with(inside: usize) -> Option<Self> {
        let mut library = Self {
            inside,
            base: 0,
            dynamic: 0,
        };
        // SAFETY: `look` takes the structure that it is given here, which lives on this stack until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut library).cast()) };
        (library.dynamic != 0).then_some(library)
    }

    /// Returns the value of an entry of its dynamic section; the linker has relocated addresses.
    fn entry(&self, wanted: usize) -> Option<usize> {
        let mut entry = ptr::with_exposed_provenance::<[usize; 2]>(self.dynamic);
        loop {
            // SAFETY: the linker has mapped the section, and this does not read past the entry that ends it.
            let [tag, value] = unsafe { entry.read() };
            match tag {
                DT_NULL => return None,
                _ if tag == wanted => return Some(value),
                // SAFETY: this entry does not end the section, so another one follows.
                _ => entry = unsafe { entry.add(1) },
            }
        }
    }

    fn relocations(&self) -> impl Iterator<Item = &Relocation> {
        let tables = [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)];
        tables.into_iter().flat_map(|(table, bytes)| {
            let (Some(at), Some(bytes)) = (self.entry(table), self.entry(bytes)) else {
                return &[] as &[Relocation];
            };
            // SAFETY: the dynamic section gives this table's address and length, and the library stays loaded.
            unsafe {
                slice::from_raw_parts(
                    ptr::with_exposed_provenance(at),
                    bytes / size_of::<Relocation>(),
                )
            }
        })
    }

    fn name_of(&self, symbol: u32) -> Option<&CStr> {
        let symbols = ptr::with_exposed_provenance::<libc::Elf64_Sym>(self.entry(DT_SYMTAB)?);
        let names = ptr::with_exposed_provenance::<c_char>(self.entry(DT_STRTAB)?);
        // SAFETY: a relocation's symbol is in the symbol table, and that symbol's name is a text that ends in NUL in the string table.
        unsafe {
            let symbol = symbols.add(symbol as usize).read();
            Some(CStr::from_ptr(names.add(symbol.st_name as usize)))
        }
    }
}

/// Called for each library; stops at the one that contains the address.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, library: *mut c_void) -> c_int {
    // SAFETY: the linker gives a structure that is alive during this call, and `library` is what `with` gave, which waits.
    let (info, library) = unsafe { (&*info, &mut *library.cast::<Library>()) };
    // SAFETY: the linker gives the library's own headers, as many as it says.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let of = |kind: u32| {
        let headers = headers.iter().filter(move |header| header.p_type == kind);
        headers.map(|header| {
            let start = base.wrapping_add(header.p_vaddr as usize);
            start..start.wrapping_add(header.p_memsz as usize)
        })
    };
    if !of(PT_LOAD).any(|range| range.contains(&library.inside)) {
        return 0;
    }
    library.base = base;
    library.dynamic = of(PT_DYNAMIC).next().map_or(0, |range| range.start);
    1
}
