//! A rehearsal's words about an object; see `checkpoint::rehearsal`.

use crate::ground::abi;
use crate::objects::outcome::class;

/// The outcome of trying one object; the error describes the fault.
pub type Tried = Result<(), String>;

/// Says that a function of the real MPI failed.
pub fn failed(what: &str, error: i32) -> String {
    let error = abi::error_from_neutral(error);
    format!("the real MPI does not make {what} again: error class {error}")
}

/// Says that the recipe of an object does not lead to the same object.
pub fn differs(what: &str) -> String {
    format!("{what} would not be the same after a restart")
}

/// Says that an object has no recipe.
pub fn without_recipe(what: &str) -> String {
    failed(what, class::INTERN)
}
