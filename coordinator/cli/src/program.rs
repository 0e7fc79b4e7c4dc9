//! The program to run: finds it, and checks that it can be run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stillpoint_refusals::Code;

use super::Failure;

/// Finds the program as `execvp` does. If it cannot be run, the error says so early and plainly.
pub(super) fn find_program(program: &OsStr) -> Result<PathBuf, Failure> {
    let shown = program.to_string_lossy();
    let not_found = |where_: &str| {
        Failure::refuse(
            Code::NoProgram,
            Failure::NOT_FOUND,
            format!("{shown}: no such program{where_}: check the name and that this host has it"),
        )
    };
    if shown.is_empty() {
        return Err(not_found(""));
    }
    if shown.contains('/') {
        let path = PathBuf::from(program);
        return match path.metadata() {
            Ok(_) => check_program(&path).map(|()| path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(not_found("")),
            Err(error) => Err(Failure::refuse(
                Code::NoProgram,
                Failure::NOT_EXECUTABLE,
                format!("{shown}: {error}"),
            )),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut found_but = None;
    for place in std::env::split_paths(&search) {
        let path = place.join(program);
        if path.is_file() {
            match check_program(&path) {
                Ok(()) => return Ok(path),
                Err(failure) => found_but = found_but.or(Some(failure)),
            }
        }
    }
    Err(found_but.unwrap_or_else(|| not_found(" in PATH")))
}

/// Programs that start the ranks of a launch, by their names.
const LAUNCHERS: [&str; 15] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "prun",
    "srun",
    "aprun",
    "jsrun",
    "ibrun",
    "palsrun",
    "orted",
    "prted",
    "hydra_pmi_proxy",
    "mpirun_rsh",
    "mpispawn",
];

/// The name of a launcher, if this is its path.
pub(super) fn launcher_named(program: &Path) -> Option<&str> {
    let name = program.file_name()?.to_str()?;
    // Names such as `mpiexec.hydra` or `mpirun.openmpi`.
    let stem = name.split('.').next()?;
    LAUNCHERS.contains(&stem).then_some(name)
}

/// Refuses a launcher: all its ranks would be one rank of this job, and no restart could start them.
pub(super) fn refuse_launcher(program: &Path) -> Result<(), Failure> {
    let real = program.canonicalize().ok();
    let mut names = [Some(program), real.as_deref()].into_iter().flatten();
    let Some(launcher) = names.find_map(launcher_named) else {
        return Ok(());
    };
    Err(Failure::refuse(
        Code::LauncherInside,
        Failure::USAGE,
        format!(
            "{launcher} is a launcher, but stillpoint has to start each of its ranks: put the launcher first, as in \
             {launcher} -n 2 stillpoint run -- APP, or start it by stillpoint launch -- {launcher} -n 2 APP"
        ),
    ))
}

fn check_program(path: &Path) -> Result<(), Failure> {
    let refuse_as = |code: Code, why: &str| {
        Failure::refuse(
            code,
            Failure::NOT_EXECUTABLE,
            format!("{}: {why}", path.display()),
        )
    };
    let refuse = |why: &str| refuse_as(Code::NoProgram, why);
    let about = path
        .metadata()
        .map_err(|error| refuse(&error.to_string()))?;
    if about.is_dir() {
        return Err(refuse("is a directory: name a program in it"));
    }
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return Err(refuse(
            "is not executable: name a program, or make it one with chmod +x",
        ));
    }
    let mut head = Vec::new();
    match File::open(path) {
        // The user may run the program but not read it, so the lower half cannot load it.
        Err(error) => {
            return Err(refuse(&format!(
                "cannot be read: {error}: Stillpoint reads the program to load it, so make it readable with chmod +r"
            )));
        }
        Ok(file) => {
            file.take(64 << 10)
                .read_to_end(&mut head)
                .map_err(|error| refuse(&error.to_string()))?;
        }
    }
    match kind(&head) {
        Kind::Script => match interpreter(&head) {
            Some(interpreter) if !Path::new(&interpreter).exists() => Err(Failure::refuse(
                Code::NoProgram,
                Failure::NOT_FOUND,
                format!(
                    "{}: its first line names {}, but that file is missing: correct that line",
                    path.display(),
                    interpreter.to_string_lossy()
                ),
            )),
            _ => Ok(()),
        },
        Kind::Dynamic if needs(&head) > about.len() => Err(refuse_as(
            Code::WrongProgram,
            "is truncated (it ends before its segments do): copy or build it again",
        )),
        Kind::Dynamic => Ok(()),
        Kind::Static => Err(refuse_as(
            Code::StaticProgram,
            "is statically linked, so Stillpoint cannot load its library into it: link it dynamically",
        )),
        Kind::Foreign => Err(refuse_as(
            Code::WrongProgram,
            "is a program for another kind of machine: build it for this one",
        )),
        Kind::Unknown => Err(refuse(
            "is not a program (neither ELF nor a script that begins with #!): name a program",
        )),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Script,
    Dynamic,
    Static,
    Foreign,
    Unknown,
}

/// The file that is loaded when a program is started. For a script this is its interpreter, which may be a script as well. The lower half reports errors of
/// the interpreter.
pub(super) fn executable(mut program: PathBuf) -> PathBuf {
    const DEEPEST: usize = 5;
    for _ in 0..DEEPEST {
        let mut head = Vec::new();
        let read = File::open(&program).and_then(|file| file.take(256).read_to_end(&mut head));
        match interpreter(&head) {
            Some(interpreter) if read.is_ok() => program = interpreter.into(),
            _ => break,
        }
    }
    program
}

/// The interpreter in a script's first line. The lower half reports other errors in that line.
fn interpreter(head: &[u8]) -> Option<OsString> {
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let word = words.find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(word).to_owned())
}

/// The least length of a program's file, by its segments (64-bit, little-endian).
fn needs(head: &[u8]) -> u64 {
    const PT_LOAD: [u8; 4] = [1, 0, 0, 0];
    let number = |at: usize, bytes: usize| {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(head.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(number))
    };
    let (Some(table), Some(bytes), Some(count)) = (number(32, 8), number(54, 2), number(56, 2))
    else {
        return 0;
    };
    let end = |index: u64| {
        let at = usize::try_from(table.checked_add(index * bytes)?).ok()?;
        if head.get(at..at.checked_add(4)?)? != PT_LOAD {
            return None;
        }
        number(at + 8, 8)?.checked_add(number(at + 32, 8)?)
    };
    (0..count).filter_map(end).max().unwrap_or(0)
}

/// The kind of a file, by its first bytes (System V ABI, chapter 4). A program is dynamic if it has an interpreter.
fn kind(head: &[u8]) -> Kind {
    const CLASS_64_LITTLE: [u8; 2] = [2, 1];
    const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    const PT_INTERP: u32 = 3;
    if head.starts_with(b"#!") {
        return Kind::Script;
    }
    if !head.starts_with(b"\x7fELF") {
        return Kind::Unknown;
    }
    let u16_at = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    if head.get(4..6) != Some(&CLASS_64_LITTLE) || u16_at(18) != Some(MACHINE) {
        return Kind::Foreign;
    }
    let (Some(table), Some(bytes), Some(count)) = (u64_at(32), u16_at(54), u16_at(56)) else {
        return Kind::Unknown;
    };
    for index in 0..usize::from(count) {
        let at = (table as usize).saturating_add(index * usize::from(bytes));
        match u32_at(at) {
            Some(PT_INTERP) => return Kind::Dynamic,
            Some(_) => {}
            // The header lies beyond the bytes that were read; the loader looks closer.
            None => return Kind::Dynamic,
        }
    }
    Kind::Static
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_refused_by_whatever_name() {
        let directory = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, "").unwrap();
            path
        };
        for launcher in ["mpirun", "mpiexec.hydra", "srun", "orterun"] {
            let refused = refuse_launcher(&make(launcher)).unwrap_err();
            assert!(
                refused.to_string().contains("put the launcher first"),
                "{refused}"
            );
        }
        let link = directory.path().join("start");
        std::os::unix::fs::symlink("orterun", &link).unwrap();
        assert!(refuse_launcher(&link).is_err());
        for program in ["mpirunner", "lmp", "my.mpirun"] {
            assert!(refuse_launcher(&make(program)).is_ok(), "{program}");
        }
    }
    use std::fs;

    #[test]
    fn programs_are_told_from_what_only_looks_like_one() {
        let this = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(kind(&this[..4096]), Kind::Dynamic);
        assert_eq!(kind(b"#!/bin/sh\n"), Kind::Script);
        assert_eq!(kind(b"hello"), Kind::Unknown);
        assert_eq!(kind(b""), Kind::Unknown);
        assert_eq!(kind(b"\x7fELF"), Kind::Foreign);
        let mut other = this[..4096].to_vec();
        other[18] = 8;
        assert_eq!(kind(&other), Kind::Foreign);
        let whole = fs::metadata(std::env::current_exe().unwrap())
            .unwrap()
            .len();
        assert!((4096..=whole).contains(&needs(&this[..4096])));
        assert_eq!(
            interpreter(b"#! /bin/sh -e\n").as_deref(),
            Some(OsStr::new("/bin/sh"))
        );
        // Without its PT_INTERP entry it looks like a static program.
        let mut without = this[..4096].to_vec();
        let (table, bytes) = (without[32] as usize, without[54] as usize);
        for index in 0..without[56] as usize {
            let at = table + index * bytes;
            if without[at] == 3 {
                without[at] = 4;
            }
        }
        assert_eq!(kind(&without), Kind::Static);
    }

    #[test]
    fn a_missing_program_is_127_and_one_that_cannot_run_126() {
        let status = |program: &str| find_program(OsStr::new(program)).map_err(|f| f.status);
        assert_eq!(status("/nonexistent/app"), Err(127));
        assert_eq!(status("no-such-program-anywhere"), Err(127));
        assert_eq!(status(""), Err(127));
        assert_eq!(status("/tmp"), Err(126));
        assert_eq!(status("/etc/passwd"), Err(126));
        assert!(status("sh").is_ok() && status("/bin/sh").is_ok());
    }
}
