//! Copies and patterns.

use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

use stillpoint_emulated_gpu_protocol::message::Work;

use crate::code::{self, Code};
use crate::driver::{Driver, call, call_and_wait};

/// Submits work to a stream and waits for it: for functions without `Async` in their names.
fn at_once(work: Work) -> Code {
    call_and_wait(|driver| {
        let everywhere = driver.everywhere(work)?.into_iter();
        everywhere
            .map(|work| driver.submit(0, vec![], work))
            .collect()
    })
}

/// Submits work to a stream, and waits for it if the host memory is pageable. The real driver copies such memory through a
/// buffer of its own and may return earlier, but never before the program may touch its memory again.
fn in_order(stream: u64, host: Option<(u64, u64)>, work: Work) -> Code {
    let pinned = |driver: &Driver, (start, size): (u64, u64)| {
        let found = driver.pinned_at(start);
        found.is_some_and(|(base, pinned)| start + size <= base + pinned.size)
    };
    call_and_wait(|driver| {
        let waits = host.is_some_and(|range| !pinned(driver, range));
        let mut submitted = vec![];
        for work in driver.everywhere(work)? {
            submitted.push(driver.submit(stream, vec![], work)?);
        }
        Ok(if waits { submitted } else { vec![] })
    })
}

fn to_device(address: u64, host: *const c_void, size: usize) -> Work {
    Work::ToDevice {
        host: host as u64,
        address,
        size: size as u64,
    }
}

fn to_host(host: *mut c_void, address: u64, size: usize) -> Work {
    Work::ToHost {
        address,
        host: host as u64,
        size: size as u64,
    }
}

fn within(to: u64, from: u64, size: usize) -> Work {
    Work::Within {
        from,
        to,
        size: size as u64,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, size: usize) -> Code {
    at_once(to_device(to, from, size))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, size: usize) -> Code {
    at_once(to_host(to, from, size))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) -> Code {
    at_once(within(to, from, size))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const c_void,
    size: usize,
    stream: u64,
) -> Code {
    let host = (from as u64, size as u64);
    in_order(stream, Some(host), to_device(to, from, size))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: u64,
    size: usize,
    stream: u64,
) -> Code {
    let host = (to as u64, size as u64);
    in_order(stream, Some(host), to_host(to, from, size))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: u64) -> Code {
    in_order(stream, None, within(to, from, size))
}

/// The contexts would say where the memory is, but here the addresses do.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeer(
    to: u64,
    _to_context: u64,
    from: u64,
    _from_context: u64,
    size: usize,
) -> Code {
    at_once(within(to, from, size))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    _to_context: u64,
    from: u64,
    _from_context: u64,
    size: usize,
    stream: u64,
) -> Code {
    in_order(stream, None, within(to, from, size))
}

/// Returns the copy for the kinds of its two addresses.
fn unified(driver: &Driver, to: u64, from: u64, size: usize) -> Result<Work, Code> {
    let device = |address: u64| driver.memory_at(address).is_some();
    match (device(to), device(from)) {
        (true, true) => Ok(within(to, from, size)),
        (true, false) => Ok(to_device(to, from as *const c_void, size)),
        (false, true) => Ok(to_host(to as *mut c_void, from, size)),
        (false, false) => Err(code::NOT_SUPPORTED),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpy(to: u64, from: u64, size: usize) -> Code {
    call_and_wait(|driver| {
        let work = unified(driver, to, from, size)?;
        Ok(vec![driver.submit(0, vec![], work)?])
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyAsync(to: u64, from: u64, size: usize, stream: u64) -> Code {
    let mut work = None;
    let known = call(|driver| {
        work = Some(unified(driver, to, from, size)?);
        Ok(())
    });
    let Some(work) = work else { return known };
    let host = match work {
        Work::ToDevice { host, size, .. } | Work::ToHost { host, size, .. } => Some((host, size)),
        _ => None,
    };
    in_order(stream, host, work)
}

fn fill(address: u64, pattern: &[u8], count: usize) -> Work {
    Work::Fill {
        address,
        pattern: pattern.to_vec(),
        count: count as u64,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8_v2(to: u64, value: c_uchar, count: usize) -> Code {
    at_once(fill(to, &[value], count))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD16_v2(to: u64, value: c_ushort, count: usize) -> Code {
    at_once(fill(to, &value.to_le_bytes(), count))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32_v2(to: u64, value: c_uint, count: usize) -> Code {
    at_once(fill(to, &value.to_le_bytes(), count))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(to: u64, value: c_uchar, count: usize, stream: u64) -> Code {
    in_order(stream, None, fill(to, &[value], count))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD16Async(to: u64, value: c_ushort, count: usize, stream: u64) -> Code {
    in_order(stream, None, fill(to, &value.to_le_bytes(), count))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: u64) -> Code {
    in_order(stream, None, fill(to, &value.to_le_bytes(), count))
}
