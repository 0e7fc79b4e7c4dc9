//! A fresh start: from the command line to the application's first instruction.

pub mod begin;
pub mod command;
pub mod error;
pub mod process;
pub mod region;
pub mod restart;
pub mod stand_ins;
pub mod unsplit;

use std::ffi::CString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use stillpoint_protocol::installed;
use stillpoint_protocol::launch::{Launch, LaunchError as ContractError};
use stillpoint_wrappers::contract;

use crate::agent;
use crate::arch::{enter, layout, syscall};
use crate::capture::descriptors::streams;
use crate::capture::{appearance, attributes, scheduling};
use crate::gate::{exec, filter, identity, paths, signals, stand_in};
use crate::ground::environment::{self, Environment};
use crate::ground::{inherited, input, space, starters};
use crate::loader::{map, stack, vdso};
use crate::mpi::{self, backend::BACKEND};
use crate::threads::registry::Thread;
use error::LaunchError;

/// The way that a program comes in, which decides whether an unsuitable one can be started as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// `stillpoint run`: a program that cannot be split is refused.
    Run,
    /// `execve` by an application that does not use MPI yet: a program that cannot be split starts as it is.
    Exec,
}

/// The file name of the upper half's library.
const LIBRARY: &str = "libstillpoint_upper_openmpi.so";
/// The symbol with the contract that the library was built with.
const CONTRACT: &str = "stillpoint_contract";

/// Runs `arguments[0]` in this process, split.
///
/// # Errors
/// Any reason that prevents the application from starting; it has not run a single instruction then.
pub fn run(
    entrance: Entrance,
    path: &Path,
    arguments: Vec<Vec<u8>>,
) -> Result<std::convert::Infallible, LaunchError> {
    let launch = match Launch::from_environment() {
        Ok(launch) => Some(launch),
        Err(ContractError::Missing) => None,
        Err(error) => return Err(error.into()),
    };
    launch.iter().for_each(begin::keep_apart);
    enough_addresses()?;
    launch.iter().for_each(|launch| input::under(&launch.input));
    match entrance {
        // If the input cannot be fed, a checkpoint names the reason.
        Entrance::Run => input::start().unwrap_or_default(),
        Entrance::Exec => {
            input::inherit();
            scheduling::inherit();
            attributes::inherit();
            inherited::take_held();
        }
    }
    streams::remember();
    let search = std::env::var_os("PATH").map(OsStringExt::into_vec);
    let path = match entrance {
        Entrance::Run => command::look_up(path, search.as_deref())?,
        Entrance::Exec => path.to_owned(),
    };
    let program = command::open(&path, &arguments)?;
    let (library, contract) = match library(launch.as_ref())? {
        Some((path, contract)) => (Some(path), contract),
        None => (None, contract::VERSION),
    };

    // No signal may come before the application can take it; the lower half's threads keep this mask for ever.
    syscall::set_mask(process::LOWER_MASK);
    let page = process::prepare(contract)?;

    let mapped = match load(&program) {
        Err(LaunchError::Program {
            source: map::MapError::Elf(crate::ground::elf::ElfError::Static),
            ..
        }) if entrance == Entrance::Exec => unsplit::run(&path, &arguments),
        other => other?,
    };
    let preloaded = library
        .as_deref()
        .map(|library| {
            stand_ins::choose(launch.as_ref(), &program.path, library, &mapped.interpreter)
        })
        .transpose()?
        .unwrap_or_default();
    let preloaded: Vec<&Path> = preloaded.iter().map(PathBuf::as_path).collect();
    let application = environment::of_application(&preloaded, &mapped.program.needed);
    // The application has its own environment, without the variables for MPI.
    // SAFETY: Stillpoint has started no other thread yet that could look at the environment.
    unsafe {
        environment::prepare_for_mpi(BACKEND.environment, BACKEND.unless_told);
        if entrance == Entrance::Run {
            std::env::set_var(starters::FIRST, std::process::id().to_string());
        }
    }
    if let Some(launch) = &launch {
        // SAFETY: Stillpoint has started no other thread yet.
        unsafe { mpi::load(launch) }.map_err(LaunchError::Mpi)?;
    }
    process::offer_mpi();
    enough_addresses()?;
    let stack = stack_of(&program, &mapped, &application)?;
    note_executable(&program);
    // SAFETY: Stillpoint has started no other thread yet; a thread that the MPI library starts while it is loaded must not look at the environment.
    let launch = launch.map(|launch| unsafe { begin::hear(&launch) });
    let launch = launch.transpose()?;
    let low_text = mapped.program.low_text;
    configure_exec(library.as_deref(), low_text)?;

    adopt_this_thread()?;
    process::begin(launch.as_ref(), low_text)?;
    if let Some(launch) = launch {
        page.rank.store(launch.rank.0 as i32, Relaxed);
        page.size.store(launch.size as i32, Relaxed);
        page.two_phase.store(launch.two_phase.into(), Relaxed);
        signals::suspend_by(&launch);
        match entrance {
            Entrance::Run => agent::join(&launch)?.start()?,
            Entrance::Exec => agent::join_later(launch),
        }
    }
    signals::start_with(inherited::ignored_signals());
    appearance::set_name(&program.asked);
    appearance::show(&stack);
    drop(program.file);
    // SAFETY: entry and stack are those that were built for this interpreter, GS leads to this thread's record, and nothing of the lower half is needed on this
    // thread any more. The stack that this runs on is never freed.
    unsafe {
        crate::arch::registers::set_fs(0);
        syscall::set_mask(inherited::mask() & !signals::ours());
        enter::jump(mapped.interpreter.entry, stack.pointer)
    }
}

/// Checks whether the address space is large enough for the application.
fn enough_addresses() -> Result<(), LaunchError> {
    space::too_little().map_or(Ok(()), |reason| Err(LaunchError::Space(reason)))
}

/// Builds the application's stack: its arguments, its environment, its vDSO.
fn stack_of(
    program: &command::Program,
    mapped: &Loaded,
    application: &Environment,
) -> Result<stack::Stack, LaunchError> {
    let path = || LaunchError::Argument(program.path.display().to_string());
    let strings: Vec<CString> = program
        .arguments
        .iter()
        .map(|argument| CString::new(argument.clone()))
        .collect::<Result<_, _>>()
        .map_err(|_| path())?;
    let asked = CString::new(program.asked.as_os_str().as_bytes()).map_err(|_| path())?;
    let vdso = vdso::map().map_err(LaunchError::set_up("mapping the vDSO"))?;
    stack::build(
        &mapped.program,
        &mapped.interpreter,
        &asked,
        &strings,
        application,
        vdso,
    )
    .map_err(LaunchError::set_up("building the stack"))
}

/// Notes the path that `/proc/self/exe` has for the application.
fn note_executable(program: &command::Program) {
    let executable = std::fs::canonicalize(&program.path).unwrap_or_else(|_| program.path.clone());
    if let Ok(executable) = CString::new(executable.as_os_str().as_bytes()) {
        paths::set_executable(&executable);
    }
}

/// Makes the calling thread the application's main thread.
fn adopt_this_thread() -> Result<(), LaunchError> {
    let thread = Thread::take().ok_or(LaunchError::Usage)?;
    (thread.record().virtual_tid).store(identity::virtual_pid(), Relaxed);
    // SAFETY: the record was taken for this thread, and its area is the process's own, which no other thread uses.
    unsafe {
        thread.set_fs_lower(crate::arch::registers::fs());
        thread.adopt();
    }
    signals::believe(thread, inherited::mask());
    Ok(())
}

/// The program and its interpreter.
struct Loaded {
    program: map::Mapped,
    interpreter: map::Mapped,
}

fn load(program: &command::Program) -> Result<Loaded, LaunchError> {
    let path = program.path.display().to_string();
    let refused = |source| LaunchError::Program {
        path: path.clone(),
        source,
    };
    let mapped = map::map(&program.file, Some(layout::EXECUTABLE)).map_err(refused)?;
    let Some(interpreter) = mapped.interpreter.clone() else {
        return Err(refused(crate::ground::elf::ElfError::Static.into()));
    };
    let refused = |source| LaunchError::Linker {
        path: path.clone(),
        interpreter: interpreter.clone(),
        source,
    };
    let file = std::fs::File::open(&interpreter).map_err(|error| refused(error.into()))?;
    let linker = map::map(&file, None).map_err(refused)?;
    Ok(Loaded {
        program: mapped,
        interpreter: linker,
    })
}

/// Returns the upper half's library and the contract that it was built with. The library is the launch's, that of STILLPOINT_UPPER (`none`: none), or the one
/// beside this executable.
fn library(launch: Option<&Launch>) -> Result<Option<(PathBuf, u32)>, LaunchError> {
    let path = match (launch, std::env::var_os("STILLPOINT_UPPER")) {
        (_, Some(path)) if path == "none" => return Ok(None),
        (_, Some(path)) => PathBuf::from(path),
        (Some(launch), None) => launch.upper_library.clone(),
        (None, None) => {
            let found = installed::beside(LIBRARY).map_err(std::io::Error::other);
            found.map_err(LaunchError::set_up("finding the library"))?
        }
    };
    if !path.exists() {
        return Err(LaunchError::Library(path));
    }
    let found = stillpoint_linkage::number(&path, CONTRACT);
    match found.filter(|found| contract::serves(*found)) {
        Some(contract) => Ok(Some((path, contract))),
        None => Err(LaunchError::OtherBuild {
            path,
            found: found.map_or("none".to_owned(), |found| format!("{found:08x}")),
            expected: contract::VERSION,
        }),
    }
}

/// Tells the gate how `execve` starts programs. The strings live as long as the process.
pub fn configure_exec(
    library: Option<&Path>,
    low_text: filter::LowText,
) -> Result<(), LaunchError> {
    let own = installed::this_program().map_err(LaunchError::set_up("finding this executable"))?;
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    let own: &'static CString = Box::leak(Box::new(text(&own)));
    let preload = match library {
        Some(library) => {
            stand_in::set_library(Box::leak(Box::new(text(library))));
            let preload = stand_ins::preload()?;
            Some(&**Box::leak(Box::new(text(&preload))))
        }
        None => None,
    };
    let mut kept = environment::kept();
    kept.extend(CString::new(process::filter_variable(low_text)));
    let told = [
        input::variable(),
        streams::variable(),
        scheduling::variable(),
        attributes::variable(),
    ];
    kept.extend(
        told.into_iter()
            .flatten()
            .filter_map(|variable| CString::new(variable).ok()),
    );
    let kept: &'static [CString] = kept.leak();
    let pointers: Vec<*const libc::c_char> =
        kept.iter().map(|variable| variable.as_ptr()).collect();
    exec::configure(own, preload, pointers.leak());
    Ok(())
}
