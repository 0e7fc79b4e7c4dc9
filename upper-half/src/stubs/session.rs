//! Sessions (MPI 5.0, section 11.3): another way into MPI, and out. Like everything else, the objects that are made by sessions live as long as the job. So
//! only these objects have to be carried.
//!
//! The first call starts the real MPI, be it for a session or `MPI_Init`. The real MPI knows the world alone: a group of a session's process set is one of the
//! world's, and a communicator that is made of groups is made of the world. It ends with the last of them, or with the process if the application has never
//! asked for the world: there may be another session then, but no other MPI.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use stillpoint_wrappers::gate::HandleKind;

use crate::communicators;
use crate::ground::abi::{
    self, CommHandle, GroupHandle, Handle, InfoHandle, PlaceOf, SessionHandle,
};
use crate::ground::object::{Errhandler, Group, Info, Object};
use crate::ground::{crossing, handle};
use crate::objects::communicator::set_session;
use crate::objects::errhandler::{self, Held, run, set_handler};
use crate::objects::outcome::{MpiResult, class, live};
use crate::objects::{group, info};
use crate::operations::buffered::{self, BufferOwner};
use crate::stubs::{init, mpi4_missing_in_openmpi};

/// Process sets: the world, and the process alone.
const SETS: [&CStr; 2] = [c"mpi://WORLD", c"mpi://SELF"];
/// Standard-ABI values of the thread levels, by their names in infos.
const LEVELS: [(&CStr, i32); 4] = [
    (c"MPI_THREAD_SINGLE", 0),
    (c"MPI_THREAD_FUNNELED", 1024),
    (c"MPI_THREAD_SERIALIZED", 2048),
    (c"MPI_THREAD_MULTIPLE", 4096),
];
/// The largest tag that every library has.
const TAGS: u32 = 32767;

/// Sessions that are open.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// Whether a session is open.
pub fn are_open() -> bool {
    OPEN.load(Ordering::Relaxed) > 0
}

/// The value that an info has for a key.
///
/// # Safety
/// Not inside MPI; `info` must be null or lead to an object.
unsafe fn value(info: Info, key: &CStr) -> Option<[u8; 64]> {
    let (mut text, mut length, mut flag) = ([0u8; 64], 64, 0);
    // SAFETY: the info is valid and not the null one before it is asked; the text has room for 64 bytes, and all places are local.
    unsafe {
        if !handle::valid(info, HandleKind::Info) || abi::predefined::is_null_handle(info) {
            return None;
        }
        let place = text.as_mut_ptr().cast();
        let code = info::info_get_string(info, key.as_ptr(), &mut length, place, &mut flag);
        (code == 0 && flag != 0).then_some(text)
    }
}

/// `MPI_Session_init`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn session_init(
    info: Info,
    handler: Errhandler,
    place: PlaceOf<SessionHandle>,
) -> c_int {
    // SAFETY: `valid` looks at the info and the error handler; the place is not null when it is written, and MPI demands that it is writable.
    unsafe {
        let asked = value(info, c"thread_level");
        let asked = asked.and_then(|text| {
            let text = CStr::from_bytes_until_nul(&text).ok()?.to_owned();
            LEVELS.iter().find(|level| level.0 == text.as_c_str())
        });
        let _inside = crossing::enter();
        if let Err(code) = init::begin_session(asked.map_or(0, |level| level.1)) {
            return code;
        }
        if place.is_null() {
            return errhandler::raise(ptr::null_mut(), class::ARG, c"MPI_Session_init");
        }
        let session = handle::create(HandleKind::Session, 0, ptr::null_mut());
        if handle::valid(handler, HandleKind::Errhandler)
            && !abi::predefined::is_null_handle(handler)
        {
            set_handler(session, handler);
        }
        OPEN.fetch_add(1, Ordering::Relaxed);
        place.set(session);
    }
    0
}

/// `MPI_Session_finalize`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn session_finalize(place: PlaceOf<SessionHandle>) -> c_int {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there; `ends` and `live` look at it before the session's slot is given back.
    unsafe {
        if !place.is_null() {
            buffered::ends(BufferOwner::Session(place.get()));
        }
        let code = run(ptr::null_mut(), c"MPI_Session_finalize", || {
            if place.is_null() {
                return Err(class::ARG);
            }
            let session = live(place.get(), HandleKind::Session)?;
            errhandler::forget(session);
            place.set(abi::predefined::null_handle(HandleKind::Session));
            handle::recycle(session);
            OPEN.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        });
        if code == 0 && !are_open() {
            let _inside = crossing::enter();
            return init::last_session_is_over();
        }
        code
    }
}

/// The process set of a name.
///
/// # Safety
/// `name` must be null or a C string.
unsafe fn set_of(name: *const c_char) -> MpiResult<usize> {
    if name.is_null() {
        return Err(class::ARG);
    }
    // SAFETY: the name is not null here, so it is a C string, by the caller's promise, and is only read.
    let name = unsafe { CStr::from_ptr(name) };
    let same = |set: &&CStr| set.to_bytes().eq_ignore_ascii_case(name.to_bytes());
    SETS.iter().position(same).ok_or(class::ARG)
}

/// The communicator of a process set.
fn communicator(set: usize) -> *mut Object {
    match set {
        0 => init::world(),
        _ => init::self_communicator(),
    }
}

/// `MPI_Group_from_session_pset`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_from_session_pset(
    session: *mut Object,
    name: *const c_char,
    place: PlaceOf<GroupHandle>,
) -> c_int {
    let mut set = 0;
    // SAFETY: `live` looks at the session; MPI demands that the name is a C string; `comm_group` has put a new group there if its code is 0.
    unsafe {
        let code = run(session, c"MPI_Group_from_session_pset", || {
            live(session, HandleKind::Session)?;
            set = set_of(name)?;
            Ok(())
        });
        if code != 0 {
            return code;
        }
        let code = communicators::comm_group(communicator(set), place);
        if code == 0 {
            group::of_session(place.get(), (*session).id);
        }
        code
    }
}

/// `MPI_Session_get_num_psets`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn session_get_num_psets(session: *mut Object, _info: Info, place: *mut c_int) -> c_int {
    // SAFETY: `live` looks at the session; a place that is not null is writable, as MPI demands.
    unsafe {
        run(session, c"MPI_Session_get_num_psets", || {
            live(session, HandleKind::Session)?;
            *place.as_mut().ok_or(class::ARG)? = SETS.len() as c_int;
            Ok(())
        })
    }
}

/// `MPI_Session_get_nth_pset`: as much of the name as there is room for, and the room that all of it takes.
///
/// # Safety
/// As the MPI function.
pub unsafe fn session_get_nth_pset(
    session: *mut Object,
    _info: Info,
    n: c_int,
    length: *mut c_int,
    text: *mut c_char,
) -> c_int {
    // SAFETY: `live` looks at the session; MPI demands that `text` has `*length` characters, and no more are written, the nul included.
    unsafe {
        run(session, c"MPI_Session_get_nth_pset", || {
            live(session, HandleKind::Session)?;
            let set = usize::try_from(n).ok().and_then(|n| SETS.get(n));
            let name = set.ok_or(class::ARG)?.to_bytes();
            let length = length.as_mut().ok_or(class::ARG)?;
            let room = usize::try_from(*length).unwrap_or(0);
            if room > 0 && !text.is_null() {
                let most = name.len().min(room - 1);
                text.copy_from(name.as_ptr().cast(), most);
                *text.add(most) = 0;
            }
            *length = name.len() as c_int + 1;
            Ok(())
        })
    }
}

/// Makes an info with one entry.
///
/// # Safety
/// Not inside MPI; `place` must be null or writable.
unsafe fn told(place: PlaceOf<InfoHandle>, key: &CStr, value: &CStr) -> c_int {
    // SAFETY: `info_create` refuses a null place, so it holds a new info when `info_set` runs; key and value are C strings.
    unsafe {
        match info::info_create(place) {
            0 => info::info_set(place.get(), key.as_ptr(), value.as_ptr()),
            code => code,
        }
    }
}

/// `MPI_Session_get_info`: the thread level.
///
/// # Safety
/// As the MPI function.
pub unsafe fn session_get_info(session: *mut Object, place: PlaceOf<InfoHandle>) -> c_int {
    let mut level = 0;
    // SAFETY: `live` looks at the session; `level` is a local variable, and `told` refuses a null place.
    unsafe {
        let code = run(session, c"MPI_Session_get_info", || {
            live(session, HandleKind::Session)?;
            Ok(())
        });
        if code != 0 {
            return code;
        }
        init::query_thread(&mut level);
        let level = abi::threads_to_neutral(level);
        let name = LEVELS
            .iter()
            .find(|it| it.1 == level)
            .map_or(c"", |it| it.0);
        told(place, c"thread_level", name)
    }
}

/// `MPI_Session_get_pset_info`: the number of processes.
///
/// # Safety
/// As the MPI function.
pub unsafe fn session_get_pset_info(
    session: *mut Object,
    name: *const c_char,
    place: PlaceOf<InfoHandle>,
) -> c_int {
    let mut set = 0;
    // SAFETY: `live` looks at the session; MPI demands that the name is a C string; the communicator of a process set is predefined.
    unsafe {
        let code = run(session, c"MPI_Session_get_pset_info", || {
            live(session, HandleKind::Session)?;
            set = set_of(name)?;
            Ok(())
        });
        if code != 0 {
            return code;
        }
        let mut text = std::format!("{}", (*communicator(set)).size).into_bytes();
        text.push(0);
        let size = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        told(place, c"mpi_size", size)
    }
}

/// A tag for communicators that a text tells apart.
///
/// # Safety
/// `text` must be null or a C string.
unsafe fn tag_of(text: *const c_char) -> c_int {
    if text.is_null() {
        return 0;
    }
    // SAFETY: the text is not null here, so it is a C string, by the caller's promise, and is only read.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    let sum = xxhash_rust::xxh3::xxh3_64(bytes);
    (sum % u64::from(TAGS)) as c_int
}

/// Gives a new communicator its hints and error handler, and the session of its group.
///
/// # Safety
/// Not inside MPI; `place` must hold a communicator that was made of those members.
unsafe fn furnish(place: PlaceOf<CommHandle>, members: Group, info: Info, handler: Errhandler) {
    // SAFETY: `place` holds a handle, by the caller's promise; it, the error handler and the info are looked at before they are used.
    unsafe {
        let made = place.get();
        if !handle::valid(made, HandleKind::Communicator) || abi::predefined::is_null_handle(made) {
            return;
        }
        if handle::valid(handler, HandleKind::Errhandler)
            && !abi::predefined::is_null_handle(handler)
        {
            let _inside = crossing::enter();
            set_handler(made, handler);
        }
        set_session(made, group::session(members));
        mpi4_missing_in_openmpi::hint(made, info);
    }
}

/// Makes a communicator of groups. An error goes to the handler in the arguments, since no argument is an object that could have one.
///
/// # Safety
/// Not inside MPI, on a thread of the application; handles are checked before they are used.
unsafe fn made_of_groups(
    handler: Errhandler,
    place: PlaceOf<CommHandle>,
    name: &'static CStr,
    make: impl FnOnce() -> MpiResult<*mut Object>,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the caller is on a thread of the application and not inside; `place` is not null when it is written, and `live` looks at the error handler.
    unsafe {
        if !init::active() {
            return errhandler::outside(name);
        }
        let made = match place.is_null() {
            true => Err(class::ARG),
            false => make(),
        };
        match made {
            Ok(made) => {
                place.set(made);
                0
            }
            Err(error) => {
                let error = abi::error_from_neutral(error);
                match live(handler, HandleKind::Errhandler) {
                    Ok(handler) => {
                        let handler = Held::new(handler);
                        errhandler::raise_by(&handler, init::world(), error, name)
                    }
                    Err(_) => errhandler::raise_own(init::world(), error, name),
                }
            }
        }
    }
}

/// `MPI_Comm_create_from_group`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_create_from_group(
    members: Group,
    text: *const c_char,
    info: Info,
    handler: Errhandler,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: arguments are checked before they are used.
    unsafe {
        let code = made_of_groups(handler, place, c"MPI_Comm_create_from_group", || {
            communicators::among(init::world(), members, tag_of(text))
        });
        if code == 0 {
            furnish(place, members, info, handler);
        }
        code
    }
}

/// The world rank of a group's member.
///
/// # Safety
/// `of` must be null or a handle.
unsafe fn member(of: Group, rank: c_int) -> MpiResult<c_int> {
    // SAFETY: `of` is null or a handle, by the caller's promise, and `live` looks at it before its members are read.
    let members = unsafe { group::members(live(of, HandleKind::Group)?) };
    let place = usize::try_from(rank).map_err(|_| class::RANK)?;
    let members = members.ok_or(class::GROUP)?;
    members.get(place).copied().ok_or(class::RANK)
}

/// `MPI_Intercomm_create_from_groups`: each side makes a communicator of its own first. Only the local leader looks at the other group and its leader.
///
/// # Safety
/// As the MPI function.
#[allow(clippy::too_many_arguments)] // MPI's.
pub unsafe fn intercomm_create_from_groups(
    local: Group,
    local_leader: c_int,
    remote: Group,
    remote_leader: c_int,
    text: *const c_char,
    info: Info,
    handler: Errhandler,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: arguments are checked before they are used; the communicator between is ours.
    unsafe {
        let name = c"MPI_Intercomm_create_from_groups";
        let code = made_of_groups(handler, place, name, || {
            let (world, tag) = (init::world(), tag_of(text));
            let side = communicators::among(world, local, tag)?;
            if abi::predefined::is_null_handle(side) {
                return Err(class::GROUP);
            }
            let leader = match (*side).rank == local_leader {
                true => member(remote, remote_leader),
                false => Ok(abi::PROC_NULL),
            };
            let made =
                leader.and_then(|it| communicators::between(side, local_leader, world, it, tag));
            let mut side = CommHandle::of(side);
            communicators::comm_free(PlaceOf::at(&mut side));
            made
        });
        if code == 0 {
            furnish(place, local, info, handler);
        }
        code
    }
}
