//! Words between ranks about drained messages: a receiver says that it drains one, and later that a receive has begun to take it.
//!
//! A synchronous send is over when its receive has begun (MPI 5.0, section 3.4), but the real MPI calls one over as soon as its message was drained. So the
//! sender has to know the drained messages. No message says whether its send was synchronous: all senders are told of drained messages, in 32 bytes on the
//! control communicator, before these are received. These words count as sent and received like messages. So at a still point no word is under way, and each
//! sender knows which of its messages are drained and not taken. Before a still point, a sender goes by the words that have arrived: a word was sent before the
//! send could be over, and real MPIs deliver both by one way, in order.
//!
//! A message may be taken long after the checkpoint, when its sender looks for no words. Some real MPIs keep only few messages without a receive, and nothing
//! behind those gets through (libfabric's `net`: four). So a sender that hears of a drained message posts the receive of the second word at once.

use std::collections::{BTreeMap, VecDeque};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::ANY_SOURCE;
use stillpoint_wrappers::neutral::{Status, Word};

use crate::ground::crossing::{cross, pending};
use crate::ground::object::Object;
use crate::ground::shared::Shared;
use crate::ground::{abi, arch};
use crate::objects::communicator::{self, Identity, control};
use crate::objects::group;
use crate::objects::outcome::check;
use stillpoint_wrappers::standard;

/// The tags of these words on the control communicator, beyond those that make communicators there.
const DRAINED: i32 = Identity::TAGS;
const TAKEN: i32 = Identity::TAGS + 1;

/// Looks for words while a checkpoint is pending, before a send is called over.
const LOOKS: u32 = 16;

/// The marks that a send and its receive share: the communicator, the receiver's rank there, the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Envelope {
    pub communicator: Identity,
    pub receiver: i32,
    pub tag: i32,
}

/// The rank that hears of a drained message's fate.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The world rank.
    rank: i32,
    envelope: Envelope,
}

/// The content of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum WordKind {
    Drained = 1,
    Taken = 2,
}

impl WordKind {
    fn tag(self) -> i32 {
        match self {
            WordKind::Drained => DRAINED,
            WordKind::Taken => TAKEN,
        }
    }
}

/// A word as it goes out.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WireWord {
    what: u32,
    tag: i32,
    receiver: i32,
    unused: u32,
    communicator: [u64; 2],
}

const BYTES: i32 = size_of::<WireWord>() as i32;

impl WireWord {
    fn new(what: WordKind, envelope: Envelope) -> Self {
        let identity = envelope.communicator.0;
        Self {
            what: what as u32,
            tag: envelope.tag,
            receiver: envelope.receiver,
            unused: 0,
            communicator: [identity as u64, (identity >> 64) as u64],
        }
    }

    fn envelope(&self) -> Envelope {
        let [low, high] = self.communicator.map(u128::from);
        Envelope {
            communicator: Identity(low | high << 64),
            receiver: self.receiver,
            tag: self.tag,
        }
    }
}

/// The number of this rank's messages that are drained and not taken. It is below 0 while more are known to be taken than drained.
struct Ledger {
    waiting: BTreeMap<Envelope, i32>,
}

impl Ledger {
    fn note(&mut self, said: &WireWord) {
        let envelope = said.envelope();
        let drained = said.what == WordKind::Drained as u32;
        let count = self.waiting.entry(envelope).or_insert(0);
        *count += if drained { 1 } else { -1 };
        if *count == 0 {
            self.waiting.remove(&envelope);
        }
    }

    fn waiting(&self, envelope: &Envelope) -> u32 {
        let count = self.waiting.get(envelope).copied().unwrap_or(0);
        count.max(0).cast_unsigned()
    }
}

/// A word in the real MPI's hands: the request that sends or receives it, 0 where there is none yet.
struct UnderWay {
    said: Box<WireWord>,
    request: Word,
}

impl UnderWay {
    /// Whether the real MPI is done with it.
    ///
    /// # Safety
    /// Inside a stub or parked.
    unsafe fn over(&mut self) -> Result<bool, i32> {
        let (mut over, mut status) = (0, Status::default());
        let request = &mut self.request;
        // SAFETY: the request is one of this module's.
        check(unsafe { cross(|d| (d.test)(request, &mut over, &mut status)) })?;
        Ok(over != 0)
    }

    /// Posts the receive of a word from a rank, if it is not posted.
    ///
    /// # Safety
    /// As [`Self::over`]; the word stays until that is so.
    unsafe fn expect(&mut self, from: i32) -> Result<(), i32> {
        if self.request != 0 {
            return Ok(());
        }
        let (to, request) = ((&raw mut *self.said).cast(), &mut self.request);
        // SAFETY: the caller is inside a stub or parked, and the word stays where it is until the receive is over.
        unsafe {
            let (byte, on) = (byte(), control());
            check(cross(|d| {
                (d.irecv)(to, BYTES, byte, from, TAKEN, on, request)
            }))
        }
    }
}

/// The words that have come to this rank, those on their way from it, and those that will come.
struct Words {
    ledger: Ledger,
    /// Words that the real MPI has yet to let go of.
    under_way: Vec<UnderWay>,
    /// One for each message that a rank has drained and not taken, by its world rank.
    expected: BTreeMap<i32, VecDeque<UnderWay>>,
}

static WORDS: Shared<Words> = Shared::new(Words {
    ledger: Ledger {
        waiting: BTreeMap::new(),
    },
    under_way: Vec::new(),
    expected: BTreeMap::new(),
});

/// Tells the sender of a message, from a rank of a communicator, that it is about to be drained. Returns `None` if no rank is to be told.
///
/// # Safety
/// Inside a stub or parked; `communicator` must be a live communicator.
pub unsafe fn drained(communicator: *mut Object, source: i32, tag: i32) -> Option<Sender> {
    // SAFETY: the communicator is alive, by the caller's promise.
    let (body, receiver) = unsafe { (communicator::body(communicator)?, (*communicator).rank) };
    let members = body.members.as_ref()?;
    let group = members.remote.as_ref().unwrap_or(&members.local);
    let sender = Sender {
        rank: *group.get(usize::try_from(source).ok()?)?,
        envelope: Envelope {
            communicator: body.identity,
            receiver,
            tag,
        },
    };
    // SAFETY: the caller is inside a stub or parked, and `sender` was made of this communicator's members.
    unsafe { tell(WordKind::Drained, sender) };
    Some(sender)
}

/// Tells the sender of a drained message that a receive has begun to take it.
///
/// # Safety
/// Inside a stub.
pub unsafe fn taken(sender: Sender) {
    // SAFETY: the caller is inside a stub, and the sender is the one that was told of the draining.
    unsafe { tell(WordKind::Taken, sender) };
}

unsafe fn tell(what: WordKind, sender: Sender) {
    let said = WireWord::new(what, sender.envelope);
    let mut words = WORDS.take();
    if sender.rank == group::world_rank() {
        words.ledger.note(&said);
        return;
    }
    let said = Box::new(said);
    let (from, to, tag) = ((&raw const *said).cast(), sender.rank, what.tag());
    let mut request = 0;
    // SAFETY: inside; the word stays where it is until the send is over.
    unsafe {
        let (byte, on) = (byte(), control());
        if cross(|d| (d.isend)(from, BYTES, byte, to, tag, on, &mut request)) == 0 {
            arch::count_sent();
            words.under_way.push(UnderWay { said, request });
        }
    }
}

/// Takes in the words of other ranks. Returns whether anything moved, or the real MPI's error when it cannot look.
///
/// # Safety
/// Inside a stub or parked.
pub unsafe fn listen() -> Result<bool, i32> {
    let mut words = WORDS.take();
    let Words {
        ledger,
        under_way,
        expected,
    } = &mut *words;
    let mut moved = false;
    // SAFETY: the caller is inside a stub or parked, so the real MPI may be asked for words of other ranks.
    unsafe {
        while let Some((said, from)) = next()? {
            ledger.note(&said);
            let mut taken = UnderWay {
                said: Box::default(),
                request: 0,
            };
            let posted = taken.expect(from);
            expected.entry(from).or_default().push_back(taken);
            posted?;
            moved = true;
        }
        for (from, coming) in expected.iter_mut() {
            // They come in the order in which their receives are posted.
            while let Some(first) = coming.front_mut() {
                first.expect(*from)?;
                if !first.over()? {
                    break;
                }
                arch::count_received();
                ledger.note(&first.said);
                coming.pop_front();
                moved = true;
            }
        }
        expected.retain(|_, coming| !coming.is_empty());
        under_way.retain_mut(|word| {
            let stays = matches!(word.over(), Ok(false));
            moved |= !stays;
            stays
        });
    }
    Ok(moved)
}

/// The next word about a drained message that has arrived, and who says it.
///
/// # Safety
/// As [`listen`], which no other thread runs meanwhile.
unsafe fn next() -> Result<Option<(WireWord, i32)>, i32> {
    let on = control();
    if on == 0 {
        return Ok(None);
    }
    let (mut there, mut status, mut word) = (0, Status::default(), 0);
    let mut said = WireWord::default();
    let to = (&raw mut said).cast();
    // SAFETY: inside; the receive is over before its buffer goes.
    unsafe {
        let byte = byte();
        check(cross(|d| {
            (d.iprobe)(ANY_SOURCE, DRAINED, on, &mut there, &mut status)
        }))?;
        if there == 0 {
            return Ok(None);
        }
        let source = status.source;
        check(cross(|d| {
            (d.irecv)(to, BYTES, byte, source, DRAINED, on, &mut word)
        }))?;
        let mut over = 0;
        while over == 0 {
            check(cross(|d| (d.test)(&mut word, &mut over, &mut status)))?;
        }
        arch::count_received();
        Ok(Some((said, source)))
    }
}

/// `MPI_BYTE` of the real MPI.
///
/// # Safety
/// Inside a stub or parked.
unsafe fn byte() -> Word {
    // SAFETY: a predefined object.
    unsafe { (*abi::predefined(HandleKind::Datatype, standard::BYTE)).lower }
}

/// After a restart, with the control communicator made: the receives that were posted are posted again.
///
/// # Safety
/// Inside, on the one thread that is.
pub unsafe fn rebuild() -> Result<(), i32> {
    for (from, coming) in &mut WORDS.take().expected {
        for word in coming {
            word.request = 0;
            // SAFETY: the caller is inside a stub or parked.
            unsafe { word.expect(*from)? };
        }
    }
    Ok(())
}

/// Whether the real MPI has yet to let go of words of this rank.
pub fn still_telling() -> bool {
    !WORDS.take().under_way.is_empty()
}

/// The number of messages with an envelope that are drained and not taken, and of which the real MPI has just said that they are sent.
///
/// # Safety
/// Inside a stub.
pub unsafe fn waiting(envelope: Envelope) -> u32 {
    let looks = if pending() { LOOKS } else { 1 };
    for _ in 0..looks {
        // SAFETY: the caller is inside a stub. The drain looks again if this fails.
        let _ = unsafe { listen() };
    }
    WORDS.take().ledger.waiting(&envelope)
}

/// Waits until every word is out, and expects no more, before MPI ends.
///
/// # Safety
/// Inside a stub.
pub unsafe fn finish() {
    // SAFETY: the caller is inside a stub, and MPI has not ended yet.
    while still_telling() && unsafe { listen() }.is_ok() {}
    let expected = core::mem::take(&mut WORDS.take().expected);
    for mut word in expected.into_values().flatten() {
        let request = &mut word.request;
        // SAFETY: the caller is inside a stub or parked; the receive is one of this module.s own.
        unsafe {
            let mut over = match *request {
                0 => Ok(true),
                _ => check(cross(|d| (d.cancel)(request))).map(|()| false),
            };
            while let Ok(false) = over {
                over = word.over();
            }
            if over.is_err() {
                // The real MPI may still write to it.
                core::mem::forget(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drained_waits_until_it_is_taken() {
        let mut ledger = Ledger {
            waiting: BTreeMap::new(),
        };
        let envelope = |tag| Envelope {
            communicator: Identity(7 << 64 | 9),
            receiver: 3,
            tag,
        };
        for (what, tag, count) in [
            (WordKind::Drained, 5, 1),
            (WordKind::Drained, 5, 2),
            (WordKind::Drained, 6, 1),
            (WordKind::Taken, 5, 1),
            (WordKind::Taken, 5, 0),
            (WordKind::Taken, 6, 0),
            (WordKind::Taken, 6, 0),
            (WordKind::Drained, 6, 0),
        ] {
            let said = WireWord::new(what, envelope(tag));
            assert_eq!(said.envelope(), envelope(tag));
            ledger.note(&said);
            assert_eq!(ledger.waiting(&envelope(tag)), count);
        }
        assert!(ledger.waiting.is_empty());
    }
}
