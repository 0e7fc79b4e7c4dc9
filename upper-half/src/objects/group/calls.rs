//! The functions on groups.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::algebra::{self, Comparison};
use super::{adopt, create, members, of_session, session, word};
use crate::ground::abi::{self, GroupHandle, PlaceOf};
use crate::ground::object::{Group, Object};
use crate::ground::{crossing, handle};
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, check, class, give, live, slice};

/// A group that a function may compute with (the empty one included).
///
/// # Safety
/// `group` must be null or a handle.
unsafe fn usable(group: Group) -> MpiResult<*mut Object> {
    // SAFETY: `group` is null or a handle, by the caller's promise.
    unsafe { live(group, HandleKind::Group) }
}

/// Picks members out of a group by a list.
type Choice<T> = fn(&[i32], &[T]) -> Result<Vec<i32>, i32>;
type LowerBinary = unsafe extern "C" fn(Word, Word, *mut Word) -> i32;

/// An operation on two groups: here, or below if one of them is foreign.
///
/// # Safety
/// As the MPI function of that name.
unsafe fn binary(
    one: Group,
    two: Group,
    place: PlaceOf<GroupHandle>,
    name: &'static CStr,
    here: fn(&[i32], &[i32]) -> Vec<i32>,
    below: fn(&'static Dispatch) -> LowerBinary,
) -> c_int {
    // SAFETY: `usable` looks at both groups before their members are read; `give` refuses a null place.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            let (one, two) = (usable(one)?, usable(two)?);
            if let (Some(first), Some(second)) = (members(one), members(two)) {
                let from = [session(one), session(two)].into_iter().max().unwrap_or(0);
                return give(
                    place,
                    of_session(create(Arc::from(here(&first, &second))), from),
                );
            }
            let (one, two, mut new) = (word(one)?, word(two)?, 0);
            check(crossing::cross(|d| below(d)(one, two, &raw mut new)))?;
            give(place, adopt(new)?)
        })
    }
}

/// `MPI_Group_union`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_union(one: Group, two: Group, place: PlaceOf<GroupHandle>) -> c_int {
    // SAFETY: `binary` looks at both groups and at the place.
    unsafe {
        binary(one, two, place, c"MPI_Group_union", algebra::union, |d| {
            d.group_union
        })
    }
}

/// `MPI_Group_intersection`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_intersection(one: Group, two: Group, place: PlaceOf<GroupHandle>) -> c_int {
    let name = c"MPI_Group_intersection";
    // SAFETY: `binary` looks at both groups and refuses a null place.
    unsafe {
        binary(one, two, place, name, algebra::intersection, |d| {
            d.group_intersection
        })
    }
}

/// `MPI_Group_difference`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_difference(one: Group, two: Group, place: PlaceOf<GroupHandle>) -> c_int {
    let name = c"MPI_Group_difference";
    // SAFETY: `binary` looks at both groups before their members are read, and at the place.
    unsafe {
        binary(one, two, place, name, algebra::difference, |d| {
            d.group_difference
        })
    }
}

/// A choice of a group's members by a list of ranks or ranges.
///
/// # Safety
/// As the MPI function of that name; `list` has `count` elements.
unsafe fn choose<T>(
    group: Group,
    count: c_int,
    list: *const T,
    place: PlaceOf<GroupHandle>,
    name: &'static CStr,
    here: Choice<T>,
    below: impl FnOnce(&'static Dispatch, Word, *mut Word) -> i32,
) -> c_int {
    // SAFETY: `usable` looks at the group; `list` has `count` elements, by the caller's promise, and `slice` refuses null.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            let group = usable(group)?;
            if count < 0 {
                return Err(class::ARG);
            }
            if let Some(members) = members(group) {
                let chosen = here(&members, slice(list, count)?)?;
                return give(place, of_session(create(Arc::from(chosen)), session(group)));
            }
            let (group, mut new) = (word(group)?, 0);
            check(crossing::cross(|d| below(d, group, &raw mut new)))?;
            give(place, adopt(new)?)
        })
    }
}

/// `MPI_Group_incl`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_incl(
    group: Group,
    count: c_int,
    ranks: *const c_int,
    place: PlaceOf<GroupHandle>,
) -> c_int {
    // SAFETY: MPI demands that `ranks` has `count` elements; `choose` looks at the group and the place.
    unsafe {
        choose(
            group,
            count,
            ranks,
            place,
            c"MPI_Group_incl",
            algebra::incl,
            |d, word, new| (d.group_incl)(word, count, ranks, new),
        )
    }
}

/// `MPI_Group_excl`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_excl(
    group: Group,
    count: c_int,
    ranks: *const c_int,
    place: PlaceOf<GroupHandle>,
) -> c_int {
    // SAFETY: MPI demands that `ranks` has `count` elements, which are only read; `choose` looks at the group.
    unsafe {
        choose(
            group,
            count,
            ranks,
            place,
            c"MPI_Group_excl",
            algebra::excl,
            |d, word, new| (d.group_excl)(word, count, ranks, new),
        )
    }
}

/// `MPI_Group_range_incl`: `ranges` is an array of `count` triplets.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_range_incl(
    group: Group,
    count: c_int,
    ranges: *const c_int,
    place: PlaceOf<GroupHandle>,
) -> c_int {
    let (name, list) = (c"MPI_Group_range_incl", ranges.cast::<[i32; 3]>());
    // SAFETY: MPI demands `count` triplets of ints, so `list` has as many elements; `choose` looks at the group and the place.
    unsafe {
        choose(
            group,
            count,
            list,
            place,
            name,
            algebra::range_incl,
            |d, word, new| (d.group_range_incl)(word, count, ranges, new),
        )
    }
}

/// `MPI_Group_range_excl`: as [`group_range_incl`].
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_range_excl(
    group: Group,
    count: c_int,
    ranges: *const c_int,
    place: PlaceOf<GroupHandle>,
) -> c_int {
    let (name, list) = (c"MPI_Group_range_excl", ranges.cast::<[i32; 3]>());
    // SAFETY: MPI demands `count` triplets of ints, which lie as arrays of three do; `choose` looks at the group and the place.
    unsafe {
        choose(
            group,
            count,
            list,
            place,
            name,
            algebra::range_excl,
            |d, word, new| (d.group_range_excl)(word, count, ranges, new),
        )
    }
}

/// `MPI_Group_size`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_size(group: Group, place: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at the group, and `give` refuses a null place.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Group_size", || {
            give(place, (*usable(group)?).size)
        })
    }
}

/// `MPI_Group_rank`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_rank(group: Group, place: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at the group before its rank is read, and `give` refuses a null place.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Group_rank", || {
            give(place, (*usable(group)?).rank)
        })
    }
}

/// `MPI_Group_translate_ranks`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_translate_ranks(
    one: Group,
    count: c_int,
    ranks: *const c_int,
    two: Group,
    place: *mut c_int,
) -> c_int {
    // SAFETY: `usable` looks at both groups; MPI demands that both arrays have `count` elements, and a null one is refused.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Group_translate_ranks", || {
            let (one, two) = (usable(one)?, usable(two)?);
            if count < 0 {
                return Err(class::ARG);
            }
            let ranks: Vec<i32> = slice(ranks, count)?
                .iter()
                .map(|rank| abi::rank_to_neutral(*rank))
                .collect();
            if !ranks.is_empty() && place.is_null() {
                return Err(class::ARG);
            }
            let translated = if let (Some(one), Some(two)) = (members(one), members(two)) {
                algebra::translate(&one, &ranks, &two)?
            } else {
                let mut translated = vec![0; ranks.len()];
                let (one, two) = (word(one)?, word(two)?);
                let (from, to) = (ranks.as_ptr(), translated.as_mut_ptr());
                check(crossing::cross(|d| {
                    (d.group_translate_ranks)(one, count, from, two, to)
                }))?;
                translated
            };
            for (at, rank) in translated.iter().enumerate() {
                place.add(at).write(abi::rank_from_neutral(*rank));
            }
            Ok(())
        })
    }
}

/// `MPI_Group_compare`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_compare(one: Group, two: Group, place: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at both groups; the lower half writes to a local variable, and `give` refuses a null place.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Group_compare", || {
            let (one, two) = (usable(one)?, usable(two)?);
            let result = if let (Some(one), Some(two)) = (members(one), members(two)) {
                match algebra::compare(&one, &two) {
                    Comparison::Ident => 201,
                    Comparison::Similar => 203,
                    Comparison::Unequal => 204,
                }
            } else {
                let (one, two, mut result) = (word(one)?, word(two)?, 0);
                check(crossing::cross(|d| {
                    (d.group_compare)(one, two, &raw mut result)
                }))?;
                result
            };
            give(place, abi::comparison_from_neutral(result))
        })
    }
}

/// `MPI_Group_free`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn group_free(place: PlaceOf<GroupHandle>) -> c_int {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there, and `usable` looks at it; its holder of the group ends here.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Group_free", || {
            if place.is_null() {
                return Err(class::GROUP);
            }
            let group = usable(place.get())?;
            place.set(abi::predefined(HandleKind::Group, 264));
            if !(*group).predefined() {
                handle::release(group);
            }
            Ok(())
        })
    }
}
