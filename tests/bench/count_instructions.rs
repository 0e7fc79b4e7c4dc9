//! Counts the instructions of a call exactly: single-steps it (ptrace(2)) from one mark of the program to the next, and
//! reports where they lie. A split process cannot run under valgrind.
//!
//! ```text
//! count-instructions [--trace NAME] COMMAND...    marks: see tests/programs/bench/marked_calls.c
//! count-instructions --table [MPI]                the table of bench/results/instructions-*, of the machine's own MPI or one of `ci/mpis target/mpis`
//! ```
//! Columns: the application with its dynamic linker's stubs, Stillpoint's upper half, its lower half (with the gate), everything else (the real MPI and the
//! libraries below it), and how many of all these write FS, the thread pointer. The empty call's instructions (the mark itself) have been subtracted. A call is
//! marked several times in a row, and the table shows the one with the fewest instructions: Open MPI does extra work in every eighth look for progress,
//! Stillpoint's part in it included, and this falls into one or another call by chance. A repeated string instruction (`rep movsb`) counts once, as in the
//! processor's own counters, however often it is stepped.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use stillpoint_tests::mpis::{self, Mpi};
use stillpoint_tests::place::{self, Directory};

type Failure = Box<dyn std::error::Error>;

/// The part of the process that contains an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Application,
    Upper,
    Lower,
    Real,
}

const PLACES: [Place; 4] = [Place::Application, Place::Upper, Place::Lower, Place::Real];

/// The executable mappings of a process.
struct Map(Vec<(std::ops::Range<u64>, Place, String)>);

impl Map {
    fn read(pid: Pid, program: &str) -> Result<Map, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut found = Vec::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [range, rights, offset, ..] = fields[..] else {
                continue;
            };
            let Some((start, end)) = range.split_once('-') else {
                continue;
            };
            if !rights.contains('x') {
                continue;
            }
            let name = fields.get(5).copied().unwrap_or_default();
            let file = name.rsplit('/').next().unwrap_or_default();
            let place = match file {
                _ if file == program => Place::Application,
                _ if file.starts_with("libstillpoint_upper") => Place::Upper,
                _ if file.starts_with("stillpoint") || name.is_empty() => Place::Lower,
                _ => Place::Real,
            };
            let (start, end) = (
                u64::from_str_radix(start, 16)?,
                u64::from_str_radix(end, 16)?,
            );
            let base = start.wrapping_sub(u64::from_str_radix(offset, 16)?);
            found.push((start..end, place, format!("{file}@{base:x}")));
        }
        Ok(Map(found))
    }

    fn of(&self, at: u64) -> (Place, String) {
        self.0
            .iter()
            .find(|(range, ..)| range.contains(&at))
            .map_or((Place::Lower, format!("{at:#x}")), |(_, place, name)| {
                let (file, base) = name.split_once('@').unwrap_or((name, "0"));
                let base = u64::from_str_radix(base, 16).unwrap_or(0);
                (*place, format!("{file}+{:#x}", at - base))
            })
    }
}

/// Reads the text at an address of the traced process.
fn text_at(pid: Pid, mut at: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    loop {
        let word = ptrace::read(pid, at as *mut _)?.to_le_bytes();
        let end = word.iter().position(|byte| *byte == 0);
        bytes.extend_from_slice(&word[..end.unwrap_or(word.len())]);
        if end.is_some() {
            return Ok(String::from_utf8(bytes)?);
        }
        at += word.len() as u64;
    }
}

/// The instructions between two marks.
#[derive(Default)]
struct Counts {
    places: BTreeMap<Place, u64>,
    /// Instructions that write FS.
    switches: u64,
}

impl Counts {
    fn of(&self, place: Place) -> u64 {
        self.places.get(&place).copied().unwrap_or(0)
    }

    fn all(&self) -> u64 {
        self.places.values().sum()
    }
}

/// The counted calls so far, in their order, each with its smallest count.
#[derive(Default)]
struct Calls(Vec<(String, Counts)>);

impl Calls {
    fn note(&mut self, name: String, counts: Counts) {
        match self.0.last_mut() {
            Some((last, least)) if *last == name => {
                if counts.all() < least.all() {
                    *least = counts;
                }
            }
            _ => self.0.push((name, counts)),
        }
    }

    fn print(&self) {
        let columns = ["call", "application", "upper", "lower", "real MPI"];
        print!("{:<34}", columns[0]);
        for column in &columns[1..] {
            print!("{column:>12}");
        }
        println!("{:>12}", "FS writes");
        let empty = self.0.iter().find(|(name, _)| name == "nothing");
        for (name, counts) in &self.0 {
            print!("{name:<34}");
            for place in PLACES {
                let mark = match empty {
                    Some((empty, counts)) if empty != name => counts.of(place),
                    _ => 0,
                };
                print!("{:>12}", counts.of(place).saturating_sub(mark));
            }
            println!("{:>12}", counts.switches);
        }
    }
}

/// Tells whether the instruction that begins with these bytes writes FS: `wrfsbase`, or `arch_prctl(ARCH_SET_FS)`.
fn writes_fs(code: &[u8], registers: &libc::user_regs_struct) -> bool {
    const ARCH_SET_FS: u64 = 0x1002;
    let is_wrfsbase = |operand: &u8| operand & 0xf8 == 0xd0;
    match code {
        [0xf3, 0x0f, 0xae, operand, ..] => is_wrfsbase(operand),
        [0xf3, 0x40..=0x4f, 0x0f, 0xae, operand, ..] => is_wrfsbase(operand),
        [0x0f, 0x05, ..] => {
            registers.rax == libc::SYS_arch_prctl as u64 && registers.rdi == ARCH_SET_FS
        }
        _ => false,
    }
}

/// Tells whether the instruction that begins with these bytes is a repeated string instruction, which stops at each step of a single-stepped
/// program.
fn is_repeated(code: &[u8]) -> bool {
    let behind_prefix = match code {
        [0xf2 | 0xf3, 0x40..=0x4f, rest @ ..] | [0xf2 | 0xf3, rest @ ..] => rest,
        _ => return false,
    };
    matches!(behind_prefix, [0xa4..=0xa7 | 0xaa..=0xaf, ..])
}

/// Steps to the next mark.
fn step(pid: Pid, map: &Map, trace: bool) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    let mut before = 0;
    // The code does not change between two marks, and reading it from the kernel takes a good part of a step.
    let mut known = HashMap::new();
    loop {
        let registers = ptrace::getregs(pid)?;
        let at = registers.rip;
        let code = match known.entry(at) {
            Entry::Occupied(code) => *code.get(),
            Entry::Vacant(place) => *place.insert(ptrace::read(pid, at as *mut _)?.to_le_bytes()),
        };
        let (place, text) = map.of(at);
        if code[0] == 0xcc && place == Place::Application {
            return Ok(counts);
        }
        let goes_on = at == before && is_repeated(&code);
        before = at;
        *counts.places.entry(place).or_insert(0) += u64::from(!goes_on);
        counts.switches += u64::from(writes_fs(&code, &registers));
        if trace && place != Place::Real {
            eprintln!("{text}");
        }
        ptrace::step(pid, None)?;
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            other => return Err(format!("between two marks: {other:?}").into()),
        }
    }
}

fn count(command: &[String], traced: Option<&str>) -> Result<ExitCode, Failure> {
    let program = command
        .last()
        .ok_or("no command: count-instructions COMMAND...")?;
    let program = program.rsplit('/').next().unwrap_or(program).to_owned();
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    // Both run on one processor: waiting for a step on another one takes ten times longer than the step.
    let mut here = CpuSet::new();
    here.set(sched_getcpu()?)?;
    sched_setaffinity(Pid::from_raw(0), &here)?;
    // SAFETY: between fork and exec only the one system call is made.
    unsafe { child.pre_exec(|| ptrace::traceme().map_err(Into::into)) };
    let pid = Pid::from_raw(child.spawn()?.id() as i32);
    let mut calls = Calls::default();
    let mut map = None;
    loop {
        let deliver = match waitpid(pid, None)? {
            WaitStatus::Exited(_, 0) => {
                calls.print();
                return Ok(ExitCode::SUCCESS);
            }
            WaitStatus::Exited(_, code) => {
                return Err(format!("the program ended with {code}").into());
            }
            WaitStatus::Signaled(_, signal, _) => {
                return Err(format!("the program was ended by {signal}").into());
            }
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let registers = ptrace::getregs(pid)?;
                let before = ptrace::read(pid, (registers.rip - 1) as *mut _)? as u8;
                // Otherwise this is an exec on the way to the program.
                if before == 0xcc && registers.rax != 0 {
                    let name = text_at(pid, registers.rax)?;
                    let map = map.get_or_insert(Map::read(pid, &program)?);
                    let counts = step(pid, map, traced == Some(name.as_str()))?;
                    calls.note(name, counts);
                }
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            _ => None,
        };
        ptrace::cont(pid, deliver)?;
    }
}

/// The counts of a call: its name, and the numbers of the columns.
type Counted = (String, Vec<i64>);

/// Counts all marked calls of a program, started by an MPI's launcher and these words.
fn counted(mpi: &Mpi, words: &[&std::ffi::OsStr]) -> Result<Vec<Counted>, Failure> {
    let mut command = mpi.launcher(1);
    command.arg(std::env::current_exe()?).args(words);
    let output = command.output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {complaint}", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let lines = text.lines().skip(1).filter_map(|line| {
        let (name, numbers) = line.split_at_checked(34)?;
        let numbers = numbers.split_whitespace().map(str::parse::<i64>);
        let numbers: Result<Vec<i64>, _> = numbers.collect();
        Some((name.trim().to_owned(), numbers.ok()?))
    });
    Ok(lines.collect())
}

/// Prints the instructions added to each call, under an MPI, and the real MPI's extra ones compared with native calls.
fn table(name: &str) -> Result<ExitCode, Failure> {
    let mpi = Mpi::named(&place::target().join("mpis"), name)?;
    let directory = Directory::new("count-instructions")?;
    let program = directory.file("marked_calls");
    let mut compiler = mpi.compiler("mpicc");
    compiler.args(["-O2", "-o"]).arg(&program);
    compiler.arg(place::sources().join("bench/marked_calls.c"));
    let output = compiler.args(mpi.linked("c")).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let native = counted(&mpi, &[program.as_os_str()])?;
    let stillpoint = place::stillpoint()?;
    let epochs = directory.file("epochs");
    let words = ["run", "--dir"].map(std::ffi::OsStr::new);
    let split = [
        stillpoint.as_os_str(),
        words[0],
        words[1],
        epochs.as_os_str(),
        std::ffi::OsStr::new("--"),
        program.as_os_str(),
    ];
    println!(
        "| call | upper half | lower half | added | real MPI, more than native | writes of FS |\n|---|--:|--:|--:|--:|--:|"
    );
    let calls = counted(&mpi, &split)?.into_iter();
    for (name, numbers) in calls.filter(|(name, _)| name != "nothing") {
        let before = native.iter().find(|it| it.0 == name);
        let (Some((_, before)), &[_, upper, lower, real, switches]) = (before, &numbers[..]) else {
            return Err(format!("{name}: not counted natively, or not in five columns").into());
        };
        let more = real - before.get(3).copied().unwrap_or(0);
        let added = upper + lower;
        println!("| `{name}` | {upper} | {lower} | {added} | {more} | {switches} |");
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--table") {
        let name = arguments.get(1).map_or(mpis::OWN, String::as_str);
        return table(name).unwrap_or_else(|failure| {
            eprintln!("count-instructions: {failure}");
            ExitCode::FAILURE
        });
    }
    let mut traced = None;
    if arguments.first().is_some_and(|first| first == "--trace") && arguments.len() > 2 {
        traced = arguments.drain(..2).nth(1);
    }
    count(&arguments, traced.as_deref()).unwrap_or_else(|failure| {
        eprintln!("count-instructions: {failure}");
        ExitCode::FAILURE
    })
}
