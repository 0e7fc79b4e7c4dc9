//! From the user's command to the file that is loaded: the PATH, permissions, `#!` lines (execve(2)).

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::error::LaunchError;

/// The number of bytes that the kernel reads to find a script's first line (BINPRM_BUF_SIZE).
const FIRST_LINE: usize = 256;
/// The depth of scripts whose interpreters are scripts: as many as the kernel follows.
const DEEPEST: usize = 5;

/// A program that can be opened.
#[derive(Debug)]
pub struct Program {
    /// The path that was asked for (the script's, if it is one).
    pub asked: PathBuf,
    /// The executable: the program itself, or the last interpreter.
    pub path: PathBuf,
    pub file: File,
    /// The arguments, with the interpreter's inserted.
    pub arguments: Vec<Vec<u8>>,
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Looks a command up as the shell does: names without a slash are searched in PATH.
pub fn look_up(name: &Path, search: Option<&[u8]>) -> Result<PathBuf, LaunchError> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return Ok(name.to_owned());
    }
    let mut found_but = None;
    for directory in search
        .unwrap_or(b"/bin:/usr/bin")
        .split(|byte| *byte == b':')
    {
        let directory = if directory.is_empty() {
            b"."
        } else {
            directory
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(directory)).join(name);
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(LaunchError::NotFound(_)) => {}
            Err(error) => found_but = found_but.or(Some(error)),
        }
    }
    Err(found_but.unwrap_or_else(|| LaunchError::NotInPath(shown(name))))
}

/// Whether the file can be executed at all.
fn check(path: &Path) -> Result<(), LaunchError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            LaunchError::NotFound(shown(path))
        }
        io::ErrorKind::PermissionDenied => LaunchError::Permission(shown(path)),
        _ => LaunchError::Unreadable {
            path: shown(path),
            source,
        },
    };
    if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Err(LaunchError::Directory(shown(path)));
    }
    let text = std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| LaunchError::Argument(shown(path)))?;
    // SAFETY: the path ends in NUL, and access only reads it.
    if unsafe { libc::access(text.as_ptr(), libc::X_OK) } != 0 {
        return Err(unreadable(io::Error::last_os_error()));
    }
    Ok(())
}

/// Returns a script's interpreter, and at most one argument, from its first line.
fn first_line(head: &[u8]) -> Option<(PathBuf, Option<Vec<u8>>)> {
    let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let line = head.get(2..)?;
    let end = line.iter().position(|byte| *byte == b'\n');
    // A truncated line is used as it is, unless the interpreter's path is truncated.
    let whole = end.is_some() || head.len() < FIRST_LINE;
    let line = &line[..end.unwrap_or(line.len())];
    let line = &line[line.iter().position(|byte| !blank(byte))?..];
    let path_end = line.iter().position(|byte| blank(byte) || *byte == 0);
    if path_end.is_none() && !whole {
        return None;
    }
    let (path, rest) = line.split_at(path_end.unwrap_or(line.len()));
    let rest = rest
        .iter()
        .position(|byte| !blank(byte))
        .map_or(&[][..], |start| &rest[start..]);
    let rest = &rest[..rest
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(0, |last| last + 1)];
    let rest = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    let argument = (!rest.is_empty()).then(|| rest.to_vec());
    (!path.is_empty()).then(|| (PathBuf::from(std::ffi::OsStr::from_bytes(path)), argument))
}

/// Opens a program; a script leads to its interpreter, which gets the script as an argument.
pub fn open(asked: &Path, arguments: &[Vec<u8>]) -> Result<Program, LaunchError> {
    let mut path = asked.to_owned();
    let mut arguments = arguments.to_vec();
    for _ in 0..=DEEPEST {
        check(&path)?;
        let unreadable = |source| LaunchError::Unreadable {
            path: shown(&path),
            source,
        };
        let file = File::open(&path).map_err(unreadable)?;
        let mut head = vec![0; FIRST_LINE];
        let bytes = file.read_at(&mut head, 0).map_err(unreadable)?;
        head.truncate(bytes);
        if !head.starts_with(b"#!") {
            return Ok(Program {
                asked: asked.to_owned(),
                path,
                file,
                arguments,
            });
        }
        let (interpreter, argument) =
            first_line(&head).ok_or_else(|| LaunchError::BadFirstLine(shown(&path)))?;
        if !interpreter.exists() {
            return Err(LaunchError::Interpreter {
                script: shown(&path),
                interpreter: shown(&interpreter),
            });
        }
        let script = path.as_os_str().as_bytes().to_vec();
        let begin = [
            Some(interpreter.as_os_str().as_bytes().to_vec()),
            argument,
            Some(script),
        ];
        arguments = begin
            .into_iter()
            .flatten()
            .chain(arguments.into_iter().skip(1))
            .collect();
        path = interpreter;
    }
    Err(LaunchError::TooDeep(shown(asked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<(String, Option<String>)> {
        first_line(text.as_bytes()).map(|(path, argument)| {
            (
                shown(&path),
                argument.map(|bytes| String::from_utf8(bytes).unwrap()),
            )
        })
    }

    #[test]
    fn first_lines_are_read_as_the_kernel_reads_them() {
        assert_eq!(line("#!/bin/sh\n"), Some(("/bin/sh".into(), None)));
        assert_eq!(
            line("#! /bin/sh -e \t\nrest"),
            Some(("/bin/sh".into(), Some("-e".into())))
        );
        assert_eq!(
            line("#!/usr/bin/env python3 -u\n"),
            Some(("/usr/bin/env".into(), Some("python3 -u".into())))
        );
        assert_eq!(line("#!/bin/sh"), Some(("/bin/sh".into(), None)));
        assert_eq!(line("#!\n"), None);
        assert_eq!(line("#!   \n"), None);
        assert_eq!(line(&format!("#!/{}", "x".repeat(300))[..256]), None);
    }

    #[test]
    fn what_cannot_be_run_is_told_apart() {
        let status = |name: &str| {
            let error = look_up(Path::new(name), Some(b"/usr/bin:/bin"))
                .and_then(|path| open(&path, &[]).map(drop));
            error.unwrap_err().exit_status()
        };
        assert_eq!(status("/no/such/program"), 127);
        assert_eq!(status("no-such-program-anywhere"), 127);
        assert_eq!(status("/usr"), 126);
        assert_eq!(status("/etc/passwd"), 126);
    }
}
