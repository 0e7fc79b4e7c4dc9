//! The work for one rank with its staged memory, or with its image, on its connection's own thread and with contexts of its own.

mod hashing;

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use stillpoint_gpu_copies::arena::Shown;
use stillpoint_gpu_copies::{Gpus, HASHES_AT_ONCE};
use stillpoint_gpu_driver::storage::{self, Storage};
use stillpoint_gpu_driver::{Driver, devices};
use stillpoint_gpu_messages::{Answer, Memory, Uuid, send};
use stillpoint_gpu_plan::record::{FROM_HOST, TO_HOST, named};
use stillpoint_gpu_plan::{Source, StagingPlace};
use stillpoint_gpu_staging::{
    Bytes, BytesError, Digest, Drain, MeasuredBack, Sink, SinkError, Staged, fill_back, fill_from,
};
use stillpoint_ids::Rank;

use super::node::{ARENA, host_room};
use super::{Group, Lain, Portion, known, sources};
use crate::facts;

/// The message for bytes outside of the arena.
const NOT_IN_THE_ARENA: &str = "its bytes would lie in memory that it cannot see";

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Opens the node's GPUs for this thread's copies, with so much host memory to pin.
fn open(driver: &'static Driver, host: u64) -> Result<Gpus<'static>, String> {
    let count = devices::all(driver).map_err(told)?.len();
    Gpus::open(driver, count, host).map_err(told)
}

impl Group {
    /// Makes a drain with as many streams from each GPU as its model recommends for the bytes there.
    fn drain(&self, staged: Staged) -> Drain {
        let room = staged.drain_slots();
        Drain::in_streams(staged, &|gpu, bytes| {
            let uuid = &self.node.gpus[gpu].uuid;
            let chosen = self
                .record
                .choose_in(uuid, &self.version, TO_HOST, bytes, room);
            chosen.0.streams
        })
    }
}

impl Portion {
    /// Opens GPUs that reach the staged host memory and the slots of this rank, and may pin `more` bytes.
    fn gpus(&self, driver: &'static Driver, more: u64) -> Result<Gpus<'static>, String> {
        let mut gpus = open(driver, more)?;
        for &(place, spot, bytes) in self.group.staged.reserved() {
            if place == StagingPlace::Host {
                // SAFETY: the stager has pinned it. No thread writes to the staged memory, and only this rank's drain writes to its slots. The memory
                // stays as long as it is held, which the caller does for longer.
                unsafe { gpus.borrow_host(spot, bytes) };
            }
        }
        Ok(gpus)
    }
}

/// Copies the staged memory of a process back to its devices. The process is then locked.
///
/// # Errors
/// The copy fails; the text is for people.
pub fn unstage(
    driver: &'static Driver,
    pid: i32,
    portion: &Portion,
) -> Result<MeasuredBack, String> {
    let group = &portion.group;
    let mine = group.staged.of(portion.rank);
    let lent = storage::restore(driver, pid, &[]).map_err(told)?;
    let targets = sources(portion.rank, &lent);
    let mut gpus = portion.gpus(driver, 0)?;
    let choice = group.record.way_back(&group.node, &group.version);
    let measured = fill_back(&mut gpus, &mine, &targets, &choice).map_err(told)?;
    storage::complete(driver, lent).map_err(told)?;
    Ok(measured)
}

/// A drain under way.
pub struct Draining {
    // Fields drop in this order: copies end before their staged memory may go.
    gpus: Gpus<'static>,
    /// The memory to drain, until the first byte is drained.
    staged: Option<Staged>,
    drain: Option<Drain>,
    memories: Vec<Memory>,
    group: Arc<Group>,
    /// The places of bytes that are not drained yet, and host memory.
    held: Vec<Arc<Lain>>,
}

impl Draining {
    /// Prepares to drain from the first byte.
    ///
    /// # Errors
    /// The driver's; the text is for people.
    pub fn new(driver: &'static Driver, portion: &Portion) -> Result<Draining, String> {
        let gpus = portion.gpus(driver, HASHES_AT_ONCE)?;
        let mine = portion.group.staged.of(portion.rank);
        let found = devices::all(driver).map_err(told)?;
        let memory = |source: &Source| Memory {
            uuid: Uuid(found[source.gpu].uuid),
            bytes: source.bytes,
        };
        let memories: Vec<Memory> = mine.sources().iter().map(memory).collect();
        Ok(Draining {
            gpus,
            memories,
            group: Arc::clone(&portion.group),
            staged: Some(mine),
            drain: None,
            held: portion.held.clone(),
        })
    }

    pub fn memories(&self) -> Vec<Memory> {
        self.memories.clone()
    }

    /// Returns the memory that holds the bytes.
    pub fn arena(&self) -> Shown {
        self.group.arena.clone()
    }

    /// Sends the place of the next bytes, or says that there are none.
    ///
    /// # Errors
    /// The rank that drains is gone.
    pub fn next(&mut self, to: &mut impl Write) -> io::Result<()> {
        let mut gone = None;
        if let Some(staged) = self.staged.take() {
            self.drain = Some(self.group.drain(staged));
            self.give_back_emptied();
        }
        let Some(drain) = &mut self.drain else {
            return send(to, &Answer::Failed("the drain has ended".to_owned()));
        };
        let mut sink = Socket {
            to,
            arena: &self.group.arena,
            gone: &mut gone,
        };
        let stepped = drain.step(&mut self.gpus, &mut sink);
        self.give_back_emptied();
        match (stepped, gone) {
            (_, Some(error)) => Err(error),
            (Ok(true), None) => Ok(()),
            (Ok(false), None) => send(to, &Answer::Done),
            (Err(error), None) => send(to, &Answer::Failed(error.to_string())),
        }
    }
}

impl Draining {
    /// Lets go of emptied places. Host memory stays, since it has the slots.
    fn give_back_emptied(&mut self) {
        let Some(drain) = &self.drain else { return };
        (self.held).retain(|lain| lain.place == StagingPlace::Host || drain.is_on(lain.place));
    }
}

impl Drop for Draining {
    fn drop(&mut self) {
        if let Some(drain) = self.drain.take() {
            drain.end(&mut self.gpus);
        }
    }
}

/// The rank that drains, as a sink.
struct Socket<'a, W> {
    to: &'a mut W,
    arena: &'a Shown,
    gone: &'a mut Option<io::Error>,
}

impl<W: Write> Sink for Socket<'_, W> {
    fn write(
        &mut self,
        source: usize,
        offset: u64,
        bytes: &[u8],
        _: Option<Digest>,
    ) -> Result<(), SinkError> {
        let length = bytes.len() as u64;
        let Some(at) = self.arena.place(bytes.as_ptr() as u64, length) else {
            let (rank, problem) = (Rank(0), NOT_IN_THE_ARENA.to_owned());
            return Err(SinkError { rank, problem });
        };
        let answer = Answer::Bytes {
            memory: source,
            offset,
            bytes: length,
            at,
        };
        send(self.to, &answer).map_err(|error| {
            let (rank, problem) = (Rank(0), error.to_string());
            *self.gone = Some(error);
            SinkError { rank, problem }
        })
    }

    /// The rank makes its own digests, from the same memory.
    fn wants_digests(&self) -> bool {
        false
    }
}

/// A rank that returns from an image.
pub struct Returning<'a> {
    pub pid: i32,
    pub rank: Rank,
    pub pairs: &'a [(Uuid, Uuid)],
    pub memories: &'a [Memory],
}

/// The means to fill a process's devices.
pub struct Filling {
    gpus: Gpus<'static>,
    room: u64,
    arena: Shown,
}

impl Filling {
    /// Opens GPUs, and takes host memory for slots that the process can see.
    ///
    /// # Errors
    /// The driver's; the text is for people.
    pub fn new(driver: &'static Driver) -> Result<Filling, String> {
        let room = host_room() / ARENA;
        let mut gpus = open(driver, room)?;
        let arena = gpus.shown().map_err(told)?;
        Ok(Filling { gpus, room, arena })
    }

    pub fn arena(&self) -> Shown {
        self.arena.clone()
    }

    /// Brings back a process's devices with the bytes of its image, which the process supplies. The process is then
    /// locked.
    ///
    /// # Errors
    /// This fails; the text is for people.
    pub fn fill(
        self,
        driver: &'static Driver,
        returning: &Returning<'_>,
        directory: &Path,
        to: &mut impl Write,
        from: &mut impl Read,
    ) -> Result<(), String> {
        let Filling {
            mut gpus,
            room,
            arena,
        } = self;
        let pairs: Vec<_> = (returning.pairs.iter())
            .map(|(old, new)| (old.0, new.0))
            .collect();
        let lent = storage::restore(driver, returning.pid, &pairs).map_err(told)?;
        let targets = targets(driver, returning, &lent)?;
        let (found, record) = (devices::all(driver).map_err(told)?, known::read(directory));
        let version = facts::of(driver)?.version();
        let choice = |gpu: usize, bytes| {
            let uuid = found
                .get(gpu)
                .map_or_else(String::new, |one| named(&one.uuid));
            record.choose_in(&uuid, &version, FROM_HOST, bytes, room).0
        };
        let mut image = Image {
            rank: returning.rank,
            to,
            from,
            arena: &arena,
            out: vec![0; targets.len()],
        };
        fill_from(&mut gpus, &targets, &mut image, &choice).map_err(told)?;
        storage::complete(driver, lent).map_err(told)
    }
}

/// Returns the lent memory for each memory of the image.
fn targets(
    driver: &Driver,
    returning: &Returning<'_>,
    lent: &Storage,
) -> Result<Vec<Source>, String> {
    let found = devices::all(driver).map_err(told)?;
    let mut left = sources(returning.rank, lent);
    let mut targets = Vec::new();
    for Memory { uuid, bytes } in returning.memories {
        let pair = returning.pairs.iter().find(|(old, _)| old == uuid);
        let now = pair.map_or(*uuid, |(_, new)| *new);
        let fits = |source: &Source| {
            found.get(source.gpu).is_some_and(|one| one.uuid == now.0) && source.bytes == *bytes
        };
        let Some(at) = left.iter().position(fits) else {
            return Err(format!(
                "its image has {bytes} bytes of {uuid}, but the driver expects others there"
            ));
        };
        targets.push(left.remove(at));
    }
    match left.first() {
        None => Ok(targets),
        Some(source) => Err(format!(
            "the driver expects {} bytes for GPU {}, but its image has none",
            source.bytes, source.gpu
        )),
    }
}

/// The bytes of an image. The rank at the other end of the connection puts them into the slots.
struct Image<'a, R, W> {
    rank: Rank,
    to: &'a mut W,
    from: &'a mut R,
    arena: &'a Shown,
    out: Vec<u64>,
}

impl<R: Read, W: Write> Bytes for Image<'_, R, W> {
    fn read(&mut self, source: usize, into: &mut [u8]) -> Result<Option<Digest>, BytesError> {
        let bytes = into.len() as u64;
        let at = self.arena.place(into.as_ptr() as u64, bytes);
        let at = at.ok_or_else(|| BytesError {
            rank: self.rank,
            problem: NOT_IN_THE_ARENA.to_owned(),
        })?;
        let want = Answer::Bytes {
            memory: source,
            offset: self.out[source],
            bytes,
            at,
        };
        self.out[source] += bytes;
        let there = send(self.to, &want).and_then(|()| self.from.read_exact(&mut [0]));
        there.map_err(|error| BytesError {
            rank: self.rank,
            problem: format!("its image stopped coming: {error}"),
        })?;
        Ok(None)
    }
}
