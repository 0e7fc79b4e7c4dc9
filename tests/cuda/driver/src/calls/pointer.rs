//! Attributes of pointers.

use std::ffi::{c_int, c_uint, c_void};

use super::give;
use crate::code::{self, Code};
use crate::driver::{Driver, look};
use crate::objects::Mapped;

/// The kinds of memory.
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;

/// Facts about an address.
struct Known {
    context: u64,
    kind: c_uint,
    start: u64,
    size: u64,
    number: u64,
    managed: bool,
    /// The device of memory that belongs to no context.
    device: Option<u32>,
}

fn known(driver: &Driver, address: u64) -> Option<Known> {
    if let Some((start, memory)) = driver.memory_at(address) {
        return Some(Known {
            context: memory.context,
            kind: DEVICE,
            start,
            size: memory.size,
            number: memory.number,
            managed: memory.managed,
            device: match memory.mapped {
                Mapped::No => None,
                Mapped::Home { device } | Mapped::Again { device, .. } => Some(device),
            },
        });
    }
    let (start, pinned) = driver.pinned_at(address)?;
    Some(Known {
        context: pinned.context,
        kind: HOST,
        start,
        size: pinned.size,
        number: 0,
        managed: false,
        device: None,
    })
}

/// Writes one attribute to its place.
///
/// # Safety
/// The place has room for the attribute.
unsafe fn attribute(
    driver: &Driver,
    place: *mut c_void,
    attribute: c_uint,
    address: u64,
    known: &Known,
) -> Result<(), Code> {
    let device = || {
        let context = driver.contexts.get(known.context);
        context
            .map(|context| context.device)
            .or(known.device)
            .ok_or(code::INVALID_CONTEXT)
    };
    // SAFETY: as the caller says.
    unsafe {
        match attribute {
            1 => give(place.cast(), known.context),
            2 => give(place.cast(), known.kind),
            3 => give(place.cast(), address),
            4 if known.kind == HOST || known.managed => give(place.cast(), address),
            4 => Err(code::INVALID_VALUE),
            // Copies are always in order with other accesses, so there is nothing to switch.
            6 => give(place.cast::<c_int>(), 1),
            7 => give(place.cast(), known.number),
            8 => give(place.cast::<c_int>(), c_int::from(known.managed)),
            9 => give(place.cast(), device()?),
            10 => give(place.cast::<c_int>(), 0),
            11 => give(place.cast(), known.start),
            12 => give(place.cast(), known.size),
            13 => give(place.cast::<c_int>(), 1),
            14 => give(place.cast::<u64>(), 0),
            15 => give(place.cast::<c_int>(), 0),
            16 => give(place.cast::<u64>(), 3),
            17 => give(place.cast::<u64>(), 0),
            _ => Err(code::INVALID_VALUE),
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuPointerGetAttribute(place: *mut c_void, which: c_uint, address: u64) -> Code {
    look(|driver| {
        let known = known(driver, address).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the program's place has room for the attribute.
        unsafe { attribute(driver, place, which, address, &known) }
    })
}

/// Writes several attributes at once. An unknown pointer is no error here; its attributes are all zero.
#[unsafe(no_mangle)]
pub extern "C" fn cuPointerGetAttributes(
    count: c_uint,
    which: *mut c_uint,
    places: *mut *mut c_void,
    address: u64,
) -> Code {
    look(|driver| {
        if which.is_null() || places.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let known = known(driver, address);
        for index in 0..count as usize {
            // SAFETY: the program's two lists have so many entries.
            let (which, place) = unsafe { (which.add(index).read(), places.add(index).read()) };
            // SAFETY: the program's place has room for the attribute, and for at least four bytes if the pointer is unknown.
            unsafe {
                match &known {
                    Some(known) => match attribute(driver, place, which, address, known) {
                        Err(code::INVALID_VALUE) if which == 4 => give(place.cast::<u64>(), 0)?,
                        other => other?,
                    },
                    None if which == 9 => give(place.cast::<c_int>(), -2)?,
                    None if matches!(which, 1 | 3 | 4 | 7 | 11 | 12 | 14 | 17) => {
                        give(place.cast::<u64>(), 0)?;
                    }
                    None => give(place.cast::<c_uint>(), 0)?,
                }
            }
        }
        Ok(())
    })
}

/// Every copy is in order with other accesses already.
#[unsafe(no_mangle)]
pub extern "C" fn cuPointerSetAttribute(value: *const c_void, which: c_uint, address: u64) -> Code {
    look(|driver| {
        let known = known(driver, address).ok_or(code::INVALID_VALUE)?;
        match (which, known.kind, value.is_null()) {
            (6, DEVICE, false) => Ok(()),
            _ => Err(code::INVALID_VALUE),
        }
    })
}
