//! Work on epochs and on the registry, which may take long (network file systems), so the serving thread does not do it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use stillpoint_faults::{Point, pass};
use stillpoint_ids::Epoch;
use stillpoint_protocol::agent::Written;
use stillpoint_refusals::{Coded, Refusal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Event;
use crate::epoch::{Description, EpochError, Epochs};
use crate::job::Input;
use crate::registry::{Entry, Registry};

/// The files of a job, and the unfinished work on them. The work is done one after the other, in the order of the orders: an attempt's files are removed
/// before the next attempt makes the same epoch's directory.
pub(super) struct Files {
    epochs: Epochs,
    /// The number of committed epochs to keep.
    keep: usize,
    /// Reports on the work.
    events: mpsc::UnboundedSender<Event>,
    work: JoinSet<()>,
    /// Held by the work that is being done. Waiting work gets it in turn.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Held by the work that removes older epochs.
    clearing: Arc<Mutex<()>>,
}

impl Files {
    pub fn new(epochs: Epochs, keep: usize, events: mpsc::UnboundedSender<Event>) -> Files {
        Files {
            epochs,
            keep,
            events,
            work: JoinSet::new(),
            turn: Arc::default(),
            clearing: Arc::default(),
        }
    }

    pub fn register(&mut self, registry: Registry, entry: Entry) {
        self.later(move |_| {
            let trouble = registry.add(&entry).err().map(|error| {
                format!("commands find this job only by its directory: the coordinator cannot write the registry: {error}")
            });
            Some(Event::Registered(trouble))
        });
    }

    /// Removes the job from the registry. A suspended one is recorded as such.
    pub fn unregister(&mut self, registry: Registry, entry: Entry, suspended: bool) {
        self.later(move |_| {
            registry.remove(&entry);
            let aside = suspended.then(|| registry.set_aside(&entry));
            let trouble = aside.and_then(Result::err);
            trouble.map(|error| {
                Event::Log(format!(
                    "`stillpoint resume --all` will not find this job: the coordinator cannot write the registry: {error}"
                ))
            })
        });
    }

    pub fn prepare(&mut self, attempt: u64, epoch: Epoch) {
        self.later(move |epochs| {
            let result = epochs.prepare(epoch).map(drop).map_err(|e| e.refusal());
            Some(Event::Done(Input::Prepared { attempt, result }))
        });
    }

    pub fn discard(&mut self, epoch: Epoch) {
        self.later(move |epochs| {
            Some(Event::Log(match epochs.discard(epoch) {
                Ok(()) => format!("epoch {epoch}: removed"),
                Err(error) => error.to_string(),
            }))
        });
    }

    pub fn commit(&mut self, attempt: u64, epoch: Epoch, images: Vec<Written>, about: Description) {
        self.then_prune(move |epochs| {
            let committed = epochs.commit(epoch, &images, &about);
            let settled = committed.is_ok();
            pass(Point::Committed);
            let result = told(committed);
            (settled, Input::Committed { attempt, result })
        });
    }

    /// Commits a staged epoch that has become whole.
    pub fn secure(&mut self, epoch: Epoch) {
        self.then_prune(move |epochs| {
            let secured = epochs.secure(epoch);
            let settled = secured.is_ok();
            let result = told(secured);
            (settled, Input::Durable { epoch, result })
        });
    }

    pub fn stage(&mut self, attempt: u64, epoch: Epoch, images: Vec<Written>, about: Description) {
        self.later(move |epochs| {
            let result = told(epochs.stage(epoch, &images, &about));
            Some(Event::Done(Input::Committed { attempt, result }))
        });
    }

    pub fn discard_staged(&mut self, epoch: Epoch) {
        self.later(move |epochs| {
            Some(Event::Log(match epochs.discard_staged(epoch) {
                Ok(()) => format!("epoch {epoch}: removed from the slow tier"),
                Err(error) => error.to_string(),
            }))
        });
    }

    /// Lets another job take the directory, whenever no change is under way.
    pub fn let_go(&mut self) {
        self.later(|epochs| {
            epochs.let_go();
            None
        });
    }

    /// Takes a directory again that was released.
    pub fn take_again(&mut self) {
        self.later(|epochs| {
            let taken = epochs.take_again().err();
            taken.map(|error| Event::Log(error.to_string()))
        });
    }

    /// Returns when all work is done.
    pub async fn all_done(&mut self) {
        while self.work.join_next().await.is_some() {}
    }

    /// Retires older epochs when `work` has committed a newer one. They leave the list before the commit is reported. Their data is removed after that, since
    /// the application may be waiting. Errors go to the log.
    fn then_prune(&mut self, work: impl FnOnce(&Epochs) -> (bool, Input) + Send + 'static) {
        let keep = self.keep;
        let (events, clearing) = (self.events.clone(), Arc::clone(&self.clearing));
        self.in_turn(move |epochs| {
            let (settled, input) = work(epochs);
            let (retired, errors) = match settled {
                true => epochs.retire(keep),
                false => Default::default(),
            };
            let log = move |errors: Vec<EpochError>| {
                for error in errors {
                    // When the job has ended, the receiver is gone.
                    let _ = events.send(Event::Log(error.to_string()));
                }
            };
            log(errors);
            let clear = move |epochs: &Epochs| {
                // Only one thread clears at a time: another one would miss the files that it removes.
                let _clearing = clearing.lock().unwrap_or_else(PoisonError::into_inner);
                log(epochs.clear(retired));
            };
            (Some(Event::Done(input)), clear)
        });
    }

    fn later(&mut self, work: impl FnOnce(&Epochs) -> Option<Event> + Send + 'static) {
        self.in_turn(|epochs| (work(epochs), |_: &Epochs| {}));
    }

    /// Does work in its turn, and reports its result. Then it does what the work has left, while other work has its turn.
    fn in_turn<L: FnOnce(&Epochs) + Send + 'static>(
        &mut self,
        work: impl FnOnce(&Epochs) -> (Option<Event>, L) + Send + 'static,
    ) {
        let epochs = self.epochs.clone();
        let events = self.events.clone();
        let turn = Arc::clone(&self.turn);
        self.work.spawn(async move {
            let held = turn.lock().await;
            let worked = tokio::task::spawn_blocking(move || {
                let (done, left) = work(&epochs);
                (epochs, done, left)
            });
            let Ok((epochs, done, left)) = worked.await else {
                return;
            };
            if let Some(done) = done {
                // As above.
                let _ = events.send(done);
            }
            drop(held);
            // It reports its own errors.
            let _ = tokio::task::spawn_blocking(move || left(&epochs)).await;
        });
    }
}

/// The path of an epoch, or the error, in the job's form.
fn told(result: Result<PathBuf, EpochError>) -> Result<String, Refusal> {
    result
        .map(|path| path.to_string_lossy().into_owned())
        .map_err(|error| error.refusal())
}
