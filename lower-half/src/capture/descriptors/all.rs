//! All descriptors that are examined together, found by number and by inode: one may depend on others, and there may be ten thousand.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::os::fd::RawFd;

use super::{OpenDescriptor, holders};

/// All descriptors of the application, and some that a rehearsal has made.
pub struct All<'a> {
    opens: &'a [OpenDescriptor],
    scratch: Vec<OpenDescriptor>,
    by_inode: HashMap<u64, Vec<usize>>,
    by_number: HashMap<RawFd, usize>,
    /// Pipes and sockets of other processes, and one process that has each.
    elsewhere: OnceCell<HashMap<String, u32>>,
}

impl<'a> All<'a> {
    pub fn new(opens: &'a [OpenDescriptor]) -> All<'a> {
        let mut by_inode: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, open) in opens.iter().enumerate() {
            by_inode.entry(open.status.st_ino).or_default().push(index);
        }
        let numbered = opens.iter().enumerate();
        All {
            opens,
            scratch: Vec::new(),
            by_inode,
            by_number: numbered.map(|(index, open)| (open.number, index)).collect(),
            elsewhere: OnceCell::new(),
        }
    }

    /// Sets the scratch descriptors that belong to them; earlier ones no longer do.
    pub fn with(&mut self, scratch: Vec<OpenDescriptor>) {
        self.scratch = scratch;
    }

    pub fn scratch(&self) -> &[OpenDescriptor] {
        &self.scratch
    }

    pub fn iter(&self) -> impl Iterator<Item = &OpenDescriptor> {
        self.opens.iter().chain(&self.scratch)
    }

    /// Returns the descriptors that lead to an inode of this number.
    pub fn of_inode(&self, inode: u64) -> impl Iterator<Item = &OpenDescriptor> {
        let known = self.by_inode.get(&inode).into_iter().flatten();
        let known = known.filter_map(|index| self.opens.get(*index));
        let scratch = self.scratch.iter();
        known.chain(scratch.filter(move |open| open.status.st_ino == inode))
    }

    /// Returns the application's descriptor of this number.
    pub fn number(&self, number: RawFd) -> Option<&OpenDescriptor> {
        self.opens.get(*self.by_number.get(&number)?)
    }

    /// Returns another process that has one of these pipes or sockets open, as far as this user may see. `links` are the targets of its
    /// descriptors.
    pub fn holder(&self, links: &[&str]) -> Option<u32> {
        let elsewhere = self.elsewhere.get_or_init(holders::elsewhere);
        links.iter().find_map(|link| elsewhere.get(*link).copied())
    }
}
