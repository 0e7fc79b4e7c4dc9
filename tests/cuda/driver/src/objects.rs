//! The objects behind a program's handles.

use std::collections::BTreeMap;

use crate::ptx::Entry;

/// A context of a device.
#[derive(Debug)]
pub struct Context {
    /// The device's number as the program knows it.
    pub device: u32,
    /// The stream that has no handle of its own.
    pub default: u64,
    pub flags: u32,
    pub version: u32,
    /// Contexts whose memory this one may use.
    pub peers: Vec<u64>,
    /// Limits that the program has set.
    pub limits: BTreeMap<usize, usize>,
}

/// The primary context of a device, which exists while it is held.
#[derive(Debug, Default)]
pub struct Primary {
    pub holders: u32,
    pub context: Option<u64>,
    pub flags: u32,
}

/// A stream.
#[derive(Debug)]
pub struct Stream {
    pub context: u64,
    /// Its slot in the channel.
    pub slot: u32,
    pub order: Order,
    pub flags: u32,
    pub priority: i32,
}

/// A stream's order relative to the default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The default stream itself: it waits for all blocking ones, and they wait for it.
    Default,
    Blocking,
    Free,
}

/// An event.
#[derive(Debug)]
pub struct Event {
    pub context: u64,
    /// The slot of its time in the channel.
    pub time: Option<u32>,
    /// The stream's slot, and the piece of work after which the event has happened.
    pub recorded: Option<(u32, u32)>,
}

/// A kernel of a module.
#[derive(Debug)]
pub struct Function {
    pub module: u64,
    pub entry: Entry,
}

/// A piece of device memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub context: u64,
    pub size: u64,
    /// The number of this piece, of all pieces ever made.
    pub number: u64,
    /// Whether the host reaches it as well.
    pub managed: bool,
    /// Whether other processes may have it, too.
    pub shared: bool,
    pub mapped: Mapped,
}

/// Whether memory was made and mapped in two steps. It then belongs to a device, by its number as the program knows it, and to no context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapped {
    No,
    /// The memory's own address.
    Home {
        device: u32,
    },
    /// A further mapping of the memory.
    Again {
        home: u64,
        device: u32,
    },
}

/// Pinned host memory.
#[derive(Clone, Copy, Debug)]
pub struct Pinned {
    pub context: u64,
    pub size: u64,
    pub flags: u32,
    /// Whether it is the program's own memory.
    pub registered: bool,
}

/// The slots of the channel, and the last piece of work of each.
#[derive(Debug, Default)]
pub struct Slots {
    last: Vec<u32>,
    free: Vec<u32>,
}

impl Slots {
    /// Takes a slot, out of at most `most`.
    pub fn take(&mut self, most: usize) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.last.len();
        (slot < most).then(|| {
            self.last.push(0);
            slot as u32
        })
    }

    /// Gives a slot back. Its numbers go on, so that waits for an earlier piece stay right.
    pub fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Returns the number of the next piece of work.
    pub fn next(&mut self, slot: u32) -> u32 {
        let last = &mut self.last[slot as usize];
        *last = last.wrapping_add(1);
        *last
    }

    /// Returns the last piece of work.
    pub fn last(&self, slot: u32) -> u32 {
        self.last[slot as usize]
    }

    /// Returns every slot with its last piece of work.
    pub fn all(&self) -> Vec<(u32, u32)> {
        let numbered = self.last.iter().enumerate();
        numbered.map(|(slot, last)| (slot as u32, *last)).collect()
    }
}

/// Objects by handle. A handle is never used twice, so that a late use is noticed.
#[derive(Debug)]
pub struct Handles<T> {
    things: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Handles<T> {
    /// `first` and its step keep the handles of different kinds apart, and above those that have a meaning of their own.
    pub fn new(first: u64) -> Handles<T> {
        Handles {
            things: BTreeMap::new(),
            next: first,
        }
    }

    pub fn add(&mut self, thing: T) -> u64 {
        let handle = self.next;
        self.next += 0x100;
        self.things.insert(handle, thing);
        handle
    }

    pub fn get(&self, handle: u64) -> Option<&T> {
        self.things.get(&handle)
    }

    pub fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        self.things.get_mut(&handle)
    }

    pub fn remove(&mut self, handle: u64) -> Option<T> {
        self.things.remove(&handle)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.things.iter().map(|(handle, thing)| (*handle, thing))
    }
}
