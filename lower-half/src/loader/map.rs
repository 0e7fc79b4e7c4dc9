//! Maps an executable, or its interpreter, as the kernel's own loader would, but into the arena.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use libc::Elf64_Phdr;
use stillpoint_refusals::{Code, Coded};
use stillpoint_wrappers::gate::LOW_END;

use super::needed;
use crate::arch::PAGE;
use crate::arch::syscall::failed;
use crate::gate::filter::HIGH_TEXT;
use crate::gate::memory;
use crate::ground::elf::{self, ElfError, Header, PT_GNU_STACK, PT_INTERP, PT_LOAD};

/// The reasons why a file could not be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    #[error(transparent)]
    Elf(#[from] ElfError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "its fixed addresses, {0:#x} to {1:#x}, are taken or not below {LOW_END:#x}; link it as a \
         position-independent executable"
    )]
    Addresses(usize, usize),
}

impl Coded for MapError {
    fn code(&self) -> Code {
        match self {
            MapError::Elf(ElfError::Static) => Code::StaticProgram,
            MapError::Elf(ElfError::NotElf | ElfError::NotExecutable) => Code::NoProgram,
            MapError::Elf(ElfError::OtherMachine | ElfError::Damaged) | MapError::Addresses(..) => {
                Code::WrongProgram
            }
            MapError::Io(_) => Code::NoProgram,
        }
    }
}

/// A mapped file.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// The number that was added to the file's own addresses.
    pub base: usize,
    /// The end of its addresses in memory.
    pub end: usize,
    pub entry: usize,
    /// The address of the program headers in memory, and their number.
    pub segments: usize,
    pub segment_count: usize,
    pub interpreter: Option<String>,
    /// The libraries that the file names.
    pub needed: Vec<String>,
    pub executable_stack: bool,
    /// Text at low addresses that itself makes system calls.
    pub low_text: Option<(u32, u32)>,
}

/// The file's program headers.
fn segments(file: &File, header: &Header) -> Result<Vec<Elf64_Phdr>, MapError> {
    let mut bytes = vec![0; header.segments * size_of::<Elf64_Phdr>()];
    file.read_exact_at(&mut bytes, header.segments_at as u64)
        .map_err(|_| ElfError::Damaged)?;
    let local = Header {
        segments_at: 0,
        ..*header
    };
    let segments = (0..header.segments).map(|index| elf::segment(&bytes, &local, index));
    Ok(segments.collect::<Option<_>>().ok_or(ElfError::Damaged)?)
}

fn head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; 64];
    let bytes = file.read_at(&mut head, 0)?;
    head.truncate(bytes);
    Ok(head)
}

/// The interpreter that the executable names, if it names one.
fn interpreter(file: &File, segments: &[Elf64_Phdr]) -> Result<Option<String>, MapError> {
    let Some(segment) = segments.iter().find(|segment| segment.p_type == PT_INTERP) else {
        return Ok(None);
    };
    if segment.p_filesz == 0 || segment.p_filesz > PAGE as u64 {
        return Err(ElfError::Damaged.into());
    }
    let mut path = vec![0; segment.p_filesz as usize];
    file.read_exact_at(&mut path, segment.p_offset)
        .map_err(|_| ElfError::Damaged)?;
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Some(
        String::from_utf8(path.to_vec()).map_err(|_| ElfError::Damaged)?,
    ))
}

const fn down(value: usize) -> usize {
    value & !(PAGE - 1)
}

const fn up(value: usize) -> usize {
    value.wrapping_add(PAGE - 1) & !(PAGE - 1)
}

/// Maps a file. A position-independent one goes to `wanted`, or to any free place if that is `None`.
pub fn map(file: &File, wanted: Option<usize>) -> Result<Mapped, MapError> {
    let header = elf::header(&head(file)?)?;
    let segments = segments(file, &header)?;
    let loads: Vec<&Elf64_Phdr> = segments
        .iter()
        .filter(|segment| segment.p_type == PT_LOAD)
        .collect();
    // Memory behind a file's end can be mapped, but reading it is a SIGBUS.
    let bytes = file.metadata()?.len();
    let whole = |load: &&Elf64_Phdr| {
        let end = load.p_offset.checked_add(load.p_filesz);
        end.is_some_and(|end| end <= bytes)
    };
    if !loads.iter().all(whole) {
        return Err(ElfError::Damaged.into());
    }
    let low = loads
        .iter()
        .map(|load| down(load.p_vaddr as usize))
        .min()
        .ok_or(ElfError::Damaged)?;
    let high = loads
        .iter()
        .map(|load| {
            load.p_vaddr
                .checked_add(load.p_memsz)
                .map(|end| up(end as usize))
        })
        .try_fold(0, |most, end| end.map(|end| most.max(end)))
        .filter(|high| *high > low && *high - low < 1 << 40)
        .ok_or(ElfError::Damaged)?;
    let base = reserve(&header, &loads, low, high, wanted)?;
    for load in &loads {
        map_segment(file, load, base)?;
    }
    let below = |load: &&&Elf64_Phdr| load.p_vaddr < HIGH_TEXT as u64;
    let text = loads
        .iter()
        .filter(|load| load.p_flags & libc::PF_X != 0)
        .filter(below);
    let calls_itself = header.fixed && text.clone().any(|load| has_system_call(file, base, load));
    let low_text = calls_itself.then(|| {
        let starts = text
            .clone()
            .map(|load| load.p_vaddr as u32)
            .min()
            .unwrap_or(0);
        let ends = text
            .map(|load| (load.p_vaddr + load.p_memsz).min(u32::MAX.into()) as u32)
            .max()
            .unwrap_or(0);
        (starts, ends)
    });
    // The headers are in memory where a segment holds that part of the file.
    let at = loads
        .iter()
        .find(|load| {
            let end = (load.p_offset + load.p_filesz) as usize;
            (load.p_offset as usize..end).contains(&header.segments_at)
        })
        .map(|load| base + load.p_vaddr as usize + header.segments_at - load.p_offset as usize)
        .ok_or(ElfError::Damaged)?;
    let stack = segments
        .iter()
        .find(|segment| segment.p_type == PT_GNU_STACK);
    Ok(Mapped {
        base,
        end: base.wrapping_add(high),
        entry: base.wrapping_add(header.entry),
        segments: at,
        segment_count: header.segments,
        interpreter: interpreter(file, &segments)?,
        needed: needed::libraries(file, &segments),
        executable_stack: stack.is_none_or(|segment| segment.p_flags & libc::PF_X != 0),
        low_text,
    })
}

/// Reserves the addresses from `low` to `high` (the file's own) and returns the number to be added to them.
fn reserve(
    header: &Header,
    loads: &[&Elf64_Phdr],
    low: usize,
    high: usize,
    wanted: Option<usize>,
) -> Result<usize, MapError> {
    let bytes = high - low;
    let fixed = |address| {
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        memory::mmap(
            address,
            bytes,
            libc::PROT_NONE as usize,
            flags as usize,
            usize::MAX,
            0,
        )
    };
    if header.fixed {
        if high > LOW_END || failed(fixed(low)) {
            return Err(MapError::Addresses(low, high));
        }
        return Ok(0);
    }
    let alignment = loads
        .iter()
        .map(|load| load.p_align as usize)
        .max()
        .unwrap_or(PAGE);
    let alignment = if alignment.is_power_of_two() {
        alignment.max(PAGE)
    } else {
        PAGE
    };
    let start = match wanted {
        Some(address) => fixed(address.next_multiple_of(alignment)),
        None => memory::reserve(bytes, alignment),
    };
    if failed(start) {
        return Err(io::Error::from_raw_os_error(-start as i32).into());
    }
    Ok((start as usize).wrapping_sub(low))
}

fn protection(load: &Elf64_Phdr) -> usize {
    let has = |flag, protection| {
        if load.p_flags & flag != 0 {
            protection
        } else {
            0
        }
    };
    (has(libc::PF_R, libc::PROT_READ)
        | has(libc::PF_W, libc::PROT_WRITE)
        | has(libc::PF_X, libc::PROT_EXEC)) as usize
}

fn map_segment(file: &File, load: &Elf64_Phdr, base: usize) -> Result<(), MapError> {
    let address = base.wrapping_add(load.p_vaddr as usize);
    let start = down(address);
    let in_file = address.wrapping_add(load.p_filesz as usize);
    let end = up(address.wrapping_add(load.p_memsz as usize));
    let offset = (load.p_offset as usize).wrapping_sub(address - start);
    if load.p_filesz > load.p_memsz || !offset.is_multiple_of(PAGE) {
        return Err(ElfError::Damaged.into());
    }
    let protection = protection(load);
    let map = |from: usize, to: usize, flags: i32, fd: usize, offset: usize| {
        let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED | flags) as usize;
        let result = memory::mmap(from, to - from, protection, flags, fd, offset);
        if failed(result) {
            Err(io::Error::from_raw_os_error(-result as i32))
        } else {
            Ok(())
        }
    };
    let file_end = up(in_file);
    if load.p_filesz > 0 {
        map(start, file_end, 0, file.as_raw_fd() as usize, offset)?;
    }
    let file_end = if load.p_filesz > 0 { file_end } else { start };
    if load.p_memsz > load.p_filesz {
        if in_file < file_end && load.p_filesz > 0 && load.p_flags & libc::PF_W != 0 {
            // The whole rest of the page: ld.so's first allocator uses the memory behind its own data there.
            // SAFETY: the page was mapped just now, writable, and `file_end` is its end.
            unsafe { std::ptr::write_bytes(in_file as *mut u8, 0, file_end - in_file) };
        }
        if end > file_end {
            map(file_end, end, libc::MAP_ANONYMOUS, usize::MAX, 0)?;
        }
    }
    Ok(())
}

/// Whether a segment's bytes hold a `syscall` instruction, or something that looks like one.
fn has_system_call(file: &File, base: usize, load: &Elf64_Phdr) -> bool {
    if load.p_flags & libc::PF_R == 0 {
        return false;
    }
    let there = file.metadata().map_or(0, |about| about.len());
    let bytes = load.p_filesz.min(there.saturating_sub(load.p_offset));
    // SAFETY: the segment has been mapped, may be read, and the file has these bytes.
    let text = unsafe {
        std::slice::from_raw_parts((base + load.p_vaddr as usize) as *const u8, bytes as usize)
    };
    text.windows(2).any(|pair| pair == [0x0f, 0x05])
}
