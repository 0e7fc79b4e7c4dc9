//! From the lower half's word to the application's datatype: needed if the lower half calls a
//! function of the application with a datatype, or gives one back.

use std::collections::BTreeMap;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::recipe::{Combiner, Recipe};
use super::usable;
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::{abi, crossing, handle};
use crate::objects::outcome::{MpiResult, check, class};

static WORDS: SpinLock<BTreeMap<Word, usize>> = SpinLock::new(BTreeMap::new());

/// Notes a new datatype's word.
pub fn note(word: Word, object: *mut Object) {
    WORDS.lock().insert(word, object as usize);
}

/// Forgets the word of a datatype that ends.
pub fn forget(word: Word) {
    WORDS.lock().remove(&word);
}

/// Forgets the words of a lower half that is gone.
pub fn forget_all() {
    WORDS.lock().clear();
}

/// The application's datatype for a word of the lower half, or null.
pub fn by_word(word: Word) -> *mut Object {
    let own = WORDS.lock().get(&word).copied();
    match own {
        Some(object) => object as *mut Object,
        None => abi::predefined_from_word(HandleKind::Datatype, word),
    }
}

/// [`by_word`] with one holder more, unless the datatype is predefined. It is found and held in one step, before another thread can end it; `end` forgets a
/// datatype's word before the slot is given back.
///
/// # Safety
/// Inside a stub.
unsafe fn hold_by_word(word: Word) -> *mut Object {
    let words = WORDS.lock();
    let Some(own) = words.get(&word) else {
        return abi::predefined_from_word(HandleKind::Datatype, word);
    };
    let own = *own as *mut Object;
    // SAFETY: the object is one of the slab's, and the thread is inside, by the caller's promise.
    match unsafe { handle::retain_if_alive(own, HandleKind::Datatype) } {
        true => own,
        false => std::ptr::null_mut(),
    }
}

/// Makes the application's handle of a datatype that came up from the lower half (a file's view): a
/// known one, or else a new one that is read from the lower half's own account of it.
///
/// # Safety
/// Inside a stub; `word` must be a datatype of the lower half's, which is ours from then on.
pub unsafe fn adopt(word: Word) -> MpiResult<*mut Object> {
    // SAFETY: inside; what is given out is the application's to free.
    let known = unsafe { hold_by_word(word) };
    if !known.is_null() {
        return Ok(known);
    }
    // SAFETY: inside; arrays have as many elements as the envelope says.
    unsafe {
        let (mut integers, mut addresses, mut parts, mut combiner) = (0, 0, 0, 0);
        check(crossing::cross(|d| {
            (d.type_get_envelope)(
                word,
                &raw mut integers,
                &raw mut addresses,
                &raw mut parts,
                &raw mut combiner,
            )
        }))?;
        let combiner = Combiner::from_standard(combiner).ok_or(class::INTERN)?;
        let mut recipe = Recipe::new(
            combiner,
            vec![0; integers.max(0) as usize],
            vec![0; addresses.max(0) as usize],
        );
        let mut words: Vec<Word> = vec![0; parts.max(0) as usize];
        let (i, a, p) = (
            recipe.integers.as_mut_ptr(),
            recipe.addresses.as_mut_ptr(),
            words.as_mut_ptr(),
        );
        check(crossing::cross(|d| {
            (d.type_get_contents)(word, integers, addresses, parts, i, a, p)
        }))?;
        for part in words {
            recipe.datatypes.push(adopt(part)?);
        }
        let object = super::create(recipe)?;
        for part in super::body(object)
            .and_then(|body| body.recipe.as_ref())
            .map(|recipe| recipe.datatypes.clone())
            .unwrap_or_default()
        {
            // The recipe holds them now.
            handle::release(usable(part)?);
        }
        let mut word = word;
        crossing::cross(|d| (d.type_free)(&raw mut word));
        Ok(object)
    }
}
