//! The list of all faults. A table of their effects does not compile without a row for each.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! faults {
    ($($(#[$text:meta])* $variant:ident $name:literal;)+) => {
        /// A fault that a test can inject.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Fault {
            $($(#[$text])* $variant,)+
            /// Work of a device fails from now on.
            DeviceLost(u32),
        }

        impl Fault {
            /// Returns all faults; of the lost devices, only this one.
            pub const fn all(lost: u32) -> [Fault; [$($name),+].len() + 1] {
                [$(Fault::$variant,)+ Fault::DeviceLost(lost)]
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Fault::$variant => to.write_str($name),)+
                    Fault::DeviceLost(device) => write!(to, "device-lost-{device}"),
                }
            }
        }
    };
}

faults! {
    /// A lock gives up when its time is over.
    LockTimeout "lock-timeout";
    /// A checkpoint is not made, and the process stays as it was.
    CheckpointFails "checkpoint-fails";
    /// A checkpoint leaves the process broken for good.
    CheckpointBreaks "checkpoint-breaks";
    /// A restore is not made, and the process stays as it was.
    RestoreFails "restore-fails";
    /// A restore leaves the process broken for good.
    RestoreBreaks "restore-breaks";
    /// An allocation finds no device memory.
    OutOfMemory "out-of-memory";
    /// A copy fails, and with it everything that its process does later.
    CopyError "copy-error";
}

impl Fault {
    /// Returns the fault of this name.
    pub fn named(name: &str) -> Option<Fault> {
        let lost = name.strip_prefix("device-lost-");
        let lost = lost.and_then(|number| number.parse().ok()).unwrap_or(0);
        let mut all = Fault::all(lost).into_iter();
        all.find(|fault| fault.to_string() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn every_fault_is_found_by_its_name() {
        for fault in Fault::all(3) {
            assert_eq!(Fault::named(&fault.to_string()), Some(fault));
        }
        for name in ["device-lost-", "device-lost-x", "copy-errors", ""] {
            assert_eq!(Fault::named(name), None, "{name}");
        }
    }
}
