//! Layouts of datatypes with numbers that an int does not hold, made of parts without such numbers: blocks of many elements (`typed`) at addresses, which are
//! equally wide in every ABI. Bounds are computed as MPI defines them, and set. The datatype reports the application's own arguments as its contents
//! (`recorded_contents`).

use core::ffi::{CStr, c_int};

use stillpoint_wrappers::gate::HandleKind;

use bounds::{Bounds, Run, around};

use super::typed::Typed;
use super::{int, too_large};
use crate::ground::abi::{self, Aint, Count, DatatypeHandle, Handle, ListOf, PlaceOf};
use crate::ground::crossing::{self, cross};
use crate::objects::datatype::recipe::Combiner;
use crate::objects::errhandler::raise;
use crate::stubs::by_hand;
use stillpoint_wrappers::standard;

mod bounds;
mod recorded_contents;
mod structure;

pub use structure::type_create_struct;

/// That many elements of a datatype side by side, that many bytes from the beginning.
struct Block {
    run: Run,
    of: DatatypeHandle,
}

fn null() -> DatatypeHandle {
    DatatypeHandle::of(abi::predefined::null_handle(HandleKind::Datatype))
}

/// The library's bounds of a datatype.
///
/// # Safety
/// In a stub, not inside yet; a handle.
unsafe fn bounds_of(of: DatatypeHandle, name: &'static CStr) -> Result<Bounds, c_int> {
    let _inside = crossing::enter();
    let (mut low, mut extent) = (0, 0);
    // SAFETY: `of` is a handle, by the caller's promise, whose word the real MPI checks; the bounds go into local variables.
    unsafe {
        let word = abi::word(HandleKind::Datatype, Handle::object(of));
        match cross(|lower| (lower.type_get_extent)(word, &mut low, &mut extent)) {
            0 => Ok(Bounds {
                low: low as i64,
                extent: extent as i64,
            }),
            code => Err(raise(core::ptr::null_mut(), code, name)),
        }
    }
}

/// The end of a constructor: it was made, it has failed with an error that was told, or a number is too large even here.
type Made = Result<(), Option<c_int>>;

/// The return value of a function of MPI's, as the beginning of the next step.
fn done(code: c_int) -> Made {
    match code {
        0 => Ok(()),
        code => Err(Some(code)),
    }
}

/// # Safety
/// In a stub, not inside yet.
unsafe fn end(made: Made, name: &'static CStr) -> c_int {
    match made {
        Ok(()) => 0,
        Err(Some(code)) => code,
        // SAFETY: the caller is in a stub and not inside yet, as `too_large` demands.
        Err(None) => unsafe { too_large(name) },
    }
}

/// Makes a datatype of blocks.
///
/// # Safety
/// In a stub, not inside yet; handles as MPI asks for them.
unsafe fn of_blocks(mut blocks: Vec<Block>, place: PlaceOf<DatatypeHandle>) -> Made {
    if blocks.iter().any(|block| block.run.count < 0) {
        return Err(None);
    }
    blocks.retain(|block| block.run.count > 0);
    let all = around(blocks.iter().map(|block| block.run)).ok_or(None)?;
    // SAFETY: the three lists have `count` elements each and outlive the call; the datatypes are handles, which `type_create_struct` checks; `made` is a local
    // handle.
    unsafe {
        let each = blocks
            .iter()
            .map(|block| Typed::new(block.run.count, block.of))
            .collect::<Option<Vec<Typed>>>();
        let each = each.ok_or(None)?;
        let lengths: Vec<c_int> = each.iter().map(Typed::count).collect();
        let places: Vec<Aint> = blocks.iter().map(|block| block.run.at as Aint).collect();
        let types: Vec<DatatypeHandle> = each.iter().map(Typed::datatype).collect();
        let count = int(blocks.len() as Count).ok_or(None)?;
        let mut made = null();
        let types = ListOf::at(types.as_ptr());
        let at = PlaceOf::at(&mut made);
        done(by_hand::type_create_struct(
            count,
            lengths.as_ptr(),
            places.as_ptr(),
            types,
            at,
        ))?;
        resized(made, all, place)
    }
}

/// Gives a datatype of ours these bounds, and lets go of it.
///
/// # Safety
/// As [`of_blocks`]; `made` must be a datatype of ours, used no more.
unsafe fn resized(mut made: DatatypeHandle, to: Bounds, place: PlaceOf<DatatypeHandle>) -> Made {
    // SAFETY: `made` is a live datatype of ours, which nothing else frees; `place` is the application's, as the caller promises.
    unsafe {
        let (low, extent) = (to.low as Aint, to.extent as Aint);
        let code = by_hand::type_create_resized(Handle::object(made), low, extent, place);
        by_hand::type_free(PlaceOf::at(&mut made));
        done(code)
    }
}

/// That many blocks at equal distances, in bytes.
///
/// # Safety
/// As [`of_blocks`].
unsafe fn strided(
    count: Count,
    length: Count,
    stride: i64,
    (of, bounds): (DatatypeHandle, Bounds),
    place: PlaceOf<DatatypeHandle>,
) -> Made {
    // SAFETY: the datatype and the place are as MPI asks for them, by the caller's promise; intermediate datatypes are local, and each is freed once.
    unsafe {
        let block = Typed::new(length, of).ok_or(None)?;
        let object = Handle::object(block.datatype());
        if let Some(count) = int(count) {
            let stride = stride as Aint;
            let code = by_hand::type_create_hvector(count, block.count(), stride, object, place);
            return done(code);
        }
        // Rows that are as wide as the distance lie side by side.
        let one = Run {
            at: 0,
            count: length,
            bounds,
        };
        if stride < 0 || length == 0 {
            return Err(None);
        }
        let (low, high) = one.ends().ok_or(None)?;
        let last = stride.checked_mul(count - 1).ok_or(None)?;
        let extent = (high - low).checked_add(last).ok_or(None)?;
        let (mut plain, mut row) = (null(), null());
        done(by_hand::type_contiguous(
            block.count(),
            object,
            PlaceOf::at(&mut plain),
        ))?;
        let wide = Bounds {
            low,
            extent: stride,
        };
        resized(plain, wide, PlaceOf::at(&mut row))?;
        let all = Typed::new(count, row);
        by_hand::type_free(PlaceOf::at(&mut row));
        let all = all.ok_or(None)?;
        let (low, extent) = (low as Aint, extent as Aint);
        let of = Handle::object(all.datatype());
        done(by_hand::type_create_resized(of, low, extent, place))
    }
}

/// A list of that many numbers.
///
/// # Safety
/// `list` must have that many elements.
unsafe fn list<T: Copy>(list: *const T, count: Count) -> Result<Vec<T>, Option<c_int>> {
    let count = int(count).ok_or(None)?;
    let count = usize::try_from(count).map_err(|_| None)?;
    // SAFETY: every index is below `count`, and the list has so many elements, by the caller's promise.
    Ok((0..count).map(|at| unsafe { *list.add(at) }).collect())
}

/// Blocks of one datatype, at distances in bytes.
///
/// # Safety
/// As [`of_blocks`].
unsafe fn indexed(
    lengths: impl Iterator<Item = Count>,
    places: impl Iterator<Item = Option<i64>>,
    (of, bounds): (DatatypeHandle, Bounds),
    place: PlaceOf<DatatypeHandle>,
) -> Made {
    let blocks = lengths.zip(places).map(|(count, at)| {
        let at = at?;
        let run = Run { at, count, bounds };
        Some(Block { run, of })
    });
    let blocks: Option<Vec<Block>> = blocks.collect();
    // SAFETY: the blocks' datatype and the place are as MPI asks for them, by the caller's promise.
    unsafe { of_blocks(blocks.ok_or(None)?, place) }
}

macro_rules! layouts {
    ($($function:ident $name:literal ($($parameter:ident: $type:ty),* $(,)?) $combiner:ident [$($integer:expr),*] [$($number:expr),*] [$($list:ident of $length:expr),*]
        |$bounds:ident, $place:ident| $body:block)*) => {$(
        #[doc = concat!("`", $name, "_c`, with a number that an int does not hold.")]
        ///
        /// # Safety
        /// As the MPI function; in a stub, not inside yet.
        #[cold]
        pub unsafe fn $function($($parameter: $type,)* oldtype: DatatypeHandle, newtype: *mut DatatypeHandle) -> c_int {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!($name, "_c\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            // SAFETY: MPI demands lists as long as it says, a datatype's handle and a writable place; `bounds_of` has the real MPI check the datatype.
            unsafe {
                let $bounds = match bounds_of(oldtype, NAME) {
                    Ok(bounds) => (oldtype, bounds),
                    Err(code) => return code,
                };
                let $place = PlaceOf::at(newtype);
                let make = || -> Made { $body };
                let code = end(make(), NAME);
                if code == 0 {
                    let lists = [$(($list.cast::<Count>(), $length)),*];
                    recorded_contents::tell(newtype, Combiner::$combiner, &[$($integer),*], &[$($number),*], &lists, &[oldtype]);
                }
                code
            }
        }
    )*};
}

layouts! {
    type_contiguous "MPI_Type_contiguous" (count: Count) Contiguous [] [count] [] |old, place| {
        let all = Typed::new(count, old.0).ok_or(None)?;
        done(by_hand::type_contiguous(1, Handle::object(all.datatype()), place))
    }
    type_vector "MPI_Type_vector" (count: Count, blocklength: Count, stride: Count)
        Vector [] [count, blocklength, stride] [] |old, place| {
        let stride = stride.checked_mul(old.1.extent).ok_or(None)?;
        strided(count, blocklength, stride, old, place)
    }
    type_create_hvector "MPI_Type_create_hvector" (count: Count, blocklength: Count, stride: Aint)
        Hvector [] [count, blocklength, stride as Count] [] |old, place| {
        strided(count, blocklength, stride as i64, old, place)
    }
    type_indexed "MPI_Type_indexed"
        (count: Count, array_of_blocklengths: *const Count, array_of_displacements: *const Count)
        Indexed [] [count] [array_of_blocklengths of count, array_of_displacements of count] |old, place| {
        let places = list(array_of_displacements, count)?;
        let places = places.into_iter().map(|at| at.checked_mul(old.1.extent));
        indexed(list(array_of_blocklengths, count)?.into_iter(), places, old, place)
    }
    type_create_hindexed "MPI_Type_create_hindexed"
        (count: Count, array_of_blocklengths: *const Count, array_of_displacements: *const Aint)
        Hindexed [] [count] [array_of_blocklengths of count, array_of_displacements of count] |old, place| {
        let places = list(array_of_displacements, count)?;
        let places = places.into_iter().map(|at| Some(at as i64));
        indexed(list(array_of_blocklengths, count)?.into_iter(), places, old, place)
    }
    type_create_indexed_block "MPI_Type_create_indexed_block"
        (count: Count, blocklength: Count, array_of_displacements: *const Count)
        IndexedBlock [] [count, blocklength] [array_of_displacements of count] |old, place| {
        let places = list(array_of_displacements, count)?;
        let places = places.into_iter().map(|at| at.checked_mul(old.1.extent));
        indexed(core::iter::repeat(blocklength), places, old, place)
    }
    type_create_hindexed_block "MPI_Type_create_hindexed_block"
        (count: Count, blocklength: Count, array_of_displacements: *const Aint)
        HindexedBlock [] [count, blocklength] [array_of_displacements of count] |old, place| {
        let places = list(array_of_displacements, count)?;
        let places = places.into_iter().map(|at| Some(at as i64));
        indexed(core::iter::repeat(blocklength), places, old, place)
    }
    type_create_subarray "MPI_Type_create_subarray"
        (ndims: c_int, array_of_sizes: *const Count, array_of_subsizes: *const Count, array_of_starts: *const Count,
         order: c_int)
        Subarray [ndims, order] []
        [array_of_sizes of ndims.into(), array_of_subsizes of ndims.into(), array_of_starts of ndims.into()] |old, place| {
        let dimensions = Count::from(ndims);
        let mut each: Vec<(Count, Count, Count)> = list(array_of_sizes, dimensions)?
            .into_iter()
            .zip(list(array_of_subsizes, dimensions)?)
            .zip(list(array_of_starts, dimensions)?)
            .map(|((size, part), start)| (size, part, start))
            .collect();
        // The dimension that varies fastest comes first.
        if abi::order_to_neutral(order) == standard::ORDER_C {
            each.reverse();
        }
        let valid = |&(size, part, start): &(Count, Count, Count)| {
            part >= 1 && start >= 0 && part <= size && start <= size - part
        };
        if each.is_empty() || !each.iter().all(valid) {
            return Err(Some(raise(core::ptr::null_mut(), crate::objects::outcome::class::ARG, NAME)));
        }
        subarray(&each, old, place)
    }
}

/// A part of an array, from dimension to dimension: size, size of the part and the part's beginning.
///
/// # Safety
/// As [`of_blocks`].
unsafe fn subarray(
    each: &[(Count, Count, Count)],
    (of, bounds): (DatatypeHandle, Bounds),
    place: PlaceOf<DatatypeHandle>,
) -> Made {
    let (mut distance, mut from) = (bounds.extent, 0i64);
    let mut part: Option<DatatypeHandle> = None;
    // SAFETY: the datatype and the place are as MPI asks for them, by the caller's promise; `part` is always ours, and freed once a larger one exists.
    unsafe {
        for (size, count, start) in each {
            let mut made = null();
            let inner = part.unwrap_or(of);
            let bounds = match part {
                None => bounds,
                // It is one element, wherever its bounds are.
                Some(_) => Bounds {
                    low: 0,
                    extent: distance,
                },
            };
            let outcome = strided(*count, 1, distance, (inner, bounds), PlaceOf::at(&mut made));
            if let Some(mut before) = part.take() {
                by_hand::type_free(PlaceOf::at(&mut before));
            }
            outcome?;
            part = Some(made);
            let moved = start
                .checked_mul(distance)
                .and_then(|it| it.checked_add(from));
            let next = size.checked_mul(distance);
            let (Some(moved), Some(next)) = (moved, next) else {
                by_hand::type_free(PlaceOf::at(&mut made));
                return Err(None);
            };
            (from, distance) = (moved, next);
        }
        let mut part = part.unwrap_or(of);
        let (one, at, mut moved) = (1, from as Aint, null());
        let types = ListOf::at(&raw const part);
        let code = by_hand::type_create_struct(
            1,
            &raw const one,
            &raw const at,
            types,
            PlaceOf::at(&mut moved),
        );
        by_hand::type_free(PlaceOf::at(&mut part));
        done(code)?;
        let all = Bounds {
            low: 0,
            extent: distance,
        };
        resized(moved, all, place)
    }
}
