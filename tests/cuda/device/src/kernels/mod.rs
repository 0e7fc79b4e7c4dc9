//! The kernels that the device knows, by name. Each is a Rust function; the PTX that the program loads gives only its
//! parameters. Each family has a file; a new one is a file and its lines in the table.

mod arguments;
mod hash;
mod heat;
mod simple;

use stillpoint_emulated_gpu_protocol::message::Launch;

use crate::memory::Space;
use crate::node::code;
pub use arguments::Arguments;

/// A kernel: takes its parameters and does all of its grid's work.
type Kernel = fn(&Arguments) -> Result<(), u32>;

/// Every kernel.
const KERNELS: &[(&str, Kernel)] = &[
    ("fill_pattern", simple::fill_pattern),
    ("add_constant", simple::add_constant),
    ("follow_and_add", simple::follow_and_add),
    ("spin", simple::spin),
    ("heat_rows", heat::heat_rows),
    ("heat_swap", heat::heat_swap),
    ("stillpoint_hash", hash::stillpoint_hash),
];

/// Runs a kernel.
pub fn run(launch: &Launch, space: &Space) -> Result<(), u32> {
    let known = KERNELS.iter().find(|(name, _)| *name == launch.kernel);
    let (_, kernel) = known.ok_or(code::LAUNCH_FAILED)?;
    kernel(&Arguments::new(launch, space))
}
