//! What is done for one rank with what is staged of it, or with its image, on its connection's own thread and with contexts of its own.

use std::io::{self, Read, Write};
use std::sync::Arc;

use stillpoint_gpu_copies::Gpus;
use stillpoint_gpu_driver::storage::{self, Storage};
use stillpoint_gpu_driver::{Driver, devices};
use stillpoint_gpu_messages::{Answer, Memory, Uuid, send};
use stillpoint_gpu_plan::{Place, Source};
use stillpoint_gpu_staging::{
    Bytes, BytesError, Device, Digest, Drain, Sink, SinkError, Spot, Staged, fill_back, fill_from,
};

use super::{DRAIN, Portion, sources};

/// The slots of who does not drain.
const NO_SLOTS: Spot = Spot {
    place: Place::Host,
    address: 0,
};

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The node's GPUs, for copies of this thread's own; so much of host memory may be pinned.
fn open(driver: &'static Driver, host: u64) -> Result<Gpus<'static>, String> {
    let count = devices::all(driver).map_err(told)?.len();
    Gpus::open(driver, count, host).map_err(told)
}

impl Portion {
    /// GPUs that reach the host memory in which things are staged.
    fn gpus(&self, driver: &'static Driver, staged: &Staged) -> Result<Gpus<'static>, String> {
        let mut gpus = open(driver, staged.drain_bytes())?;
        for (spot, bytes) in staged.in_host_memory() {
            // SAFETY: the stager has pinned it, and nobody writes there once it is staged. It stays until the group goes, which this portion holds.
            unsafe { gpus.borrow_host(spot, bytes) };
        }
        Ok(gpus)
    }

    fn staged(&self) -> Result<&Staged, String> {
        let staged = self.group.staged.as_ref();
        staged.ok_or_else(|| "nothing is staged any more".to_owned())
    }
}

/// What is staged of a process goes back to its devices. Then it is locked.
///
/// # Errors
/// It does not, in words for people.
pub fn unstage(driver: &'static Driver, pid: i32, portion: &Portion) -> Result<(), String> {
    let staged = portion.staged()?;
    let mine = staged.of(portion.rank, NO_SLOTS);
    let lent = storage::restore(driver, pid, &[]).map_err(told)?;
    let targets = sources(portion.rank, &lent);
    let mut gpus = portion.gpus(driver, staged)?;
    fill_back(&mut gpus, &mine, &targets, DRAIN).map_err(told)?;
    storage::complete(driver, lent).map_err(told)
}

/// A drain under way.
pub struct Draining {
    // Given up in this order: copies end before what is staged may go.
    gpus: Gpus<'static>,
    drain: Option<Drain>,
    memories: Vec<Memory>,
    /// How many bytes of each memory are out.
    out: Vec<u64>,
    _portion: Arc<Portion>,
}

impl Draining {
    /// Begins with the first byte.
    ///
    /// # Errors
    /// The driver's, in words for people.
    pub fn new(driver: &'static Driver, portion: Arc<Portion>) -> Result<Draining, String> {
        let staged = portion.staged()?;
        let mut gpus = portion.gpus(driver, staged)?;
        let slots = gpus
            .reserve(Place::Host, staged.drain_bytes())
            .map_err(told)?;
        let mine = staged.of(portion.rank, slots);
        let found = devices::all(driver).map_err(told)?;
        let memory = |source: &Source| Memory {
            uuid: Uuid(found[source.gpu].uuid),
            bytes: source.bytes,
        };
        let memories: Vec<Memory> = mine.sources().iter().map(memory).collect();
        Ok(Draining {
            gpus,
            out: vec![0; memories.len()],
            memories,
            drain: Some(Drain::new(mine)),
            _portion: portion,
        })
    }

    pub fn memories(&self) -> Vec<Memory> {
        self.memories.clone()
    }

    /// Sends the next bytes, or that there are none.
    ///
    /// # Errors
    /// Whoever drains is gone.
    pub fn next(&mut self, to: &mut impl Write) -> io::Result<()> {
        let mut gone = None;
        let Some(drain) = &mut self.drain else {
            return send(to, &Answer::Failed("the drain has ended".to_owned()));
        };
        let mut sink = Socket {
            to,
            out: &mut self.out,
            gone: &mut gone,
        };
        let stepped = drain.step(&mut self.gpus, &mut sink);
        match (stepped, gone) {
            (_, Some(error)) => Err(error),
            (Ok(true), None) => Ok(()),
            (Ok(false), None) => send(to, &Answer::Done),
            (Err(error), None) => send(to, &Answer::Failed(error.to_string())),
        }
    }
}

impl Drop for Draining {
    fn drop(&mut self) {
        if let Some(drain) = self.drain.take() {
            drain.end(&mut self.gpus);
        }
    }
}

/// Who drains.
struct Socket<'a, W> {
    to: &'a mut W,
    out: &'a mut [u64],
    gone: &'a mut Option<io::Error>,
}

impl<W: Write> Sink for Socket<'_, W> {
    fn write(&mut self, source: usize, bytes: &[u8], _: Digest) -> Result<(), SinkError> {
        let answer = Answer::Bytes {
            memory: source,
            offset: self.out[source],
            bytes: bytes.len() as u64,
        };
        self.out[source] += bytes.len() as u64;
        let sent = send(self.to, &answer).and_then(|()| self.to.write_all(bytes));
        sent.map_err(|error| {
            let problem = error.to_string();
            *self.gone = Some(error);
            SinkError { rank: 0, problem }
        })
    }
}

/// A rank that comes back from an image.
pub struct Returning<'a> {
    pub pid: i32,
    pub rank: u32,
    pub pairs: &'a [(Uuid, Uuid)],
    pub memories: &'a [Memory],
}

/// Devices come back to a process with the bytes of its image, which are asked for and come over the connection. Then it is locked.
///
/// # Errors
/// They do not, in words for people.
pub fn fill(
    driver: &'static Driver,
    returning: &Returning<'_>,
    to: &mut impl Write,
    from: &mut impl Read,
) -> Result<(), String> {
    let pairs: Vec<_> = (returning.pairs.iter())
        .map(|(old, new)| (old.0, new.0))
        .collect();
    let lent = storage::restore(driver, returning.pid, &pairs).map_err(told)?;
    let targets = targets(driver, returning, &lent)?;
    let mut gpus = open(driver, DRAIN.slot * 2 * u64::from(DRAIN.streams))?;
    let mut image = Image {
        rank: returning.rank,
        to,
        from,
        out: vec![0; targets.len()],
    };
    fill_from(&mut gpus, &targets, &mut image, DRAIN).map_err(told)?;
    storage::complete(driver, lent).map_err(told)
}

/// The lent memory for each memory of the image.
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
                "its image has {bytes} bytes of {uuid}, and the driver wants others there"
            ));
        };
        targets.push(left.remove(at));
    }
    match left.first() {
        None => Ok(targets),
        Some(source) => Err(format!(
            "the driver wants {} bytes for GPU {}, of which its image has none",
            source.bytes, source.gpu
        )),
    }
}

/// The bytes of an image, at the other end of the connection.
struct Image<'a, R, W> {
    rank: u32,
    to: &'a mut W,
    from: &'a mut R,
    out: Vec<u64>,
}

impl<R: Read, W: Write> Bytes for Image<'_, R, W> {
    fn read(&mut self, source: usize, into: &mut [u8]) -> Result<Option<Digest>, BytesError> {
        let want = Answer::Bytes {
            memory: source,
            offset: self.out[source],
            bytes: into.len() as u64,
        };
        self.out[source] += into.len() as u64;
        let read = send(self.to, &want).and_then(|()| self.from.read_exact(into));
        read.map_err(|error| BytesError {
            rank: self.rank,
            problem: format!("its image comes no more: {error}"),
        })?;
        Ok(None)
    }
}
