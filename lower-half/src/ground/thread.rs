//! Threads of the lower half: all of them are started here, and a test looks for others.
//!
//! The application may limit its address space at any moment (`RLIMIT_AS`). A thread for which there is no memory is an error then, which its starter takes
//! as "do it here", or reports. A thread that has been started needs nothing more: it has begun when its starter goes on, and it has no alternate signal
//! stack ([`super::inherited`]), for which Rust's runtime would end the process. Blocks for the C library are put by, which it takes for a thread's end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use super::put_by;
use crate::arch::syscall::{futex_wait, futex_wake};

/// Stack for whatever a thread does.
pub const LARGE: usize = 2 << 20;
pub const USUAL: usize = 1 << 20;
pub const SMALL: usize = 256 << 10;
/// For a thread that only waits.
pub const LEAST: usize = 64 << 10;

/// Starts a thread.
///
/// # Errors
/// There is no memory for it, or the process may have no more threads.
pub fn start<T: Send + 'static>(
    name: &str,
    stack: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let begun = Arc::new(AtomicU32::new(0));
    let work = beginning(&begun, work);
    let thread = builder(name, stack).spawn(work)?;
    wait(&begun);
    Ok(thread)
}

/// Starts a thread that ends within the scope.
///
/// # Errors
/// As [`start`].
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    stack: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let begun = Arc::new(AtomicU32::new(0));
    let work = beginning(&begun, work);
    let thread = builder(name, stack).spawn_scoped(scope, work)?;
    wait(&begun);
    Ok(thread)
}

fn builder(name: &str, stack: usize) -> Builder {
    put_by::stock();
    Builder::new().name(name.to_owned()).stack_size(stack)
}

fn beginning<T, W: FnOnce() -> T>(
    begun: &Arc<AtomicU32>,
    work: W,
) -> impl FnOnce() -> T + use<T, W> {
    let begun = Arc::clone(begun);
    move || {
        begun.store(1, Ordering::Release);
        futex_wake(&begun);
        drop(begun);
        work()
    }
}

fn wait(begun: &AtomicU32) {
    while begun.load(Ordering::Acquire) == 0 {
        futex_wait(begun, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::proc_files::tests::sources;
    use crate::ground::space;
    use std::path::Path;

    /// Crates that do a thread's work themselves if it cannot be started.
    const OTHERWISE: &[&str] = &[
        "../coordinator/image/src/crew.rs",
        "../coordinator/image/src/reader/loading.rs",
    ];

    #[test]
    fn nothing_starts_a_thread_but_this() {
        let root = Path::new(env!("LOWER_HALF"));
        let mut files = Vec::new();
        for folder in [
            "src",
            "../coordinator/image/src",
            "../coordinator/tracking/src",
        ] {
            sources(&root.join(folder), &mut files);
        }
        for file in files {
            let name = file.strip_prefix(root).unwrap();
            let is_test = name
                .iter()
                .any(|part| part == "tests" || part == "tests.rs");
            if is_test || name == "src/ground/thread.rs" || OTHERWISE.iter().any(|it| name == *it) {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let starts = [
                "thread::spawn(",
                "Builder::new()",
                ".spawn(",
                "spawn_scoped(",
            ];
            let found = starts.iter().find(|starts| code.contains(**starts));
            assert_eq!(found, None, "{}: see {}", name.display(), file!());
        }
    }

    fn limit(bytes: libc::rlim_t) {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: the kernel reads the structure.
        let result = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
        assert_eq!(result, 0);
    }

    #[test]
    fn a_thread_without_memory_is_an_error_and_one_with_a_stack_runs() {
        let ends = || {
            thread_local!(static LEFT: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) });
            LEFT.with_borrow_mut(|left| left.push(1));
            // SAFETY: the kernel fills the structure.
            unsafe {
                let mut stack: libc::stack_t = std::mem::zeroed();
                libc::sigaltstack(std::ptr::null(), &raw mut stack);
                stack.ss_flags
            }
        };
        // Stacks of threads that have ended are kept, and these are of a size of their own.
        let bytes = 3 * USUAL / 4;
        let (mut ran, mut failed) = (0, 0);
        for more in (0..400).map(|step| step * 4096) {
            let used = space::used();
            limit(used);
            // This takes the rest of the C library's heap.
            let taken = [1 << 16, 1 << 12, 1 << 8, 16].map(|bytes| {
                // SAFETY: the blocks are this test's alone.
                let take = || Some(unsafe { libc::malloc(bytes) }).filter(|it| !it.is_null());
                std::iter::from_fn(take).take(1 << 16).collect::<Vec<_>>()
            });
            limit(used + more);
            let started = start("stillpoint-test", bytes, ends);
            let flags = started.map(|thread| thread.join());
            limit(libc::RLIM_INFINITY);
            for block in taken.into_iter().flatten() {
                // SAFETY: `malloc` gave these blocks above, and nothing else uses them.
                unsafe { libc::free(block) };
            }
            match flags {
                Ok(flags) => {
                    assert_eq!(flags.unwrap(), libc::SS_DISABLE);
                    ran += 1;
                }
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EAGAIN), "{error}");
                    failed += 1;
                }
            }
        }
        assert!(ran > 0 && failed > 0, "{ran} ran, {failed} failed");
    }
}
