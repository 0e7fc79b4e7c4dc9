//! Processes, identified for other processes: their place, and whether they still run.
//!
//! A process number is unique in one PID namespace only. Each container may have its own, and a host may have many containers. A host's name is not unique
//! either. So a namespace is known by more than its number ([`Namespace`]).

use std::fs;

use serde::{Deserialize, Serialize};

use crate::namespace::Namespace;

/// A process, named so that a later process with the same number is not taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub host: String,
    pub pid: u32,
    /// Field 22 of /proc/PID/stat, clock ticks after boot; 0: not known.
    pub start_time: u64,
    /// The PID namespace that `pid` belongs to.
    #[serde(default, skip_serializing_if = "Namespace::is_unknown")]
    pub namespace: Namespace,
}

impl Process {
    /// The calling process.
    pub fn this() -> Process {
        let pid = std::process::id();
        Process {
            host: host_name(),
            pid,
            start_time: start_time(pid).unwrap_or(0),
            namespace: Namespace::here(),
        }
    }

    /// Makes a process that has reported its host, number and namespace itself.
    pub fn told(host: String, pid: u32, namespace: Namespace) -> Process {
        let mut process = Process {
            host,
            pid,
            start_time: 0,
            namespace,
        };
        if process.is_here() {
            process.start_time = start_time(pid).unwrap_or(0);
        }
        process
    }

    /// Whether it still runs. Returns `None` if this process cannot see that: on another host, in another container, without `/proc`.
    pub fn alive(&self) -> Option<bool> {
        let here = Namespace::here();
        if !self.is_in(here) {
            let ended = self.host == host_name() && self.namespace.is_of_an_earlier_boot(here);
            return ended.then_some(false);
        }
        Some(match start_time(self.pid) {
            Some(now) => self.start_time == 0 || now == self.start_time,
            None => false,
        })
    }

    /// Returns how it is stopped, if it is, and this process can see it.
    pub fn stop(&self) -> Option<Stop> {
        if !self.is_here() || self.alive() != Some(true) {
            return None;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        stop_in(&status)
    }

    /// Whether its number means the same process here.
    pub fn is_here(&self) -> bool {
        self.is_in(Namespace::here())
    }

    /// Whether it is on this host, in any container.
    pub fn is_on_this_host(&self) -> bool {
        self.host == host_name() && !self.namespace.is_of_another_boot(Namespace::here())
    }

    fn is_in(&self, here: Namespace) -> bool {
        let same = self.namespace.is_unknown() || self.namespace.is_same(here);
        self.host == host_name() && !here.is_unknown() && same
    }
}

/// The stop of a process, by a signal or a debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The process that traces it.
    pub tracer: Option<u32>,
    /// How often it has left a processor. If the number stays the same, it has not run.
    left: u64,
}

/// Reads a stop in the text of `/proc/PID/status`.
fn stop_in(status: &str) -> Option<Stop> {
    let field = |name: &str| {
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_default().trim()
    };
    let number = |name| field(name).parse().unwrap_or(0);
    let tracer: u32 = field("TracerPid").parse().unwrap_or(0);
    field("State").starts_with(['T', 't']).then(|| Stop {
        tracer: (tracer != 0).then_some(tracer),
        left: number("voluntary_ctxt_switches") + number("nonvoluntary_ctxt_switches"),
    })
}

/// This host's name; empty if it has none that is text.
pub fn host_name() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default()
}

/// Returns the start time of a process of this host, or `None` if it does not exist, or only as a zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may contain any character.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_read_with_its_tracer() {
        let text = |state, tracer| {
            format!(
                "Name:\tState: R\nState:\t{state}\nTracerPid:\t{tracer}\nvoluntary_ctxt_switches:\t5\n\
                 nonvoluntary_ctxt_switches:\t2\n"
            )
        };
        let stop = |tracer| Stop { tracer, left: 7 };
        assert_eq!(stop_in(&text("T (stopped)", 0)), Some(stop(None)));
        assert_eq!(stop_in(&text("t (tracing stop)", 9)), Some(stop(Some(9))));
        for runs in ["R (running)", "S (sleeping)", "D (disk sleep)"] {
            assert_eq!(stop_in(&text(runs, 9)), None);
        }
        assert_eq!(Process::this().stop(), None);
    }

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let this = Process::this();
        assert_eq!(this.alive(), Some(true));
        let mut earlier = this.clone();
        earlier.start_time -= 1;
        assert_eq!(earlier.alive(), Some(false));
        let mut elsewhere = this.clone();
        elsewhere.host.push_str("-other");
        assert_eq!(elsewhere.alive(), None);
        let mut contained = this.clone();
        contained.namespace = Namespace::told_of(1, "", "");
        assert_eq!(contained.alive(), None, "in another container");
        // Earlier releases have written these forms.
        for namespace in [Namespace::default(), this.namespace.unqualified()] {
            let earlier = Process {
                namespace,
                ..this.clone()
            };
            assert_eq!(earlier.alive(), Some(true));
        }
        let told = |namespace| Process::told(host_name(), this.pid, namespace);
        assert_eq!(told(this.namespace), this);
        assert_eq!(told(contained.namespace).start_time, 0);
    }
}
