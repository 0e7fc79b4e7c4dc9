//! Files without a name, made again from their content, which mappings and descriptors share.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use stillpoint_image::Reader;
use stillpoint_image::descriptors::{DescriptorKind, Descriptors};
use stillpoint_image::format::CHUNK_BYTES;

use super::RestoreError;
use super::content_source::Supply;

/// The name of memory that stands for a file.
pub const UNLINKED: &str = "unlinked";

/// The files that have been made, by number of content.
#[derive(Default)]
pub struct Objects {
    files: BTreeMap<u32, File>,
}

impl Objects {
    /// Returns the file that holds a content; the first call makes it.
    pub fn file(&mut self, supply: &dyn Supply, content: u32) -> Result<&File, RestoreError> {
        match self.files.entry(content) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let file = make(supply.table(), content)?;
                supply.fill(content, &file)?;
                Ok(place.insert(file))
            }
        }
    }

    /// Closes the files: descriptors and mappings now hold them.
    pub fn forget(&mut self) {
        self.files.clear();
    }
}

/// Makes an empty file of the kind that the content was in.
fn make(table: &Descriptors, content: u32) -> Result<File, RestoreError> {
    for description in &table.descriptions {
        match &description.kind {
            DescriptorKind::Unlinked {
                path,
                content: of,
                linkable,
                ..
            } if *of == content => {
                let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
                let unnamed = std::fs::OpenOptions::new()
                    .read(true)
                    .write(true)
                    .custom_flags(libc::O_TMPFILE)
                    .mode(0o600)
                    .open(directory);
                // If the directory is gone, or its file system cannot make unnamed files, a memory file holds the bytes, provided that the file can never get a
                // name.
                return unnamed
                    .or_else(|error| match linkable {
                        true => Err(error),
                        false => memory_file(UNLINKED),
                    })
                    .map_err(RestoreError::system(format!(
                        "cannot make the unlinked file {path} again"
                    )));
            }
            DescriptorKind::Memory {
                name, content: of, ..
            } if *of == content => {
                return memory_file(name).map_err(RestoreError::system(format!(
                    "cannot make memory file {name} again"
                )));
            }
            _ => {}
        }
    }
    memory_file("shared").map_err(RestoreError::system("cannot make shared memory again"))
}

fn memory_file(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends in NUL; the call makes a descriptor.
    let number = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been made, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(number) })
}

/// Writes a content into a file from its start on, and makes the file as long as the content.
pub fn write(reader: &Reader, content: u32, file: &File) -> Result<(), RestoreError> {
    let record = reader.contents().get(content as usize - 1);
    let (name, bytes) = record.map_or(("content", 0), |record| {
        (record.name.as_str(), record.bytes)
    });
    let failed = |source| RestoreError::System {
        what: format!("cannot write back {name}"),
        source,
    };
    file.set_len(bytes).map_err(failed)?;
    let (mut scratch, mut loaded) = (Reader::scratch(), vec![0; CHUNK_BYTES]);
    for chunk in reader.chunks_of(content) {
        let loaded = &mut loaded[..chunk.bytes as usize];
        reader.load(chunk, &mut scratch, loaded)?;
        let mut rest = &*loaded;
        for run in reader.runs(chunk) {
            let (mine, more) = rest.split_at(run.bytes as usize);
            file.write_all_at(mine, run.address).map_err(failed)?;
            rest = more;
        }
    }
    Ok(())
}
