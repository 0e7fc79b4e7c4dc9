//! A process's return to its devices, or to others.

use std::path::PathBuf;

use stillpoint_emulated_gpu_protocol::fault::Fault;
use stillpoint_emulated_gpu_protocol::message::{Request, Work};
use stillpoint_emulated_gpu_protocol::page::{Lent, State};
use stillpoint_emulated_gpu_protocol::window as places;

use super::{broken, give_back};
use crate::code::{self, Code};
use crate::connection::Connection;
use crate::driver::Driver;
use crate::objects::{Mapped, Memory};
use crate::window;

impl Driver {
    /// Connects to the devices of a folder; `pairs` maps old devices to new ones.
    pub(super) fn restore(
        &mut self,
        custom: bool,
        folder: PathBuf,
        pairs: &[([u8; 16], [u8; 16])],
    ) -> Result<Vec<Lent>, Code> {
        let before = self.devices.clone();
        let restored = Connection::open(&folder)
            .map_err(|_| code::NO_DEVICE)
            .and_then(|connection| {
                self.connection = Some(connection);
                self.come_back(custom, pairs)
            });
        match &restored {
            Ok(_) => {
                self.folder = folder;
                // From now on the process's devices are the new ones, also for the next checkpoint.
                for device in &mut self.node.devices {
                    let pair = pairs.iter().find(|(before, _)| *before == device.uuid);
                    device.uuid = pair.map_or(device.uuid, |(_, now)| *now);
                }
                let state = if custom {
                    State::Restoring
                } else {
                    State::Locked
                };
                window::set_state(state);
            }
            Err(_) => {
                // As before: all saved memory is still there.
                self.devices = before;
                self.connection = None;
                self.withdraw_managed()?;
                window::unmap_channel().map_err(|_| code::OPERATING_SYSTEM)?;
            }
        }
        restored
    }

    fn come_back(
        &mut self,
        custom: bool,
        pairs: &[([u8; 16], [u8; 16])],
    ) -> Result<Vec<Lent>, Code> {
        let now = self.connection()?.node()?;
        if now.driver != self.node.driver {
            return Err(code::SYSTEM_DRIVER_MISMATCH);
        }
        let mut devices = vec![];
        for (number, device) in self.node.devices.iter().enumerate() {
            let pair = pairs.iter().find(|(before, _)| *before == device.uuid);
            let uuid = pair.map_or(device.uuid, |(_, now)| *now);
            let place = now.devices.iter().position(|other| other.uuid == uuid);
            if self.used(number as u32) {
                let place = place.ok_or(code::INVALID_DEVICE)?;
                let other = &now.devices[place];
                if (&other.name, other.capability) != (&device.name, device.capability) {
                    return Err(code::COMPAT_NOT_SUPPORTED_ON_DEVICE);
                }
            }
            devices.push(place.map(|place| place as u32));
        }
        self.devices = devices;
        if self.connection()?.fault(Fault::RestoreBreaks) {
            return Err(broken());
        }
        if self.connection()?.fault(Fault::RestoreFails) {
            return Err(code::OPERATING_SYSTEM);
        }
        self.bring_back_channel();
        let contexts = self.contexts.iter();
        let contexts: Vec<u32> = contexts.map(|(_, context)| context.device).collect();
        for device in contexts {
            let device = self.place(device)?;
            self.connection()?.tell(&Request::Context { device })?;
        }
        let memory: Vec<(u64, Memory)> = self
            .memory
            .iter()
            .map(|(address, memory)| (*address, *memory))
            .collect();
        // Further mappings of memory come after the memory itself.
        let again = |memory: &Memory| matches!(memory.mapped, Mapped::Again { .. });
        let (later, first): (Vec<_>, Vec<_>) =
            memory.into_iter().partition(|(_, memory)| again(memory));
        for (address, memory) in first.into_iter().chain(later) {
            if let Mapped::Again { home, .. } = memory.mapped {
                self.appears(home, address)?;
                continue;
            }
            let device = self.device_of(&memory)?;
            if memory.managed {
                self.manage(device, address, memory.size.next_multiple_of(4096))?;
                continue;
            }
            self.connection()?.tell(&Request::Allocate {
                device,
                address,
                size: memory.size.next_multiple_of(512),
            })?;
        }
        let pieces = self
            .saved
            .as_ref()
            .map_or_else(Vec::new, |saved| saved.pieces.clone());
        for &(address, host, size) in &pieces {
            let memory = self.memory.get(&address).copied();
            let memory = memory.ok_or(code::UNKNOWN)?;
            if memory.managed {
                // SAFETY: both are the driver's own, of this size, and no thread writes there yet.
                unsafe { window::copy(host, address, size) };
                continue;
            }
            let work = Work::ToDevice {
                host,
                address,
                size,
            };
            self.transfer(self.device_of(&memory)?, work)?;
        }
        let lent = if custom { self.lend()? } else { vec![] };
        self.saved = None;
        give_back(&pieces);
        Ok(lent)
    }

    fn bring_back_channel(&self) {
        let Some(saved) = &self.saved else { return };
        let start = places::CHANNEL as *mut u8;
        // SAFETY: the channel is mapped, as there is a connection; it has as many bytes as were kept, and no stream runs yet.
        unsafe { start.copy_from_nonoverlapping(saved.channel.as_ptr(), saved.channel.len()) };
    }
}
