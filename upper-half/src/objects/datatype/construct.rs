//! Making the lower half's datatype that a recipe describes: the same way at the first time and after
//! every restart.

use stillpoint_wrappers::neutral::Word;

use super::recipe::{Combiner, Recipe, length};
use crate::ground::crossing;
use crate::objects::outcome::{MpiResult, check};

/// Makes the lower half's datatype.
///
/// # Safety
/// Inside MPI; the recipe's datatypes must be live and have their words.
pub unsafe fn construct(recipe: &Recipe) -> MpiResult<Word> {
    let mut new: Word = 0;
    let place = &raw mut new;
    let i = |at| recipe.integer(at);
    // SAFETY: live datatypes, null where the recipe has none.
    let words: Vec<Word> = recipe
        .datatypes
        .iter()
        .map(|part| unsafe { (**part).lower })
        .collect();
    let part = words.first().copied().unwrap_or(0);
    let count = i(0);
    let n = length(count);
    let a = recipe.addresses.as_ptr();
    // SAFETY: inside; arrays have the lengths that their constructor takes, by the standard's rules for
    // contents, which the recipe follows.
    let error = unsafe {
        match recipe.combiner {
            Combiner::Dup => crossing::cross(|d| (d.type_dup)(part, place)),
            Combiner::Contiguous => crossing::cross(|d| (d.type_contiguous)(count, part, place)),
            Combiner::Vector => {
                let (block, stride) = (i(1), i(2));
                crossing::cross(|d| (d.type_vector)(count, block, stride, part, place))
            }
            Combiner::Hvector => {
                let (block, stride) = (i(1), recipe.address(0));
                crossing::cross(|d| (d.type_create_hvector)(count, block, stride, part, place))
            }
            Combiner::Indexed => {
                let (blocks, at) = (recipe.array(1, n), recipe.array(1 + n, n));
                crossing::cross(|d| (d.type_indexed)(count, blocks, at, part, place))
            }
            Combiner::Hindexed => {
                let blocks = recipe.array(1, n);
                crossing::cross(|d| (d.type_create_hindexed)(count, blocks, a, part, place))
            }
            Combiner::IndexedBlock => {
                let (block, at) = (i(1), recipe.array(2, n));
                crossing::cross(|d| (d.type_create_indexed_block)(count, block, at, part, place))
            }
            Combiner::HindexedBlock => {
                let block = i(1);
                crossing::cross(|d| (d.type_create_hindexed_block)(count, block, a, part, place))
            }
            Combiner::Struct => {
                let (blocks, parts) = (recipe.array(1, n), words.as_ptr());
                crossing::cross(|d| (d.type_create_struct)(count, blocks, a, parts, place))
            }
            Combiner::Subarray => {
                let (sizes, subsizes) = (recipe.array(1, n), recipe.array(1 + n, n));
                let (starts, order) = (recipe.array(1 + 2 * n, n), i(1 + 3 * n));
                crossing::cross(|d| {
                    (d.type_create_subarray)(count, sizes, subsizes, starts, order, part, place)
                })
            }
            Combiner::Darray => darray(recipe, part, place),
            Combiner::F90Real => {
                let (p, r) = (i(0), i(1));
                crossing::cross(|d| (d.type_create_f90_real)(p, r, place))
            }
            Combiner::F90Complex => {
                let (p, r) = (i(0), i(1));
                crossing::cross(|d| (d.type_create_f90_complex)(p, r, place))
            }
            Combiner::F90Integer => {
                let r = i(0);
                crossing::cross(|d| (d.type_create_f90_integer)(r, place))
            }
            Combiner::Resized => {
                let (lb, extent) = (recipe.address(0), recipe.address(1));
                crossing::cross(|d| (d.type_create_resized)(part, lb, extent, place))
            }
        }
    };
    check(error)?;
    Ok(new)
}

/// `MPI_Type_create_darray`. Returns the error.
///
/// # Safety
/// As [`construct`].
unsafe fn darray(recipe: &Recipe, part: Word, place: *mut Word) -> i32 {
    let i = |at| recipe.integer(at);
    let (size, rank, dims) = (i(0), i(1), i(2));
    let n = length(dims);
    let array = |which: usize| recipe.array(3 + which * n, n);
    let (sizes, kinds, arguments, grid) = (array(0), array(1), array(2), array(3));
    let order = i(3 + 4 * n);
    // SAFETY: the arrays are the recipe's, with `dims` elements each; `part` is a word of the lower half's and `place` writable, by the caller's promise.
    unsafe {
        crossing::cross(|d| {
            (d.type_create_darray)(
                size, rank, dims, sizes, kinds, arguments, grid, order, part, place,
            )
        })
    }
}
