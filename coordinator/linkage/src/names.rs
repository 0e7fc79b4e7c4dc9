//! The names that a file defines for others, and those that it needs of them.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::LittleEndian;
use object::elf::{FileHeader64, SHN_UNDEF, STB_WEAK, Sym64, gnu_hash};
use object::read::elf::{ElfFile64, GnuHashTable, Sym, SymbolTable, VersionTable};

use crate::MissingName;

/// Returns the first name that one of the `users` needs, one of the `real` libraries defines, and neither `stands_in` nor one of the `others` does.
pub(crate) fn missing(
    users: &[PathBuf],
    stands_in: &Path,
    real: &[PathBuf],
    others: &[PathBuf],
) -> Option<MissingName> {
    let stands_in = mapped(stands_in)?;
    let stands_in = parsed(&stands_in)?;
    let stands_in = Names::of(&stands_in);
    let real: Vec<Mmap> = real.iter().filter_map(|path| mapped(path)).collect();
    let real: Vec<_> = real.iter().filter_map(parsed).collect();
    let real: Vec<Names> = real.iter().map(Names::of).collect();
    users.iter().find_map(|user| {
        let bytes = mapped(user)?;
        let elf = parsed(&bytes)?;
        let names = Names::of(&elf);
        let name = names.needed().find(|name| {
            !stands_in.has(name) && real.iter().any(|it| it.has(name)) && !defined(others, name)
        })?;
        Some(MissingName {
            by: user.clone(),
            name: String::from_utf8_lossy(name).into_owned(),
        })
    })
}

/// Whether one of these files defines a name. Few names are looked up here.
fn defined(files: &[PathBuf], name: &[u8]) -> bool {
    files.iter().any(|file| {
        let bytes = mapped(file);
        let elf = bytes.as_ref().and_then(parsed);
        elf.is_some_and(|elf| Names::of(&elf).has(name))
    })
}

fn mapped(path: &Path) -> Option<Mmap> {
    let file = File::open(path).ok()?;
    // SAFETY: the mapping is only read, and dropped before the caller returns. If the file is cut short meanwhile, a signal ends the process, as with any
    // mapped library; nothing read from it is trusted.
    unsafe { Mmap::map(&file) }.ok()
}

fn parsed(bytes: &Mmap) -> Option<ElfFile64<'_, LittleEndian>> {
    ElfFile64::parse(&**bytes).ok()
}

/// The names that a file defines for others.
pub(crate) struct Names<'data, 'file> {
    symbols: &'file SymbolTable<'data, FileHeader64<LittleEndian>>,
    /// The file's own hash table of them, which the loader uses, too. A file without one is read name by name.
    table: Option<GnuHashTable<'data, FileHeader64<LittleEndian>>>,
}

impl<'data, 'file> Names<'data, 'file> {
    pub fn of(elf: &'file ElfFile64<'data, LittleEndian>) -> Names<'data, 'file> {
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

    /// The names that the file cannot do without and does not define.
    fn needed(&self) -> impl Iterator<Item = &'data [u8]> {
        let strings = self.symbols.strings();
        let needed = self.symbols.iter().filter(|symbol| {
            symbol.st_shndx(LittleEndian) == SHN_UNDEF && symbol.st_bind() != STB_WEAK
        });
        needed.filter_map(move |symbol| symbol.name(LittleEndian, strings).ok())
    }

    pub fn has(&self, wanted: &[u8]) -> bool {
        self.find(wanted).is_some()
    }

    /// Returns what the file defines under a name.
    pub fn find(&self, wanted: &[u8]) -> Option<&'data Sym64<LittleEndian>> {
        if let Some(table) = &self.table {
            let (hash, any) = (gnu_hash(wanted), VersionTable::default());
            let found = table.find(LittleEndian, wanted, hash, None, self.symbols, &any);
            return found.map(|(_, symbol)| symbol).filter(|one| defines(*one));
        }
        let (mut symbols, strings) = (self.symbols.iter(), self.symbols.strings());
        symbols.find(|one| defines(*one) && one.name(LittleEndian, strings) == Ok(wanted))
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
