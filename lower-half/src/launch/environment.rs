//! Whose environment variable is whose.
//!
//! The application's environment is the one that the process was started with, without Stillpoint's own variables and
//! with the upper half's library preloaded before whatever the user preloads. That is for the application alone: of an allocator's
//! storage a thread would have two views (`threads::near`), and what counts MPI calls would count those of both halves.
//!
//! The lower half's environment has, besides,
//! what switches off MPI's caches of registered memory: they are emptied by watching `munmap` in the lower half's
//! libc, where what the upper half unmaps is never seen. The cost is a registration per large message on networks
//! that need one; shared memory and TCP need none. And MPI's own handlers for crashes are switched off: they would run
//! in the application's thread, with its thread pointer, crash there, and hide the signal that the program ended by.
//!
//! Open MPI watches `munmap` by writing a jump over the first bytes of the libc's function while MPI starts, and with it of all
//! others that give memory back. A thread of the lower half that is in one of them at that moment (a peers' connection gives its
//! stack back) would execute half of a jump.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const OURS: &[u8] = b"STILLPOINT_";
const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// [`stillpoint_protocol::launch::PRELOAD`]: what the user preloads, until the application's environment is made.
pub const APPLICATIONS_PRELOAD: &[u8] = b"STILLPOINT_PRELOAD=";

/// Caches of registered memory, what watches memory for them, and handlers of crashes, switched off.
const SWITCHED_OFF: [(&str, &str); 9] = [
    ("OMPI_MCA_opal_signal", ""),
    ("UCX_HANDLE_ERRORS", "none"),
    ("OMPI_MCA_mpi_leave_pinned", "0"),
    ("OMPI_MCA_mpi_leave_pinned_pipeline", "0"),
    ("OMPI_MCA_memory", "^patcher"),
    ("UCX_RCACHE_ENABLE", "n"),
    ("UCX_MEM_EVENTS", "n"),
    ("FI_MR_CACHE_MAX_COUNT", "0"),
    ("FI_MR_CACHE_MONITOR", "disabled"),
];

fn variables() -> impl Iterator<Item = Vec<u8>> {
    std::env::vars_os().map(|(name, value)| {
        let mut variable = name.as_bytes().to_vec();
        variable.push(b'=');
        variable.extend(value.as_bytes());
        variable
    })
}

/// The application's environment.
pub fn of_application(library: Option<&Path>) -> Vec<CString> {
    let mut preload = library
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .unwrap_or_default();
    let mut environment: Vec<Vec<u8>> = vec![];
    for variable in variables() {
        let users = variable
            .strip_prefix(APPLICATIONS_PRELOAD)
            .or(variable.strip_prefix(PRELOAD));
        match users {
            Some(users) => {
                if !preload.is_empty() {
                    preload.push(b':');
                }
                preload.extend(users);
            }
            None if variable.starts_with(OURS) => {}
            None => environment.push(variable),
        }
    }
    if !preload.is_empty() {
        environment.push([PRELOAD, &preload].concat());
    }
    // What came out of the environment holds no NUL.
    environment
        .into_iter()
        .filter_map(|variable| CString::new(variable).ok())
        .collect()
}

/// Stillpoint's own variables, for the next split process that an `execve` of the application starts.
pub fn kept() -> Vec<CString> {
    let ours = variables().filter(|variable| {
        variable.starts_with(OURS)
            && !variable.starts_with(b"STILLPOINT_FILTER=")
            && !variable.starts_with(APPLICATIONS_PRELOAD)
    });
    ours.filter_map(|variable| CString::new(variable).ok())
        .collect()
}

/// Sets what the real MPI shall find.
///
/// # Safety
/// No other thread may run yet.
pub unsafe fn prepare_for_mpi() {
    for (name, value) in SWITCHED_OFF {
        // SAFETY: the caller's.
        unsafe { std::env::set_var(name, value) };
    }
}

#[cfg(test)]
mod tests {
    use stillpoint_protocol::launch;

    use super::APPLICATIONS_PRELOAD;

    #[test]
    fn the_command_and_the_lower_half_use_one_name() {
        let name = format!("{}=", launch::PRELOAD);
        assert_eq!(APPLICATIONS_PRELOAD, name.as_bytes());
    }
}
