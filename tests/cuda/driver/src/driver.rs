//! The driver's state in this process, and the calls' access to it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::channel::{Channel, STREAMS};
use stillpoint_emulated_gpu_protocol::description::Node;
use stillpoint_emulated_gpu_protocol::message::{Reply, Request};
use stillpoint_emulated_gpu_protocol::{VARIABLE, futex, window as places};

use crate::addresses::Addresses;
use crate::callbacks::Callbacks;
use crate::checkpoint::Saved;
use crate::code::{self, Code};
use crate::connection::Connection;
use crate::graphs::Graphs;
use crate::mapping::Mappings;
use crate::multicast::Multicasts;
use crate::objects::{Context, Event, Function, Handles, Memory, Pinned, Primary, Slots, Stream};
use crate::ptx::Entry;
use crate::{gate, service, window};

/// The whole state.
pub struct Driver {
    pub folder: PathBuf,
    /// The connection, except while the process is checkpointed.
    pub connection: Option<Connection>,
    /// The node's description at `cuInit`.
    pub node: Node,
    /// The current numbers of the devices, by the program's numbers; none for a device that no longer exists.
    pub devices: Vec<Option<u32>>,
    pub primaries: Vec<Primary>,
    pub contexts: Handles<Context>,
    pub streams: Handles<Stream>,
    pub events: Handles<Event>,
    pub modules: Handles<Vec<Entry>>,
    pub functions: Handles<Function>,
    pub slots: Slots,
    pub times: Slots,
    pub memory: BTreeMap<u64, Memory>,
    pub pinned: BTreeMap<u64, Pinned>,
    pub addresses: Addresses,
    pub pinned_addresses: Addresses,
    pub managed_addresses: Addresses,
    /// Addresses that become free once a stream has reached a piece of work.
    pub leaving: Vec<(u32, u32, u64)>,
    pub pieces: u64,
    /// Functions of the program that streams have yet to call.
    pub callbacks: Callbacks,
    /// Memory that is made and mapped in two steps.
    pub mappings: Mappings,
    pub multicasts: Multicasts,
    pub graphs: Graphs,
    /// State that a checkpoint has saved.
    pub saved: Option<Saved>,
}

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

thread_local! {
    /// The contexts that a thread has pushed; the last is current.
    static CURRENT: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Gives access to the contexts that this thread has pushed.
pub fn current<T>(look: impl FnOnce(&mut Vec<u64>) -> T) -> T {
    CURRENT.with_borrow_mut(look)
}

/// Locks the driver, whether it is set up or not. The service thread uses this, and all other code uses [`call`].
pub fn hold() -> MutexGuard<'static, Option<Driver>> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a call that only reads or changes known state.
pub fn look(ask: impl FnOnce(&mut Driver) -> Result<(), Code>) -> Code {
    let _inside = gate::CALLS.enter();
    match hold().as_mut() {
        Some(driver) => code::of(ask(driver)),
        None => code::NOT_INITIALIZED,
    }
}

/// Runs a call that concerns work: it returns an error of earlier work.
pub fn call(ask: impl FnOnce(&mut Driver) -> Result<(), Code>) -> Code {
    look(|driver| {
        driver.healthy()?;
        ask(driver)
    })
}

/// Runs a call, and waits for the work that it has submitted.
pub fn call_and_wait(ask: impl FnOnce(&mut Driver) -> Result<Vec<(u32, u32)>, Code>) -> Code {
    let mut submitted = vec![];
    let result = call(|driver| {
        submitted = ask(driver)?;
        Ok(())
    });
    match result {
        code::SUCCESS => code::of(wait(&submitted)),
        code => code,
    }
}

/// Waits until streams have reached these pieces of work. The gate is open to a checkpoint meanwhile.
pub fn wait(pieces: &[(u32, u32)]) -> Result<(), Code> {
    for &(slot, sequence) in pieces {
        loop {
            let seen = {
                let _inside = gate::CALLS.enter();
                let driver = hold();
                let driver = driver.as_ref().ok_or(code::NOT_INITIALIZED)?;
                driver.healthy()?;
                let channel = window::channel();
                let Some(seen) = channel.pending(slot, sequence) else {
                    break;
                };
                if !driver.connection.as_ref().is_some_and(Connection::lives) {
                    channel.fail(code::UNKNOWN);
                }
                seen
            };
            // This waits on the address and not on the channel: a checkpoint may unmap it, and then the wait returns.
            futex::wait(word(slot), seen, Some(Duration::from_secs(1)));
        }
    }
    Ok(())
}

/// Returns the address of a stream's word in the channel, whether that is mapped or not.
fn word(slot: u32) -> usize {
    let offset = offset_of!(Channel, done) + size_of::<AtomicU32>() * slot as usize;
    places::CHANNEL as usize + offset
}

/// `cuInit`.
pub fn init() -> Result<(), Code> {
    let _inside = gate::CALLS.enter();
    let mut driver = hold();
    if driver.is_some() {
        return Ok(());
    }
    let folder = std::env::var_os(VARIABLE).ok_or(code::NO_DEVICE)?;
    let folder = PathBuf::from(folder);
    if !folder.is_dir() {
        return Err(code::NO_DEVICE);
    }
    let set_up = || -> io::Result<(Connection, service::Ends)> {
        let (commands, orders) = pipe()?;
        let (replies, answers) = pipe()?;
        window::reserve(orders.as_raw_fd(), replies.as_raw_fd())?;
        let connection = Connection::open(&folder)?;
        let ends = service::Ends {
            commands,
            answers,
            // Held for the other process, which opens them through `/proc`.
            others: (orders, replies),
        };
        Ok((connection, ends))
    };
    let (mut connection, ends) = set_up().map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO | libc::ENOENT) => code::NO_DEVICE,
        _ => code::OPERATING_SYSTEM,
    })?;
    let node = connection.node()?;
    service::start(ends).map_err(|_| code::OPERATING_SYSTEM)?;
    let count = node.devices.len() as u32;
    let mut slots = Slots::default();
    // The service thread's own stream.
    slots.take(STREAMS);
    *driver = Some(Driver {
        folder,
        connection: Some(connection),
        devices: (0..count).map(Some).collect(),
        primaries: (0..count).map(|_| Primary::default()).collect(),
        node,
        contexts: Handles::new(0x1_0000),
        streams: Handles::new(0x1_0020),
        events: Handles::new(0x1_0040),
        modules: Handles::new(0x1_0060),
        functions: Handles::new(0x1_0080),
        slots,
        times: Slots::default(),
        memory: BTreeMap::new(),
        pinned: BTreeMap::new(),
        addresses: Addresses::new(places::DEVICE),
        pinned_addresses: Addresses::new(places::PINNED),
        managed_addresses: Addresses::new(places::MANAGED),
        leaving: vec![],
        pieces: 0,
        callbacks: Callbacks::default(),
        mappings: Mappings::new(),
        multicasts: Multicasts::new(),
        graphs: Graphs::new(),
        saved: None,
    });
    Ok(())
}

fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: two new descriptors without another owner.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

impl Driver {
    /// Returns the error that has spoilt this process's work, if there was one.
    pub fn healthy(&self) -> Result<(), Code> {
        if self.connection.is_none() {
            return Err(code::DEVICE_UNAVAILABLE);
        }
        let error = window::channel().error.load(Ordering::Acquire);
        match error {
            0 => Ok(()),
            error => Err(error),
        }
    }

    pub fn connection(&mut self) -> Result<&mut Connection, Code> {
        self.connection.as_mut().ok_or(code::DEVICE_UNAVAILABLE)
    }

    /// Returns the current number of a device.
    pub fn place(&self, device: u32) -> Result<u32, Code> {
        let place = self.devices.get(device as usize).copied().flatten();
        place.ok_or(code::INVALID_DEVICE)
    }

    /// Returns the free and total memory of a device.
    pub fn room(&mut self, device: u32) -> Result<(u64, u64), Code> {
        let device = self.place(device)?;
        match self.connection()?.ask(&Request::Memory { device })? {
            Reply::Memory { free, total } => Ok((free, total)),
            _ => Err(code::UNKNOWN),
        }
    }
}
