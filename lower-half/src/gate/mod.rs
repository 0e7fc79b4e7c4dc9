//! The gate between the upper half and the kernel, and the region through which the two halves know each other.

pub mod call;
pub mod clone;
pub mod descriptors;
pub mod device;
pub mod ended_children;
pub mod errand;
pub mod exec;
pub mod exit;
pub mod filter;
pub mod futex;
pub mod holdings;
pub mod identity;
pub mod ipc;
pub mod memory;
pub mod naming;
pub mod neighbours;
pub mod paths;
pub mod proc_paths;
pub mod processor_time;
pub mod registrations;
pub mod rehearse;
pub mod semaphores;
pub mod senders;
pub mod short;
pub mod short_switch;
pub mod signals;
pub mod single_threaded;
pub mod sites;
pub mod sleep;
pub mod stand_in;
pub mod stop;
pub mod table;
pub mod timers;
pub mod trap;
pub mod user;

/// The errors of a gate module's state in an image.
#[derive(Debug, thiserror::Error)]
pub enum SavedStateError {
    #[error("saved state of {part}: {bytes} bytes is not a length that it can have")]
    Length { part: &'static str, bytes: usize },
    #[error("saved state of {part}: a value that it cannot have")]
    Value { part: &'static str },
}

/// Reads little-endian words, exactly `count` of them.
fn words(saved: &[u8], part: &'static str, count: usize) -> Result<Vec<u64>, SavedStateError> {
    let (words, rest) = saved.as_chunks::<8>();
    if words.len() != count || !rest.is_empty() {
        return Err(SavedStateError::Length {
            part,
            bytes: saved.len(),
        });
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Runs an action, a fork, while the gate's own state cannot change, so that the child finds every lock free and consistent data. (No other code takes two of
/// these locks at once.)
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    memory::while_still(|| {
        signals::while_still(|| {
            timers::while_still(|| semaphores::while_still(|| ipc::while_still(action)))
        })
    })
}
