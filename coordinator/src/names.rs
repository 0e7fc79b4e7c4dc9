//! What users are called.

use nix::unistd::{Uid, User};

/// A user's name, or number where the system knows no name.
pub fn name_of(user: u32) -> String {
    let known = User::from_uid(Uid::from_raw(user)).ok().flatten();
    known.map_or_else(|| format!("user {user}"), |user| user.name)
}
