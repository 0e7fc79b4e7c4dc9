//! MPI does not rewrite the code of the process that it runs in: threads of the lower half may be executing it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure, strike};

/// Code of a file, as `/proc/PID/maps` shows it.
struct Code {
    start: u64,
    bytes: usize,
    offset: u64,
    path: String,
}

impl Code {
    /// Of one line, if it is code of a file.
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

    /// Where the process has other code than the file.
    fn differs(&self, memory: &File) -> Result<Option<u64>, Failed> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path);
        let (mut there, mut here) = (vec![0; self.bytes], vec![0; self.bytes]);
        memory
            .read_exact_at(&mut here, self.start)
            .map_err(failed)?;
        let file = File::open(&self.path).map_err(failed)?;
        // Beyond the file's end there is nothing on the last page.
        let length = file.metadata().map_err(failed)?.len() - self.offset;
        let known = self.bytes.min(length as usize);
        file.read_exact_at(&mut there[..known], self.offset)
            .map_err(failed)?;
        let at = here[..known]
            .iter()
            .zip(&there)
            .position(|(here, there)| here != there);
        Ok(at.map(|at| self.offset + at as u64))
    }
}

#[test]
fn the_code_in_memory_is_the_files() {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        let _turn = Turn::take()?;
        Directory::new("own-text")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            for pid in strike::ranks(&trial.epochs_at())? {
                unchanged(pid)?;
            }
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn unchanged(pid: i32) -> Result<(), Failed> {
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
    for code in code {
        let differs = code.differs(&memory)?;
        ensure!(
            differs.is_none(),
            "{} has been written over at {differs:#x?}",
            code.path
        );
    }
    Ok(())
}
