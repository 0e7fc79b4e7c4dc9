//! Making and freeing windows.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::body::{Body, Flavor, Notes, RMA_SYNC, body, usable};
use super::memory::Memory;
use super::open::{close, open as open_below};
use super::uncarried::{self, make as make_raw, word_of};
use crate::communicators;
use crate::ground::abi::{self, Aint, PlaceOf, WinHandle};
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Info, Win};
use crate::ground::{crossing, handle};
use crate::objects::attribute;
use crate::objects::communicator::{self, Identity, Members, all_of};
use crate::objects::datatype::name_below;
use crate::objects::errhandler::run;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check, class};
use crate::objects::{group, info};
use crate::operations::clock::collective;
use crate::operations::devices;

/// Standard-ABI values of `MPI_WIN_FLAVOR_ALLOCATE` and `MPI_WIN_FLAVOR_SHARED`.
const ALLOCATE: i32 = 312;
const SHARED: i32 = 314;

/// The arguments for a new window.
struct WindowArguments {
    flavor: Flavor,
    base: usize,
    size: isize,
    unit: i32,
}

impl WindowArguments {
    /// A window with memory that MPI gives.
    fn of(flavor: Flavor, size: isize, unit: i32) -> WindowArguments {
        WindowArguments {
            flavor,
            base: 0,
            size,
            unit,
        }
    }
}

/// Prepares the body of a new window, before the lower half has the window.
///
/// # Safety
/// Inside a stub; `comm` must be live, with these members.
unsafe fn prepare(
    comm: Comm,
    known: &communicator::Body,
    members: &Members,
    hints: Pairs,
    wanted: &WindowArguments,
) -> MpiResult<Body> {
    // SAFETY: `comm` is alive and has these members, by the caller's promise.
    unsafe {
        let identity = Identity::new(communicators::next_of_all(comm), members);
        let clock = collective::cell_of(identity.0, &all_of(members));
        let own_clock = collective::cell_for(&[group::world_rank() as u32]);
        let own_clock = own_clock.map_err(|_| class::INTERN)?;
        collective::cell(own_clock).size.store(1, Ordering::Relaxed);
        Ok(Body {
            identity,
            members: members.local.clone(),
            flavor: wanted.flavor,
            base: wanted.base,
            size: wanted.size,
            unit: wanted.unit,
            parts: Vec::new(),
            memory: Memory::Given,
            clock: clock.map_err(|_| class::INTERN)?,
            group_clock: known.group_clock,
            own_clock,
            communicator: AtomicU64::new(0),
            locks: AtomicU64::new(0),
            open: AtomicU32::new(0),
            touched: AtomicBool::new(false),
            notes: SpinLock::new(Notes {
                hints,
                posts: vec![0; members.local.len()],
                completes: vec![0; members.local.len()],
                ..Notes::default()
            }),
        })
    }
}

/// Makes a window that a checkpoint carries.
///
/// # Safety
/// As [`prepare`], nothing locked.
unsafe fn make(
    comm: Comm,
    known: &communicator::Body,
    members: &Members,
    hints: Pairs,
    wanted: &WindowArguments,
) -> MpiResult<Win> {
    // SAFETY: `comm` is alive and has these members, by the caller's promise; its copy below is ours, and goes if no window is made.
    unsafe {
        let mut body = prepare(comm, known, members, hints, wanted)?;
        let made = collective::clocked_once((*comm).clock, || {
            let mut on = 0;
            check(crossing::cross(|d| {
                (d.comm_dup)((*comm).lower, &raw mut on)
            }))?;
            let made = open_below(on, &mut body);
            if made.is_err() {
                crossing::cross(|d| (d.comm_free)(&raw mut on));
            }
            made
        });
        let word = match made {
            Ok(word) => word,
            Err(error) => {
                collective::retire(body.clock);
                return Err(error);
            }
        };
        // The real MPI's own name for the window stays its name after a restart.
        let name = name_below(|d, text, length| (d.win_get_name)(word, text, length));
        if let Ok(name) = &name {
            collective::call_clock(body.clock, name);
        }
        body.notes.lock().name = name.ok();
        let (clock, base) = (body.clock, body.base);
        let body = Box::into_raw(Box::new(body)).cast();
        let window = handle::create(HandleKind::Window, word, body);
        (*window).clock = clock;
        attribute::describe_window(window);
        match wanted.flavor {
            Flavor::Create | Flavor::Dynamic => {}
            // In the lower half the flavor may differ, and the memory lie elsewhere.
            Flavor::Allocate => attribute::say_memory(window, ALLOCATE, base),
            Flavor::Shared => attribute::say_memory(window, SHARED, base),
        }
        Ok(window)
    }
}

/// The members of a communicator of this world alone.
fn carried(known: &communicator::Body) -> Option<&Members> {
    known.members.as_ref().filter(|it| it.remote.is_none())
}

/// Makes the window that is wanted. If it cannot be carried, makes one that is the real MPI's alone, by `call`.
///
/// # Safety
/// Inside a stub; `place` must be null or writable; `call` makes a window of the communicator's members.
unsafe fn open(
    comm: Comm,
    hints: Info,
    place: PlaceOf<WinHandle>,
    wanted: &WindowArguments,
    call: impl FnOnce(&'static Dispatch, Word, Word, *mut Word) -> i32,
) -> MpiResult {
    // SAFETY: `usable` looks at the communicator, `word_of` at the info; the place is not null when it is written.
    unsafe {
        let (comm, known) = communicator::usable(comm)?;
        word_of(hints)?;
        if place.is_null() {
            return Err(class::WIN);
        }
        let window = match carried(known) {
            Some(members) => make(comm, known, members, info::pairs_of(hints)?, wanted)?,
            None => make_raw(comm, |d, word| {
                call(d, abi::word(HandleKind::Info, hints), (*comm).lower, word)
            })?,
        };
        place.set(window);
        Ok(())
    }
}

/// `MPI_Win_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_create(
    base: *mut c_void,
    size: Aint,
    unit: c_int,
    hints: Info,
    comm: Comm,
    place: PlaceOf<WinHandle>,
) -> c_int {
    let wanted = WindowArguments {
        flavor: Flavor::Create,
        base: base.expose_provenance(),
        size,
        unit,
    };
    // SAFETY: `open` looks at the handles and the place; MPI demands that the memory at `base` has `size` bytes as long as the window exists.
    unsafe {
        if devices::present()
            && let Some(code) = devices::refuses(comm, c"MPI_Win_create", &[base])
        {
            return code;
        }
        run(comm, c"MPI_Win_create", || {
            open(comm, hints, place, &wanted, |d, hints, on, word| {
                (d.win_create)(base, size, unit, hints, on, word)
            })
        })
    }
}

/// `MPI_Win_create_dynamic`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_create_dynamic(hints: Info, comm: Comm, place: PlaceOf<WinHandle>) -> c_int {
    let wanted = WindowArguments {
        flavor: Flavor::Dynamic,
        base: 0,
        size: 0,
        unit: 1,
    };
    // SAFETY: `open` looks at the handles and the place; the window begins without memory.
    unsafe {
        run(comm, c"MPI_Win_create_dynamic", || {
            open(comm, hints, place, &wanted, |d, hints, on, word| {
                (d.win_create_dynamic)(hints, on, word)
            })
        })
    }
}

/// `MPI_Win_allocate`.
///
/// # Safety
/// As the MPI function: `base` is the address of a pointer.
pub unsafe fn win_allocate(
    size: Aint,
    unit: c_int,
    hints: Info,
    comm: Comm,
    base: *mut c_void,
    place: PlaceOf<WinHandle>,
) -> c_int {
    // SAFETY: `allocate` looks at the handles and both places; MPI demands that `base` is the address of a pointer.
    unsafe {
        run(comm, c"MPI_Win_allocate", || {
            let wanted = WindowArguments::of(Flavor::Allocate, size, unit);
            allocate(comm, hints, base, place, &wanted, |d, hints, on, word| {
                (d.win_allocate)(size, unit, hints, on, base, word)
            })
        })
    }
}

/// `MPI_Win_allocate_shared`.
///
/// # Safety
/// As the MPI function: `base` is the address of a pointer.
pub unsafe fn win_allocate_shared(
    size: Aint,
    unit: c_int,
    hints: Info,
    comm: Comm,
    base: *mut c_void,
    place: PlaceOf<WinHandle>,
) -> c_int {
    // SAFETY: `allocate` looks at the handles and both places, of which `base` is the address of a pointer, as MPI demands.
    unsafe {
        run(comm, c"MPI_Win_allocate_shared", || {
            let wanted = WindowArguments::of(Flavor::Shared, size, unit);
            allocate(comm, hints, base, place, &wanted, |d, hints, on, word| {
                (d.win_allocate_shared)(size, unit, hints, on, base, word)
            })
        })
    }
}

/// Makes a window with memory of its own. If it cannot be carried, makes one that is the real MPI's alone, by `call`.
///
/// # Safety
/// Inside a stub; `base` must be null or the address of a pointer, `place` null or writable; `call` makes a window of the communicator's members.
unsafe fn allocate(
    comm: Comm,
    hints: Info,
    base: *mut c_void,
    place: PlaceOf<WinHandle>,
    wanted: &WindowArguments,
    call: impl FnOnce(&'static Dispatch, Word, Word, *mut Word) -> i32,
) -> MpiResult {
    // SAFETY: `usable` looks at the communicator, `word_of` at the info; `place` is not null when it is written, and neither is `base`.
    unsafe {
        let (comm, known) = communicator::usable(comm)?;
        word_of(hints)?;
        if place.is_null() {
            return Err(class::WIN);
        }
        let members = carried(known).filter(|_| wanted.size >= 0 && !base.is_null());
        let made = match members {
            Some(members) => make(comm, known, members, info::pairs_of(hints)?, wanted).ok(),
            None => None,
        };
        if let Some(window) = made {
            let own = body(window).map_or(0, |body| body.base);
            base.cast::<usize>().write(own);
            place.set(window);
            return Ok(());
        }
        // This window cannot have memory that a restart can provide again, as with only one process. Or there is an error, which the real MPI reports.
        place.set(make_raw(comm, |d, word| {
            call(d, abi::word(HandleKind::Info, hints), (*comm).lower, word)
        })?);
        Ok(())
    }
}

/// `MPI_Win_free`. All members have to give the window up before the next still point: the clock of the set of members sees to that.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_free(place: PlaceOf<WinHandle>) -> c_int {
    // SAFETY: `usable` looks at the handle, which is null if there is no place; the application's holder of the window ends here.
    unsafe {
        let named = match place.is_null() {
            true => std::ptr::null_mut(),
            false => place.get(),
        };
        run(named, c"MPI_Win_free", || {
            let (window, body) = usable(named)?;
            if body.is_some_and(is_busy) {
                return Err(RMA_SYNC);
            }
            attribute::delete_all(window).map_err(abi::error_to_neutral)?;
            match body {
                Some(body) => {
                    collective::bind_cell(body.clock);
                    collective::clocked_once(body.group_clock, || close((*window).lower, body))?;
                }
                None => {
                    check(collective::clocked_once((*window).clock, || {
                        let mut word = (*window).lower;
                        crossing::cross(|d| (d.win_free)(&raw mut word))
                    }))?;
                    uncarried::freed(window);
                }
            }
            place.set(abi::predefined::null_handle(HandleKind::Window));
            // Holders of the object must not reach the lower half by it.
            (*window).lower = abi::predefined::null_word(HandleKind::Window);
            handle::release(window);
            Ok(())
        })
    }
}

/// Whether an epoch other than a fence's is open.
fn is_busy(body: &Body) -> bool {
    let notes = body.notes.lock();
    !notes.held.is_empty()
        || notes.all.is_some()
        || notes.started.is_some()
        || notes.posted.is_some()
}
