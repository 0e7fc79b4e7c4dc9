//! Files that were open through MPI. The real MPI opens them again when its objects are made; this module ensures that their contents are as they were.

use std::fs::{self, OpenOptions};

use crate::capture::mpi_files::MpiFile;

/// Returns why these files cannot be opened again.
pub fn missing(files: &[MpiFile]) -> Vec<String> {
    files.iter().filter_map(|file| one(file).err()).collect()
}

fn one(file: &MpiFile) -> Result<(), String> {
    let MpiFile { path, bytes, .. } = file;
    let cannot =
        |error| format!("it has the MPI file {path} open, which cannot be opened: {error}");
    let found = fs::metadata(path).map_err(cannot)?;
    if !found.is_file() {
        return Err(format!(
            "it has the MPI file {path} open, which is no regular file by now: put back the file"
        ));
    }
    if found.len() < *bytes {
        return Err(format!(
            "it has the MPI file {path} open, which has {} bytes; at the checkpoint it had {bytes}: put back the file as it was",
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
pub fn cut(files: &[MpiFile]) -> Result<(), String> {
    files.iter().filter(|file| file.cut).try_for_each(|file| {
        let opened = OpenOptions::new().write(true).open(&file.path);
        let cut = opened.and_then(|opened| match opened.metadata()?.len() > file.bytes {
            true => opened.set_len(file.bytes),
            false => Ok(()),
        });
        cut.map_err(|error| {
            let MpiFile { path, bytes, .. } = file;
            format!("cannot cut the MPI file {path} back to {bytes} bytes: {error}")
        })
    })
}

#[cfg(test)]
mod tests {
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
        let said = |files: &[MpiFile]| missing(files).join("");
        assert!(said(&files).contains("cannot be opened"));
        fs::write(&path, b"123").unwrap();
        let shorter = said(&files);
        assert!(
            shorter.contains("has 3 bytes; at the checkpoint it had 4"),
            "{shorter}"
        );
        fs::write(&path, b"123456").unwrap();
        assert_eq!(said(&files), "");
        cut(&files).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1234");
        files[0].path = directory.path().to_str().unwrap().to_owned();
        assert!(said(&files).contains("no regular file"));
    }
}
