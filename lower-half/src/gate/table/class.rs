//! The classes of system calls, by what a checkpoint has to do about them.

/// A class of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Files,
    Path,
    Descriptor,
    MakesDescriptor,
    Placement,
    Memory,
    Signals,
    Waits,
    Threads,
    Identity,
    Names,
    Timers,
    Usage,
    Credentials,
    Settings,
    Ipc,
    Holds,
    Asks,
    Machine,
    Refused,
    Absent,
}

impl Class {
    /// In the order of the page.
    #[cfg(test)]
    pub const ALL: [Class; 21] = [
        Class::Placement,
        Class::Memory,
        Class::Threads,
        Class::Identity,
        Class::Names,
        Class::Signals,
        Class::Waits,
        Class::Timers,
        Class::Usage,
        Class::MakesDescriptor,
        Class::Descriptor,
        Class::Path,
        Class::Files,
        Class::Credentials,
        Class::Settings,
        Class::Ipc,
        Class::Holds,
        Class::Asks,
        Class::Machine,
        Class::Refused,
        Class::Absent,
    ];

    /// Whether calls of this class are never trapped, so that they are as fast as natively.
    pub const fn is_untrapped(self) -> bool {
        matches!(
            self,
            Class::Files | Class::Asks | Class::Machine | Class::Absent
        )
    }

    /// Whether answers to this class need more of the trap's frame than registers and mask, for any arguments.
    pub const fn needs_frame(self) -> bool {
        matches!(self, Class::Threads)
    }

    /// Whether calls of this class may wait: `threads::calls` lists how each continues after a handler of ours has interrupted it. All other calls are made
    /// again unchanged.
    pub const fn waits(self) -> bool {
        matches!(
            self,
            Class::Waits | Class::Descriptor | Class::MakesDescriptor | Class::Signals | Class::Ipc
        )
    }

    /// Whether calls of this class need a rule of their own. (Calls that make a descriptor get one from their class.)
    pub const fn needs_rule(self) -> bool {
        matches!(
            self,
            Class::Placement | Class::Identity | Class::Names | Class::Holds | Class::Refused
        )
    }

    #[cfg(test)]
    pub fn name(self) -> &'static str {
        match self {
            Class::Files => "files",
            Class::Path => "path",
            Class::Descriptor => "descriptor",
            Class::MakesDescriptor => "makes-descriptor",
            Class::Placement => "placement",
            Class::Memory => "memory",
            Class::Signals => "signals",
            Class::Waits => "waits",
            Class::Threads => "threads",
            Class::Identity => "identity",
            Class::Names => "names",
            Class::Timers => "timers",
            Class::Usage => "usage",
            Class::Credentials => "credentials",
            Class::Settings => "settings",
            Class::Ipc => "ipc",
            Class::Holds => "holds",
            Class::Asks => "asks",
            Class::Machine => "machine",
            Class::Refused => "refused",
            Class::Absent => "absent",
        }
    }

    /// Describes what a checkpoint does about the effects of such calls.
    #[cfg(test)]
    pub fn at_a_checkpoint(self) -> &'static str {
        match self {
            Class::Files => {
                "changes or reads files and their names, which stay where they are; files that are open for writing are cut back to their length"
            }
            Class::Path => {
                "as *files*; a path to `/proc/self/exe`, or after a restart to one of the process's ids, leads where it led natively"
            }
            Class::Descriptor => {
                "uses or changes a descriptor: what it is, its flags, position, locks and unread contents are carried, or the checkpoint refuses and names it"
            }
            Class::MakesDescriptor => {
                "the descriptor is noted as the application's; it is carried by what it is, or the checkpoint refuses and names it"
            }
            Class::Placement => {
                "memory is placed in the application's own range of addresses, and saved"
            }
            Class::Memory => {
                "contents, protection and advice of the application's memory are saved"
            }
            Class::Signals => {
                "handlers, masks, alternate stacks and pending signals are saved, but for a signal that asks for a suspend, or would end this launch; the two signals that Stillpoint needs cannot be blocked, but seem to be"
            }
            Class::Waits => {
                "a call that a stop has interrupted is made again, with what was left of its time"
            }
            Class::Threads => {
                "threads are made again where they stood; a child process that is alive makes the checkpoint refuse"
            }
            Class::Identity => "the application keeps the ids that it was born with",
            Class::Names => "names processes or threads: ids are translated after a restart",
            Class::Usage => "processor time that was used is added up over launches",
            Class::Timers => "timers go on with the time that was left of them",
            Class::Credentials => "carried; a restart that may not give them is refused",
            Class::Settings => "a setting of the process or thread, carried unless said otherwise",
            Class::Ipc => {
                "semaphore sets, with their values, and empty message queues are there again under their ids; where one is gone and may not be made again, the restart is refused"
            }
            Class::Holds => {
                "leaves something in the kernel that cannot be carried: that is noted, and the checkpoint refuses and names it"
            }
            Class::Asks => "tells something; leaves nothing to carry",
            Class::Machine => {
                "changes the machine or its mounts, for everybody; not the process's state"
            }
            Class::Refused => "fails as on a kernel that does not have it",
            Class::Absent => "no kernel that Stillpoint runs on has it: ENOSYS",
        }
    }
}
