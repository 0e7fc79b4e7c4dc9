//! The gate's knowledge of the application: its memory, handlers and masks, ids, timers, registrations, the executable.

use stillpoint_faults::Point;
use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_protocol::agent::KnownAs;
use stillpoint_refusals::{Refusal, refusal};

use super::at;
use crate::capture::stopped_process::Still;
use crate::gate;
use crate::restore::back::Back;

pub struct Gate;

const fn kind(name: &'static str) -> Kind {
    Kind {
        name,
        version: 3,
        always: true,
    }
}

const MEMORY: Kind = kind("gate:memory");
const SIGNALS: Kind = kind("gate:signals");
const IDENTITY: Kind = kind("gate:identity");
const TIMERS: Kind = kind("gate:timers");
const REGISTRATIONS: Kind = kind("gate:registrations");
const EXECUTABLE: Kind = kind("gate:executable");
/// The PID namespace in which the application's ids of the ranks are valid.
const BORN: Kind = Kind {
    name: "gate:born",
    version: 1,
    always: false,
};
/// The processor time that was used.
const USED: Kind = Kind {
    name: "gate:used",
    version: 1,
    always: false,
};
/// The loader that gets the library with the stubs when it opens libmpi.
const STAND_IN: Kind = Kind {
    name: "gate:stand-in",
    version: 1,
    always: false,
};
/// A mark without bytes, there only if the application's code leads to the short way.
const SHORT_WAY: Kind = Kind {
    name: "gate:short way",
    version: 1,
    always: false,
};

impl Part<Still<'_>, Back> for Gate {
    fn name(&self) -> &'static str {
        "the gate"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[
            MEMORY,
            SIGNALS,
            IDENTITY,
            BORN,
            TIMERS,
            REGISTRATIONS,
            EXECUTABLE,
            SHORT_WAY,
            USED,
            STAND_IN,
        ]
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        at(Point::CaptureGate)?;
        let _inside = still.enter()?;
        let put = |(kind, bytes)| Payload { kind, bytes };
        let saved = [
            (MEMORY, gate::memory::save()),
            (SIGNALS, gate::signals::save()),
            (IDENTITY, gate::identity::save()),
            (BORN, gate::neighbours::save()),
            (TIMERS, gate::timers::save()),
            (REGISTRATIONS, gate::registrations::save()),
            (EXECUTABLE, gate::paths::save()),
            (USED, gate::processor_time::save()),
            (STAND_IN, gate::stand_in::save()),
        ];
        payloads.extend(saved.map(put));
        if gate::sites::changed() {
            payloads.push(put((SHORT_WAY, vec![])));
        }
        Ok(())
    }

    fn open(&self, back: &mut Back) -> Done {
        at(Point::RestartGate)?;
        give(back, MEMORY, gate::memory::restore)?;
        give(back, IDENTITY, gate::identity::restore)?;
        give(back, REGISTRATIONS, gate::registrations::restore)?;
        give(back, EXECUTABLE, gate::paths::restore)?;
        if back.restore.payload(&STAND_IN).is_some() {
            give(back, STAND_IN, gate::stand_in::restore)?;
        }
        if back.restore.payload(&SHORT_WAY).is_some() {
            gate::sites::carried_on();
        }
        note_descriptors(back);
        Ok(())
    }

    fn rebuild(&self, back: &mut Back) -> Done {
        at(Point::RestartSignals)?;
        give(back, SIGNALS, gate::signals::restore)
    }

    fn resume(&self, back: &mut Back) -> Done {
        at(Point::RestartTimers)?;
        if back.restore.payload(&USED).is_some() {
            give(back, USED, gate::processor_time::restore)?;
        }
        give(back, TIMERS, gate::timers::restore)
    }
}

fn give(
    back: &Back,
    kind: Kind,
    restore: impl Fn(&[u8]) -> Result<(), gate::SavedStateError>,
) -> Done {
    let bytes = back.restore.payload(&kind).unwrap_or_default();
    restore(bytes).map_err(|error| refusal!(BrokenImage, "{error}"))?;
    Ok(())
}

/// Returns the id by which the application knows the rank that comes back.
pub fn known_as(saved: &dyn Saved) -> Result<KnownAs, Refusal> {
    let identity = saved.payload(&IDENTITY).unwrap_or_default();
    let pid =
        gate::identity::saved_pid(identity).map_err(|error| refusal!(BrokenImage, "{error}"))?;
    let born = saved.payload(&BORN).unwrap_or_default();
    Ok(gate::neighbours::restore(pid, born))
}

/// Notes which descriptors belong to the application.
fn note_descriptors(back: &Back) {
    let numbers = &back.restore.reader().descriptors().numbers;
    for number in numbers {
        gate::descriptors::note(number.number as usize);
    }
    for stream in 0..3 {
        // A stream that the application had closed stays closed to it.
        if !numbers.iter().any(|number| number.number == stream) {
            gate::descriptors::forget(stream as usize);
        }
    }
}
