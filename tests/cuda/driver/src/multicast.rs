//! Multicast objects: memory of several devices behind one range of addresses. A copy or a pattern written there is written to all of it.
//!
//! An object is made for a team of devices. Once the team is complete, memory of each device can be bound to the object, and it can be mapped to
//! addresses like memory.

use std::collections::BTreeMap;

use stillpoint_emulated_gpu_protocol::message::Work;

use crate::code::{self, Code};
use crate::driver::Driver;
use crate::mapping::GRANULARITY;
use crate::objects::Handles;

/// An object.
#[derive(Debug)]
struct Multicast {
    size: u64,
    /// The number of devices in the complete team.
    wanted: usize,
    /// The devices' numbers as the program knows them.
    team: Vec<u32>,
    bound: Vec<Bound>,
    /// The program's hold, and mappings.
    holders: u32,
}

/// Memory that is bound.
#[derive(Clone, Copy, Debug)]
struct Bound {
    device: u32,
    offset: u64,
    size: u64,
    handle: u64,
    /// The device address of the memory at the offset.
    address: u64,
}

/// Addresses that lead to an object.
#[derive(Debug)]
struct Range {
    object: u64,
    size: u64,
    open: bool,
}

/// All objects and their mappings.
#[derive(Debug)]
pub struct Multicasts {
    objects: Handles<Multicast>,
    ranges: BTreeMap<u64, Range>,
}

impl Multicasts {
    pub fn new() -> Multicasts {
        Multicasts {
            objects: Handles::new(0x1_0010),
            ranges: BTreeMap::new(),
        }
    }

    pub fn are_there(&self) -> bool {
        self.objects.iter().next().is_some()
    }

    pub fn has(&self, handle: u64) -> bool {
        self.objects.get(handle).is_some()
    }

    /// Returns the lowest range that begins in another one.
    pub fn mapped_in(&self, start: u64, end: u64) -> Option<u64> {
        self.ranges.range(start..end).next().map(|(at, _)| *at)
    }

    /// Returns the end of the last range before an address.
    pub fn end_before(&self, address: u64) -> Option<u64> {
        let (start, range) = self.ranges.range(..address).next_back()?;
        Some(start + range.size)
    }

    /// Returns an object with a complete team. Otherwise the real driver waits for the other devices, which belong to other processes;
    /// here none could come.
    fn whole(&mut self, handle: u64) -> Result<&mut Multicast, Code> {
        let object = self.objects.get_mut(handle).ok_or(code::INVALID_VALUE)?;
        match object.team.len() == object.wanted {
            true => Ok(object),
            false => Err(code::ILLEGAL_STATE),
        }
    }
}

impl Driver {
    pub fn make_multicast(&mut self, devices: u32, size: u64) -> Result<u64, Code> {
        let fits = size > 0 && size.is_multiple_of(GRANULARITY);
        if !fits || devices == 0 {
            return Err(code::INVALID_VALUE);
        }
        Ok(self.multicasts.objects.add(Multicast {
            size,
            wanted: devices as usize,
            team: vec![],
            bound: vec![],
            holders: 1,
        }))
    }

    pub fn join_multicast(&mut self, handle: u64, device: u32) -> Result<(), Code> {
        self.place(device)?;
        let object = self.multicasts.objects.get_mut(handle);
        let object = object.ok_or(code::INVALID_VALUE)?;
        if object.team.len() == object.wanted || object.team.contains(&device) {
            return Err(code::ILLEGAL_STATE);
        }
        object.team.push(device);
        Ok(())
    }

    /// Binds made memory, which stays as long as it is bound.
    pub fn bind_multicast(
        &mut self,
        object: u64,
        offset: u64,
        handle: u64,
        within: u64,
        size: u64,
    ) -> Result<(), Code> {
        let (home, device, length) = self.home_of(handle)?;
        let all = [offset, within, size];
        let whole = size > 0 && all.iter().all(|one| one.is_multiple_of(GRANULARITY));
        let inside = |end: Option<u64>, of: u64| end.is_some_and(|end| end <= of);
        let object = self.multicasts.whole(object)?;
        let fits = inside(within.checked_add(size), length)
            && inside(offset.checked_add(size), object.size);
        let meets = |one: &Bound| {
            one.device == device && one.offset < offset + size && offset < one.offset + one.size
        };
        if !whole || !fits || object.bound.iter().any(meets) {
            return Err(code::INVALID_VALUE);
        }
        if !object.team.contains(&device) {
            return Err(code::INVALID_DEVICE);
        }
        object.bound.push(Bound {
            device,
            offset,
            size,
            handle,
            address: home + within,
        });
        self.hold(handle)
    }

    pub fn unbind_multicast(
        &mut self,
        object: u64,
        device: u32,
        offset: u64,
        size: u64,
    ) -> Result<(), Code> {
        let object = self.multicasts.objects.get_mut(object);
        let object = object.ok_or(code::INVALID_VALUE)?;
        let is = |one: &Bound| (one.device, one.offset, one.size) == (device, offset, size);
        let place = object.bound.iter().position(is);
        let bound = object.bound.remove(place.ok_or(code::INVALID_VALUE)?);
        self.let_go(bound.handle)
    }

    /// Removes a holder. Without any, the object is gone, and its memory is no longer bound.
    pub fn let_multicast_go(&mut self, handle: u64) -> Result<(), Code> {
        let object = self.multicasts.objects.get_mut(handle);
        let object = object.ok_or(code::INVALID_VALUE)?;
        object.holders -= 1;
        if object.holders > 0 {
            return Ok(());
        }
        let gone = self.multicasts.objects.remove(handle);
        let bound = gone.map_or_else(Vec::new, |object| object.bound);
        bound.iter().try_for_each(|one| self.let_go(one.handle))
    }

    /// Maps an object to addresses that are known to be free.
    pub fn map_multicast(&mut self, address: u64, size: u64, object: u64) -> Result<(), Code> {
        let of = self.multicasts.whole(object)?;
        if of.size != size {
            return Err(code::INVALID_VALUE);
        }
        of.holders += 1;
        let range = Range {
            object,
            size,
            open: false,
        };
        self.multicasts.ranges.insert(address, range);
        Ok(())
    }

    /// Makes the object mapped at an address accessible; returns false if there is none.
    pub fn open_multicast(&mut self, address: u64) -> bool {
        let range = self.multicasts.ranges.get_mut(&address);
        range.map(|range| range.open = true).is_some()
    }

    /// Unmaps an object from addresses; returns false if there was none.
    pub fn unmap_multicast(&mut self, address: u64, size: u64) -> Result<bool, Code> {
        match self.multicasts.ranges.get(&address) {
            None => Ok(false),
            Some(range) if range.size != size => Err(code::INVALID_VALUE),
            Some(range) => {
                let object = range.object;
                self.multicasts.ranges.remove(&address);
                self.let_multicast_go(object).map(|()| true)
            }
        }
    }

    /// Splits work for the devices: once for each memory that it writes to.
    pub fn everywhere(&self, work: Work) -> Result<Vec<Work>, Code> {
        let (to, size) = match &work {
            Work::ToDevice { address, size, .. } => (*address, *size),
            Work::Within { to, size, .. } => (*to, *size),
            Work::Fill {
                address,
                pattern,
                count,
            } => (*address, pattern.len() as u64 * count),
            _ => return Ok(vec![work]),
        };
        let range = self.multicasts.ranges.range(..=to).next_back();
        let range = range.filter(|(start, range)| to < *start + range.size);
        let Some((start, range)) = range else {
            return Ok(vec![work]);
        };
        let object = self.multicasts.objects.get(range.object);
        let object = object.filter(|_| range.open).ok_or(code::INVALID_VALUE)?;
        let offset = to - start;
        let here = |one: &&Bound| one.offset <= offset && offset + size <= one.offset + one.size;
        let reached = object.bound.iter().filter(here);
        Ok(reached
            .map(|one| led_to(&work, one.address + (offset - one.offset)))
            .collect())
    }
}

/// Returns the same work on other memory.
fn led_to(work: &Work, place: u64) -> Work {
    let mut work = work.clone();
    match &mut work {
        Work::ToDevice { address, .. } | Work::Fill { address, .. } => *address = place,
        Work::Within { to, .. } => *to = place,
        _ => {}
    }
    work
}
