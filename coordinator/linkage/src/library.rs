//! One ELF file: the libraries that it needs, and whether it is an MPI.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_X86_64, FileHeader64, SHN_UNDEF, gnu_hash};
use object::read::elf::{Dyn, ElfFile64, GnuHashTable, Sym, SymbolTable, VersionTable};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, StringTable};

/// The length of the longest path (PATH_MAX), and so of names that lead to a library.
const LONGEST: usize = 4096;
/// More libraries than any program needs. Names may overlap in a file, so that a small one could name more than memory holds.
const MOST: usize = 4096;

/// Makes the family, and all texts about each member, from one list.
macro_rules! families {
    ($($(#[$doc:meta])* $name:ident $word:literal $shown:literal;)*) => {
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
        }

        impl fmt::Display for Family {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Family::$name => $shown,)*
                })
            }
        }
    };
}

families! {
    OpenMpi "openmpi" "Open MPI";
    /// MPICH, and libraries that share its binary interface: Intel MPI, MVAPICH, Cray MPICH.
    Mpich "mpich" "MPICH";
    /// Any library with the MPI 5.0 standard's own binary interface (`libmpi_abi.so.1`).
    Standard "abi" "the standard's MPI ABI";
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
        let (mut asked, mut rpath, mut runpath) = (0, None, None);
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
                _ => {}
            }
        }
        library.rpath = rpath.and_then(bytes).map(text);
        library.runpath = runpath.and_then(bytes).map(text);
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
    let symbol = elf
        .dynamic_symbols()
        .find(|symbol| symbol.is_definition() && symbol.name() == Ok(name))?;
    let section = elf.section_by_index(symbol.section_index()?).ok()?;
    let data = section.data_range(symbol.address(), 4).ok()??;
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

/// Returns the MPI that a file is. An MPI defines `PMPI_Init`; tools that stand before one define only `MPI_Init`, and need the other. Its
/// own names tell which MPI it is: data of Open MPI's and MPICH's binary interfaces, which the standard's does not have.
fn family(elf: &ElfFile64<'_, LittleEndian>) -> Option<Family> {
    let names = Names::of(elf);
    if !names.has(b"PMPI_Init") {
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

/// The names that a file defines for others.
struct Names<'data, 'file> {
    symbols: &'file SymbolTable<'data, FileHeader64<LittleEndian>>,
    /// The file's own hash table of them, which the loader uses, too. A file without one is read name by name.
    table: Option<GnuHashTable<'data, FileHeader64<LittleEndian>>>,
}

impl<'data, 'file> Names<'data, 'file> {
    fn of(elf: &'file ElfFile64<'data, LittleEndian>) -> Names<'data, 'file> {
        /// The bits of a name's hash.
        const BITS: u32 = 32;
        let (sections, bytes) = (elf.elf_section_table(), elf.data());
        let header = sections.gnu_hash_header(LittleEndian, bytes).ok().flatten();
        let sound = header.is_some_and(|header| header.bloom_shift.get(LittleEndian) < BITS);
        let table = sections.gnu_hash(LittleEndian, bytes).ok().flatten();
        Names {
            symbols: elf.elf_dynamic_symbol_table(),
            table: table.filter(|_| sound).map(|(table, _)| table),
        }
    }

    fn has(&self, wanted: &[u8]) -> bool {
        if let Some(table) = &self.table {
            let (hash, any) = (gnu_hash(wanted), VersionTable::default());
            let found = table.find(LittleEndian, wanted, hash, None, self.symbols, &any);
            return found.is_some_and(|(_, symbol)| defines(symbol));
        }
        self.symbols.iter().any(|symbol| {
            defines(symbol) && symbol.name(LittleEndian, self.symbols.strings()) == Ok(wanted)
        })
    }
}

fn defines(symbol: &impl Sym<Endian = LittleEndian>) -> bool {
    symbol.st_shndx(LittleEndian) != SHN_UNDEF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the C library that this test runs with.
    fn libc() -> PathBuf {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut lines = maps
            .lines()
            .filter_map(|line| line.find('/').map(|at| &line[at..]));
        lines.find(|path| path.contains("/libc.so")).unwrap().into()
    }

    #[test]
    fn a_files_own_table_says_what_its_names_say() {
        let bytes = std::fs::read(libc()).unwrap();
        let elf = ElfFile64::<LittleEndian>::parse(&*bytes).unwrap();
        let by_table = Names::of(&elf);
        assert!(by_table.table.is_some());
        let by_name = Names {
            symbols: by_table.symbols,
            table: None,
        };
        // A name that the file needs of the loader is not defined by it.
        for (name, defined) in [
            ("malloc", true),
            ("pthread_create", true),
            ("PMPI_Init", false),
            ("__tls_get_addr", false),
            ("", false),
        ] {
            let found = [&by_table, &by_name].map(|names| names.has(name.as_bytes()));
            assert_eq!(found, [defined; 2], "{name}");
        }
    }
}
