//! The state that the kernel's schedulers keep for each thread: nice value, policy, processors, timer slack, I/O priority.
//!
//! The values at launch are the launcher's choice, and another launch has others. Only values that differ from them belong to the
//! application: they go into an image, and a restart sets them again (`restore::scheduling`). Values of an
//! earlier image belong to it too, if this launch has the same ones by chance. Programs that the application executes, such as the one behind `nice`, are told the values at launch.

use std::mem::size_of;
use std::sync::{Mutex, PoisonError};
use stillpoint_part::Kind;

use serde::{Deserialize, Serialize};

use crate::threads::Thread;

/// The payload of an image with these values: JSON, a list of [`Own`].
pub const KIND: Kind = Kind {
    name: "scheduling",
    version: 1,
    always: true,
};

/// The application's choices for one thread; a field is `None` if its value is that of the launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// The thread, by the id that the application knows.
    pub virtual_tid: u32,
    pub nice: Option<i32>,
    pub policy: Option<Policy>,
    pub processors: Option<Chosen>,
    /// In nanoseconds.
    pub timer_slack: Option<u64>,
    /// Class and level, in the form of `ioprio_get`.
    pub io_priority: Option<i32>,
}

/// The members of `struct sched_attr`, without the nice value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub policy: u32,
    pub flags: u64,
    pub priority: u32,
    /// In nanoseconds, like the next two; 0 stands for the kernel's choice.
    pub runtime: u64,
    pub deadline: u64,
    pub period: u64,
}

/// Processors that the application has bound a thread to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    pub processors: Vec<u32>,
    /// Whether some of them are not among those that the process was launched on.
    pub beyond: bool,
}

/// The values that can be read of one thread; a field is `None` if the kernel does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    pub nice: Option<i32>,
    pub policy: Option<Policy>,
    pub processors: Option<Vec<u32>>,
    pub timer_slack: Option<u64>,
    pub io_priority: Option<i32>,
}

/// The values that the process was launched with.
static LAUNCHED: Mutex<Option<Attributes>> = Mutex::new(None);

/// The application's choices of an earlier launch, which this one has given to its threads.
static GIVEN: Mutex<Vec<Own>> = Mutex::new(Vec::new());

/// Notes the calling thread's values, before the application runs on it, unless they are known.
pub fn remember() {
    // SAFETY: prctl with this argument only reads a number, and touches no memory.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    let mut launched = LAUNCHED.lock().unwrap_or_else(PoisonError::into_inner);
    launched.get_or_insert_with(|| Attributes::of(0, u64::try_from(slack).unwrap_or(0)));
}

/// The variable that tells a program that the application executes what the process was launched with.
pub const VARIABLE: &str = "STILLPOINT_SCHEDULING";

/// Returns that variable.
pub fn variable() -> Option<String> {
    remember();
    let launched = serde_json::to_string(&launched()).ok()?;
    Some(format!("{VARIABLE}={launched}"))
}

/// Takes over the knowledge of the program that executed this one.
pub fn inherit() {
    let told = std::env::var(VARIABLE).unwrap_or_default();
    *LAUNCHED.lock().unwrap_or_else(PoisonError::into_inner) = serde_json::from_str(&told).ok();
}

/// Notes the choices of an earlier launch that the threads have been given.
pub fn are_given(own: Vec<Own>) {
    *GIVEN.lock().unwrap_or_else(PoisonError::into_inner) = own;
}

/// Returns the values that the process was launched with.
pub fn launched() -> Attributes {
    let launched = LAUNCHED.lock().unwrap_or_else(PoisonError::into_inner);
    launched.clone().unwrap_or_default()
}

/// Calls `start`, which starts MPI. If MPI binds the calling thread to processors (a launcher may leave that to it), these count as the
/// processors that the process was launched on.
pub fn while_mpi_binds<R>(start: impl FnOnce() -> R) -> R {
    let before = processors(0);
    let result = start();
    let after = processors(0);
    if after != before
        && let Some(launched) = LAUNCHED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
    {
        launched.processors = after;
    }
    result
}

/// Returns the application's choices for these threads, without threads for which it has chosen nothing.
pub fn survey(threads: &[Thread]) -> Vec<Own> {
    let launched = launched();
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let own = threads.iter().map(|thread| {
        let attributes = Attributes::of(thread.real_tid(), thread.timer_slack());
        let tid = thread.virtual_tid();
        let given = given.iter().find(|own| own.virtual_tid == tid);
        attributes.own(tid, &launched, given)
    });
    own.filter(|own| !own.is_nothing()).collect()
}

impl Own {
    fn is_nothing(&self) -> bool {
        let nothing = Own {
            virtual_tid: self.virtual_tid,
            ..Own::default()
        };
        *self == nothing
    }
}

impl Attributes {
    /// Reads the values of a thread (0 is the caller). The kernel tells the timer slack only to the thread itself, so it is given here; 0
    /// stands for unknown.
    pub fn of(tid: u32, timer_slack: u64) -> Attributes {
        Attributes {
            nice: nice(tid),
            policy: policy(tid),
            processors: processors(tid),
            timer_slack: (timer_slack != 0).then_some(timer_slack),
            io_priority: io_priority(tid),
        }
    }

    /// Returns the values that differ from `launched`, and those that the thread has been `given` as its own.
    fn own(self, virtual_tid: u32, launched: &Attributes, given: Option<&Own>) -> Own {
        let none = Own::default();
        let given = given.unwrap_or(&none);
        let chosen = given.processors.as_ref();
        let before = chosen.map(|chosen| chosen.processors.clone());
        let policy = |of: &Attributes| Some(of.policy.clone()?.beside(launched.policy.as_ref()));
        let allowed = launched.processors.as_deref().unwrap_or_default();
        let processors = differing(self.processors.clone(), &launched.processors, &before);
        Own {
            virtual_tid,
            nice: differing(self.nice, &launched.nice, &given.nice),
            policy: differing(policy(&self), &policy(launched), &given.policy),
            processors: processors.map(|processors| Chosen {
                beyond: !within(&processors, allowed),
                processors,
            }),
            timer_slack: differing(self.timer_slack, &launched.timer_slack, &given.timer_slack),
            io_priority: differing(self.io_priority, &launched.io_priority, &given.io_priority),
        }
    }
}

fn differing<T: PartialEq>(value: Option<T>, launched: &Option<T>, given: &Option<T>) -> Option<T> {
    value.filter(|value| launched.as_ref() != Some(value) || given.as_ref() == Some(value))
}

/// Returns whether all these processors are among the allowed ones.
pub fn within(processors: &[u32], allowed: &[u32]) -> bool {
    processors
        .iter()
        .all(|processor| allowed.contains(processor))
}

impl Policy {
    /// Removes the time slice that the kernel has chosen: newer kernels report it, and it depends on the machine.
    fn beside(mut self, launched: Option<&Policy>) -> Policy {
        let deadline = self.policy == libc::SCHED_DEADLINE as u32;
        if !deadline && launched.is_some_and(|launched| launched.runtime == self.runtime) {
            self.runtime = 0;
        }
        self
    }
}

/// Returns the nice value of a thread.
pub fn nice(tid: u32) -> Option<i32> {
    // SAFETY: the call takes numbers and touches no memory. Its result is 20 - nice.
    let result = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, tid) };
    (result >= 0).then_some(20 - result as i32)
}

fn policy(tid: u32) -> Option<Policy> {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut told: libc::sched_attr = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `bytes` bytes, which the structure has.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut told, bytes, 0) };
    (result == 0).then_some(Policy {
        policy: told.sched_policy,
        flags: told.sched_flags,
        priority: told.sched_priority,
        runtime: told.sched_runtime,
        deadline: told.sched_deadline,
        period: told.sched_period,
    })
}

/// Room for as many processors as any kernel supports.
const WORDS: usize = 1024;

/// Returns the processors that a thread may run on.
pub fn processors(tid: u32) -> Option<Vec<u32>> {
    let mut words = vec![0u64; WORDS];
    // SAFETY: the kernel writes at most as many bytes as the set has.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            tid,
            WORDS * size_of::<u64>(),
            words.as_mut_ptr(),
        )
    };
    // A machine may have thousands of possible processors, but few of them exist.
    let told = usize::try_from(bytes).unwrap_or(0) / size_of::<u64>();
    let numbers = (0..)
        .zip(words.iter().take(told))
        .flat_map(|(index, word)| {
            let bits = (0..u64::BITS).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| index * u64::BITS + bit)
        });
    (bytes > 0).then(|| numbers.collect())
}

/// Returns the mask of these processors, in the kernel's form.
pub fn mask_of(processors: &[u32]) -> Vec<u64> {
    let mut words = vec![0u64; WORDS];
    for number in processors {
        if let Some(word) = words.get_mut((number / u64::BITS) as usize) {
            *word |= 1 << (number % u64::BITS);
        }
    }
    words
}

/// `IOPRIO_WHO_PROCESS`, which means a thread.
pub const A_THREAD: i32 = 1;

/// Returns the I/O priority of a thread.
pub fn io_priority(tid: u32) -> Option<i32> {
    // SAFETY: the call takes numbers and touches no memory.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_get, A_THREAD, tid) };
    i32::try_from(result).ok().filter(|priority| *priority >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Attributes {
        Attributes {
            nice: Some(5),
            policy: Some(Policy {
                runtime: 3_000_000,
                ..Policy::default()
            }),
            processors: Some(vec![0, 1, 70]),
            timer_slack: Some(50_000),
            io_priority: Some(0),
        }
    }

    #[test]
    fn what_the_launch_has_given_is_not_the_applications_own() {
        assert!(some().own(7, &some(), None).is_nothing());
        assert!(Attributes::default().own(7, &some(), None).is_nothing());
    }

    #[test]
    fn what_it_had_chosen_before_stays_its_own_if_the_launch_has_the_same() {
        let given = Own {
            virtual_tid: 7,
            nice: Some(5),
            timer_slack: Some(1),
            processors: Some(Chosen {
                processors: vec![0, 1, 70],
                beyond: true,
            }),
            ..Own::default()
        };
        let own = some().own(7, &some(), Some(&given));
        assert_eq!((own.nice, own.timer_slack), (Some(5), None));
        assert_eq!(own.processors.unwrap().processors, [0, 1, 70]);
    }

    #[test]
    fn what_differs_is_the_applications_own() {
        let changed = Attributes {
            nice: Some(0),
            processors: Some(vec![1, 2]),
            policy: Some(Policy {
                policy: libc::SCHED_BATCH as u32,
                runtime: 3_000_000,
                ..Policy::default()
            }),
            ..some()
        };
        let own = changed.own(7, &some(), None);
        assert_eq!((own.virtual_tid, own.nice), (7, Some(0)));
        let chosen = own.processors.unwrap();
        assert!(chosen.beyond && chosen.processors == [1, 2]);
        // The kernel had chosen the time slice, and is to choose it again.
        let policy = own.policy.unwrap();
        assert_eq!((policy.policy, policy.runtime), (3, 0));
        assert_eq!((own.timer_slack, own.io_priority), (None, None));
    }

    #[test]
    fn the_calling_thread_can_be_read() {
        let here = Attributes::of(0, 1);
        assert!(here.nice.is_some() && here.policy.is_some() && here.io_priority.is_some());
        let processors = here.processors.unwrap();
        assert!(!processors.is_empty());
        let mask = mask_of(&processors);
        let bits: u32 = mask.iter().map(|word| word.count_ones()).sum();
        assert_eq!(bits as usize, processors.len());
    }
}
