//! The arguments of a kernel: its parameters, its grid, and the device memory behind its pointers.

use std::cell::RefCell;

use stillpoint_emulated_gpu_protocol::message::Launch;

use crate::memory::{Space, Span};
use crate::node::code;

/// Numbers in device memory, for which any bytes are valid.
pub trait Number: Copy {}
impl Number for u8 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for f32 {}
impl Number for f64 {}

/// A kernel's arguments.
pub struct Arguments<'a> {
    launch: &'a Launch,
    space: &'a Space,
    /// Memory that the kernel has looked up. It stays until the kernel ends, even if the client frees it meanwhile.
    held: RefCell<Vec<Span>>,
}

impl<'a> Arguments<'a> {
    pub fn new(launch: &'a Launch, space: &'a Space) -> Arguments<'a> {
        Arguments {
            launch,
            space,
            held: RefCell::default(),
        }
    }

    /// Returns the number of thread blocks in each direction.
    pub fn grid(&self) -> [u32; 3] {
        self.launch.grid
    }

    fn bytes<const SIZE: usize>(&self, index: usize) -> Result<[u8; SIZE], u32> {
        let parameter = self.launch.parameters.get(index);
        let bytes = parameter.and_then(|bytes| bytes.as_slice().try_into().ok());
        bytes.ok_or(code::LAUNCH_FAILED)
    }

    /// Returns a parameter of eight bytes: a number or a pointer.
    pub fn u64(&self, index: usize) -> Result<u64, u32> {
        self.bytes(index).map(u64::from_le_bytes)
    }

    /// Returns a parameter that is a floating-point number.
    pub fn f64(&self, index: usize) -> Result<f64, u32> {
        self.bytes(index).map(f64::from_le_bytes)
    }

    fn start<T: Number>(&self, address: u64, count: usize) -> Result<*mut T, u32> {
        let size = count
            .checked_mul(size_of::<T>())
            .ok_or(code::ILLEGAL_ADDRESS)?;
        if !address.is_multiple_of(align_of::<T>() as u64) {
            return Err(code::ILLEGAL_ADDRESS);
        }
        let mut spans = self.space.spans(address, size as u64)?;
        // A kernel's array lies in one block. Otherwise the program goes past an allocation's end.
        let (Some(span), true) = (spans.pop(), spans.is_empty()) else {
            return Err(code::ILLEGAL_ADDRESS);
        };
        let start = span.start().cast();
        self.held.borrow_mut().push(span);
        Ok(start)
    }

    /// Returns numbers at a device address, for reading.
    ///
    /// # Safety
    /// There is no other writer meanwhile: not this kernel through another slice, and not the program's other
    /// streams.
    pub unsafe fn numbers<T: Number>(&self, address: u64, count: usize) -> Result<&[T], u32> {
        let start = self.start(address, count)?;
        // SAFETY: the span is held for as long as the arguments are, is aligned, and any bytes are a number; the caller
        // guarantees that there is no writer.
        Ok(unsafe { std::slice::from_raw_parts(start, count) })
    }

    /// Returns numbers at a device address, for writing.
    ///
    /// # Safety
    /// There is no other reader or writer meanwhile: not this kernel through another slice, and not the program's
    /// other streams.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn numbers_mut<T: Number>(
        &self,
        address: u64,
        count: usize,
    ) -> Result<&mut [T], u32> {
        let start = self.start(address, count)?;
        // SAFETY: the span is held for as long as the arguments are, is aligned, and any bytes are a number; the caller
        // guarantees that there is no other reader or writer.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
    }
}
