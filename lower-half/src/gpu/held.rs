//! How far this rank's devices have come in a checkpoint, and the way back from there.
//!
//! Each function here locks out all others. If a checkpoint is given up while the driver moves memory, the way back waits until the move is done. Only the
//! driver knows how far it has come, so the way back begins with a question.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stillpoint_faults::{Point, pass, strike};
use stillpoint_gpu_messages::{Facts, Report, State};
use stillpoint_ids::Epoch;
use stillpoint_protocol::launch::GpuStaging;
use stillpoint_refusals::{Coded, Refusal, refusal};
use stillpoint_wrappers::gate::DriverState;

use super::client::{self, ANSWERS, Client, MOVES, Trouble};
use super::fitting::Carried;
use super::{early, staged, traces};
use crate::gate::stop::{self, OutsideMpi};
use crate::ground::page::Page;
use crate::threads::registry::{self, Thread};

/// How long a first try to lock waits for submitted work. Each further one waits twice as long: a program may keep much work submitted.
const FIRST_TRY: Duration = Duration::from_secs(1);
const LAST_TRY: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(10);
/// How long threads may take to stand still again.
const STAND: Duration = Duration::from_secs(20);
/// How long they are waited for until it is asked whether the checkpoint has been given up.
const SLICE: Duration = Duration::from_millis(100);

/// A rank whose devices have been locked, or more.
struct Held {
    client: Client,
    thread: Thread,
    facts: Facts,
    /// Whether what the devices held is in the process's memory, or staged.
    saved: bool,
    /// Where device memory is.
    form: Form,
}

/// The state of device memory that was to be staged.
enum Form {
    /// Device memory belongs to the devices, or is in the process's own memory.
    Own,
    /// The helper was asked to stage it and has not answered.
    Asked,
    /// The helper has staged it.
    Staged(Report),
}

static HELD: Mutex<Option<Held>> = Mutex::new(None);
/// Whether `HELD` is occupied, for callers that only look.
static LOCKED: AtomicBool = AtomicBool::new(false);
/// The epoch that is to be written.
static EPOCH: AtomicU64 = AtomicU64::new(0);
/// Whether this process has ever had devices of its own that wrote to its memory.
pub(super) static HAD: AtomicBool = AtomicBool::new(false);

fn held() -> MutexGuard<'static, Option<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the driver still holds this rank's devices. Their open files then have to go before anything looks at memory.
pub fn is_locked() -> bool {
    LOCKED.load(Ordering::Acquire)
}

/// Whether a device may at some time have written to this process's memory by itself.
pub fn may_have_written() -> bool {
    HAD.load(Ordering::Acquire)
}

/// Prepares for a checkpoint of this epoch while the application still runs.
pub fn prepare(epoch: Epoch) {
    EPOCH.store(epoch.0, Ordering::Release);
    if traces::in_use() {
        early::begin();
    }
}

fn told(what: &str) -> impl Fn(Trouble) -> Refusal {
    move |trouble| {
        let text = format!("its GPUs cannot be {what}: {trouble}; the job runs on");
        Refusal::new(trouble.code(), text)
    }
}

pub(super) fn at(point: Point) -> Result<(), Refusal> {
    strike(point).map_err(|error| refusal!(FaultPoint, "{error}"))
}

/// Locks the devices, if the rank uses any: submitted work is done, and new work waits. Every thread must be stopped, and is when this returns `Ok`.
///
/// # Errors
/// Why they cannot be locked.
pub fn lock(page: Page, given_up: &dyn Fn() -> bool) -> Result<(), Refusal> {
    let prepared = early::prepared();
    let mut held = held();
    // A caller that gives up afterwards calls `release`, which waits for this lock.
    if given_up() || !traces::in_use() {
        return Ok(());
    }
    at(Point::GpuLock)?;
    let told = told("checkpointed");
    let (mut client, facts) =
        match prepared.and_then(|mut client| Some((client.facts().ok()?, client))) {
            Some((facts, client)) => (client, facts),
            None => {
                let mut client = Client::connect().map_err(&told)?;
                let facts = client.facts().map_err(&told)?;
                (client, facts)
            }
        };
    if let Some(reason) = &facts.no_host_mode {
        return Err(refusal!(
            GpuUnsupported,
            "its GPUs cannot be checkpointed: {reason}"
        ));
    }
    let Some(tid) = client.restore_thread().map_err(&told)? else {
        // The process has loaded the driver's library but not used it.
        return Ok(());
    };
    let thread = thread(tid).ok_or_else(|| {
        refusal!(
            GpuDriver,
            "its GPUs cannot be checkpointed: the driver's thread {tid} is none of the program's"
        )
    })?;
    let running = let_run(page)?;
    match client.state(ANSWERS).map_err(&told)? {
        State::Running => {}
        state => {
            return Err(refusal!(
                GpuDriver,
                "its GPUs are {state:?} already: somebody else checkpoints this process; let that end"
            ));
        }
    }
    HAD.store(true, Ordering::Release);
    LOCKED.store(true, Ordering::Release);
    let held = held.insert(Held {
        client,
        thread,
        facts,
        saved: false,
        form: Form::Own,
    });
    held.lock(given_up)?;
    drop(running);
    stand_still(page, given_up)
}

/// Lets the application's threads run, but for those in MPI: a thread that is stopped inside the driver may hold something, and the driver waits for that without
/// a limit. Each then waits in the driver, or parks in its next stub.
fn let_run(page: Page) -> Result<OutsideMpi, Refusal> {
    if registry::each().any(|it| it.is_driver() && stop::is_outside(it)) {
        page.advance();
        // The permission is the driver thread's: no other may run before that has taken it.
        let end = Instant::now() + STAND;
        while page.advances() > 0 {
            if Instant::now() > end {
                return Err(does_not_stand("did not go on"));
            }
            std::thread::sleep(LOOK);
        }
    }
    Ok(stop::let_those_outside_mpi_run())
}

/// Waits until all threads stand still again.
fn stand_still(page: Page, given_up: &dyn Fn() -> bool) -> Result<(), Refusal> {
    let parked = || page.driver_state() == DriverState::Parked as u32 && page.advances() == 0;
    let end = Instant::now() + STAND;
    while Instant::now() < end && !given_up() {
        if stop::stop_all(SLICE) && parked() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Err(does_not_stand("did not stand still again"))
}

fn does_not_stand(what: &str) -> Refusal {
    refusal!(
        GpuBusy,
        "its threads {what} within {} s while its GPUs were locked; the job runs on",
        STAND.as_secs()
    )
}

/// Returns the upper half's thread that the driver means. The driver may know it by the kernel's id or, after a restart, by the application's.
fn thread(tid: u32) -> Option<Thread> {
    let find = |is: fn(Thread) -> u32| registry::each().find(|thread| is(*thread) == tid);
    find(Thread::real_tid).or_else(|| find(Thread::virtual_tid))
}

/// Stages the devices' memory, or moves it into the process's own. Every thread must be stopped, and is when this returns.
///
/// # Errors
/// Why it does not.
pub fn save() -> Result<(), Refusal> {
    let mut held = held();
    let Some(held) = held.as_mut() else {
        return Ok(());
    };
    at(Point::GpuSave)?;
    if !held.stage()? {
        held.alone(Client::checkpoint)
            .map_err(told("checkpointed"))?;
    }
    let left = traces::left()
        .map_err(|error| refusal!(UnreadableMemory, "its memory map cannot be read: {error}"))?;
    if !left.is_empty() {
        return Err(refusal!(
            GpuDriver,
            "its GPUs' driver has put everything down, and holds {} all the same: no image could; the job runs on",
            left.join(", ")
        ));
    }
    held.saved = true;
    Ok(())
}

/// Returns what an image must hold of the devices.
pub fn carried() -> Option<Carried> {
    let held = held();
    let held = held.as_ref().filter(|held| held.saved)?;
    Some(Carried {
        facts: held.facts.clone(),
        thread: held.thread.virtual_tid(),
        staged: match &held.form {
            Form::Staged(report) => Some(report.clone()),
            Form::Own | Form::Asked => None,
        },
    })
}

/// Brings the devices back to where they work, from any state. Threads may still be stopped.
///
/// # Errors
/// They do not come back: the process is of no more use.
pub fn release() -> Result<(), String> {
    let mut held = held();
    let Some(mut held) = held.take() else {
        return Ok(());
    };
    pass(Point::GpuBack);
    staged::give_up();
    let back = held.back().or_else(|trouble| match trouble {
        // A new helper asks the driver how far it is.
        Trouble::Helper { .. } => Client::connect().and_then(|client| {
            held.client = client;
            held.back()
        }),
        other => Err(other),
    });
    stop::joins(held.thread);
    LOCKED.store(false, Ordering::Release);
    back.map_err(|trouble| format!("its GPUs do not come back after a checkpoint: {trouble}"))
}

impl Held {
    /// Has the driver do something while only the thread that it needs runs.
    fn alone<T>(
        &mut self,
        ask: impl FnOnce(&mut Client) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        alone(&mut self.client, self.thread, ask)
    }

    /// Locks the devices while the application's threads run. New work waits during each try. Submitted work may depend on it, so it goes on between two tries.
    fn lock(&mut self, given_up: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let told = told("checkpointed");
        let mut a_try = FIRST_TRY;
        loop {
            match self.client.lock(a_try.as_millis() as u32) {
                Ok(()) => return Ok(()),
                Err(Trouble::TimedOut(_)) if a_try < LAST_TRY && !given_up() => a_try *= 2,
                Err(trouble) => return Err(told(trouble)),
            }
        }
    }

    /// Stages device memory if that is wanted and possible; returns false if the memory has to go the other way.
    fn stage(&mut self) -> Result<bool, Refusal> {
        let Ok(asker) = client::asker() else {
            return Ok(false);
        };
        if asker.staging == GpuStaging::Off {
            return Ok(false);
        }
        let lost = |trouble: Trouble| {
            refusal!(GpuDriver, "its GPUs' memory could not be staged: {trouble}")
        };
        let refused = |reason: &str| match asker.staging {
            GpuStaging::On => Err(refusal!(
                GpuStaging,
                "its GPUs' memory cannot be staged, as --gpu-staging on demands: {reason}; the job runs on"
            )),
            _ => Ok(false),
        };
        if let Some(reason) = &self.facts.no_custom_storage {
            return refused(reason);
        }
        at(Point::GpuStage)?;
        self.form = Form::Asked;
        let epoch = Epoch(EPOCH.load(Ordering::Acquire));
        match self
            .alone(|client| client.stage(asker, epoch))
            .map_err(lost)?
        {
            Ok(report) => {
                self.form = Form::Staged(report);
                staged::open().map_err(lost)?;
                Ok(true)
            }
            Err(reason) => {
                self.form = Form::Own;
                refused(&reason)
            }
        }
    }

    /// Has the helper give the staged memory back to the devices.
    fn unstage(&mut self) -> Result<(), Trouble> {
        pass(Point::GpuUnstage);
        self.client.unstage().map_err(|trouble| {
            Trouble::Refused(format!(
                "the node's helper does not give back what it has staged: {trouble}"
            ))
        })
    }

    fn back(&mut self) -> Result<(), Trouble> {
        // It may run already, if an attempt was given up while threads ran.
        if !stop::let_run(self.thread) {
            return Err(Trouble::Refused(
                "the driver's thread does not run".to_owned(),
            ));
        }
        // The driver may still be busy with the request of a helper that has ended.
        let end = Instant::now() + MOVES;
        loop {
            let state = self.client.state(MOVES)?;
            let step = match state {
                State::Running | State::Unknown => return Ok(()),
                State::Checkpointed => match self.form {
                    Form::Own => self.client.restore(&[]),
                    // Staged memory can only come back from the helper.
                    Form::Asked | Form::Staged(_) => {
                        self.unstage()?;
                        continue;
                    }
                },
                State::Locked => {
                    pass(Point::GpuUnlock);
                    self.client.unlock()
                }
                // Only the helper that was asked could have finished the move.
                State::Moving if !matches!(self.form, Form::Own) => {
                    let reason = "their memory was being staged, and is neither here nor there";
                    return Err(Trouble::Refused(reason.to_owned()));
                }
                State::Moving if Instant::now() < end => {
                    std::thread::sleep(LOOK);
                    continue;
                }
                State::Moving | State::Failed => {
                    let reason = format!("the driver says that they are {state:?}");
                    return Err(Trouble::Refused(reason));
                }
            };
            match step {
                Err(Trouble::Refused(_)) if self.client.state(MOVES)? != state => {}
                step => step?,
            }
        }
    }
}

fn alone<T>(
    client: &mut Client,
    thread: Thread,
    ask: impl FnOnce(&mut Client) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    if !stop::let_run(thread) {
        return Err(Trouble::Refused(
            "the driver's thread does not run".to_owned(),
        ));
    }
    let answer = ask(client);
    match stop::halt(thread) {
        true => answer,
        false => Err(Trouble::Refused(
            "the driver's thread does not stand still again".to_owned(),
        )),
    }
}
