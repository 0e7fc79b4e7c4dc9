//! Accepts peers. A stranger is a connection that has not shown the job's key, and it costs little, even in a crowd. At most [`MAX_STRANGERS`] of them are
//! open at once, each for at most [`STRANGER_PATIENCE`]. When more come, the oldest one is closed, so that peers with the key need not wait behind them.

use std::io;
use std::net::{Shutdown, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Peer;
use crate::key::Key;
use crate::lasting::{Lasting, Terms};

/// The most connections that have not shown the key yet.
pub const MAX_STRANGERS: usize = 32;
/// The time that a connection may take to show it.
const STRANGER_PATIENCE: Duration = Duration::from_secs(5);
/// The time for which a stranger is left alone even when others want its place, since the ranks of a large job all come at once.
const UNTROUBLED: Duration = Duration::from_millis(500);

/// Work for a thread of its own.
pub type Work = Box<dyn FnOnce() + Send>;

/// Accepts connections for ever. `each` handles every peer that shows the key, on a thread from `spawn`. If there is no thread, the connection is closed.
pub fn serve<F>(
    listener: &TcpListener,
    terms: &Terms,
    spawn: impl Fn(Work) -> io::Result<()>,
    each: F,
) -> !
where
    F: Fn(Peer) + Clone + Send + 'static,
{
    let strangers = Strangers::default();
    loop {
        match Lasting::accept(listener, terms.silence) {
            Ok(stream) => {
                let stranger = strangers.enter(stream);
                let (key, each) = (terms.key.clone(), each.clone());
                // A stranger, or a peer that breaks off, ends only its own connection.
                let _ = spawn(Box::new(move || {
                    if let Some(peer) = stranger.admitted(&key) {
                        each(peer);
                    }
                }));
            }
            // The process is out of descriptors, or the connection ended at once.
            Err(_) => sleep(Duration::from_millis(20)),
        }
    }
}

/// The strangers, with the time of their arrival.
type Waiting = Vec<(Instant, Arc<Lasting>)>;

/// Connections that have not shown the key.
#[derive(Clone, Default)]
struct Strangers(Arc<Mutex<Waiting>>);

impl Strangers {
    fn there(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more.
    fn enter(&self, stream: Lasting) -> Stranger {
        let stream = Arc::new(stream);
        loop {
            let mut there = self.there();
            if there.len() >= MAX_STRANGERS && there[0].0.elapsed() >= UNTROUBLED {
                let (_, oldest) = there.remove(0);
                // Its thread sees the end of the connection.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            if there.len() < MAX_STRANGERS {
                there.push((Instant::now(), Arc::clone(&stream)));
                return Stranger {
                    stream: Some(stream),
                    strangers: self.clone(),
                };
            }
            drop(there);
            sleep(Duration::from_millis(5));
        }
    }
}

/// One of the strangers. It leaves them when it is dropped.
struct Stranger {
    stream: Option<Arc<Lasting>>,
    strangers: Strangers,
}

impl Stranger {
    /// Shakes hands. Returns `None` if the client does not belong to the job.
    fn admitted(mut self, key: &Key) -> Option<Peer> {
        let channel = Peer::shake_hands(self.stream.as_ref()?, key, STRANGER_PATIENCE);
        let stream = self.leave()?;
        Peer::speaking(stream, channel.ok()?).ok()
    }

    /// Returns the stream, unless another thread is about to end it.
    fn leave(&mut self) -> Option<Lasting> {
        let stream = self.stream.take()?;
        let mut there = self.strangers.there();
        there.retain(|(_, other)| !Arc::ptr_eq(other, &stream));
        drop(there);
        Arc::into_inner(stream)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{Answer, Request, listen};
    use std::io::Read;
    use std::net::{IpAddr, Ipv4Addr, TcpStream};

    fn server(terms: &Terms) -> String {
        let (listener, address) = listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let terms = terms.clone();
        let spawn = |work: Work| {
            let thread = std::thread::Builder::new().spawn(work);
            thread.map(drop)
        };
        std::thread::spawn(move || {
            serve(&listener, &terms, spawn, |mut peer| {
                while let Ok(Some(Request::Close)) = peer.request() {
                    peer.answer(&Answer::Kept { bytes: 3 }).unwrap();
                }
            })
        });
        address
    }

    #[test]
    fn a_crowd_of_strangers_is_bounded_and_keeps_nobody_waiting() {
        let terms = Terms::from(Key::random().unwrap());
        let address = server(&terms);
        let mut silent: Vec<TcpStream> = (0..2 * MAX_STRANGERS)
            .map(|_| TcpStream::connect(&address).unwrap())
            .collect();
        let mut peer = Peer::open(&address, &terms, Duration::from_secs(20)).unwrap();
        assert_eq!(peer.close().unwrap(), 3);
        // The first connections have been closed for those behind them.
        let mut byte = [0];
        let first = &mut silent[0];
        first
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        assert!(matches!(first.read(&mut byte), Ok(0) | Err(_)));
        // A peer that has shown the key stays, however many strangers come after it.
        let more: Vec<TcpStream> = (0..MAX_STRANGERS)
            .map(|_| TcpStream::connect(&address).unwrap())
            .collect();
        assert_eq!(peer.close().unwrap(), 3);
        drop(more);
    }
}
