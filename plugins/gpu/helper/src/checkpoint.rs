//! The requests of one rank.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak, mpsc};

use stillpoint_gpu_copies::arena::Shown;
use stillpoint_gpu_driver::{Driver, Error, checkpoint};
use stillpoint_gpu_messages::{Answer, Request, State, VERSION, send};

use crate::staging::Portion;
use crate::staging::locked::Locked;
use crate::staging::rank::{self, Draining, Filling, Returning};
use crate::staging::shown;
use crate::staging::stager::{self, Order, StagingOutcome, StagingRequest};
use crate::{facts, refused};

/// The result of opening the driver. The first caller opens it.
static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();

/// Waits until the driver is open.
///
/// # Errors
/// The text is for people.
pub fn driver() -> Result<&'static Driver, String> {
    DRIVER
        .get_or_init(facts::open)
        .as_ref()
        .map_err(Clone::clone)
}

/// The state that all connections share.
pub struct Node {
    orders: mpsc::Sender<Order>,
    locked: Locked,
    /// The staged portion of each process.
    staged: Mutex<BTreeMap<i32, Weak<Portion>>>,
}

impl Node {
    pub fn new() -> Node {
        let locked = Locked::default();
        Node {
            orders: stager::start(locked.clone()),
            locked,
            staged: Mutex::default(),
        }
    }
}

/// A process's connection, and the state that lives until it ends.
pub struct Connection<'n> {
    node: &'n Node,
    pid: i32,
    /// The staged portion, until it is filled back.
    portion: Option<Arc<Portion>>,
    draining: Option<Draining>,
    filling: Option<Filling>,
    /// Whether this connection has locked the process, so that others wait for it.
    locks: bool,
    /// Whether this connection expects staging.
    expects: bool,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.is_locked_no_more();
        if self.expects {
            let _ = self.order(Order::Over);
        }
    }
}

/// The driver's results for a process that does not use it: `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_NOT_INITIALIZED`.
const KNOWS_IT_NOT: [u32; 2] = [1, 3];

fn is_unknown(error: &Error) -> bool {
    (error.code()).is_some_and(|code| KNOWS_IT_NOT.contains(&code))
}

impl<'n> Connection<'n> {
    pub fn new(node: &'n Node, pid: i32) -> Connection<'n> {
        Connection {
            node,
            pid,
            portion: None,
            draining: None,
            filling: None,
            locks: false,
            expects: false,
        }
    }

    /// Carries out a request for the process, and answers.
    ///
    /// # Errors
    /// The process is gone.
    pub fn carry_out(
        &mut self,
        request: Request,
        from: &mut impl BufRead,
        mut to: &UnixStream,
    ) -> io::Result<()> {
        let answer = match request {
            Request::Hello { version } => hello(version),
            Request::Next => {
                return match &mut self.draining {
                    Some(draining) => draining.next(&mut to),
                    None => send(&mut to, &nothing_is_drained()),
                };
            }
            Request::Arena => match self.arena() {
                Ok(arena) => return shown::hand(&arena.file, arena.bytes, from, to),
                Err(reason) => Answer::Failed(reason),
            },
            Request::Hashes { block, hashers } => {
                return match &mut self.draining {
                    Some(draining) => draining.hashes(block, hashers, &mut to),
                    None => send(&mut to, &nothing_is_drained()),
                };
            }
            Request::Only { block } => match &mut self.draining {
                Some(draining) => draining.only(block, from)?,
                // The bits that follow cannot be told from requests.
                None => return Err(io::ErrorKind::InvalidData.into()),
            },
            request => match driver() {
                Ok(driver) => self
                    .with(driver, request, from, to)
                    .unwrap_or_else(Answer::Failed),
                Err(reason) => Answer::Failed(reason),
            },
        };
        send(&mut to, &answer)
    }

    /// Returns the memory that the rank may see.
    fn arena(&mut self) -> Result<Shown, String> {
        if let Some(draining) = &self.draining {
            return Ok(draining.arena());
        }
        let filling = Filling::new(driver()?)?;
        let arena = filling.arena();
        self.filling = Some(filling);
        Ok(arena)
    }

    fn with(
        &mut self,
        driver: &'static Driver,
        request: Request,
        from: &mut impl BufRead,
        mut to: &UnixStream,
    ) -> Result<Answer, String> {
        let pid = self.pid;
        let done = |result: Result<(), Error>| match result {
            Ok(()) => Ok(Answer::Done),
            Err(error) => Err(error.to_string()),
        };
        match request {
            Request::Hello { version } => Ok(hello(version)),
            Request::Facts => facts::of(driver).map(Answer::Facts),
            Request::State => Ok(state(driver, pid)),
            Request::RestoreThread => match checkpoint::restore_thread(driver, pid) {
                Ok(thread) => Ok(Answer::Thread(Some(thread as u32))),
                Err(error) if is_unknown(&error) => Ok(Answer::Thread(None)),
                Err(error) => Err(error.to_string()),
            },
            Request::Lock { milliseconds } => {
                match checkpoint::lock(driver, pid, milliseconds) {
                    // The driver may lock the process at the last moment, after the time limit of this attempt or an earlier one.
                    Err(_) if checkpoint::state(driver, pid) == Ok(checkpoint::State::Locked) => {}
                    Err(error) if error.code() == Some(checkpoint::NOT_READY) => {
                        return Ok(Answer::TimedOut);
                    }
                    result => drop(done(result)?),
                };
                self.locks = true;
                self.node.locked.add(pid);
                Ok(Answer::Done)
            }
            Request::Checkpoint => {
                self.is_locked_no_more();
                checkpoint::checkpoint(driver, pid)
                    .map_err(|error| refused::because(&error, pid))?;
                Ok(Answer::Done)
            }
            Request::Restore { pairs } => {
                let pairs: Vec<_> = pairs.into_iter().map(|(old, new)| (old.0, new.0)).collect();
                done(checkpoint::restore(driver, pid, &pairs))
            }
            Request::Unlock => {
                self.is_locked_no_more();
                done(checkpoint::unlock(driver, pid))
            }
            Request::Survey { directory } => {
                let (done, waits) = mpsc::channel();
                self.order(Order::Survey { directory, done })?;
                self.expects = true;
                waits.recv().map_err(|_| gone())?;
                Ok(Answer::Done)
            }
            Request::Stage {
                rank,
                epoch,
                directory,
            } => {
                let (outcome, waits) = mpsc::channel();
                self.order(Order::Stage(StagingRequest {
                    pid,
                    rank,
                    epoch,
                    directory,
                    outcome,
                }))?;
                let outcome = waits.recv().map_err(|_| gone())?;
                self.staged(outcome)
            }
            Request::Unstage => {
                // The staged bytes are kept if they cannot go back.
                let portion = self.portion.clone();
                let portion = portion.ok_or("no memory of this process is staged")?;
                let measured = rank::unstage(driver, pid, &portion)?;
                // This comes before the last of the staged memory goes, because the stager, which notes this, may go
                // with it.
                let epoch = portion.group.epoch;
                self.order(Order::Back(measured, epoch))?;
                self.portion = None;
                Ok(Answer::Done)
            }
            Request::Drain => {
                let portion = self.all_staged().get(&pid).and_then(Weak::upgrade);
                let portion = portion.ok_or("no memory of this process is staged")?;
                let draining = Draining::new(driver, &portion)?;
                let memories = draining.memories();
                self.draining = Some(draining);
                Ok(Answer::Memories(memories))
            }
            Request::Arena | Request::Next | Request::Hashes { .. } | Request::Only { .. } => {
                Ok(nothing_is_drained())
            }
            Request::Fill {
                rank,
                directory,
                pairs,
                memories,
            } => {
                let returning = Returning {
                    pid,
                    rank,
                    pairs: &pairs,
                    memories: &memories,
                };
                let filling = self.filling.take();
                let filling = filling.ok_or("the rank sees no memory to fill them from")?;
                filling.fill(driver, &returning, &directory, &mut to, from)?;
                Ok(Answer::Done)
            }
        }
    }

    /// Ends the wait of the others for this process.
    fn is_locked_no_more(&mut self) {
        // Another connection of the process may have locked it since.
        if std::mem::take(&mut self.locks) {
            self.node.locked.remove(self.pid);
        }
    }

    fn order(&self, order: Order) -> Result<(), String> {
        self.node.orders.send(order).map_err(|_| gone())
    }

    fn all_staged(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, Weak<Portion>>> {
        self.node
            .staged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn staged(&mut self, outcome: StagingOutcome) -> Result<Answer, String> {
        match outcome {
            StagingOutcome::Staged(portion, report) => {
                self.is_locked_no_more();
                let mut all = self.all_staged();
                all.retain(|_, portion| portion.strong_count() > 0);
                all.insert(self.pid, Arc::downgrade(&portion));
                drop(all);
                self.portion = Some(portion);
                Ok(Answer::Staged(report))
            }
            StagingOutcome::Not(reason) => Ok(Answer::NotStaged(reason)),
            StagingOutcome::Lost(reason) => {
                self.is_locked_no_more();
                Err(reason)
            }
        }
    }
}

fn hello(version: u32) -> Answer {
    match version {
        VERSION => Answer::Done,
        _ => Answer::Failed(format!(
            "this stillpoint-gpu speaks version {VERSION}, but the rank speaks version {version}: they belong to two \
             installations; end the older job"
        )),
    }
}

fn nothing_is_drained() -> Answer {
    Answer::Failed("no memory is drained".to_owned())
}

fn gone() -> String {
    "the thread that stages has ended early".to_owned()
}

fn state(driver: &Driver, pid: i32) -> Answer {
    match checkpoint::state(driver, pid) {
        Ok(checkpoint::State::Running) => Answer::State(State::Running),
        Ok(checkpoint::State::Locked) => Answer::State(State::Locked),
        Ok(checkpoint::State::Checkpointed) => Answer::State(State::Checkpointed),
        Ok(checkpoint::State::Failed) => Answer::State(State::Failed),
        Ok(checkpoint::State::Moving) => Answer::State(State::Moving),
        Err(error) if is_unknown(&error) => Answer::State(State::Unknown),
        Err(error) => Answer::Failed(error.to_string()),
    }
}
