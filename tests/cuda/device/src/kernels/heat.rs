//! Heat on a plate: each point comes nearer to its four neighbours.

use super::Arguments;

/// Returns the field to read and the field to write, from device memory.
fn fields(arguments: &Arguments) -> Result<[u64; 2], u32> {
    // SAFETY: the program's streams wait for each other around `heat_swap`, which alone writes here.
    let table = unsafe { arguments.numbers::<u64>(arguments.u64(0)?, 2) }?;
    Ok([table[0], table[1]])
}

/// `heat_rows(f64 **fields, u64 columns, u64 first, u64 end, f64 share)` computes a step for some rows.
pub fn heat_rows(arguments: &Arguments) -> Result<(), u32> {
    let columns = arguments.u64(1)? as usize;
    let (first, end) = (arguments.u64(2)? as usize, arguments.u64(3)? as usize);
    let share = arguments.f64(4)?;
    let [from, to] = fields(arguments)?;
    for row in first..end {
        let at = |row: usize| (row * columns * size_of::<f64>()) as u64;
        // SAFETY: this field is not written before it is swapped, except for rows from neighbours of a later step.
        let above = unsafe { arguments.numbers::<f64>(from + at(row - 1), 3 * columns) }?;
        // SAFETY: each row is written by one kernel.
        let into = unsafe { arguments.numbers_mut::<f64>(to + at(row), columns) }?;
        let (above, rest) = above.split_at(columns);
        let (here, below) = rest.split_at(columns);
        for column in 0..columns {
            let left = here[column.saturating_sub(1)];
            let right = here[(column + 1).min(columns - 1)];
            let sides = above[column] + below[column] + left + right;
            into[column] = here[column] + share * (sides - 4.0 * here[column]);
        }
    }
    Ok(())
}

/// `heat_swap(f64 **fields)`.
pub fn heat_swap(arguments: &Arguments) -> Result<(), u32> {
    // SAFETY: the program's streams wait for each other around this.
    unsafe { arguments.numbers_mut::<u64>(arguments.u64(0)?, 2) }?.swap(0, 1);
    Ok(())
}
