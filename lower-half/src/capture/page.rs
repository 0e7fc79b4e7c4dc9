//! The gate page, and the application as `/proc` shows it, in the form that an image holds.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use stillpoint_wrappers::gate;

use super::appearance;
use crate::ground::proc_files;

/// The parts of the gate page, and of the way the application was started, that a restart must bring back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageState {
    /// The address of the upper half's hooks.
    pub hooks: u64,
    pub mpi_active: u32,
    pub sent_before: u64,
    pub received_before: u64,
    /// The places where `/proc` finds arguments and environment: start and end of both.
    pub strings: [u64; 4],
    /// The places where it finds the auxiliary vector and the stack ([`appearance::vector`]).
    pub vector: [u64; 3],
}

impl PageState {
    /// Reads the current state.
    pub fn survey() -> PageState {
        // SAFETY: an application runs, so the gate page is mapped and filled.
        let page = unsafe { gate::page() };
        PageState {
            hooks: page.hooks.load(Ordering::Acquire),
            mpi_active: page.mpi_active.load(Ordering::Acquire),
            sent_before: page.sent_before.load(Ordering::Relaxed),
            received_before: page.received_before.load(Ordering::Relaxed),
            strings: strings(),
            vector: appearance::vector(),
        }
    }
}

/// Returns the places from which the kernel shows arguments and environment: fields 48 to 51 of `/proc/self/stat`.
fn strings() -> [u64; 4] {
    let stat = proc_files::by("/proc/self/stat").unwrap_or_default();
    // Field 2 is the name, which may hold blanks; the rest begins with field 3.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = rest
        .split_whitespace()
        .skip(48 - 3)
        .map(|field| field.parse().unwrap_or(0));
    let found = [(); 4].map(|()| fields.next().unwrap_or(0));
    if found
        .iter()
        .all(|address| crate::gate::memory::owns(*address as usize))
    {
        found
    } else {
        [0; 4]
    }
}
