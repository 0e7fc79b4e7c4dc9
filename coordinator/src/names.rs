//! Names of users.

use nix::unistd::{Uid, User};

/// A user's name, or the number if the system knows no name.
pub fn name_of(user: u32) -> String {
    let known = User::from_uid(Uid::from_raw(user)).ok().flatten();
    known.map_or_else(|| format!("user {user}"), |user| user.name)
}
