//! Virtual memory management: memory is made without an address, and mapped to reserved addresses, as often as the program likes. It belongs to no
//! context.
//!
//! On the device each such memory has an address that the program never sees, its *home*; a mapping is the same block at another address. So unmapped
//! memory exists as well, and has to be in a checkpoint.

use std::collections::BTreeMap;

use stillpoint_emulated_gpu_protocol::message::{Reply, Request};
use stillpoint_emulated_gpu_protocol::page::Lent;

use crate::code::{self, Code};
use crate::driver::Driver;
use crate::objects::{Handles, Mapped, Memory};

/// The granularity of memory and mappings.
pub const GRANULARITY: u64 = 2 << 20;

/// Memory that was made.
#[derive(Debug)]
struct Made {
    /// The device's number, as the program knows it.
    device: u32,
    size: u64,
    home: u64,
    /// Whether other processes may get it.
    exportable: bool,
    /// The number of holders: the program's holds, mappings, and multicast objects that it is bound to.
    holders: u32,
}

/// A range of addresses that has memory.
#[derive(Debug)]
struct Mapping {
    handle: u64,
    size: u64,
    /// Whether the program may use it yet.
    open: bool,
}

/// All made memory and its mappings.
#[derive(Debug)]
pub struct Mappings {
    made: Handles<Made>,
    reserved: BTreeMap<u64, u64>,
    mapped: BTreeMap<u64, Mapping>,
}

impl Mappings {
    pub fn new() -> Mappings {
        Mappings {
            made: Handles::new(0x1_00a0),
            reserved: BTreeMap::new(),
            mapped: BTreeMap::new(),
        }
    }
}

fn whole(size: u64) -> Result<(), Code> {
    let whole = size > 0 && size.is_multiple_of(GRANULARITY);
    whole.then_some(()).ok_or(code::INVALID_VALUE)
}

impl Driver {
    /// Makes memory without an address, held once.
    pub fn make(&mut self, device: u32, size: u64, exportable: bool) -> Result<u64, Code> {
        whole(size)?;
        let place = self.place(device)?;
        self.reclaim();
        let home = self.addresses.take(size, 512).ok_or(code::OUT_OF_MEMORY)?;
        let made = self.connection()?.tell(&Request::Allocate {
            device: place,
            address: home,
            size,
        });
        if let Err(code) = made {
            self.addresses.give_back(home);
            return Err(code);
        }
        self.has(home, size, Mapped::Home { device });
        Ok(self.mappings.made.add(Made {
            device,
            size,
            home,
            exportable,
            holders: 1,
        }))
    }

    /// Gives memory a name, by which other processes open it.
    pub fn export(&mut self, handle: u64) -> Result<Lent, Code> {
        let made = self.mappings.made.get(handle);
        let made = made.filter(|made| made.exportable);
        let home = made.ok_or(code::INVALID_VALUE)?.home;
        let Reply::Lent(lent) = self.connection()?.ask(&Request::Share { address: home })? else {
            return Err(code::UNKNOWN);
        };
        self.is_shared(home);
        Ok(lent)
    }

    /// Opens memory of another process, held once.
    pub fn import(&mut self, token: u64, place: u32, size: u64) -> Result<u64, Code> {
        let device = self.devices.iter().position(|one| *one == Some(place));
        let device = device.ok_or(code::INVALID_DEVICE)? as u32;
        let home = self.addresses.take(size, 512).ok_or(code::OUT_OF_MEMORY)?;
        let opened = self.connection()?.tell(&Request::Open {
            token,
            address: home,
        });
        if let Err(code) = opened {
            self.addresses.give_back(home);
            return Err(code);
        }
        self.has(home, size, Mapped::Home { device });
        self.is_shared(home);
        Ok(self.mappings.made.add(Made {
            device,
            size,
            home,
            exportable: true,
            holders: 1,
        }))
    }

    fn is_shared(&mut self, home: u64) {
        if let Some(memory) = self.memory.get_mut(&home) {
            memory.shared = true;
        }
    }

    /// Returns the home of memory, its device, and its size.
    pub fn home_of(&self, handle: u64) -> Result<(u64, u32, u64), Code> {
        let made = self.mappings.made.get(handle).ok_or(code::INVALID_VALUE)?;
        Ok((made.home, made.device, made.size))
    }

    /// Adds a holder.
    pub fn hold(&mut self, handle: u64) -> Result<(), Code> {
        let made = self.mappings.made.get_mut(handle);
        made.ok_or(code::INVALID_VALUE)?.holders += 1;
        Ok(())
    }

    fn has(&mut self, address: u64, size: u64, mapped: Mapped) {
        self.pieces += 1;
        let memory = Memory {
            context: 0,
            size,
            number: self.pieces,
            managed: false,
            shared: false,
            mapped,
        };
        self.memory.insert(address, memory);
    }

    /// Removes a holder. Without any, the memory is gone.
    pub fn let_go(&mut self, handle: u64) -> Result<(), Code> {
        let made = self.mappings.made.get_mut(handle);
        let made = made.ok_or(code::INVALID_VALUE)?;
        made.holders -= 1;
        if made.holders > 0 {
            return Ok(());
        }
        let home = made.home;
        self.mappings.made.remove(handle);
        self.memory.remove(&home);
        self.connection()?.tell(&Request::Free { address: home })?;
        self.addresses.give_back(home);
        Ok(())
    }

    /// Reserves addresses for memory that is mapped later.
    pub fn reserve(&mut self, size: u64, alignment: u64) -> Result<u64, Code> {
        whole(size)?;
        let alignment = alignment.max(GRANULARITY);
        let address = self.addresses.take(size, alignment);
        let address = address.ok_or(code::OUT_OF_MEMORY)?;
        self.mappings.reserved.insert(address, size);
        Ok(address)
    }

    pub fn unreserve(&mut self, address: u64, size: u64) -> Result<(), Code> {
        let end = address.checked_add(size).ok_or(code::INVALID_VALUE)?;
        let used = self.mappings.mapped.range(address..end).next().is_some()
            || self.multicasts.mapped_in(address, end).is_some();
        if self.mappings.reserved.get(&address) != Some(&size) || used {
            return Err(code::INVALID_VALUE);
        }
        self.mappings.reserved.remove(&address);
        self.addresses.give_back(address);
        Ok(())
    }

    /// Gives reserved addresses memory. They are not accessible yet.
    pub fn map(&mut self, address: u64, size: u64, handle: u64) -> Result<(), Code> {
        whole(size)?;
        let end = address.checked_add(size).ok_or(code::INVALID_VALUE)?;
        let inside = self.mappings.reserved.range(..=address).next_back();
        let inside = inside.is_some_and(|(start, length)| end <= start + length);
        let before = self.mappings.mapped.range(..end).next_back();
        let free = before.is_none_or(|(start, other)| start + other.size <= address)
            && self
                .multicasts
                .end_before(end)
                .is_none_or(|end| end <= address);
        if inside && free && self.multicasts.has(handle) {
            return self.map_multicast(address, size, handle);
        }
        let made = self.mappings.made.get_mut(handle);
        let made = made.filter(|made| inside && free && made.size == size);
        made.ok_or(code::INVALID_VALUE)?.holders += 1;
        let mapping = Mapping {
            handle,
            size,
            open: false,
        };
        self.mappings.mapped.insert(address, mapping);
        Ok(())
    }

    /// Makes the mapped memory in a range accessible.
    pub fn open(&mut self, address: u64, size: u64) -> Result<(), Code> {
        if self.open_multicast(address) {
            return Ok(());
        }
        let all = self.mappings.mapped.range(address..address + size);
        let closed: Vec<u64> = all
            .filter(|(_, mapping)| !mapping.open)
            .map(|(address, _)| *address)
            .collect();
        if !self.mappings.mapped.contains_key(&address) {
            return Err(code::INVALID_VALUE);
        }
        for address in closed {
            let mapping = self.mappings.mapped.get_mut(&address);
            let mapping = mapping.ok_or(code::UNKNOWN)?;
            mapping.open = true;
            let (handle, size) = (mapping.handle, mapping.size);
            let made = self.mappings.made.get(handle).ok_or(code::UNKNOWN)?;
            let (home, device) = (made.home, made.device);
            self.appears(home, address)?;
            self.has(address, size, Mapped::Again { home, device });
        }
        Ok(())
    }

    /// Puts a block of the device at one more address.
    pub fn appears(&mut self, home: u64, address: u64) -> Result<(), Code> {
        let Reply::Lent(lent) = self.connection()?.ask(&Request::Share { address: home })? else {
            return Err(code::UNKNOWN);
        };
        let token = lent.token;
        self.connection()?.tell(&Request::Open { token, address })
    }

    /// Takes memory from addresses. The memory stays if it has another holder.
    pub fn unmap(&mut self, address: u64, size: u64) -> Result<(), Code> {
        if self.unmap_multicast(address, size)? {
            return Ok(());
        }
        let mapping = self.mappings.mapped.get(&address);
        let mapping = mapping.filter(|mapping| mapping.size == size);
        let (handle, open) = mapping
            .map(|mapping| (mapping.handle, mapping.open))
            .ok_or(code::INVALID_VALUE)?;
        self.mappings.mapped.remove(&address);
        if open {
            self.memory.remove(&address);
            self.connection()?.tell(&Request::Free { address })?;
        }
        self.let_go(handle)
    }

    /// Returns the memory mapped at an address, and adds a holder.
    pub fn held_at(&mut self, address: u64) -> Result<u64, Code> {
        let found = self.mappings.mapped.range(..=address).next_back();
        let found = found.filter(|(start, mapping)| address < *start + mapping.size);
        let handle = found.map(|(_, mapping)| mapping.handle);
        let handle = handle.ok_or(code::INVALID_VALUE)?;
        let made = self.mappings.made.get_mut(handle);
        made.ok_or(code::UNKNOWN)?.holders += 1;
        Ok(handle)
    }
}
