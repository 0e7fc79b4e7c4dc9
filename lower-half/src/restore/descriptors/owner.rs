//! Sets the receivers of descriptors' I/O signals again, when the threads exist.

use std::io;
use std::os::fd::RawFd;

use stillpoint_image::descriptors::{Description, Descriptors, Owner};

use super::open;
use crate::capture::descriptors::owner::{GROUP, PROCESS, RawOwner, THREAD};
use crate::gate::identity;
use crate::gate::naming::F_SETOWN_EX;
use crate::restore::RestoreError;

/// Sets owner, signal and `O_ASYNC` of every descriptor that had them.
pub fn set_all(table: &Descriptors) -> Result<(), RestoreError> {
    for number in &table.numbers {
        let Some(description) = table.descriptions.get(number.description) else {
            continue;
        };
        set(description, number.number).map_err(RestoreError::system(format!(
            "cannot restore the signals that the program gets about {}",
            open::name(&description.kind)
        )))?;
    }
    Ok(())
}

/// The same for one description.
pub fn set(description: &Description, number: RawFd) -> io::Result<()> {
    const F_SETSIG: libc::c_int = 10;
    let own = std::process::id() as i32;
    let raw = match description.owner {
        None => None,
        Some(Owner::Process) => Some((PROCESS, own)),
        Some(Owner::Group) => Some((GROUP, own)),
        Some(Owner::Thread { virtual_tid }) => {
            Some((THREAD, identity::real_thread(virtual_tid) as i32))
        }
    };
    // SAFETY: these calls take numbers, and the kernel reads one structure, which lives on this stack.
    let results = unsafe {
        let signalled = match description.signal {
            0 => 0,
            signal => libc::fcntl(number, F_SETSIG, signal),
        };
        let owned = raw.map_or(0, |(kind, id)| {
            let owner = RawOwner { kind, id };
            libc::fcntl(number, F_SETOWN_EX, &raw const owner)
        });
        let asked = if description.flags & libc::O_ASYNC == 0 {
            0
        } else {
            let now = libc::fcntl(number, libc::F_GETFL);
            libc::fcntl(number, libc::F_SETFL, now | libc::O_ASYNC)
        };
        [signalled, owned, asked]
    };
    match results.contains(&-1) {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}
