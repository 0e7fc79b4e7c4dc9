//! Windows that the real MPI has, and the locks in them, so that a job that is suspended gives them up. A library frees in `MPI_Finalize` what it still has: Open MPI's osc
//! ucx waits there for every lock to be given back.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use stillpoint_wrappers::standard;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::neutral::Word;

struct Window {
    word: Word,
    /// The ranks in whose memory this one holds a lock.
    locked: Vec<i32>,
    /// Whether it holds one in everybody's.
    all: bool,
}

/// In the order in which they were made: so all ranks free them in one order.
static WINDOWS: Mutex<Vec<Window>> = Mutex::new(Vec::new());

fn windows() -> MutexGuard<'static, Vec<Window>> {
    WINDOWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a window has been made.
unsafe fn made(place: *mut Word) {
    windows().push(Window {
        // SAFETY: the real MPI has just written to it.
        word: unsafe { place.read() },
        locked: Vec::new(),
        all: false,
    });
}

fn change(word: Word, change: impl FnOnce(&mut Window)) {
    if let Some(window) = windows().iter_mut().find(|window| window.word == word) {
        change(window);
    }
}

/// Functions in the table's places, which call those that were there and note what has come of it.
macro_rules! watched {
    ($($name:ident ($($argument:ident: $type:ty),*) $(first $first:block)? $note:block)*) => {
        /// The table's own functions.
        struct Below {
            $($name: unsafe extern "C" fn($($type),*) -> i32,)*
        }

        static BELOW: OnceLock<Below> = OnceLock::new();

        /// Notes from here on which windows there are.
        pub fn watch(table: &mut Dispatch) {
            BELOW.get_or_init(|| Below { $($name: table.$name,)* });
            $(table.$name = $name;)*
        }

        $(unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
            let Some(below) = BELOW.get() else {
                return standard::ERR_INTERN;
            };
            // SAFETY: the arguments go on as the caller gave them to this function of the table.
            unsafe {
                $($first)?
                let code = (below.$name)($($argument),*);
                if code == 0 $note
                code
            }
        })*
    };
}

watched! {
    win_create(base: *mut c_void, size: isize, unit: i32, hints: Word, on: Word, place: *mut Word) {
        made(place);
    }
    win_create_dynamic(hints: Word, on: Word, place: *mut Word) {
        made(place);
    }
    win_allocate(size: isize, unit: i32, hints: Word, on: Word, base: *mut c_void, place: *mut Word) {
        made(place);
    }
    win_allocate_shared(size: isize, unit: i32, hints: Word, on: Word, base: *mut c_void, place: *mut Word) {
        made(place);
    }
    win_free(place: *mut Word) first {
        if !place.is_null() {
            let word = place.read();
            windows().retain(|window| window.word != word);
        }
    } {}
    win_lock(kind: i32, rank: i32, assertion: i32, window: Word) {
        change(window, |window| window.locked.push(rank));
    }
    win_unlock(rank: i32, window: Word) {
        change(window, |window| window.locked.retain(|locked| *locked != rank));
    }
    win_lock_all(assertion: i32, window: Word) {
        change(window, |window| window.all = true);
    }
    win_unlock_all(window: Word) {
        change(window, |window| window.all = false);
    }
}

/// Gives all locks back and frees all windows. Collective, as the making was.
///
/// # Safety
/// MPI runs, and no other thread calls it any more.
pub unsafe fn free() {
    // A thread of the application's may stand still with the list in its hands: then the windows end with MPI.
    let Ok(windows) = WINDOWS.try_lock().map(|mut all| std::mem::take(&mut *all)) else {
        return;
    };
    let Some(below) = BELOW.get() else {
        return;
    };
    for window in &windows {
        for rank in &window.locked {
            // SAFETY: MPI runs, by the caller's promise, and this process holds the lock.
            unsafe { (below.win_unlock)(*rank, window.word) };
        }
        if window.all {
            // SAFETY: MPI runs, by the caller's promise, and this process holds the locks of all.
            unsafe { (below.win_unlock_all)(window.word) };
        }
    }
    for mut window in windows {
        // SAFETY: MPI runs, by the caller's promise, and the window has not been freed.
        unsafe { (below.win_free)(&mut window.word) };
    }
}
