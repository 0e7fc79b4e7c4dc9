//! What the coordinator writes down, job.json and the log, on a thread of its own.
//!
//! A busy disk keeps whoever syncs a file waiting for half a minute and more. Ranks and commands do not wait so long
//! for an answer, so nothing here is done by the thread that serves them. What is ordered is done in turn.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use stillpoint_directory::Directory;
use stillpoint_protocol::job_file::{JobFile, JobFileError};
use tokio::sync::oneshot;

use crate::epoch::seconds_since_1970;
use crate::fence::Fence;
use crate::log::Log;

/// Where it is written to. Both may take as long as the disk takes.
pub trait Records: Send {
    /// A line for the log, of a moment in seconds since 1970.
    fn line(&mut self, at: u64, text: &str);
    /// Replaces job.json; it is on the disk when this returns.
    fn job(&mut self, file: &JobFile) -> Result<(), JobFileError>;
}

/// In the checkpoint directory.
#[derive(Debug)]
pub struct InDirectory {
    pub directory: Directory,
    pub log: Log,
    /// Whether job.json is still to be written.
    fence: Arc<Fence>,
}

impl InDirectory {
    /// Of a coordinator that has just taken the directory into use.
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

    fn job(&mut self, file: &JobFile) -> Result<(), JobFileError> {
        let path = JobFile::path(self.directory.path());
        let change = self.fence.change(&self.directory);
        let _change = change.map_err(|by| JobFileError::Taken { path, by })?;
        file.write_in(&self.directory)?;
        self.fence.wrote(file);
        Ok(())
    }
}

/// Whether job.json is written, or why not.
pub(super) type Written = Result<(), String>;

enum Order {
    Line { at: u64, text: String },
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
                    Order::Job(file, done) => {
                        let written = records.job(&file).map_err(|error| error.to_string());
                        // Nobody listens any more when the job has ended.
                        let _ = done.send(written);
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("records".into()).spawn(write)?;
        Ok(Recorder { orders, thread })
    }

    pub fn line(&self, text: impl Into<String>) {
        let (at, text) = (seconds_since_1970(), text.into());
        // The thread lives as long as this does.
        let _ = self.orders.send(Order::Line { at, text });
    }

    /// Tells when job.json says the same.
    pub fn job(&self, file: &JobFile) -> oneshot::Receiver<Written> {
        let (done, written) = oneshot::channel();
        // As above.
        let _ = self.orders.send(Order::Job(Box::new(file.clone()), done));
        written
    }

    /// Returns when everything is written.
    pub fn finish(self) {
        drop(self.orders);
        // It has nothing to return.
        let _ = self.thread.join();
    }
}
