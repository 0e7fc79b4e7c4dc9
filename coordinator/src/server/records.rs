//! The coordinator's records, job.json and the log, which a thread of its own writes.
//!
//! A sync of a file can take half a minute and more on a busy disk. Ranks and commands do not wait so long for an answer, so the thread that serves them does
//! none of this. Orders are carried out in turn.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use stillpoint_directory::Directory;
use stillpoint_protocol::job_file::{JobFile, JobFileError};
use tokio::sync::oneshot;

use super::timeline;

use crate::epoch::seconds_since_1970;
use crate::fence::Fence;
use crate::log::Log;

/// The destination of the records. Both calls may take as long as the disk takes.
pub trait Records: Send {
    /// Adds a line to the log, for a moment in seconds since 1970.
    fn line(&mut self, at: u64, text: &str);
    /// Adds the times of an epoch whose attempt ended then.
    fn trace(&mut self, at: f64, text: &str);
    /// Replaces job.json. It is on the disk when this returns.
    fn job(&mut self, file: &JobFile) -> Result<(), JobFileError>;
    /// Nothing comes any more.
    fn finish(&mut self);
}

/// Records in the checkpoint directory.
#[derive(Debug)]
pub struct InDirectory {
    pub directory: Directory,
    pub log: Log,
    /// The coordinator's right to write job.json.
    fence: Arc<Fence>,
}

impl InDirectory {
    /// The records of a coordinator that has just taken the directory into use.
    pub fn new(directory: Directory, log: Log, fence: Arc<Fence>) -> InDirectory {
        InDirectory {
            directory,
            log,
            fence,
        }
    }
}

impl Records for InDirectory {
    fn line(&mut self, at: u64, text: &str) {
        self.log.line(at, text);
    }

    fn trace(&mut self, at: f64, text: &str) {
        if let Err(error) = timeline::add(&self.directory, at, text) {
            let line = format!("{}: cannot write it: {error}", timeline::NAME);
            self.log.line(at as u64, &line);
        }
    }

    fn job(&mut self, file: &JobFile) -> Result<(), JobFileError> {
        let path = JobFile::path(self.directory.path());
        let change = self.fence.change(&self.directory);
        let _change = change.map_err(|by| JobFileError::Taken { path, by })?;
        file.write_in(&self.directory)?;
        self.fence.wrote(file);
        Ok(())
    }

    fn finish(&mut self) {
        self.log.finish();
    }
}

/// The result of writing job.json.
pub(super) type Written = Result<(), String>;

enum Order {
    Line { at: u64, text: String },
    Trace { at: f64, text: String },
    Job(Box<JobFile>, oneshot::Sender<Written>),
}

/// The thread that writes.
pub(super) struct Recorder {
    orders: mpsc::Sender<Order>,
    thread: JoinHandle<()>,
}

impl Recorder {
    pub fn start(mut records: impl Records + 'static) -> io::Result<Recorder> {
        let (orders, ordered) = mpsc::channel();
        let write = move || {
            for order in ordered {
                match order {
                    Order::Line { at, text } => records.line(at, &text),
                    Order::Trace { at, text } => records.trace(at, &text),
                    Order::Job(file, done) => {
                        let written = records.job(&file).map_err(|error| error.to_string());
                        // When the job has ended, the receiver is gone.
                        let _ = done.send(written);
                    }
                }
            }
            records.finish();
        };
        let thread = thread::Builder::new().name("records".into()).spawn(write)?;
        Ok(Recorder { orders, thread })
    }

    pub fn line(&self, text: impl Into<String>) {
        let (at, text) = (seconds_since_1970(), text.into());
        // The thread lives as long as this does.
        let _ = self.orders.send(Order::Line { at, text });
    }

    pub fn trace(&self, text: String) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since.unwrap_or_default().as_secs_f64();
        // As above.
        let _ = self.orders.send(Order::Trace { at, text });
    }

    /// Writes job.json, and reports when that is done.
    pub fn job(&self, file: &JobFile) -> oneshot::Receiver<Written> {
        let (done, written) = oneshot::channel();
        // As above.
        let _ = self.orders.send(Order::Job(Box::new(file.clone()), done));
        written
    }

    /// Returns when everything is written.
    pub fn finish(self) {
        drop(self.orders);
        // The thread returns nothing.
        let _ = self.thread.join();
    }
}
