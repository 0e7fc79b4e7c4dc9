//! Files that were open through MPI. The real MPI opens them again when its objects are made; this module ensures that their contents are as they were.

use std::fs::{self, OpenOptions};

use stillpoint_refusals::{Code, Refusal, refusal};

use crate::capture::mpi_files::MpiFile;

/// Returns why these files cannot be opened again.
pub fn missing(files: &[MpiFile]) -> Vec<Refusal> {
    files.iter().filter_map(|file| one(file).err()).collect()
}

fn one(file: &MpiFile) -> Result<(), Refusal> {
    let MpiFile { path, bytes, .. } = file;
    let cannot = |error| refusal!(MissingFile, "cannot open its MPI file {path}: {error}");
    let found = fs::metadata(path).map_err(cannot)?;
    if !found.is_file() {
        return Err(refusal!(
            MissingFile,
            "its MPI file {path} is not a regular file any more: put the file back"
        ));
    }
    if found.len() < *bytes {
        return Err(refusal!(
            MissingFile,
            "its MPI file {path} has {} bytes now and had {bytes} at the checkpoint: put the file back as it was",
            found.len()
        ));
    }
    let mut how = OpenOptions::new();
    how.read(file.read).write(file.written);
    how.open(path).map(drop).map_err(cannot)
}

/// Cuts each file that this process has to cut back to its length at the checkpoint.
///
/// # Errors
/// The first file that cannot be cut.
pub fn cut(files: &[MpiFile]) -> Result<(), Refusal> {
    files.iter().filter(|file| file.cut).try_for_each(|file| {
        let opened = OpenOptions::new().write(true).open(&file.path);
        let cut = opened.and_then(|opened| match opened.metadata()?.len() > file.bytes {
            true => opened.set_len(file.bytes),
            false => Ok(()),
        });
        cut.map_err(|error| {
            let MpiFile { path, bytes, .. } = file;
            Refusal::new(
                Code::of(&error, Code::NotRestored),
                format!("cannot cut the MPI file {path} back to {bytes} bytes: {error}"),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use stillpoint_refusals::in_words;

    use super::*;

    #[test]
    fn a_file_is_found_as_it_was_or_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut files = [MpiFile {
            path: path.to_str().unwrap().to_owned(),
            bytes: 4,
            read: true,
            written: true,
            cut: true,
        }];
        let said = |files: &[MpiFile]| in_words(&missing(files));
        assert!(said(&files).contains("cannot open its MPI file"));
        fs::write(&path, b"123").unwrap();
        let shorter = said(&files);
        assert!(
            shorter.contains("has 3 bytes now and had 4 at the checkpoint"),
            "{shorter}"
        );
        fs::write(&path, b"123456").unwrap();
        assert_eq!(said(&files), "");
        cut(&files).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1234");
        files[0].path = directory.path().to_str().unwrap().to_owned();
        assert!(said(&files).contains("not a regular file"));
    }
}
