//! One ELF file: the libraries that it needs, and whether it is an MPI.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, EM_X86_64, FileHeader64};
use object::read::elf::{Dyn, ElfFile64};
use object::{LittleEndian, Object, ObjectSegment, StringTable};

use crate::names::Names;

/// The length of the longest path (PATH_MAX), and so of names that lead to a library.
const LONGEST: usize = 4096;
/// More libraries than any program needs. Names may overlap in a file, so that a small one could name more than memory holds.
const MOST: usize = 4096;

/// Makes the family, and all texts about each member, from one list.
macro_rules! families {
    ($($(#[$doc:meta])* $name:ident $word:literal $shown:literal [$($library:literal)*];)*) => {
        /// MPIs with one binary interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Family {
            $($(#[$doc])* $name,)*
        }

        impl Family {
            /// Every family.
            pub const ALL: [Family; [$($word),*].len()] = [$(Family::$name),*];

            /// Returns the name of its binary interface in options, records and file names.
            pub fn word(self) -> &'static str {
                match self {
                    $(Family::$name => $word,)*
                }
            }

            /// Returns the libraries in whose place the stubs stand, by the names that they give themselves: MPI under each of its names, and libraries
            /// below it that programs and MPI's layers load too. The first is the one that programs are linked to.
            pub fn libraries(self) -> &'static [&'static str] {
                match self {
                    $(Family::$name => &[$($library),*],)*
                }
            }

            /// Returns its name in messages.
            pub fn shown(self) -> &'static str {
                match self {
                    $(Family::$name => $shown,)*
                }
            }
        }

        impl fmt::Display for Family {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.shown())
            }
        }
    };
}

families! {
    OpenMpi "openmpi" "Open MPI" ["libmpi.so.40" "libopen-rte.so.40" "libopen-pal.so.40" "libopen-pal.so.80"];
    /// MPICH, and libraries that share its binary interface: Intel MPI, MVAPICH, Cray MPICH.
    Mpich "mpich" "MPICH" ["libmpich.so.12" "libmpi.so.12"];
    /// Any library with the MPI 5.0 standard's own binary interface (`libmpi_abi.so.1`).
    Standard "abi" "the standard's MPI ABI" ["libmpi_abi.so.1" "libmpi_abi.so.0"];
}

impl Family {
    /// Returns the family whose binary interface has that name.
    pub fn of_abi(word: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|it| it.word() == word)
    }
}

/// A program or a library, as far as a search needs it.
#[derive(Debug, Default)]
pub(crate) struct Library {
    pub path: PathBuf,
    /// `DT_NEEDED`, in its order.
    pub needs: Vec<String>,
    /// `DT_RPATH`, which `DT_RUNPATH` switches off.
    pub rpath: Option<String>,
    pub runpath: Option<String>,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// The MPI that it is, if it is one.
    pub family: Option<Family>,
}

/// Returns the MPI that a library is, if it is one.
pub fn of_library(path: &Path) -> Option<Family> {
    Library::open(path)?.family
}

impl Library {
    /// Reads a file. Returns `None` if `ld.so` would not load it here.
    pub fn open(path: &Path) -> Option<Library> {
        let file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        // SAFETY: the mapping is only read, and dropped before this function returns. If the file is cut short meanwhile, a signal ends the process, as with
        // any mapped library; nothing read from it is trusted.
        let bytes = unsafe { Mmap::map(&file) }.ok()?;
        Library::read(path, &bytes)
    }

    fn read(path: &Path, bytes: &[u8]) -> Option<Library> {
        let elf = ElfFile64::<LittleEndian>::parse(bytes).ok()?;
        let header: &FileHeader64<LittleEndian> = elf.elf_header();
        if header.e_machine.get(LittleEndian) != EM_X86_64 {
            return None;
        }
        let mut library = Library {
            path: path.to_owned(),
            family: family(&elf),
            ..Library::default()
        };
        let sections = elf.elf_section_table();
        // A program without a dynamic section needs nothing.
        let Some((entries, strings)) = sections.dynamic(LittleEndian, bytes).ok()? else {
            return Some(library);
        };
        let strings = sections.strings(LittleEndian, bytes, strings).ok()?;
        let bytes = |entry| bytes_of(entry, strings);
        let (mut asked, mut rpath, mut runpath, mut soname) = (0, None, None, None);
        for entry in entries {
            match entry.tag(LittleEndian) {
                DT_NEEDED if asked < MOST => {
                    asked += 1;
                    let name = bytes(entry).filter(|name| name.len() < LONGEST);
                    library.needs.extend(name.map(text));
                }
                // The last one counts.
                DT_RPATH => rpath = Some(entry),
                DT_RUNPATH => runpath = Some(entry),
                DT_SONAME => soname = Some(entry),
                _ => {}
            }
        }
        library.rpath = rpath.and_then(bytes).map(text);
        library.runpath = runpath.and_then(bytes).map(text);
        library.soname = soname.and_then(bytes).map(text);
        Some(library)
    }
}

/// Returns the 32-bit number that a library exports under a name.
pub fn number(path: &Path, name: &str) -> Option<u32> {
    let file = File::open(path).ok()?;
    // SAFETY: the mapping is only read, and dropped before this function returns. If the file is cut short meanwhile, a signal ends the process, as with any
    // mapped library.
    let bytes = unsafe { Mmap::map(&file) }.ok()?;
    let elf = ElfFile64::<LittleEndian>::parse(&*bytes).ok()?;
    let symbol = Names::of(&elf).find(name.as_bytes())?;
    let address = symbol.st_value.get(LittleEndian);
    let data = elf
        .segments()
        .find_map(|segment| segment.data_range(address, 4).ok().flatten())?;
    Some(u32::from_le_bytes(data.try_into().ok()?))
}

fn bytes_of<'a, D: Dyn<Endian = LittleEndian>>(
    entry: &D,
    strings: StringTable<'a, &'a [u8]>,
) -> Option<&'a [u8]> {
    entry.string(LittleEndian, strings).ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Functions that every MPI defines. Darshan defines the first one.
pub(crate) const OF_EVERY_MPI: [&[u8]; 3] = [b"PMPI_Init", b"PMPI_Comm_rank", b"PMPI_Type_size"];

/// Returns the MPI that a file is. An MPI defines all of [`OF_EVERY_MPI`]; tools that stand before one define some of them, and need the others. Its own names
/// tell which MPI it is: data of Open MPI's and MPICH's binary interfaces, which the standard's does not have.
fn family(elf: &ElfFile64<'_, LittleEndian>) -> Option<Family> {
    let names = Names::of(elf);
    if !OF_EVERY_MPI.iter().all(|name| names.has(name)) {
        return None;
    }
    Some(if names.has(b"ompi_mpi_comm_world") {
        Family::OpenMpi
    } else if names.has(b"PMPI_Abi_get_version") && !names.has(b"MPI_UNWEIGHTED") {
        Family::Standard
    } else {
        Family::Mpich
    })
}
