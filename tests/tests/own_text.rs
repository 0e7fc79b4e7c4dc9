//! MPI does not rewrite the code of its process: threads of the lower half may be executing that code. The gate changes only sites of the
//! application's calls.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, strike};

/// Code from a file, as in `/proc/PID/maps`.
struct Code {
    start: u64,
    bytes: usize,
    offset: u64,
    path: String,
}

impl Code {
    /// Parses one line, if it is code from a file.
    fn of(line: &str) -> Option<Code> {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let executable = words.next()?.contains('x');
        let offset = words.next()?;
        let path = words.nth(2).filter(|path| path.starts_with('/'))?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        executable.then_some(Code {
            start,
            bytes: (end - start) as usize,
            offset: number(offset)?,
            path: path.to_owned(),
        })
    }

    /// Returns the first difference between the code in the process and in the file, except for sites of the application's calls,
    /// and the number of these sites.
    fn differs(&self, memory: &File) -> Result<(Option<u64>, usize), Failed> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path);
        let (mut there, mut here) = (vec![0; self.bytes], vec![0; self.bytes]);
        memory
            .read_exact_at(&mut here, self.start)
            .map_err(failed)?;
        let file = File::open(&self.path).map_err(failed)?;
        // Beyond the file's end the last page is empty.
        let length = file.metadata().map_err(failed)?.len() - self.offset;
        let known = self.bytes.min(length as usize);
        file.read_exact_at(&mut there[..known], self.offset)
            .map_err(failed)?;
        let sites = match UPPER.contains(&self.start) {
            true => take_back(&mut here[..known], &there[..known]),
            false => 0,
        };
        let at = here[..known]
            .iter()
            .zip(&there)
            .position(|(here, there)| here != there);
        Ok((at.map(|at| self.offset + at as u64), sites))
    }
}

/// The address range of the application's libraries (`ARENA_START`, `ARENA_END`).
const UPPER: std::ops::Range<u64> = 0x5501_0000_0000..0x5555_0000_0000;

/// Undoes the gate's changes of the application's code: in `mov eax, NUMBER; syscall` it replaces the first instruction
/// with a jump.
fn take_back(here: &mut [u8], there: &[u8]) -> usize {
    let (mut at, mut sites) = (0, 0);
    while let Some((now, then)) = here.get(at..at + 7).zip(there.get(at..at + 7)) {
        let site = now[0] == 0xe9 && then[0] == 0xb8 && now[5..] == then[5..];
        if site && then[3..] == [0, 0, 0x0f, 0x05] {
            here[at..at + 5].copy_from_slice(&there[at..at + 5]);
            sites += 1;
        }
        at += 1;
    }
    sites
}

/// Inspects the ranks of a program when they are ready.
fn looked_at(
    kind: Kind,
    name: &str,
    ranks: u32,
    look: impl Fn(i32) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let program = Program::named(kind, name)?;
    Directory::new("own-text")?.run(|directory| {
        let trial = Trial::new(&program, ranks, directory)?;
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        for pid in strike::ranks(&trial.epochs_at())? {
            look(pid)?;
        }
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })
}

#[test]
fn the_code_in_memory_is_the_files() {
    let looked = looked_at(Kind::Moving, "ring", 2, |pid| unchanged(pid).map(|_| ()));
    if let Err(failed) = looked {
        panic!("{failed}");
    }
}

#[test]
fn places_of_the_program_that_make_calls_often_are_changed_and_nothing_else() {
    // One for each call that it makes from one place.
    const PLACES: usize = 7;
    let looked = looked_at(Kind::Still, "calls_made_often", 1, |pid| {
        let processor = fs::read_to_string("/proc/cpuinfo").map_err(|error| error.to_string())?;
        let has = |feature: &str| processor.split_whitespace().any(|word| word == feature);
        let places = if has("fsgsbase") && has("xsavec") {
            PLACES
        } else {
            0
        };
        let changed = unchanged(pid)?;
        // A changed page is a mapping of its own.
        let own = changed
            .iter()
            .filter(|(path, _)| path.ends_with("/calls_made_often"));
        let found: usize = own.map(|(_, sites)| *sites).sum();
        ensure!(found == places, "{found} places are changed: {changed:?}");
        Ok(())
    });
    if let Err(failed) = looked {
        panic!("{failed}");
    }
}

/// Checks that only sites of calls are changed, and returns their number for the code of each file.
fn unchanged(pid: i32) -> Result<Vec<(String, usize)>, Failed> {
    let maps = format!("/proc/{pid}/maps");
    let maps = fs::read_to_string(&maps).map_err(|error| format!("{maps}: {error}"))?;
    let memory = format!("/proc/{pid}/mem");
    let memory = File::open(&memory).map_err(|error| format!("{memory}: {error}"))?;
    let code: Vec<Code> = maps.lines().filter_map(Code::of).collect();
    let libcs = code
        .iter()
        .filter(|code| code.path.ends_with("libc.so.6"))
        .count();
    ensure!(libcs > 0, "no libc in {maps}");
    let mut changed = Vec::new();
    for code in code {
        let (differs, sites) = code.differs(&memory)?;
        ensure!(
            differs.is_none(),
            "{} has been written over at {differs:#x?}",
            code.path
        );
        if sites > 0 {
            changed.push((code.path, sites));
        }
    }
    Ok(changed)
}
