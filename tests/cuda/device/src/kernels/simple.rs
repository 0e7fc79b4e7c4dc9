//! Small kernels, for tests of the driver and of checkpoints.

use std::thread;
use std::time::Duration;

use super::Arguments;

/// `fill_pattern(u64 *numbers, u64 count, u64 seed)` writes a pattern without equal numbers.
pub fn fill_pattern(arguments: &Arguments) -> Result<(), u32> {
    let (address, count, seed) = (arguments.u64(0)?, arguments.u64(1)?, arguments.u64(2)?);
    // SAFETY: the program orders who writes to its arrays.
    let numbers = unsafe { arguments.numbers_mut::<u64>(address, count as usize) }?;
    for (index, number) in numbers.iter_mut().enumerate() {
        *number = seed
            .wrapping_add(index as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    Ok(())
}

/// `add_constant(u64 *numbers, u64 count, u64 constant)`.
pub fn add_constant(arguments: &Arguments) -> Result<(), u32> {
    let (address, count, constant) = (arguments.u64(0)?, arguments.u64(1)?, arguments.u64(2)?);
    // SAFETY: the program orders who writes to its arrays.
    for number in unsafe { arguments.numbers_mut::<u64>(address, count as usize) }? {
        *number = number.wrapping_add(constant);
    }
    Ok(())
}

/// `follow_and_add(u64 **arrays, u64 arrays, u64 count, u64 constant)` adds to the numbers of arrays; device memory holds
/// the arrays' addresses.
pub fn follow_and_add(arguments: &Arguments) -> Result<(), u32> {
    let (table, arrays) = (arguments.u64(0)?, arguments.u64(1)?);
    let (count, constant) = (arguments.u64(2)?, arguments.u64(3)?);
    // SAFETY: the program orders the writers of its arrays, and the table is not one of the arrays.
    for &address in unsafe { arguments.numbers::<u64>(table, arrays as usize) }? {
        // SAFETY: as above; one array at a time.
        for number in unsafe { arguments.numbers_mut::<u64>(address, count as usize) }? {
            *number = number.wrapping_add(constant);
        }
    }
    Ok(())
}

/// `spin(u64 milliseconds)` takes that much time.
pub fn spin(arguments: &Arguments) -> Result<(), u32> {
    thread::sleep(Duration::from_millis(arguments.u64(0)?));
    Ok(())
}
