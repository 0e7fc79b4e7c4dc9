//! Memory: allocation, release, and lookup by address.

use std::fs::File;

use stillpoint_emulated_gpu_protocol::message::{Reply, Request, Work};

use crate::code::{self, Code};
use crate::driver::Driver;
use crate::objects::{Mapped, Memory, Pinned};
use crate::window;

/// The granularity of managed memory.
const PAGE: u64 = 4096;

impl Driver {
    /// Allocates device memory in the current context.
    pub fn allocate(&mut self, size: u64) -> Result<u64, Code> {
        let (context, of) = self.context()?;
        let device = self.place(of.device)?;
        self.allocate_for(context, device, size)
    }

    fn allocate_for(&mut self, context: u64, device: u32, size: u64) -> Result<u64, Code> {
        if size == 0 {
            return Err(code::INVALID_VALUE);
        }
        self.reclaim();
        let room = size
            .checked_next_multiple_of(512)
            .ok_or(code::OUT_OF_MEMORY)?;
        let address = self.addresses.take(room, 512).ok_or(code::OUT_OF_MEMORY)?;
        let made = self.connection()?.tell(&Request::Allocate {
            device,
            address,
            size: room,
        });
        if let Err(code) = made {
            self.addresses.give_back(address);
            return Err(code);
        }
        self.pieces += 1;
        let number = self.pieces;
        self.memory.insert(
            address,
            Memory {
                context,
                size,
                number,
                managed: false,
                shared: false,
                mapped: Mapped::No,
            },
        );
        Ok(address)
    }

    /// Allocates memory that device and host both reach, at one address.
    pub fn allocate_managed(&mut self, size: u64) -> Result<u64, Code> {
        let (context, of) = self.context()?;
        let device = self.place(of.device)?;
        let room = size
            .checked_next_multiple_of(PAGE)
            .filter(|room| *room > 0)
            .ok_or(code::INVALID_VALUE)?;
        let address = self.managed_addresses.take(room, PAGE);
        let address = address.ok_or(code::OUT_OF_MEMORY)?;
        if let Err(code) = self.manage(device, address, room) {
            self.managed_addresses.give_back(address);
            return Err(code);
        }
        self.pieces += 1;
        let number = self.pieces;
        self.memory.insert(
            address,
            Memory {
                context,
                size,
                number,
                managed: true,
                shared: false,
                mapped: Mapped::No,
            },
        );
        Ok(address)
    }

    /// Opens another process's memory, by its name.
    pub fn open_shared(&mut self, token: u64, size: u64) -> Result<u64, Code> {
        let (context, _) = self.context()?;
        let address = self.addresses.take(size, 512).ok_or(code::OUT_OF_MEMORY)?;
        let opened = self.connection()?.tell(&Request::Open { token, address });
        if let Err(code) = opened {
            self.addresses.give_back(address);
            return Err(code);
        }
        self.pieces += 1;
        let number = self.pieces;
        self.memory.insert(
            address,
            Memory {
                context,
                size,
                number,
                managed: false,
                shared: true,
                mapped: Mapped::No,
            },
        );
        Ok(address)
    }

    /// Puts managed memory at an address, on both sides.
    pub fn manage(&mut self, device: u32, address: u64, size: u64) -> Result<(), Code> {
        let request = Request::Manage {
            device,
            address,
            size,
        };
        let Reply::Managed(name) = self.connection()?.ask(&request)? else {
            return Err(code::UNKNOWN);
        };
        // The connection's folder counts: during a restore it is not yet the process's own.
        let path = self.connection()?.folder().join(name);
        File::options()
            .read(true)
            .write(true)
            .open(path)
            .and_then(|file| window::shared_memory(address, size, &file))
            .map_err(|_| code::OUT_OF_MEMORY)
    }

    /// Takes managed memory from the host. Its addresses stay reserved.
    pub fn withdraw_managed(&self) -> Result<(), Code> {
        for (address, memory) in &self.memory {
            if memory.managed {
                let size = memory.size.next_multiple_of(PAGE);
                window::withdraw(*address, size).map_err(|_| code::OPERATING_SYSTEM)?;
            }
        }
        Ok(())
    }

    /// Gives device memory back at once. Its work must be done.
    pub fn free(&mut self, address: u64) -> Result<(), Code> {
        let own = |memory: &&Memory| memory.mapped == Mapped::No;
        let memory = self.memory.get(&address).filter(own).copied();
        let memory = memory.ok_or(code::INVALID_VALUE)?;
        self.memory.remove(&address);
        self.connection()?.tell(&Request::Free { address })?;
        if memory.managed {
            let size = memory.size.next_multiple_of(PAGE);
            window::withdraw(address, size).map_err(|_| code::OPERATING_SYSTEM)?;
            self.managed_addresses.give_back(address);
        } else {
            self.addresses.give_back(address);
        }
        Ok(())
    }

    /// Gives device memory back when a stream comes to it.
    pub fn free_in_order(&mut self, address: u64, stream: u64) -> Result<(), Code> {
        if self
            .memory
            .get(&address)
            .is_none_or(|memory| memory.managed || memory.mapped != Mapped::No)
        {
            return Err(code::INVALID_VALUE);
        }
        let (slot, sequence) = self.submit(stream, vec![], Work::Free { address })?;
        self.memory.remove(&address);
        self.leaving.push((slot, sequence, address));
        Ok(())
    }

    /// Makes the addresses of returned memory available again.
    pub fn reclaim(&mut self) {
        let channel = window::channel();
        let addresses = &mut self.addresses;
        self.leaving.retain(|&(slot, sequence, address)| {
            let done = channel.has(slot, sequence);
            if done {
                addresses.give_back(address);
            }
            !done
        });
    }

    /// Returns the device memory that contains an address, and its beginning.
    pub fn memory_at(&self, address: u64) -> Option<(u64, &Memory)> {
        let (&start, memory) = self.memory.range(..=address).next_back()?;
        (address < start + memory.size).then_some((start, memory))
    }

    /// Returns the pinned host memory that contains an address, and its beginning.
    pub fn pinned_at(&self, address: u64) -> Option<(u64, &Pinned)> {
        let (&start, pinned) = self.pinned.range(..=address).next_back()?;
        (address < start + pinned.size).then_some((start, pinned))
    }

    /// Gives pinned host memory back.
    pub fn unpin(&mut self, address: u64) -> Result<(), Code> {
        let pinned = self.pinned.remove(&address).ok_or(code::INVALID_VALUE)?;
        if !pinned.registered {
            let size = pinned.size.next_multiple_of(4096);
            window::withdraw(address, size).map_err(|_| code::OPERATING_SYSTEM)?;
            self.pinned_addresses.give_back(address);
        }
        Ok(())
    }
}
