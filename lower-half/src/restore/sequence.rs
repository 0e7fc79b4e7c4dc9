//! The whole way from an image to the application's next instruction, in the order that it must have.

use std::sync::atomic::Ordering;

use stillpoint_faults::{Point, pass, strike, this_is};
use stillpoint_image::Thread;
use stillpoint_image::tables::thread_flags;
use stillpoint_protocol::launch::Launch;
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{GatePage, HandleKind, UpperHooks};

use super::{Restore, RestoreError, attributes, credentials, scheduling};
use crate::agent::starters;
use crate::arch::{registers, syscall};
use crate::capture::rank::{self, PageState};
use crate::capture::signals::{self, Waiting};
use crate::cores;
use crate::gate;
use crate::gate::filter::HIGH_TEXT;
use crate::launch::error::LaunchError;
use crate::launch::{self, appearance, environment, process};
use crate::threads::recreate::{adopt_main, failed_credentials, go};
use crate::threads::registry::State;
use crate::threads::{SavedThread, recreate, resume_main};

/// Where the job's ranks wait for one another.
pub trait Job {
    /// Returns when every rank of the job has come to this point.
    fn barrier(&mut self, name: &str) -> Result<(), String>;
    /// Starts the agent's thread: the application is about to run.
    fn start(self) -> Result<(), String>;
}

/// Restores this rank and goes on with it. `join` makes this rank a member of its job.
///
/// # Errors
/// Whatever keeps the rank from coming back. Until the barrier `checked` nothing has been changed, in this
/// process or on disk.
pub fn run<J: Job>(
    launch: &Launch,
    join: impl FnOnce(&Launch) -> Result<J, String>,
) -> Result<std::convert::Infallible, LaunchError> {
    let refused = |reason: String| LaunchError::Restore {
        rank: launch.rank,
        reason,
    };
    let failed = |error: RestoreError| refused(error.to_string());
    let at = |point: Point| strike(point).map_err(|error| refused(error.to_string()));
    this_is(launch.rank);
    let wanted = launch
        .restart
        .as_ref()
        .ok_or_else(|| refused("the launch names no epoch to restart from".into()))?;

    let workers = cores::for_one_of(launch.size);
    at(Point::RestartOpen)?;
    let restore = Restore::open(wanted, launch.rank, launch.size, workers).map_err(failed)?;
    at(Point::RestartReserve)?;
    let mut restore = restore.reserve_descriptors().map_err(failed)?;
    at(Point::RestartRead)?;
    let state = page_state(&restore).map_err(&refused)?;
    let own = scheduling::saved(&restore).map_err(&refused)?;
    let waiting = waiting_signals(&restore).map_err(&refused)?;
    let changes = credentials::saved(&restore).and_then(|saved| credentials::changes(&saved));
    let changes = changes.map_err(&refused)?;
    let attributes = attributes::saved(&restore).map_err(&refused)?;
    let saved: Vec<SavedThread> = restore
        .threads()
        .iter()
        .map(|thread| {
            let own = own.iter().find(|own| own.virtual_tid == thread.virtual_tid);
            let change = changes.iter().find(|(tid, _)| *tid == thread.virtual_tid);
            SavedThread {
                credentials: change.map(|(_, change)| change.clone()),
                attributes: attributes::of_thread(&attributes, thread.virtual_tid),
                pending: waiting.of_thread(thread.virtual_tid).to_vec(),
                timer_slack: own.and_then(|own| own.timer_slack).unwrap_or(0),
                ..saved_thread(thread)
            }
        })
        .collect();
    let Some((main, others)) = saved.split_first() else {
        return Err(refused(
            "its image holds no thread: use another epoch".into(),
        ));
    };

    // No signal before the application can take it; the lower half's threads keep this mask for ever.
    syscall::set_mask(process::LOWER_MASK);
    // SAFETY: no other thread has been started yet.
    unsafe { environment::prepare_for_mpi() };
    let page = process::prepare()?;
    page.restarted.store(1, Ordering::Release);
    page.rank.store(launch.rank as i32, Ordering::Relaxed);
    page.size.store(launch.size as i32, Ordering::Relaxed);

    at(Point::RestartJoin)?;
    let mut job = join(launch).map_err(&refused)?;
    job.barrier("checked").map_err(&refused)?;
    at(Point::RestartChecked)?;
    if restore.thread_level() >= 0 {
        at(Point::RestartMpi)?;
        start_mpi(page, restore.thread_level(), launch).map_err(&refused)?;
    }
    at(Point::RestartMap)?;
    // SAFETY: no application runs in this process yet.
    unsafe { restore.map().map_err(failed)? };
    job.barrier("mapped").map_err(&refused)?;
    at(Point::RestartMapped)?;
    // SAFETY: as above.
    unsafe { restore.files().map_err(failed)? };
    at(Point::RestartGate)?;
    restore_gate(&restore).map_err(&refused)?;
    page.hooks.store(state.hooks, Ordering::Release);
    page.mpi_active.store(state.mpi_active, Ordering::Release);
    page.sent_before.store(state.sent_before, Ordering::Relaxed);
    page.received_before
        .store(state.received_before, Ordering::Relaxed);

    let low_text = low_text(&restore);
    launch::configure_exec(Some(&launch.upper_library), low_text)?;
    at(Point::RestartMain)?;
    // SAFETY: this is the main thread, which is no thread of the upper half yet.
    unsafe { adopt_main(main) }.map_err(LaunchError::set_up("the main thread's record"))?;
    gate::signals::suspend_by(launch);
    process::begin(Some(launch), low_text)?;
    at(Point::RestartSignals)?;
    restore_part(&restore, "signals").map_err(&refused)?;
    show(main, &state);
    at(Point::RestartRebuild)?;
    // SAFETY: the upper half's memory is in place, MPI runs, and this thread is the main one.
    unsafe { rebuild(state.hooks, main.fs_upper) }.map_err(&refused)?;
    job.barrier("rebuilt").map_err(&refused)?;
    at(Point::RestartRebuilt)?;
    let mut made = Vec::new();
    for thread in others {
        at(Point::RestartThreads)?;
        // SAFETY: the upper half's memory is in place.
        let thread = unsafe { recreate(thread.clone()) }
            .map_err(LaunchError::set_up("the application's threads"))?;
        made.push(thread);
    }
    // From its first instruction on, the application may name any of its threads to the kernel.
    for thread in &made {
        while thread.state() != State::Alive {
            syscall::yield_now();
        }
    }
    let not_given = |error| {
        let error = std::io::Error::from_raw_os_error(error);
        refused(format!("its users and capabilities: {error}"))
    };
    if let Some(error) = failed_credentials() {
        return Err(not_given(error));
    }
    at(Point::RestartTimers)?;
    restore_part(&restore, "timers").map_err(&refused)?;
    at(Point::RestartProcess)?;
    restore.process().map_err(failed)?;
    at(Point::RestartAgent)?;
    job.start().map_err(&refused)?;
    pass(Point::RestartScheduling);
    scheduling::give(&own, &made, &restore, launch.rank);
    tell_of_starters(&restore, launch.rank);
    at(Point::RestartFinish)?;
    restore.finish_descriptors().map_err(failed)?;
    pass(Point::RestartClocks);
    restore.process_clocks();
    // All threads block everything until they return through their frames.
    waiting
        .process
        .iter()
        .for_each(|pending| pending.restore(true));
    main.pending
        .iter()
        .for_each(|pending| pending.restore(false));
    pass(Point::RestartLimits);
    attributes::give_process(&attributes, &restore, launch.rank);
    give_limits(&restore, launch.rank);
    at(Point::RestartCredentials)?;
    if let Some(change) = &main.credentials {
        change.make().map_err(not_given)?;
    }
    attributes::give_thread(&main.attributes);
    if !changes.is_empty() {
        attributes::dumpable_again(&attributes);
    }
    let main = main.clone();
    drop(restore);
    pass(Point::RestartLast);
    go();
    // SAFETY: everything is in place; nothing of the lower half is needed on this thread any more.
    unsafe {
        process::drop_alternate_stack();
        resume_main(&main)
    }
}

fn waiting_signals(restore: &Restore) -> Result<Waiting, String> {
    let blob = restore.blob(signals::BLOB);
    let blob = blob
        .filter(|blob| blob.version == signals::VERSION)
        .ok_or("its image does not hold its pending signals as this release does: use the release that wrote it")?;
    serde_json::from_slice(&blob.bytes)
        .map_err(|error| format!("'{}' in its image: {error}", signals::BLOB))
}

/// Gives the process its limits; says what this launch does not allow.
fn give_limits(restore: &Restore, rank: u32) {
    let lost = restore.limits();
    if scheduling::launchers_stderr(restore) {
        for what in lost {
            eprintln!("stillpoint: rank {rank}: {what}");
        }
    }
}

/// Says what had started the program and is not there any more to go on after it.
fn tell_of_starters(restore: &Restore, rank: u32) {
    let blob = restore
        .blob(starters::BLOB)
        .filter(|blob| blob.version == starters::VERSION);
    let starters: Vec<starters::Starter> = blob
        .and_then(|blob| serde_json::from_slice(&blob.bytes).ok())
        .unwrap_or_default();
    if let Some(text) = starters::at_restart(&starters)
        && scheduling::launchers_stderr(restore)
    {
        eprintln!("stillpoint: rank {rank}: {text}");
    }
}

fn page_state(restore: &Restore) -> Result<PageState, String> {
    let blob = restore
        .blob(rank::BLOB)
        .filter(|blob| blob.version == rank::VERSION);
    let blob = blob.ok_or(
        "its image holds no gate page that this release understands: use the release that wrote it",
    )?;
    serde_json::from_slice(&blob.bytes)
        .map_err(|error| format!("the gate page in its image: {error}"))
}

/// What the image's table says of a thread.
fn saved_thread(thread: &Thread) -> SavedThread {
    SavedThread {
        virtual_tid: thread.virtual_tid,
        fs_upper: thread.thread_pointer,
        clear_tid: thread.clear_child_tid,
        robust_list: thread.robust_list,
        robust_bytes: thread.robust_list_bytes,
        stop_frame: thread.stop_frame,
        sent: thread.sent,
        received: thread.received,
        driver: thread.flags & thread_flags::DRIVER != 0,
        believes: [thread_flags::BELIEVES_SIGSYS, thread_flags::BELIEVES_STOP]
            .map(|flag| thread.flags & flag != 0),
        name: thread.name,
        credentials: None,
        attributes: Vec::new(),
        pending: Vec::new(),
        timer_slack: 0,
    }
}

/// Starts MPI as the application had it, and sees that it gives the same rank and size.
fn start_mpi(page: &GatePage, level: i32, launch: &Launch) -> Result<(), String> {
    let refused =
        |what: &str, error: i32| format!("MPI cannot be started again: {what} returns {error}");
    // SAFETY: the table was put there by `process::prepare` and lives for ever.
    let dispatch = unsafe { &*(page.dispatch as *const Dispatch) };
    let predefined = page
        .services
        .predefined
        .ok_or("the gate page has no predefined handles")?;
    /// `MPI_COMM_WORLD` of the standard ABI.
    const COMM_WORLD: i32 = 0x101;
    let (mut provided, mut rank, mut size) = (-1, -1, -1);
    // SAFETY: MPI is started once, on the main thread, with the lower FS; null arguments are allowed.
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
    if (rank, size) != (launch.rank as i32, launch.size as i32) {
        return Err(format!(
            "MPI says rank {rank} of {size}, the launcher rank {} of {}: start all ranks with one mpirun",
            launch.rank, launch.size
        ));
    }
    if provided < level {
        return Err(format!(
            "MPI gives thread level {provided} here, the application has {level}: use an MPI library built for it"
        ));
    }
    Ok(())
}

/// Every part of the gate's state but those whose time is not yet.
fn restore_gate(restore: &Restore) -> Result<(), String> {
    for blob in restore.reader().blobs() {
        if let Some(part) = blob.name.strip_prefix(rank::GATE_PREFIX)
            && !matches!(part, "signals" | "timers")
        {
            restore_part(restore, part)?;
        }
    }
    for number in &restore.reader().descriptors().numbers {
        gate::descriptors::note(number.number as usize);
    }
    for stream in 0..3 {
        // A stream that the application had closed stays closed to it.
        if !restore
            .reader()
            .descriptors()
            .numbers
            .iter()
            .any(|number| number.number == stream)
        {
            gate::descriptors::forget(stream as usize);
        }
    }
    Ok(())
}

fn restore_part(restore: &Restore, part: &str) -> Result<(), String> {
    let name = format!("{}{part}", rank::GATE_PREFIX);
    let blob = restore
        .blob(&name)
        .filter(|blob| blob.version == rank::GATE_PARTS_VERSION);
    let blob = blob.ok_or_else(|| {
        format!("its image lacks '{name}' in a version that this release understands")
    })?;
    gate::restore(part, &blob.bytes).map_err(|error| error.to_string())
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

/// Name, arguments and environment as `ps` shows them.
fn show(main: &SavedThread, state: &PageState) {
    appearance::restore_name(&main.name);
    if state.strings[0] != 0 {
        appearance::show_again(state.strings, state.vector);
    }
}

/// Lets the upper half make its MPI objects again.
///
/// # Safety
/// On the main thread, adopted, the upper half's memory in place, MPI running.
unsafe fn rebuild(hooks: u64, fs_upper: u64) -> Result<(), String> {
    // SAFETY: the hooks lie in memory that has just been restored.
    let Some(hooks) = (unsafe { (hooks as *const UpperHooks).as_ref() }) else {
        return Ok(());
    };
    let Some(function) = hooks.rebuild else {
        return Ok(());
    };
    let lower = registers::fs();
    // SAFETY: the hook wants the upper FS; between the switches nothing uses thread-local storage. It runs on this
    // stack, which lies outside of everything that was restored.
    let result = unsafe {
        registers::set_fs(fs_upper);
        let result = function();
        registers::set_fs(lower);
        result
    };
    if result == 0 {
        return Ok(());
    }
    let bytes = (hooks.refusal_bytes.load(Ordering::Acquire) as usize).min(4096);
    let text = match hooks.refusal {
        0 => String::new(),
        // SAFETY: the upper half keeps 4096 bytes of text there.
        address => unsafe {
            String::from_utf8_lossy(std::slice::from_raw_parts(address as *const u8, bytes))
                .into_owned()
        },
    };
    Err(format!(
        "its MPI objects cannot be made again (error {result}): {text}"
    ))
}
