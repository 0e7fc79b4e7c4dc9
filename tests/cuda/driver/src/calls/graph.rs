//! Graphs, by the capture of a stream.

use std::ffi::{c_uint, c_ulonglong};

use super::give;
use crate::code::{self, Code};
use crate::driver::{call, look};

/// The modes of a capture. They differ in what other threads may do meanwhile.
const MODES: std::ops::RangeInclusive<c_uint> = 0..=2;

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(stream: u64, mode: c_uint) -> Code {
    call(|driver| match MODES.contains(&mode) {
        true => driver.begin_capture(stream),
        false => Err(code::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamEndCapture(stream: u64, graph: *mut u64) -> Code {
    call(|driver| {
        let made = driver.end_capture(stream)?;
        // SAFETY: the program's place for a handle.
        unsafe { give(graph, made) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamIsCapturing(stream: u64, status: *mut c_uint) -> Code {
    look(|driver| {
        let (handle, _) = driver.stream(stream)?;
        let captures = driver.graphs.captures(handle);
        // SAFETY: the program's place for a number.
        unsafe { give(status, c_uint::from(captures)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut u64,
    graph: u64,
    _flags: c_ulonglong,
) -> Code {
    call(|driver| {
        let made = driver.instantiate(graph)?;
        // SAFETY: the program's place for a handle.
        unsafe { give(executable, made) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(executable: u64, stream: u64) -> Code {
    call(|driver| driver.launch_graph(executable, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(executable: u64) -> Code {
    look(|driver| driver.end_graph(executable, true))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: u64) -> Code {
    look(|driver| driver.end_graph(graph, false))
}
