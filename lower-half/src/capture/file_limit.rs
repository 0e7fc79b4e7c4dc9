//! The application's limit on the length of files (`RLIMIT_FSIZE`), out of the way while its image is written.
//!
//! The limit is the process's. Its threads stand still meanwhile, so that none of them sees that it is another one for a while.
//! A write beyond it would fail, and leave SIGXFSZ pending for the thread that wrote.

/// The limit as the application has it; comes back when this is dropped.
pub struct FileLimit {
    own: Option<libc::rlimit>,
}

impl FileLimit {
    /// Lifts the limit as far as this process may.
    pub fn lift() -> FileLimit {
        let Some(own) = get().filter(|own| own.rlim_cur != libc::RLIM_INFINITY) else {
            return FileLimit { own: None };
        };
        let without = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        let hard = libc::rlimit {
            rlim_cur: own.rlim_max,
            rlim_max: own.rlim_max,
        };
        let lifted = set(without) || set(hard);
        FileLimit {
            own: lifted.then_some(own),
        }
    }

    /// Whether there is a limit.
    pub fn is_set() -> bool {
        get().is_some_and(|own| own.rlim_cur != libc::RLIM_INFINITY)
    }

    /// Says so, in words for people, if no file may have so many bytes.
    pub fn shorter_than(bytes: u64) -> Option<String> {
        let limit = get()?.rlim_cur;
        (limit < bytes).then(|| {
            format!(
                "its limit on the length of files (RLIMIT_FSIZE) is {limit} bytes, and its image is longer: start it with a \
                 higher one"
            )
        })
    }
}

impl Drop for FileLimit {
    fn drop(&mut self) {
        if let Some(own) = self.own {
            // A lower limit is never refused.
            set(own);
        }
    }
}

fn get() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure.
    (unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0).then_some(limit)
}

fn set(limit: libc::rlimit) -> bool {
    // SAFETY: the kernel reads the structure.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) == 0 }
}
