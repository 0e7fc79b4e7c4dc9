//! Limits of the application that are lifted while its image is written: on the length of files (`RLIMIT_FSIZE`) and on its address space
//! (`RLIMIT_AS`).
//!
//! A limit applies to the process. Its threads stand still meanwhile, so none of them sees the change. Beyond the first limit, a write
//! would fail and leave SIGXFSZ pending for the thread that wrote. Beyond the second, the kernel gives no memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stillpoint_refusals::{Refusal, refusal};

use crate::ground::space;

/// The application's own limit; it is set again when this is dropped.
pub struct Lifted {
    resource: libc::__rlimit_resource_t,
    own: Option<libc::rlimit>,
}

impl Lifted {
    /// Lifts the limit as far as this process may.
    fn lift(resource: libc::__rlimit_resource_t) -> Lifted {
        let Some(own) = get(resource).filter(|own| own.rlim_cur != libc::RLIM_INFINITY) else {
            return Lifted {
                resource,
                own: None,
            };
        };
        let without = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        let hard = libc::rlimit {
            rlim_cur: own.rlim_max,
            rlim_max: own.rlim_max,
        };
        let lifted = set(resource, without) || set(resource, hard);
        Lifted {
            resource,
            own: lifted.then_some(own),
        }
    }
}

impl Drop for Lifted {
    fn drop(&mut self) {
        if let Some(own) = self.own {
            // The kernel never refuses a lower limit.
            set(self.resource, own);
            if self.resource == libc::RLIMIT_AS {
                *applications() = None;
            }
        }
    }
}

/// The application's limit on address space while it is lifted.
static APPLICATIONS: Mutex<Option<libc::rlimit>> = Mutex::new(None);

fn applications() -> MutexGuard<'static, Option<libc::rlimit>> {
    APPLICATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limit on address space.
pub struct SpaceLimit;

impl SpaceLimit {
    /// Bytes of addresses to write an image with while the application runs on.
    const ROOM: u64 = 128 << 20;

    /// Lifts the limit as far as this process may.
    pub fn lift() -> Lifted {
        let lifted = Lifted::lift(libc::RLIMIT_AS);
        *applications() = lifted.own;
        lifted
    }

    /// Returns the application's limit, whether it is lifted or not.
    pub fn of_application() -> Option<libc::rlimit> {
        let lifted = *applications();
        lifted.or_else(|| get(libc::RLIMIT_AS))
    }

    /// Returns whether the limit, while it holds, leaves too little room to write an image.
    pub fn is_near() -> bool {
        let limit = Self::of_application().map(|limit| limit.rlim_cur);
        let limit = limit.filter(|limit| *limit != libc::RLIM_INFINITY);
        limit.is_some_and(|limit| limit.saturating_sub(space::used()) < Self::ROOM)
    }
}

/// The limit on the length of files.
pub struct FileLimit;

impl FileLimit {
    /// Lifts the limit as far as this process may.
    pub fn lift() -> Lifted {
        Lifted::lift(libc::RLIMIT_FSIZE)
    }

    /// Returns whether there is a limit.
    pub fn is_set() -> bool {
        get(libc::RLIMIT_FSIZE).is_some_and(|own| own.rlim_cur != libc::RLIM_INFINITY)
    }

    /// Returns a reason in words for people if no file may have so many bytes.
    pub fn shorter_than(bytes: u64) -> Option<Refusal> {
        let limit = get(libc::RLIMIT_FSIZE)?.rlim_cur;
        (limit < bytes).then(|| {
            refusal!(FileLimit, "its limit on the length of files (RLIMIT_FSIZE) is {limit} bytes, and its image is longer: start it with a \
                 higher one"
            )
        })
    }
}

fn get(resource: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure, which lives on this stack.
    (unsafe { libc::getrlimit(resource, &raw mut limit) } == 0).then_some(limit)
}

fn set(resource: libc::__rlimit_resource_t, limit: libc::rlimit) -> bool {
    // SAFETY: the kernel reads the structure, which lives on this stack.
    unsafe { libc::setrlimit(resource, &raw const limit) == 0 }
}
