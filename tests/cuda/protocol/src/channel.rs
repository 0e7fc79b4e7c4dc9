//! The memory that a client and the device both map: the progress of each stream, the times of events, and the error that
//! has spoilt the client.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::futex;

/// The most streams that a client can have at once.
pub const STREAMS: usize = 1024;
/// The most events that keep a time.
pub const EVENTS: usize = 65536;

/// The whole channel. Sequence numbers wrap around: a number is past another if it is less than half the range further.
#[repr(C, align(4096))]
pub struct Channel {
    /// The first error of accepted work; it stays.
    pub error: AtomicU32,
    /// The last piece of work that each stream has done.
    pub done: [AtomicU32; STREAMS],
    /// Nanoseconds of the device's clock at which an event happened.
    pub times: [AtomicU64; EVENTS],
    /// A word that changes whenever a stream wants a function of the host called.
    pub calls: AtomicU32,
    /// The function that each stream wants called, and waits for; 0 for none.
    pub asked: [AtomicU32; STREAMS],
}

/// The bytes of the channel.
pub const SIZE: usize = size_of::<Channel>();

impl Channel {
    /// Tells whether a stream has done a piece of work.
    pub fn has(&self, stream: u32, sequence: u32) -> bool {
        self.pending(stream, sequence).is_none()
    }

    /// Returns what a waiter may sleep on while a stream has not done a piece of work: the stream's word, read before the question.
    pub fn pending(&self, stream: u32, sequence: u32) -> Option<u32> {
        let seen = self.done[stream as usize].load(Ordering::Acquire);
        (!reached(seen, sequence)).then_some(seen)
    }

    /// Says that a stream has done a piece of work.
    pub fn finish(&self, stream: u32, sequence: u32) {
        let word = &self.done[stream as usize];
        word.store(sequence, Ordering::Release);
        // There may be no waiter.
        let _ = futex::wake(word);
    }

    /// Asks for a function of the host, for a stream.
    pub fn ask(&self, stream: u32, ticket: u32) {
        self.asked[stream as usize].store(ticket, Ordering::Release);
        self.calls.fetch_add(1, Ordering::AcqRel);
        // The caller of functions also looks from time to time.
        let _ = futex::wake(&self.calls);
    }

    /// Says that a stream's function has been called.
    pub fn answer(&self, stream: u32) {
        let word = &self.asked[stream as usize];
        word.store(0, Ordering::Release);
        // There may be no waiter.
        let _ = futex::wake(word);
    }

    /// Keeps the first error.
    pub fn fail(&self, code: u32) {
        let _ = self
            .error
            .compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Tells whether `done` is `sequence` or later.
pub fn reached(done: u32, sequence: u32) -> bool {
    done.wrapping_sub(sequence) < u32::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::reached;

    #[test]
    fn numbers_go_round() {
        assert!(reached(5, 5) && reached(6, 5) && !reached(4, 5));
        assert!(reached(2, u32::MAX) && !reached(u32::MAX, 2));
    }
}
