//! The device window in this process: the reservation, the page by which others find it, and the mappings in it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;

use stillpoint_emulated_gpu_protocol::channel::{self, Channel};
use stillpoint_emulated_gpu_protocol::page::{MAGIC, Page, State};
use stillpoint_emulated_gpu_protocol::window::{CHANNEL, END, PAGE, START};

/// Maps memory at an address.
///
/// # Safety
/// With `MAP_FIXED` among the flags, the mapping at the address may be replaced.
unsafe fn map(
    address: u64,
    size: u64,
    protection: i32,
    flags: i32,
    file: Option<&File>,
) -> io::Result<u64> {
    let descriptor = file.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: as the caller says.
    let start = unsafe {
        libc::mmap(
            address as *mut _,
            size as usize,
            protection,
            flags,
            descriptor,
            0,
        )
    };
    match start {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        start => Ok(start as u64),
    }
}

const NOBODY: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Reserves the window: its first part by a hint, the rest at its fixed address. Also makes the page.
pub fn reserve(commands: i32, answers: i32) -> io::Result<()> {
    let first = CHANNEL + 0x20_0000 - START;
    // SAFETY: a hint replaces nothing.
    let start = unsafe { map(START, first, libc::PROT_NONE, NOBODY, None) }?;
    if start != START {
        // SAFETY: the new mapping.
        unsafe { libc::munmap(start as *mut _, first as usize) };
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let rest = libc::MAP_FIXED_NOREPLACE;
    // SAFETY: this flag replaces nothing.
    unsafe {
        map(
            START + first,
            END - START - first,
            libc::PROT_NONE,
            NOBODY | rest,
            None,
        )
    }?;
    // SAFETY: replaces a page of the reservation just made.
    unsafe {
        map(
            PAGE,
            4096,
            BOTH,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            None,
        )
    }?;
    let page = PAGE as *mut Page;
    // SAFETY: the page was just mapped, writable, and no one else knows of it.
    unsafe {
        page.write(Page {
            magic: MAGIC,
            state: (State::Running as u32).into(),
            commands,
            answers,
        });
    }
    Ok(())
}

/// Returns the state of this process.
pub fn state() -> State {
    // SAFETY: the page is there from the first `cuInit` on, and the state is atomic.
    let number = unsafe { &(*(PAGE as *const Page)).state }.load(Ordering::Acquire);
    State::from_number(number).unwrap_or(State::Failed)
}

/// Sets the state of this process.
pub fn set_state(state: State) {
    // SAFETY: the page is there from the first `cuInit` on, and the state is atomic.
    unsafe { &(*(PAGE as *const Page)).state }.store(state as u32, Ordering::Release);
}

/// Maps the channel.
pub fn map_channel(file: &File) -> io::Result<()> {
    shared_memory(CHANNEL, channel::SIZE as u64, file)
}

/// Returns the channel. Call it only while there is a connection.
pub fn channel() -> &'static Channel {
    // SAFETY: mapped while there is a connection, and not requested otherwise; it is made of atomics.
    unsafe { &*(CHANNEL as *const Channel) }
}

/// Makes memory inaccessible, and keeps its addresses reserved.
pub fn withdraw(address: u64, size: u64) -> io::Result<()> {
    // SAFETY: replaces what the driver itself has mapped in the window.
    unsafe {
        map(
            address,
            size,
            libc::PROT_NONE,
            NOBODY | libc::MAP_FIXED,
            None,
        )
    }
    .map(drop)
}

/// Unmaps the channel.
pub fn unmap_channel() -> io::Result<()> {
    withdraw(CHANNEL, channel::SIZE as u64)
}

/// Maps host memory at an address of the window.
pub fn host_memory(address: u64, size: u64) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: replaces the window's own reservation.
    unsafe { map(address, size, BOTH, flags, None) }.map(drop)
}

/// Maps a file at an address of the window.
pub fn shared_memory(address: u64, size: u64, file: &File) -> io::Result<()> {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: replaces the window's own reservation.
    unsafe { map(address, size, BOTH, flags, Some(file)) }.map(drop)
}

/// Maps host memory at any free address.
pub fn anywhere(size: u64) -> io::Result<u64> {
    // SAFETY: replaces nothing.
    unsafe { map(0, size, BOTH, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None) }
}

/// Copies between two places of this process.
///
/// # Safety
/// Both are mapped with this size and do not overlap, and no thread writes to them meanwhile.
pub unsafe fn copy(from: u64, to: u64, size: u64) {
    // SAFETY: as the caller says.
    unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, size as usize) };
}

/// Unmaps host memory.
///
/// # Safety
/// It came from `anywhere`, and is no longer in use.
pub unsafe fn unmap(address: u64, size: u64) {
    // SAFETY: as the caller says.
    unsafe { libc::munmap(ptr::without_provenance_mut(address as usize), size as usize) };
}
