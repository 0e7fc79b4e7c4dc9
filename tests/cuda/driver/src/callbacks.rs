//! Functions of the program in a stream's order. A thread of the driver calls them while the stream waits.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::channel::Channel;
use stillpoint_emulated_gpu_protocol::message::Work;
use stillpoint_emulated_gpu_protocol::page::State;
use stillpoint_emulated_gpu_protocol::{futex, window as places};

use crate::code::{self, Code};
use crate::driver::{Driver, hold};
use crate::{gate, service, window};

/// A function of the program.
pub type Function = extern "C" fn(*mut c_void);

/// The functions to be called, by their tickets.
#[derive(Default)]
pub struct Callbacks {
    waiting: BTreeMap<u32, Callback>,
    last: u32,
}

#[derive(Clone, Copy)]
struct Callback {
    function: Function,
    argument: *mut c_void,
}

// SAFETY: the program passes this pointer for a function that runs on another thread.
unsafe impl Send for Callback {}

impl Driver {
    /// Adds a function to a stream; it is called when the stream comes to it.
    pub fn call_in_order(
        &mut self,
        stream: u64,
        function: Function,
        argument: *mut c_void,
    ) -> Result<(), Code> {
        self.stream(stream)?;
        if self.callbacks.last == 0 {
            service::spawn("cuda-Callbacks", run).map_err(|_| code::OPERATING_SYSTEM)?;
        }
        // Ticket 0 means none.
        self.callbacks.last = self.callbacks.last.checked_add(1).unwrap_or(1);
        let ticket = self.callbacks.last;
        let callback = Callback { function, argument };
        self.callbacks.waiting.insert(ticket, callback);
        let submitted = self.submit(stream, vec![], Work::Host { ticket });
        submitted.map(drop)
    }

    /// Takes the functions that streams wait for now, each with its stream's slot.
    fn due(&mut self) -> Vec<(u32, Callback)> {
        let channel = window::channel();
        let numbered = channel.asked.iter().enumerate();
        let asked = numbered.map(|(slot, word)| (slot as u32, word.load(Ordering::Acquire)));
        asked
            .filter_map(|(slot, ticket)| Some((slot, self.callbacks.waiting.remove(&ticket)?)))
            .collect()
    }
}

/// Runs the thread. It passes a gate of its own: a checkpoint's lock waits for work, and so for these functions.
fn run() {
    let calls = places::CHANNEL as usize + offset_of!(Channel, calls);
    loop {
        let (seen, due) = {
            let _inside = gate::FUNCTIONS.enter();
            let mut driver = hold();
            match driver.as_mut().filter(|driver| driver.connection.is_some()) {
                // Read this before looking for functions, because later requests change it.
                Some(driver) => {
                    let seen = window::channel().calls.load(Ordering::Acquire);
                    (Some(seen), driver.due())
                }
                None => (None, vec![]),
            }
        };
        for (slot, callback) in &due {
            (callback.function)(callback.argument);
            let _inside = gate::FUNCTIONS.enter();
            let driver = hold();
            if driver
                .as_ref()
                .is_some_and(|driver| driver.connection.is_some())
            {
                window::channel().answer(*slot);
            }
        }
        match seen {
            Some(seen) if due.is_empty() => {
                futex::wait(calls, seen, Some(Duration::from_secs(1)));
            }
            Some(_) => {}
            None if window::state() == State::Failed => return,
            // A restore has failed, and left the gate as it was. The thread waits for another attempt.
            None => drop(gate::CALLS.enter()),
        }
    }
}
