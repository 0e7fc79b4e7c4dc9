//! Windows on their way to the disk, one after the other: a thread writes one while other threads fill the next ones. A thread that is faster than the disk
//! waits for it.
//!
//! A thread that waits to open a window waits only for the disk, never for threads that fill windows, so all threads finish.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use stillpoint_image::store::Store;

use super::windows::{BLOCK, Whole, Windows};
use crate::ground::thread;

/// The number of windows that may wait for the disk, including the one being written, before no other window is opened.
const MOST_WAITING: usize = 2;

/// The file behind the queue.
pub trait Sink: Send + Sync + 'static {
    /// Writes whole blocks.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes bytes that need not be whole blocks; no whole blocks come after this.
    fn write_last(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns when all written bytes are durable.
    fn sync(&self) -> io::Result<()>;
}

struct State {
    windows: Windows,
    waiting: VecDeque<Whole>,
    /// Whether the disk is writing a window.
    is_writing: bool,
    /// The first error: its number, or its text.
    failed: Option<Result<i32, String>>,
    /// Whether nothing more is written.
    is_over: bool,
}

struct Shared<S> {
    sink: S,
    state: Mutex<State>,
    news: Condvar,
}

/// An image's file behind such a thread.
pub struct Queue<S: Sink> {
    shared: Arc<Shared<S>>,
    /// Started at once: a thread that is started by one that gives way to the application would give way for ever.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl State {
    fn result(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(Ok(number)) => Err(io::Error::from_raw_os_error(*number)),
            Some(Err(reason)) => Err(io::Error::other(reason.clone())),
        }
    }

    fn is_behind(&self) -> bool {
        self.waiting.len() + usize::from(self.is_writing) >= MOST_WAITING
    }
}

impl<S: Sink> Shared<S> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as there is no error and the condition holds.
    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> io::Result<MutexGuard<'_, State>> {
        let state = self
            .news
            .wait_while(self.state(), |state| {
                state.failed.is_none() && condition(state)
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.result()?;
        Ok(state)
    }

    /// Runs the thread.
    fn write_windows(&self) {
        let mut state = self.state();
        while !state.is_over {
            let Some(whole) = state.waiting.pop_front() else {
                let waited = self.news.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.is_writing = true;
            drop(state);
            let result = self
                .sink
                .write(whole.room.bytes(whole.length), whole.offset);
            state = self.state();
            state.is_writing = false;
            state.windows.give_back(whole.room);
            if let Err(error) = result {
                state.waiting.clear();
                let reason = error.raw_os_error().ok_or_else(|| error.to_string());
                state.failed.get_or_insert(reason);
            }
            self.news.notify_all();
        }
    }
}

impl<S: Sink> Queue<S> {
    /// Makes a queue with windows of so many bytes.
    pub fn new(sink: S, bytes: usize) -> Queue<S> {
        let state = State {
            windows: Windows::new(bytes),
            waiting: VecDeque::new(),
            is_writing: false,
            failed: None,
            is_over: false,
        };
        let queue = Queue {
            shared: Arc::new(Shared {
                sink,
                state: Mutex::new(state),
                news: Condvar::new(),
            }),
            writer: Mutex::new(None),
        };
        // If this fails now, the first window tries again, and its writer gets the error.
        let _ = queue.start();
        queue
    }

    fn pass_on(&self, whole: Whole) -> io::Result<()> {
        self.start()?;
        let mut state = self.shared.state();
        state.windows.close(whole.offset);
        state.waiting.push_back(whole);
        drop(state);
        self.shared.news.notify_all();
        Ok(())
    }

    fn start(&self) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            let shared = Arc::clone(&self.shared);
            let write = move || shared.write_windows();
            *writer = Some(thread::start("stillpoint-disk", thread::LARGE, write)?);
        }
        Ok(())
    }
}

impl<S: Sink> Store for Queue<S> {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            let new = |state: &State| state.is_behind() && !state.windows.is_open(at);
            let open = self.shared.wait_while(new)?.windows.open(at)?;
            let (mine, more) = rest.split_at(open.part(at, rest.len()));
            if let Some(whole) = open.put(mine, at) {
                self.pass_on(whole)?;
            }
            (rest, at) = (more, at + mine.len() as u64);
        }
        Ok(())
    }

    fn finish(&self, file_bytes: u64) -> io::Result<()> {
        let busy = |state: &State| state.is_writing || !state.waiting.is_empty();
        let rest = self.shared.wait_while(busy)?.windows.rest(file_bytes)?;
        // An image of less than a window is likely to be read again soon, so it stays in the page cache.
        let is_small = rest.iter().all(|whole| whole.offset <= BLOCK as u64);
        let sink = &self.shared.sink;
        let mut last = Vec::new();
        for whole in &rest {
            let blocks = match is_small || whole.offset == 0 {
                true => 0,
                false => whole.length / BLOCK * BLOCK,
            };
            let bytes = whole.room.bytes(whole.length);
            if blocks > 0 {
                sink.write(&bytes[..blocks], whole.offset)?;
            }
            last.push((&bytes[blocks..], whole.offset + blocks as u64));
        }
        for (bytes, offset) in last
            .into_iter()
            .rev()
            .filter(|(bytes, _)| !bytes.is_empty())
        {
            sink.write_last(bytes, offset)?;
        }
        sink.sync()
    }
}

impl<S: Sink> Drop for Queue<S> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_over = true;
        state.waiting.clear();
        drop(state);
        self.shared.news.notify_all();
        let writer = self.writer.get_mut();
        if let Some(writer) = writer.unwrap_or_else(PoisonError::into_inner).take() {
            // It cannot panic, and its errors have been reported.
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests;
