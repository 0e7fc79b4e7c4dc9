//! A checkpoint of this process. Its service thread carries it out for another process. The states, and the requests that each of
//! them allows, are the real driver's:
//!
//! ```text
//! RUNNING --lock--> LOCKED --checkpoint--> CHECKPOINTED --restore--> LOCKED --unlock--> RUNNING
//! with custom storage:   --checkpoint--> CHECKPOINTING --complete--> CHECKPOINTED
//!                                        CHECKPOINTED --restore--> RESTORING --complete--> LOCKED
//! ```

mod back;

use std::time::Duration;

use stillpoint_emulated_gpu_protocol::channel;
use stillpoint_emulated_gpu_protocol::clock;
use stillpoint_emulated_gpu_protocol::fault::Fault;
use stillpoint_emulated_gpu_protocol::futex;
use stillpoint_emulated_gpu_protocol::message::{Reply, Request, Work};
use stillpoint_emulated_gpu_protocol::page::{Lent, Order, State};

use crate::code::{self, Code};
use crate::driver::{Driver, hold};
use crate::objects::{Mapped, Memory};
use crate::{gate, window};

/// The service thread's own stream.
const SERVICE: u32 = 0;

/// State that is saved while there is no connection.
pub struct Saved {
    /// Device memory in host memory: device address, host address, size. Empty with custom storage.
    pieces: Vec<(u64, u64, u64)>,
    /// The progress of the streams, and the times of events.
    channel: Box<[u8]>,
}

/// Carries out a request.
pub fn carry_out(order: Order) -> Result<Vec<Lent>, Code> {
    match (window::state(), order) {
        (_, Order::Look) => Ok(vec![]),
        (State::Running, Order::Lock { until }) => lock(until),
        (State::Locked, Order::Unlock) => {
            window::set_state(State::Running);
            gate::FUNCTIONS.open();
            gate::CALLS.open();
            Ok(vec![])
        }
        (State::Locked, Order::Checkpoint { custom }) => with(|driver| driver.save(custom)),
        (State::Checkpointing, Order::Complete) => with(|driver| {
            driver.leave()?;
            window::set_state(State::Checkpointed);
            Ok(vec![])
        }),
        (
            State::Checkpointed,
            Order::Restore {
                custom,
                folder,
                pairs,
            },
        ) => with(|driver| driver.restore(custom, folder.into(), &pairs)),
        (State::Restoring, Order::Complete) => {
            window::set_state(State::Locked);
            Ok(vec![])
        }
        _ => Err(code::ILLEGAL_STATE),
    }
}

fn with(act: impl FnOnce(&mut Driver) -> Result<Vec<Lent>, Code>) -> Result<Vec<Lent>, Code> {
    act(hold().as_mut().ok_or(code::NOT_INITIALIZED)?)
}

/// Keeps new calls out, and waits for calls that are inside and for submitted work. If that takes too long, nothing changes: the caller has gone,
/// and would not undo a lock that it does not know of.
fn lock(until: Option<u64>) -> Result<Vec<Lent>, Code> {
    // The real driver waits without a limit for a thread that was stopped inside a call.
    drop(hold());
    if !gate::CALLS.close(until) {
        return Err(code::NOT_READY);
    }
    // Functions of the program are work as well. Their caller is kept out only when all work is done.
    let functions = || gate::FUNCTIONS.close(until).then_some(());
    match quiet(until).and_then(|()| functions().ok_or(code::NOT_READY)) {
        Ok(()) if until.is_none_or(|until| clock::now() < until) => {
            window::set_state(State::Locked);
            Ok(vec![])
        }
        Ok(()) => {
            gate::FUNCTIONS.open();
            gate::CALLS.open();
            Err(code::NOT_READY)
        }
        Err(code) => {
            gate::CALLS.open();
            Err(code)
        }
    }
}

/// Waits for the submitted work. The driver's state stays accessible meanwhile, since functions of the program may have to be called.
fn quiet(until: Option<u64>) -> Result<(), Code> {
    let (fault, pieces) = {
        let mut driver = hold();
        let driver = driver.as_mut().ok_or(code::NOT_INITIALIZED)?;
        let fault = driver.connection()?.fault(Fault::LockTimeout);
        (fault, driver.slots.all())
    };
    if fault {
        let left = until.map_or(0, |until| until.saturating_sub(clock::now()));
        std::thread::sleep(Duration::from_nanos(left));
        return Err(code::NOT_READY);
    }
    let all = pieces
        .into_iter()
        .all(|(slot, sequence)| finished(slot, sequence, until));
    all.then_some(()).ok_or(code::NOT_READY)
}

/// Waits for a piece of work, until a time of the monotonic clock.
fn finished(slot: u32, sequence: u32, until: Option<u64>) -> bool {
    let channel = window::channel();
    let word = &channel.done[slot as usize];
    loop {
        let Some(seen) = channel.pending(slot, sequence) else {
            return true;
        };
        let left = until.map_or(u64::MAX, |until| until.saturating_sub(clock::now()));
        if left == 0 {
            return false;
        }
        futex::wait(
            futex::place(word),
            seen,
            Some(Duration::from_nanos(left.min(1_000_000_000))),
        );
    }
}

impl Driver {
    /// Copies device memory to host memory, or lends it. Then ends the connection, now or when the copies are made.
    fn save(&mut self, custom: bool) -> Result<Vec<Lent>, Code> {
        self.healthy()?;
        let managed = self.memory.values().any(|memory| memory.managed);
        let shared = self.memory.values().any(|memory| memory.shared);
        let not_carried = shared || self.multicasts.are_there();
        if custom && !self.node.custom_storage || managed && !self.node.managed || not_carried {
            return Err(code::NOT_SUPPORTED);
        }
        let connection = self.connection()?;
        if connection.fault(Fault::CheckpointBreaks) {
            window::channel().fail(code::UNKNOWN);
            return Err(broken());
        }
        if connection.fault(Fault::CheckpointFails) {
            return Err(code::OPERATING_SYSTEM);
        }
        self.reclaim();
        let pieces = self.copy_out(custom)?;
        if custom {
            let lent = self.lend().inspect_err(|_| give_back(&pieces))?;
            self.put_aside(pieces);
            window::set_state(State::Checkpointing);
            return Ok(lent);
        }
        self.put_aside(pieces);
        self.leave()?;
        window::set_state(State::Checkpointed);
        Ok(vec![])
    }

    fn put_aside(&mut self, pieces: Vec<(u64, u64, u64)>) {
        self.saved = Some(Saved {
            pieces,
            channel: Box::default(),
        });
    }

    /// Lends the memory of each device with any.
    fn lend(&mut self) -> Result<Vec<Lent>, Code> {
        let places: Vec<u32> = self.devices.iter().copied().flatten().collect();
        let mut lent = vec![];
        for device in places {
            match self.connection()?.ask(&Request::Lend { device })? {
                Reply::Lent(one) if one.size > 0 => lent.push(one),
                Reply::Lent(_) => {}
                _ => return Err(code::UNKNOWN),
            }
        }
        Ok(lent)
    }

    /// Copies memory to host memory: all of it, or only managed memory.
    fn copy_out(&mut self, only_managed: bool) -> Result<Vec<(u64, u64, u64)>, Code> {
        let of = self.memory.iter();
        let memory: Vec<(u64, Memory)> = of
            .filter(|(_, memory)| memory.managed || !only_managed)
            .filter(|(_, memory)| !matches!(memory.mapped, Mapped::Again { .. }))
            .map(|(address, memory)| (*address, *memory))
            .collect();
        let mut pieces = vec![];
        for (address, memory) in memory {
            let size = memory.size;
            let copied = window::anywhere(size)
                .map_err(|_| code::OUT_OF_MEMORY)
                .and_then(|host| {
                    pieces.push((address, host, size));
                    if memory.managed {
                        // SAFETY: both are the driver's own, of this size, and no thread writes there: work is done.
                        unsafe { window::copy(address, host, size) };
                        return Ok(());
                    }
                    let work = Work::ToHost {
                        address,
                        host,
                        size,
                    };
                    self.transfer(self.device_of(&memory)?, work)
                });
            if let Err(code) = copied {
                give_back(&pieces);
                return Err(code);
            }
        }
        Ok(pieces)
    }

    /// Returns the device that memory is on.
    fn device_of(&self, memory: &Memory) -> Result<u32, Code> {
        if let Mapped::Home { device } | Mapped::Again { device, .. } = memory.mapped {
            return self.place(device);
        }
        let context = self.contexts.get(memory.context);
        self.place(context.ok_or(code::INVALID_CONTEXT)?.device)
    }

    /// Makes a copy on the service thread's own stream, and waits for it.
    fn transfer(&mut self, device: u32, work: Work) -> Result<(), Code> {
        let sequence = self.slots.next(SERVICE);
        let submitted = Request::Submit {
            device,
            stream: SERVICE,
            sequence,
            after: vec![],
            work,
        };
        self.connection()?.tell(&submitted)?;
        // A device that has gone never answers.
        while !finished(SERVICE, sequence, Some(clock::now() + 1_000_000_000)) {
            if !self.connection()?.lives() {
                return Err(code::UNKNOWN);
            }
        }
        self.healthy()
    }

    /// Ends the connection. Nothing of the devices stays open or mapped.
    fn leave(&mut self) -> Result<(), Code> {
        // A thread that waits for a function to call must not continue on an unmapped channel.
        let _ = futex::wake(&window::channel().calls);
        let kept: *const channel::Channel = window::channel();
        // SAFETY: the channel is mapped, as there is a connection, and the device changes nothing of it now.
        let kept = unsafe { std::slice::from_raw_parts(kept.cast::<u8>(), channel::SIZE) };
        if let Some(saved) = &mut self.saved {
            saved.channel = kept.into();
        }
        // The reply means that the process's resources are free for others.
        self.connection()?.tell(&Request::Leave)?;
        self.connection = None;
        self.withdraw_managed()?;
        window::unmap_channel().map_err(|_| code::OPERATING_SYSTEM)
    }

    /// Tells whether a device is in use.
    fn used(&self, device: u32) -> bool {
        let made = |memory: &Memory| memory.mapped == Mapped::Home { device };
        self.contexts
            .iter()
            .any(|(_, context)| context.device == device)
            || self.memory.values().any(made)
    }
}

/// Marks the process as lost to its devices for good: its calls go on, and fail.
fn broken() -> Code {
    window::set_state(State::Failed);
    code::UNKNOWN
}

/// Frees the host memory that held device memory.
fn give_back(pieces: &[(u64, u64, u64)]) {
    for &(_, host, size) in pieces {
        // SAFETY: it came from `anywhere`, and only the list knew of it.
        unsafe { window::unmap(host, size) };
    }
}
