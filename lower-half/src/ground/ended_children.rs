//! Children that had ended before a restart and were not waited for. The kernel kept the status of each; now this table does.
//!
//! A restart fills the table before the application runs. From then on entries are only taken, in the trap's handler.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use stillpoint_part::Kind;
use stillpoint_refusals::{Refusal, refusal};

/// The payload of an image: JSON, a list of [`EndedChild`].
pub const KIND: Kind = Kind {
    name: "ended children",
    version: 1,
    always: false,
};

/// The largest number of children that can be carried.
pub const MOST: usize = 256;
/// Words of the kernel's `struct rusage`.
pub const USAGE: usize = 18;

/// A child that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedChild {
    pub pid: u32,
    pub group: u32,
    /// Set if that was the process's own group.
    pub own_group: bool,
    pub user: u32,
    /// `si_code` and `si_status` of its end.
    pub code: i32,
    pub status: i32,
    /// The kernel's `struct rusage` of the child and its own children.
    pub usage: Vec<u64>,
}

/// One entry; `there` is 1 as long as the child has not been waited for.
struct Entry {
    there: AtomicU32,
    pid: AtomicU32,
    group: AtomicU32,
    own_group: AtomicU32,
    user: AtomicU32,
    code: AtomicU32,
    status: AtomicU32,
    usage: [AtomicU64; USAGE],
}

static TABLE: [Entry; MOST] = [const {
    Entry {
        there: AtomicU32::new(0),
        pid: AtomicU32::new(0),
        group: AtomicU32::new(0),
        own_group: AtomicU32::new(0),
        user: AtomicU32::new(0),
        code: AtomicU32::new(0),
        status: AtomicU32::new(0),
        usage: [const { AtomicU64::new(0) }; USAGE],
    }
}; MOST];

/// The number of entries that have been filled. Others are never touched: most processes have none, and the pages of the table stay the kernel's.
static FILLED: AtomicUsize = AtomicUsize::new(0);

fn filled() -> &'static [Entry] {
    TABLE
        .get(..FILLED.load(Ordering::Acquire))
        .unwrap_or_default()
}

/// The children that a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Any,
    Process(u32),
    Group(u32),
    OwnGroup,
}

/// The end of a child, as the kernel reports it.
#[derive(Clone, Copy, Debug)]
pub struct End {
    place: usize,
    pub pid: u32,
    pub user: u32,
    pub code: i32,
    pub status: i32,
    pub usage: [u64; USAGE],
}

/// Fills the table.
///
/// # Errors
/// There are too many children, in words for people.
pub fn restore(all: &[EndedChild]) -> Result<(), Refusal> {
    if all.len() > MOST {
        return Err(refusal!(
            BrokenImage,
            "its image holds more than {MOST} ended children: use another epoch"
        ));
    }
    for (entry, ended) in TABLE.iter().zip(all) {
        entry.pid.store(ended.pid, Ordering::Relaxed);
        entry.group.store(ended.group, Ordering::Relaxed);
        entry
            .own_group
            .store(ended.own_group.into(), Ordering::Relaxed);
        entry.user.store(ended.user, Ordering::Relaxed);
        entry.code.store(ended.code as u32, Ordering::Relaxed);
        entry.status.store(ended.status as u32, Ordering::Relaxed);
        for (word, used) in entry.usage.iter().zip(&ended.usage) {
            word.store(*used, Ordering::Relaxed);
        }
        entry.there.store(1, Ordering::Release);
    }
    FILLED.fetch_max(all.len(), Ordering::AcqRel);
    Ok(())
}

/// Returns the children that are left, for the next image.
pub fn all() -> Vec<EndedChild> {
    let left = filled().iter().filter(|entry| entry.is_there());
    let ended = |entry: &Entry| EndedChild {
        pid: entry.pid.load(Ordering::Relaxed),
        group: entry.group.load(Ordering::Relaxed),
        own_group: entry.own_group.load(Ordering::Relaxed) != 0,
        user: entry.user.load(Ordering::Relaxed),
        code: entry.code.load(Ordering::Relaxed) as i32,
        status: entry.status.load(Ordering::Relaxed) as i32,
        usage: entry
            .usage
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect(),
    };
    left.map(ended).collect()
}

impl Entry {
    fn is_there(&self) -> bool {
        self.there.load(Ordering::Acquire) == 1
    }

    fn is(&self, whom: Whom) -> bool {
        match whom {
            Whom::Any => true,
            Whom::Process(pid) => self.pid.load(Ordering::Relaxed) == pid,
            Whom::Group(group) => self.group.load(Ordering::Relaxed) == group,
            Whom::OwnGroup => self.own_group.load(Ordering::Relaxed) != 0,
        }
    }
}

/// Returns one of the children that a call waits for. Any FS, no allocation.
pub fn find(whom: Whom) -> Option<End> {
    let mut entries = filled().iter().enumerate();
    let (place, entry) = entries.find(|(_, entry)| entry.is_there() && entry.is(whom))?;
    let mut usage = [0; USAGE];
    for (word, used) in usage.iter_mut().zip(&entry.usage) {
        *word = used.load(Ordering::Relaxed);
    }
    Some(End {
        place,
        pid: entry.pid.load(Ordering::Relaxed),
        user: entry.user.load(Ordering::Relaxed),
        code: entry.code.load(Ordering::Relaxed) as i32,
        status: entry.status.load(Ordering::Relaxed) as i32,
        usage,
    })
}

/// Takes the entry; returns `false` if another thread was first.
pub fn take(end: &End) -> bool {
    TABLE
        .get(end.place)
        .is_some_and(|entry| entry.there.swap(0, Ordering::AcqRel) == 1)
}

/// Forgets the children: this is a forked child, and they are its parent's.
pub fn start_forked() {
    filled()
        .iter()
        .for_each(|entry| entry.there.store(0, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_what_it_was_and_taken_once() {
        let child = |pid, group, own_group| EndedChild {
            pid,
            group,
            own_group,
            code: libc::CLD_EXITED,
            status: pid as i32,
            usage: vec![pid.into(); USAGE],
            ..EndedChild::default()
        };
        let children = [child(7, 3, true), child(8, 4, false)];
        restore(&children).unwrap();
        assert_eq!(all(), children);
        assert!(find(Whom::Process(9)).is_none());
        let second = find(Whom::Group(4)).unwrap();
        assert_eq!((second.pid, second.status, second.usage[17]), (8, 8, 8));
        assert!(take(&second) && !take(&second));
        assert_eq!(find(Whom::OwnGroup).unwrap().pid, 7);
        assert!(take(&find(Whom::Any).unwrap()));
        assert!(find(Whom::Any).is_none());
        assert!(restore(&vec![child(1, 1, true); MOST + 1]).is_err());
    }
}
