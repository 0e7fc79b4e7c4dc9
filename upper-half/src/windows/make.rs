//! How windows are made and freed.

use std::ffi::{CString, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::allocate_shared::share;
use super::body::{Body, Flavor, NO_CHECK, Notes, RMA_SYNC, usable};
use super::raw::{make as make_raw, word_of};
use crate::communicators;
use crate::ground::abi::{self, Aint, PlaceOf, WinHandle};
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Info, Win};
use crate::ground::{crossing, handle, hindrances};
use crate::objects::attribute;
use crate::objects::communicator::{self, Identity, Members, all_of};
use crate::objects::datatype::name_below;
use crate::objects::errhandler::run;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{Outcome, check, class};
use crate::objects::{group, info, memory};
use crate::operations::clock::collective;

/// Standard-ABI value of `MPI_WIN_FLAVOR_ALLOCATE`.
const ALLOCATE: i32 = 312;
/// Standard-ABI value of `MPI_WIN_FLAVOR_SHARED`.
const SHARED: i32 = 314;
/// The hint that a window is never locked: ours always is.
const NO_LOCKS: &[u8] = b"no_locks";

/// What a window is made of.
pub struct Wanted {
    pub flavor: Flavor,
    pub base: usize,
    pub size: isize,
    pub unit: i32,
}

/// Makes the lower half's two windows of a communicator of the members. Collective over these.
///
/// # Safety
/// Inside a stub; `on` must be a communicator of the lower half's, and nothing of the body's be in the lower half.
pub unsafe fn open_on(on: Word, body: &Body) -> Outcome<Word> {
    let mut below = Pairs::new();
    let (hints, name, attached) = {
        let notes = body.notes.lock();
        let name = notes.name.clone();
        (notes.hints.clone(), name, notes.attached.clone())
    };
    for (key, value) in hints.iter().filter(|(key, _)| *key != NO_LOCKS) {
        below.set(key, value);
    }
    let hints = info::create(below);
    let (mut data, mut locks) = (0, 0);
    // SAFETY: inside; the info is ours, the memory the application's.
    unsafe {
        let word = info::word(hints);
        let made = word.and_then(|hints| {
            let none = (*abi::predefined(HandleKind::Info, 304)).lower;
            let returning = (*abi::predefined(HandleKind::Errhandler, 323)).lower;
            let base = std::ptr::with_exposed_provenance_mut(body.base);
            let (size, unit) = (body.size, body.unit);
            check(crossing::cross(|d| match body.flavor {
                Flavor::Dynamic => (d.win_create_dynamic)(hints, on, &raw mut data),
                _ => (d.win_create)(base, size, unit, hints, on, &raw mut data),
            }))?;
            check(crossing::cross(|d| {
                (d.win_create)(std::ptr::null_mut(), 0, 1, none, on, &raw mut locks)
            }))?;
            crossing::cross(|d| (d.win_set_errhandler)(data, returning));
            crossing::cross(|d| (d.win_set_errhandler)(locks, returning));
            check(crossing::cross(|d| (d.win_lock_all)(NO_CHECK, data)))
        });
        handle::release(hints);
        made?;
        for (base, size) in attached {
            let base = std::ptr::with_exposed_provenance_mut(base);
            check(crossing::cross(|d| (d.win_attach)(data, base, size)))?;
        }
        if let Some(name) = name.and_then(|name| CString::new(name).ok()) {
            let text = name.as_ptr();
            crossing::cross(|d| (d.win_set_name)(data, text));
        }
    }
    body.communicator.store(on, Ordering::Relaxed);
    body.locks.store(locks, Ordering::Relaxed);
    Ok(data)
}

/// Closes what [`open_on`] has made. Collective over the members.
///
/// # Safety
/// Inside a stub; `data` must be the window's word.
unsafe fn close(mut data: Word, body: &Body) -> Outcome {
    let mut locks = body.locks.swap(0, Ordering::Relaxed);
    let mut on = body.communicator.swap(0, Ordering::Relaxed);
    // SAFETY: the words are ours, and used no more.
    unsafe {
        check(crossing::cross(|d| (d.win_unlock_all)(data)))?;
        check(crossing::cross(|d| (d.win_free)(&raw mut data)))?;
        check(crossing::cross(|d| (d.win_free)(&raw mut locks)))?;
        crossing::cross(|d| (d.comm_free)(&raw mut on));
    }
    Ok(())
}

/// What is known of a new window before the lower half has it.
///
/// # Safety
/// Inside a stub; `comm` must be live, with these members.
unsafe fn prepare(
    comm: Comm,
    known: &communicator::Body,
    members: &Members,
    hints: Pairs,
    wanted: &Wanted,
) -> Outcome<Body> {
    // SAFETY: the caller's communicator.
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
            shared: None,
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
pub unsafe fn make(
    comm: Comm,
    known: &communicator::Body,
    members: &Members,
    hints: Pairs,
    wanted: &Wanted,
) -> Outcome<Win> {
    // SAFETY: the caller's communicator; the copy of it is ours.
    unsafe {
        let mut body = prepare(comm, known, members, hints, wanted)?;
        let made = collective::clocked_once((*comm).clock, || {
            let mut on = 0;
            check(crossing::cross(|d| {
                (d.comm_dup)((*comm).lower, &raw mut on)
            }))?;
            let made = share(on, &mut body).and_then(|()| open_on(on, &body));
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
        // What the real MPI calls it by itself stays its name after a restart.
        let name = name_below(|d, text, length| (d.win_get_name)(word, text, length));
        if let Ok(name) = &name {
            collective::call_clock(body.clock, name);
        }
        body.notes.lock().name = name.ok();
        let clock = body.clock;
        let body = Box::into_raw(Box::new(body)).cast();
        let window = handle::create(HandleKind::Window, word, body);
        (*window).clock = clock;
        attribute::describe_window(window);
        match wanted.flavor {
            Flavor::Allocate => attribute::say_flavor(window, ALLOCATE),
            Flavor::Shared => attribute::say_flavor(window, SHARED),
            Flavor::Create | Flavor::Dynamic => {}
        }
        Ok(window)
    }
}

/// The members of a communicator of this world alone.
pub fn carried(known: &communicator::Body) -> Option<&Members> {
    known.members.as_ref().filter(|it| it.remote.is_none())
}

/// Makes the window that is wanted, or, where it cannot be carried, one that is the real MPI's alone, by `call`.
///
/// # Safety
/// Inside a stub; `place` must be null or writable; `call` makes a window of the communicator's members.
unsafe fn open(
    comm: Comm,
    hints: Info,
    place: PlaceOf<WinHandle>,
    wanted: &Wanted,
    call: impl FnOnce(&'static Dispatch, Word, Word, *mut Word) -> i32,
) -> Outcome {
    // SAFETY: the caller's.
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
    let wanted = Wanted {
        flavor: Flavor::Create,
        base: base.expose_provenance(),
        size,
        unit,
    };
    // SAFETY: handles are checked before they are used.
    unsafe {
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
    let wanted = Wanted {
        flavor: Flavor::Dynamic,
        base: 0,
        size: 0,
        unit: 1,
    };
    // SAFETY: handles are checked before they are used.
    unsafe {
        run(comm, c"MPI_Win_create_dynamic", || {
            open(comm, hints, place, &wanted, |d, hints, on, word| {
                (d.win_create_dynamic)(hints, on, word)
            })
        })
    }
}

/// `MPI_Win_allocate`: of memory of this library's, which stays where it is in every launch.
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
    // SAFETY: handles are checked before they are used.
    unsafe {
        run(comm, c"MPI_Win_allocate", || {
            let (comm, known) = communicator::usable(comm)?;
            word_of(hints)?;
            if place.is_null() {
                return Err(class::WIN);
            }
            let raw = |d: &'static Dispatch, word| {
                let hints = abi::word(HandleKind::Info, hints);
                (d.win_allocate)(size, unit, hints, (*comm).lower, base, word)
            };
            let Some(members) = carried(known).filter(|_| size >= 0 && !base.is_null()) else {
                place.set(make_raw(comm, raw)?);
                return Ok(());
            };
            let pairs = info::pairs_of(hints)?;
            let block = memory::take(size as usize);
            if block.is_null() {
                return Err(class::NO_MEM);
            }
            let wanted = Wanted {
                flavor: Flavor::Allocate,
                base: block.expose_provenance(),
                size,
                unit,
            };
            let Ok(window) = make(comm, known, members, pairs, &wanted) else {
                // The real MPI has a way of its own where processes share memory; where there is one process no other.
                memory::give_back(block, size as usize);
                place.set(make_raw(comm, raw)?);
                return Ok(());
            };
            place.set(window);
            base.cast::<*mut u8>().write(block);
            Ok(())
        })
    }
}

/// `MPI_Win_free`. All members have to give the window up before the next still point: the clock of the set of members sees to that.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_free(place: PlaceOf<WinHandle>) -> c_int {
    // SAFETY: handles are checked before they are used.
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
                    hindrances::gone(hindrances::Reason::Window);
                }
            }
            place.set(abi::predefined::null_handle(HandleKind::Window));
            // What still holds the object must not reach the lower half by it.
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
