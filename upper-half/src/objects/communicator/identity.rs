//! The name that all members of a communicator agree on without a message.
//!
//! It is a 128-bit hash of the way the communicator was made: its parent, its number among the calls that all
//! members make on the parent in the same order, and its members.

use xxhash_rust::xxh3::Xxh3;

use super::Members;

/// The name by which every member knows a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub u128);

/// The way a communicator was made.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// The `made`th one that all members of the parent made together.
    All { parent: Identity, made: u64 },
    /// The `made`th one that just these members of the parent made with that tag.
    Some {
        parent: Identity,
        tag: i32,
        made: u64,
    },
    /// The `made`th intercommunicator of these two communicators, whose leaders have met on that peer communicator with that tag.
    Between {
        locals: [Identity; 2],
        peer: Identity,
        tag: i32,
        made: u64,
    },
}

/// A hash of two groups, the same from both sides.
pub fn of_groups(members: &Members) -> u128 {
    let mut hasher = Xxh3::new();
    let empty: &[i32] = &[];
    let mut groups = [&*members.local, members.remote.as_deref().unwrap_or(empty)];
    groups.sort_unstable();
    for group in groups {
        hasher.update(&(group.len() as u64).to_le_bytes());
        for rank in group {
            hasher.update(&rank.to_le_bytes());
        }
    }
    hasher.digest128()
}

/// A hash of two communicators and of the place where their leaders have met, the same from both sides.
pub fn of_meeting(mut locals: [Identity; 2], peer: Identity) -> u128 {
    locals.sort_unstable();
    let mut hasher = Xxh3::new();
    for Identity(known) in locals.into_iter().chain([peer]) {
        hasher.update(&known.to_le_bytes());
    }
    hasher.digest128()
}

impl Identity {
    /// The four numbers by which other ranks learn of it.
    pub fn words(self) -> [i32; 4] {
        [0, 1, 2, 3].map(|part| (self.0 >> (32 * part)) as u32 as i32)
    }

    /// The identity from its [`Identity::words`].
    pub fn of_words(words: [i32; 4]) -> Self {
        let parts = words.into_iter().rev();
        Self(parts.fold(0, |all, part| all << 32 | u128::from(part as u32)))
    }

    /// The identity of a communicator that MPI begins with.
    pub const fn predefined(number: u128) -> Self {
        Self(number)
    }

    /// The identity of a new communicator.
    pub fn new(origin: Origin, members: &Members) -> Self {
        let (kind, parent, tag, made) = match origin {
            Origin::All { parent, made } => (0u8, parent.0, 0, made),
            Origin::Some { parent, tag, made } => (1, parent.0, tag, made),
            Origin::Between {
                locals,
                peer,
                tag,
                made,
            } => (2, of_meeting(locals, peer), tag, made),
        };
        let mut hasher = Xxh3::new();
        hasher.update(&[kind]);
        hasher.update(&parent.to_le_bytes());
        hasher.update(&tag.to_le_bytes());
        hasher.update(&made.to_le_bytes());
        hasher.update(&of_groups(members).to_le_bytes());
        Self(hasher.digest128())
    }

    /// The name of a persistent operation on the communicator.
    pub fn operation(self, number: u64) -> u128 {
        let mut hasher = Xxh3::new();
        hasher.update(&[3]);
        hasher.update(&self.0.to_le_bytes());
        hasher.update(&number.to_le_bytes());
        hasher.digest128()
    }

    /// So many tags are for messages about single communicators. Two are left of those that every MPI has (MPI 5.0, section 9.1.2).
    pub const TAGS: i32 = 0x7ffe;

    /// A tag for messages about this communicator alone.
    pub fn tag(self) -> i32 {
        (self.0 % Self::TAGS.cast_unsigned() as u128) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(local: &[i32], remote: Option<&[i32]>) -> Members {
        Members {
            local: local.into(),
            remote: remote.map(Into::into),
        }
    }

    #[test]
    fn both_sides_of_an_intercommunicator_agree() {
        let (one, two) = (Identity(1 << 100 | 5), Identity(7));
        let origin = |locals, peer| Origin::Between {
            locals,
            peer: Identity(peer),
            tag: 5,
            made: 1,
        };
        let here = Identity::new(origin([one, two], 9), &members(&[0, 2], Some(&[3, 1])));
        let there = Identity::new(origin([two, one], 9), &members(&[3, 1], Some(&[0, 2])));
        assert_eq!(here, there);
        let other = Identity::new(origin([one, two], 9), &members(&[0, 2], Some(&[1, 3])));
        assert_ne!(here, other);
        let elsewhere = Identity::new(origin([one, two], 8), &members(&[0, 2], Some(&[3, 1])));
        assert_ne!(here, elsewhere);
        assert_eq!(Identity::of_words(one.words()), one);
        assert!((0..Identity::TAGS).contains(&here.tag()));
    }

    #[test]
    fn siblings_differ() {
        let parent = Identity::predefined(1);
        let all = |made, ranks: &[i32]| {
            Identity::new(Origin::All { parent, made }, &members(ranks, None))
        };
        assert_ne!(all(0, &[0, 1]), all(1, &[0, 1]));
        assert_ne!(all(0, &[0, 1]), all(0, &[1, 0]));
        let some = Origin::Some {
            parent,
            tag: 0,
            made: 0,
        };
        assert_ne!(
            all(0, &[0, 1]),
            Identity::new(some, &members(&[0, 1], None))
        );
    }
}
