//! Drained messages: those that a checkpoint has pulled in before the application asked for them.
//!
//! Each keeps its communicator, source, tag, exact bytes and place in the order of arrival. Every
//! later receive or probe looks here before it asks the real MPI, because everything here arrived
//! before everything still to come. So MPI's order holds (no message overtakes another that matches the same
//! receive). This file is the matching alone: no MPI, no unsafe.

use std::collections::{BTreeMap, VecDeque};

use stillpoint_wrappers::neutral::Word;
use stillpoint_wrappers::neutral::constants::{ANY_SOURCE, ANY_TAG};

use super::taken::Sender;

/// Names a communicator for as long as it lives: its object's address.
pub type CommunicatorKey = usize;

/// One message.
#[derive(Debug)]
pub struct Drained {
    /// Rank in the communicator (the remote group of an intercommunicator).
    pub source: i32,
    pub tag: i32,
    /// The packed form.
    pub bytes: Box<[u8]>,
    /// The lower half's receive that still fills `bytes`, or `None` once all of them are there.
    pub arriving: Option<Word>,
    /// The error of the real MPI if it failed to receive the bytes, else 0: an error of the standard's ABI, which
    /// belongs to the receive that takes the message, also after a restart.
    pub error: i32,
    /// The sender, which is told when a receive begins to take it.
    pub sender: Option<Sender>,
}

impl Drained {
    /// Notes the real MPI's answer about the receive that fills the bytes. Returns whether that receive is over: one
    /// that cannot even be asked for is.
    #[must_use]
    pub fn answered(&mut self, code: i32, finished: bool) -> bool {
        if code == 0 && !finished {
            return false;
        }
        self.error = code;
        self.arriving = None;
        true
    }

    /// Whether a receive or probe with these arguments (neutral wildcards) takes this message.
    pub fn matches(&self, source: i32, tag: i32) -> bool {
        (source == ANY_SOURCE || source == self.source) && (tag == ANY_TAG || tag == self.tag)
    }
}

/// The messages of all communicators.
#[derive(Debug, Default)]
pub struct Queue {
    by_communicator: BTreeMap<CommunicatorKey, VecDeque<Drained>>,
    messages: usize,
}

impl Queue {
    pub const fn new() -> Self {
        Self {
            by_communicator: BTreeMap::new(),
            messages: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.messages
    }

    pub fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Appends a message that has just arrived.
    pub fn push(&mut self, communicator: CommunicatorKey, message: Drained) {
        self.by_communicator
            .entry(communicator)
            .or_default()
            .push_back(message);
        self.messages += 1;
    }

    /// The earliest message that matches.
    pub fn find(
        &mut self,
        communicator: CommunicatorKey,
        source: i32,
        tag: i32,
    ) -> Option<&mut Drained> {
        self.by_communicator
            .get_mut(&communicator)?
            .iter_mut()
            .find(|message| message.matches(source, tag))
    }

    /// Takes the earliest message that matches out of the queue.
    pub fn take(
        &mut self,
        communicator: CommunicatorKey,
        source: i32,
        tag: i32,
    ) -> Option<Drained> {
        let messages = self.by_communicator.get_mut(&communicator)?;
        let place = messages
            .iter()
            .position(|message| message.matches(source, tag))?;
        let message = messages.remove(place);
        if messages.is_empty() {
            self.by_communicator.remove(&communicator);
        }
        self.messages -= usize::from(message.is_some());
        message
    }

    /// The messages of one communicator, in order of arrival.
    pub fn of(&mut self, communicator: CommunicatorKey) -> impl Iterator<Item = &mut Drained> {
        let messages = self.by_communicator.get_mut(&communicator);
        messages.into_iter().flatten()
    }

    /// Every message, communicator by communicator, each in order of arrival.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Drained> {
        self.by_communicator.values_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(source: i32, tag: i32, byte: u8) -> Drained {
        Drained {
            source,
            tag,
            bytes: Box::new([byte]),
            arriving: None,
            error: 0,
            sender: None,
        }
    }

    fn filled() -> Queue {
        let mut queue = Queue::new();
        queue.push(1, message(0, 7, 10));
        queue.push(1, message(1, 7, 11));
        queue.push(2, message(0, 7, 20));
        queue.push(1, message(0, 8, 12));
        queue.push(1, message(0, 7, 13));
        queue
    }

    fn taken(queue: &mut Queue, communicator: usize, source: i32, tag: i32) -> Option<u8> {
        queue
            .take(communicator, source, tag)
            .map(|message| message.bytes[0])
    }

    #[test]
    fn messages_of_one_source_and_tag_keep_their_order() {
        let mut queue = filled();
        assert_eq!(taken(&mut queue, 1, 0, 7), Some(10));
        assert_eq!(taken(&mut queue, 1, 0, 7), Some(13));
        assert_eq!(taken(&mut queue, 1, 0, 7), None);
    }

    #[test]
    fn a_receive_that_fails_is_over_and_its_error_stays_with_the_message() {
        let arriving = || Drained {
            arriving: Some(5),
            ..message(0, 7, 1)
        };
        for (code, finished, over) in [
            (0, false, false),
            (0, true, true),
            (15, false, true),
            (15, true, true),
        ] {
            let mut message = arriving();
            assert_eq!(message.answered(code, finished), over);
            assert_eq!(message.arriving.is_none(), over);
            assert_eq!(message.error, code);
        }
    }

    #[test]
    fn wildcards_take_the_earliest_that_matches() {
        let mut queue = filled();
        assert_eq!(taken(&mut queue, 1, ANY_SOURCE, 8), Some(12));
        assert_eq!(taken(&mut queue, 1, 1, ANY_TAG), Some(11));
        assert_eq!(taken(&mut queue, 1, ANY_SOURCE, ANY_TAG), Some(10));
        assert_eq!(taken(&mut queue, 1, ANY_SOURCE, ANY_TAG), Some(13));
    }

    #[test]
    fn communicators_do_not_see_each_others_messages() {
        let mut queue = filled();
        assert_eq!(taken(&mut queue, 3, ANY_SOURCE, ANY_TAG), None);
        assert_eq!(taken(&mut queue, 2, ANY_SOURCE, ANY_TAG), Some(20));
        assert_eq!(taken(&mut queue, 2, ANY_SOURCE, ANY_TAG), None);
    }

    #[test]
    fn probing_leaves_the_message_where_it_is() {
        let mut queue = filled();
        assert_eq!(
            queue.find(1, ANY_SOURCE, 8).map(|message| message.bytes[0]),
            Some(12)
        );
        assert_eq!(queue.len(), 5);
        assert_eq!(taken(&mut queue, 1, 0, 8), Some(12));
        assert_eq!(queue.len(), 4);
    }
}
