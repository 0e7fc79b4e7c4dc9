//! The whole way from an image to the application's next instruction, in the required order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use stillpoint_faults::{Point, pass, strike, this_is};
use stillpoint_protocol::launch::Launch;
use stillpoint_refusals::{Refusal, refusal};
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{GatePage, HandleKind};

use crate::agent::ending;
use crate::arch::syscall;
use crate::gate;
use crate::gate::filter::HIGH_TEXT;
use crate::gate::stop;
use crate::gpu::client;
use crate::ground::{arriving, cores, environment, input};
use crate::launch::error::LaunchError;
use crate::launch::{self, process};
use crate::mpi::{self, backend::BACKEND};
use crate::parts::{self, bring_back};
use crate::restore::back::Back;
use crate::restore::job::Job;
use crate::restore::threads::{
    Returning, adopt_main, failed_credentials, go, recreate, resume_main,
};
use crate::restore::{Restore, RestoreError, credentials};
use crate::threads::Thread;
use crate::threads::registry::State;

/// How long ranks that also need a broken image wait before they report it. The rank itself reports it first, and its launcher then ends the others; without
/// the pause, each would report the same.
const FIRST_WORD: Duration = Duration::from_secs(2);

/// Restores this rank and runs it. `join` makes this rank a member of its job.
///
/// # Errors
/// Any reason that prevents the rank from being restored. Until the barrier `checked`, only this process's memory has been changed.
pub fn run<J: Job>(
    launch: &Launch,
    join: impl FnOnce(&Launch) -> Result<J, Refusal>,
) -> Result<std::convert::Infallible, LaunchError> {
    let refused = |reason: Refusal| LaunchError::Restore {
        rank: launch.rank,
        reason,
    };
    let at = |point: Point| strike(point).map_err(|error| refused(refusal!(FaultPoint, "{error}")));
    launch::begin::keep_apart(launch);
    this_is(launch.rank.0);
    client::this_is(launch);
    let wanted = launch.restart.as_ref().ok_or_else(|| {
        refused(refusal!(
            Internal,
            "the launch names no epoch to restart from"
        ))
    })?;

    input::under(&launch.input);
    let workers = cores::for_one_of(launch.size);
    let failed = |error: RestoreError| {
        if error.is_about_another(launch.rank) {
            std::thread::sleep(FIRST_WORD);
        }
        refused(error.into())
    };
    at(Point::RestartOpen)?;
    // SAFETY: no application has been started in this process, so the upper half's addresses are free.
    let restore = unsafe { Restore::open(wanted, launch.rank, launch.size, workers, parts::check) };
    let restore = restore.map_err(failed)?;
    // SAFETY: Stillpoint has no other thread at work: those that read the image have finished.
    let launch = &unsafe { launch::begin::hear(launch) }?;
    at(Point::RestartReserve)?;
    let restore = restore.reserve_descriptors().map_err(failed)?;
    at(Point::RestartRead)?;
    let threads = parts::returning(&restore).map_err(&refused)?;
    let Some((main, others)) = threads.split_first() else {
        return Err(refused(refusal!(
            BrokenImage,
            "its image holds no thread: use another epoch"
        )));
    };

    // No signal may come before the application can take it; the lower half's threads keep this mask for ever.
    syscall::set_mask(process::LOWER_MASK);
    // SAFETY: Stillpoint has no other thread at work: those that read the image have finished.
    unsafe {
        environment::prepare_for_mpi(BACKEND.environment, BACKEND.unless_told);
        mpi::load(launch).map_err(|reason| refused(refusal!(MpiMissing, "{reason}")))?;
    }
    let page = process::prepare(restore.reader().environment().gate_version)?;
    process::offer_mpi();
    page.restarted.store(1, Ordering::Release);
    page.rank.store(launch.rank.0 as i32, Ordering::Relaxed);
    page.size.store(launch.size as i32, Ordering::Relaxed);

    at(Point::RestartJoin)?;
    let mut job = join(launch).map_err(&refused)?;
    let known = parts::gate::known_as(&restore).map_err(&refused)?;
    job.is_known_as(known).map_err(&refused)?;
    job.barrier("checked").map_err(&refused)?;
    gate::neighbours::note(job.neighbours());
    at(Point::RestartChecked)?;
    if restore.thread_level() >= 0 {
        at(Point::RestartMpi)?;
        start_mpi(page, restore.thread_level(), launch).map_err(&refused)?;
    }
    let mut back = Back {
        restore,
        page,
        rank: launch.rank,
        main: main.clone(),
        made: Vec::new(),
        lost: ending::lost,
        changes_users: threads.iter().any(|thread| thread.credentials.is_some()),
    };
    at(Point::RestartMap)?;
    bring_back(&mut back, |part, back| part.map(back)).map_err(&refused)?;
    job.barrier("mapped").map_err(&refused)?;
    at(Point::RestartMapped)?;
    bring_back(&mut back, |part, back| part.open(back)).map_err(&refused)?;
    let low_text = low_text(&back.restore);
    launch::configure_exec(Some(&launch.upper_library), low_text)?;
    at(Point::RestartMain)?;
    // SAFETY: this is the main thread, which is not a thread of the upper half yet.
    unsafe { adopt_main(main) }.map_err(LaunchError::set_up("adopting the main thread"))?;
    gate::signals::suspend_by(launch);
    process::begin(Some(launch), low_text)?;
    bring_back(&mut back, |part, back| part.rebuild(back)).map_err(&refused)?;
    job.barrier("rebuilt").map_err(&refused)?;
    at(Point::RestartRebuilt)?;
    back.made = make(others, launch)?;
    bring_back(&mut back, |part, back| part.resume(back)).map_err(&refused)?;
    at(Point::RestartAgent)?;
    job.start().map_err(&refused)?;
    bring_back(&mut back, |part, back| part.finish(back)).map_err(&refused)?;
    drop(back);
    pass(Point::RestartLast);
    arriving::in_full();
    go();
    stop::release_all();
    // SAFETY: the main thread is adopted, and memory and the process's state are in place; nothing of the lower half is needed on this thread any more.
    unsafe { resume_main(main) }
}

/// Makes the other threads again. Each waits for [`go`].
fn make(others: &[Returning], launch: &Launch) -> Result<Vec<Thread>, LaunchError> {
    let mut made = Vec::new();
    for thread in others {
        strike(Point::RestartThreads)
            .map_err(LaunchError::set_up("starting the application's threads"))?;
        // SAFETY: the upper half's memory is in place.
        let thread = unsafe { recreate(thread.clone()) }
            .map_err(LaunchError::set_up("starting the application's threads"))?;
        made.push(thread);
    }
    // From its first instruction on, the application may pass any thread's id to the kernel.
    for thread in &made {
        while thread.state() != State::Alive {
            syscall::yield_now();
        }
    }
    match failed_credentials() {
        Some(error) => Err(LaunchError::Restore {
            rank: launch.rank,
            reason: credentials::not_given(error),
        }),
        None => Ok(made),
    }
}

/// Starts MPI with the application's thread level, and checks that it gives the same rank and size.
fn start_mpi(page: &GatePage, level: i32, launch: &Launch) -> Result<(), Refusal> {
    let refused = |what: &str, error: i32| {
        refusal!(
            OtherLibrary,
            "cannot start MPI again: {what} returned error {error}"
        )
    };
    // SAFETY: `process::offer_mpi` has stored the pointer, which leads to a table that is never freed.
    let dispatch = unsafe { &*(page.dispatch as *const Dispatch) };
    let predefined = page
        .services
        .predefined
        .ok_or_else(|| refusal!(Internal, "the gate page has no predefined handles"))?;
    /// `MPI_COMM_WORLD` of the standard ABI.
    const COMM_WORLD: i32 = 0x101;
    let (mut provided, mut rank, mut size) = (-1, -1, -1);
    // SAFETY: MPI is started here once, on the main thread, with the lower FS; MPI allows null arguments, and the places live on this stack.
    unsafe {
        let error = (dispatch.init_thread)(
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            level,
            &raw mut provided,
        );
        if error != 0 {
            return Err(refused("MPI_Init_thread", error));
        }
        let world = predefined(HandleKind::Communicator as u32, COMM_WORLD);
        let error = (dispatch.comm_rank)(world, &raw mut rank);
        if error != 0 {
            return Err(refused("MPI_Comm_rank", error));
        }
        let error = (dispatch.comm_size)(world, &raw mut size);
        if error != 0 {
            return Err(refused("MPI_Comm_size", error));
        }
    }
    if (rank, size) != (launch.rank.0 as i32, launch.size as i32) {
        return Err(refusal!(
            RanksDiffer,
            "MPI says rank {rank} of {size}, but the launcher says rank {} of {}: start all ranks with the same mpirun",
            launch.rank,
            launch.size
        ));
    }
    if provided < level {
        return Err(refusal!(
            OtherLibrary,
            "MPI provides thread level {provided} here, but the application needs {level}: use an MPI library that \
             provides it"
        ));
    }
    Ok(())
}

/// Text of a non-PIE executable, from which system calls are trapped too.
fn low_text(restore: &Restore) -> Option<(u32, u32)> {
    let regions = restore.reader().regions();
    let text = || {
        let executable =
            |region: &&stillpoint_image::Region| region.protection & libc::PROT_EXEC as u32 != 0;
        regions
            .iter()
            .filter(executable)
            .filter(|region| region.start < HIGH_TEXT as u64)
    };
    let start = text().map(|region| region.start).min()?;
    let end = text().map(|region| region.end).max()?;
    Some((start as u32, end.min(u32::MAX.into()) as u32))
}
