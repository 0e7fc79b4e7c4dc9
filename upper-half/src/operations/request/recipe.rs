//! A function that is kept in a request's own slot.
//!
//! Nonblocking collective operations are frequent, and their arguments suffice to begin one again: nine words at most, except for
//! those with arrays of handles. Small functions lie in the slot itself, others in memory of their own.

use core::mem::{MaybeUninit, needs_drop};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::neutral::Word;

/// Words that a function may have in the slot.
const WORDS: usize = 9;

type Room = [MaybeUninit<u64>; WORDS];

/// Makes the lower half's request anew: `(dispatch, request) -> error`.
pub struct Recipe {
    room: Room,
    run: unsafe fn(&Room, &'static Dispatch, *mut Word) -> i32,
    /// Drops the contents of the room; absent if there is nothing to do.
    end: Option<unsafe fn(&mut Room)>,
}

/// Whether a function of that type has room in the slot.
const fn fits<F>() -> bool {
    size_of::<F>() <= size_of::<Room>() && align_of::<F>() <= align_of::<Room>()
}

impl Recipe {
    /// Keeps a function.
    #[inline(always)]
    pub fn new<F>(function: F) -> Recipe
    where
        F: Fn(&'static Dispatch, *mut Word) -> i32 + 'static,
    {
        let mut room = [MaybeUninit::uninit(); WORDS];
        let place: *mut Room = &mut room;
        // SAFETY: the function, or the address of its box, is written to a place that is large enough.
        unsafe {
            if fits::<F>() {
                place.cast::<F>().write(function);
            } else {
                place.cast::<Box<F>>().write(Box::new(function));
            }
        }
        Recipe {
            room,
            run: if fits::<F>() {
                run::<F>
            } else {
                run_boxed::<F>
            },
            end: if !fits::<F>() {
                Some(end::<Box<F>>)
            } else if needs_drop::<F>() {
                Some(end::<F>)
            } else {
                None
            },
        }
    }

    /// Runs the function.
    ///
    /// # Safety
    /// As the function asks of its caller; `request` must be writable.
    pub unsafe fn run(&self, dispatch: &'static Dispatch, request: *mut Word) -> i32 {
        // SAFETY: `run` is the function for what is in the room; `request` is writable, by the caller's promise.
        unsafe { (self.run)(&self.room, dispatch, request) }
    }
}

impl Drop for Recipe {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // SAFETY: `end` is the one for what is in the room, which is used no more.
            unsafe { end(&mut self.room) };
        }
    }
}

/// # Safety
/// `room` must hold an `F`, and `request` be what that asks for.
unsafe fn run<F>(room: &Room, dispatch: &'static Dispatch, request: *mut Word) -> i32
where
    F: Fn(&'static Dispatch, *mut Word) -> i32,
{
    // SAFETY: `room` holds an `F`, by the caller's promise; `Recipe::new` chooses `run` only for functions that fit in it.
    unsafe { (*room.as_ptr().cast::<F>())(dispatch, request) }
}

/// # Safety
/// `room` must hold a box of an `F`, and `request` be what that asks for.
unsafe fn run_boxed<F>(room: &Room, dispatch: &'static Dispatch, request: *mut Word) -> i32
where
    F: Fn(&'static Dispatch, *mut Word) -> i32,
{
    // SAFETY: `room` holds a box of an `F`, by the caller's promise; `Recipe::new` chooses `run_boxed` for functions that do not fit in it.
    unsafe { (*room.as_ptr().cast::<Box<F>>())(dispatch, request) }
}

/// # Safety
/// `room` must hold a `T`, which is used no more.
unsafe fn end<T>(room: &mut Room) {
    // SAFETY: `room` holds a `T` that is used no more, by the caller's promise.
    unsafe { room.as_mut_ptr().cast::<T>().drop_in_place() }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn run(recipe: &Recipe) -> (i32, Word) {
        let table = MaybeUninit::<Dispatch>::uninit();
        let mut word = 0;
        // SAFETY: the functions below look at no table, and the place is a live one.
        let code = unsafe { recipe.run(&*table.as_ptr(), &mut word) };
        (code, word)
    }

    #[test]
    fn small_functions_and_large_ones_keep_what_they_captured() {
        let few = [1u64, 2, 3];
        let many: [u64; 20] = core::array::from_fn(|n| n as u64);
        // SAFETY: `run` of these tests gives the place of a local variable.
        let small = Recipe::new(move |_, word| unsafe {
            *word = few.iter().sum();
            3
        });
        // SAFETY: `run` gives the place of a local variable.
        let large = Recipe::new(move |_, word| unsafe {
            *word = many.iter().sum();
            20
        });
        assert_eq!(run(&small), (3, 6));
        assert_eq!(run(&large), (20, 190));
    }

    #[test]
    fn what_a_function_owns_ends_with_it() {
        let owned = Rc::new(());
        for padding in [0usize, 30] {
            let (held, rest) = (owned.clone(), vec![0u64; padding]);
            let large = [0u64; 12];
            let recipe = if padding == 0 {
                Recipe::new(move |_, _| Rc::strong_count(&held) as i32 + rest.len() as i32)
            } else {
                Recipe::new(move |_, _| {
                    Rc::strong_count(&held) as i32 + rest.len() as i32 + large[0] as i32
                })
            };
            assert_eq!(run(&recipe).0, 2 + padding as i32);
            drop(recipe);
            assert_eq!(Rc::strong_count(&owned), 1);
        }
    }
}
