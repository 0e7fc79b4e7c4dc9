//! What a kernel is given: its parameters, its grid, and the device memory that its pointers lead to.

use std::cell::RefCell;

use stillpoint_emulated_gpu_protocol::message::Launch;

use crate::memory::{Space, Span};
use crate::node::code;

/// Numbers that device memory is made of: any bytes are one.
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
    /// What the kernel has looked at stays until it ends, even if the client frees it meanwhile.
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

    /// How many thread blocks there are, by direction.
    pub fn grid(&self) -> [u32; 3] {
        self.launch.grid
    }

    fn bytes<const SIZE: usize>(&self, index: usize) -> Result<[u8; SIZE], u32> {
        let parameter = self.launch.parameters.get(index);
        let bytes = parameter.and_then(|bytes| bytes.as_slice().try_into().ok());
        bytes.ok_or(code::LAUNCH_FAILED)
    }

    /// A parameter of eight bytes: a number, or a pointer.
    pub fn u64(&self, index: usize) -> Result<u64, u32> {
        self.bytes(index).map(u64::from_le_bytes)
    }

    /// A parameter that is a floating-point number.
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
        // A kernel's array lies in one block: where it does not, the program goes past an allocation's end.
        let (Some(span), true) = (spans.pop(), spans.is_empty()) else {
            return Err(code::ILLEGAL_ADDRESS);
        };
        let start = span.start().cast();
        self.held.borrow_mut().push(span);
        Ok(start)
    }

    /// Numbers at a device address, for reading.
    ///
    /// # Safety
    /// Nobody writes to them meanwhile: not this kernel through another slice, and not the program's other streams.
    pub unsafe fn numbers<T: Number>(&self, address: u64, count: usize) -> Result<&[T], u32> {
        let start = self.start(address, count)?;
        // SAFETY: the span is held for as long as the arguments are, is aligned, and any bytes are a number; the caller
        // says that nobody writes.
        Ok(unsafe { std::slice::from_raw_parts(start, count) })
    }

    /// Numbers at a device address, for writing.
    ///
    /// # Safety
    /// Nobody else reads or writes them meanwhile: not this kernel through another slice, and not the program's other streams.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn numbers_mut<T: Number>(
        &self,
        address: u64,
        count: usize,
    ) -> Result<&mut [T], u32> {
        let start = self.start(address, count)?;
        // SAFETY: the span is held for as long as the arguments are, is aligned, and any bytes are a number; the caller
        // says that nobody else is there.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
    }
}
