//! The header of an ELF file. Its bytes may be invalid.
//!
//! No allocation and no panics: the trap's handler uses this too.

use libc::{Elf64_Ehdr, Elf64_Phdr};

use crate::arch::MACHINE;

const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
pub const PT_LOAD: u32 = 1;
pub const PT_INTERP: u32 = 3;
pub const PT_GNU_STACK: u32 = 0x6474_e551;

/// Why an ELF file cannot be run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    #[error("it is neither an ELF executable nor a script")]
    NotElf,
    #[error("it is built for another processor or word size; x86-64 is what runs here")]
    OtherMachine,
    #[error("it is an ELF file, but not an executable")]
    NotExecutable,
    #[error("its program headers are damaged")]
    Damaged,
    #[error(
        "it is statically linked; link it dynamically, so that its MPI calls can be taken over"
    )]
    Static,
}

/// The part of a header that the loader needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Loaded at its own addresses (not position-independent).
    pub fixed: bool,
    pub entry: usize,
    pub segments_at: usize,
    pub segments: usize,
}

fn read<T: Copy>(bytes: &[u8], at: usize) -> Option<T> {
    let end = at.checked_add(size_of::<T>())?;
    let bytes = bytes.get(at..end)?;
    // SAFETY: the slice holds as many bytes as the type, and the ELF types are plain integers.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Reads the file's header.
pub fn header(head: &[u8]) -> Result<Header, ElfError> {
    if !head.starts_with(b"\x7fELF") {
        return Err(ElfError::NotElf);
    }
    let header: Elf64_Ehdr = read(head, 0).ok_or(ElfError::Damaged)?;
    // Class 2: 64 bits; data 1: little-endian.
    if head.get(4..6) != Some(&[2, 1]) || header.e_machine != MACHINE {
        return Err(ElfError::OtherMachine);
    }
    let fixed = match header.e_type {
        ET_EXEC => true,
        ET_DYN => false,
        _ => return Err(ElfError::NotExecutable),
    };
    if usize::from(header.e_phentsize) != size_of::<Elf64_Phdr>() || header.e_phnum == 0 {
        return Err(ElfError::Damaged);
    }
    Ok(Header {
        fixed,
        entry: header.e_entry as usize,
        segments_at: header.e_phoff as usize,
        segments: usize::from(header.e_phnum),
    })
}

/// Returns the program header with this index; `bytes` is the file from its start.
pub fn segment(bytes: &[u8], header: &Header, index: usize) -> Option<Elf64_Phdr> {
    let at = header
        .segments_at
        .checked_add(index.checked_mul(size_of::<Elf64_Phdr>())?)?;
    (index < header.segments).then(|| read(bytes, at)).flatten()
}

/// Whether these first bytes of a file are those of an executable with an interpreter (`ld.so`).
pub fn is_dynamic(head: &[u8]) -> bool {
    let Ok(header) = header(head) else {
        return false;
    };
    (0..header.segments).any(|index| {
        segment(head, &header, index).is_some_and(|segment| segment.p_type == PT_INTERP)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()
    }

    #[test]
    fn a_dynamic_executable_is_known() {
        assert!(is_dynamic(&own()[..1024]));
    }

    #[test]
    fn what_is_no_executable_is_told_apart() {
        assert_eq!(header(b"#!/bin/sh\n"), Err(ElfError::NotElf));
        assert_eq!(header(b"\x7fELF"), Err(ElfError::Damaged));
        let mut other = own();
        other[18] = 183;
        assert_eq!(header(&other), Err(ElfError::OtherMachine));
        let mut object = own();
        object[16] = 1;
        assert_eq!(header(&object), Err(ElfError::NotExecutable));
    }

    #[test]
    fn a_cut_or_damaged_head_is_never_read_past_its_end() {
        let own = own();
        for length in 0..1024 {
            is_dynamic(&own[..length]);
        }
        for at in 0..64 {
            let mut damaged = own[..1024].to_vec();
            damaged[at] ^= 0xff;
            is_dynamic(&damaged);
        }
    }
}
