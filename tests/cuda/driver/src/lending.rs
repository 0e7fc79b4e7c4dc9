//! Custom storage, on the caller's side: memory of another process appears in this one, on each device with a stream for its
//! copies, until the copies are made.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use stillpoint_emulated_gpu_protocol::channel::STREAMS;
use stillpoint_emulated_gpu_protocol::message::Request;
use stillpoint_emulated_gpu_protocol::page::{Lent, Order};

use crate::code::{self, Code};
use crate::driver::{self, Driver, call};
use crate::objects::{self, Mapped, Memory, Stream};
use crate::remote::Target;

/// The result for the caller.
#[repr(C)]
pub struct Information {
    handle: u64,
    devices: *mut PerDevice,
    count: u32,
}

/// Memory of one device.
#[repr(C)]
pub struct PerDevice {
    address: u64,
    size: usize,
    stream: u64,
}

/// An operation that is under way.
struct Operation {
    pid: i32,
    /// Each device's address and stream, and the device whose context is held.
    places: Vec<(u64, u64, u32)>,
}

static OPERATIONS: Mutex<BTreeMap<u64, Operation>> = Mutex::new(BTreeMap::new());

/// Makes lent memory appear. Without custom storage there is none.
pub fn give(pid: i32, place: *mut *mut Information, lent: &[Lent]) -> Result<(), Code> {
    if place.is_null() {
        return Ok(());
    }
    let mut places = vec![];
    let mut handle = 0;
    let given = call(|driver| {
        for one in lent {
            places.push(driver.borrow(one)?);
        }
        driver.pieces += 1;
        handle = 0x3_0000 + 0x100 * driver.pieces;
        Ok(())
    });
    if given != code::SUCCESS {
        return Err(given);
    }
    // The caller reads both for as long as the operation lasts; they are small, and never freed.
    let devices: Vec<PerDevice> = places
        .iter()
        .zip(lent)
        .map(|(&(address, stream, _), lent)| PerDevice {
            address,
            size: lent.size as usize,
            stream,
        })
        .collect();
    let information = Information {
        handle,
        count: devices.len() as u32,
        devices: match devices.is_empty() {
            true => ptr::null_mut(),
            false => Box::leak(devices.into_boxed_slice()).as_mut_ptr(),
        },
    };
    OPERATIONS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, Operation { pid, places });
    // SAFETY: the caller's place for a pointer.
    unsafe { place.write(Box::leak(Box::new(information))) };
    Ok(())
}

/// Waits for the submitted copies, takes the memory away, and lets the other process go on.
pub fn complete(handle: u64) -> Result<(), Code> {
    let operation = OPERATIONS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&handle)
        .ok_or(code::INVALID_HANDLE)?;
    let mut pieces = vec![];
    let known = call(|driver| {
        for &(_, stream, _) in &operation.places {
            let slot = driver.stream(stream)?.1.slot;
            pieces.push((slot, driver.slots.last(slot)));
        }
        Ok(())
    });
    if known != code::SUCCESS {
        return Err(known);
    }
    driver::wait(&pieces)?;
    let returned = call(|driver| {
        let places = operation.places.iter();
        places
            .into_iter()
            .try_for_each(|place| driver.give_back(place))
    });
    if returned != code::SUCCESS {
        return Err(returned);
    }
    Target::find(operation.pid)?
        .ask(Order::Complete, None)
        .map(drop)
}

impl Driver {
    /// Puts lent memory to an address, in the primary context of its device, which is held meanwhile.
    fn borrow(&mut self, lent: &Lent) -> Result<(u64, u64, u32), Code> {
        let place = self
            .devices
            .iter()
            .position(|device| *device == Some(lent.device));
        let number = place.ok_or(code::INVALID_DEVICE)? as u32;
        let context = match self.primaries[number as usize].context {
            Some(context) => context,
            None => self.make_context(number, 0)?,
        };
        let primary = &mut self.primaries[number as usize];
        primary.context = Some(context);
        primary.holders += 1;
        let address = self
            .addresses
            .take(lent.size, 1 << 21)
            .ok_or(code::OUT_OF_MEMORY)?;
        let lent = *lent;
        self.connection()?
            .tell(&Request::Borrow { lent, address })?;
        let slot = self.slots.take(STREAMS).ok_or(code::OUT_OF_MEMORY)?;
        let stream = self.streams.add(Stream {
            context,
            slot,
            order: objects::Order::Free,
            flags: 1,
            priority: 0,
        });
        self.pieces += 1;
        let number_of_piece = self.pieces;
        self.memory.insert(
            address,
            Memory {
                context,
                size: lent.size,
                number: number_of_piece,
                managed: false,
                shared: false,
                mapped: Mapped::No,
            },
        );
        Ok((address, stream, number))
    }

    fn give_back(&mut self, &(address, stream, number): &(u64, u64, u32)) -> Result<(), Code> {
        self.end_stream(stream)?;
        self.memory.remove(&address);
        self.connection()?.tell(&Request::Return { address })?;
        self.addresses.give_back(address);
        let primary = &mut self.primaries[number as usize];
        primary.holders = primary.holders.saturating_sub(1);
        Ok(())
    }
}
