//! Makes the entries of epoll sets again, when every number leads to its descriptor.

use std::io;
use std::os::fd::RawFd;

use stillpoint_image::descriptors::Watched;

use crate::capture::descriptors::epoll::{control, events, is_ready, is_spent};

const FIRES: u32 = (libc::EPOLLIN | libc::EPOLLOUT) as u32;

/// Makes the entries of the set `number`. Those that have nothing more to tell come first: what they tell is thrown away.
pub fn watch(number: RawFd, watched: &[Watched]) -> io::Result<()> {
    let (silent, others): (Vec<&Watched>, Vec<&Watched>) = watched
        .iter()
        .partition(|entry| entry.told || is_spent(entry));
    for entry in &silent {
        add(number, entry, silenced(entry)?)?;
    }
    events(number, silent.len())?;
    others
        .into_iter()
        .try_for_each(|entry| add(number, entry, entry.events))
}

/// Returns the events under which an entry tells something now, and nothing later. An entry that has fired once and for all is made to fire.
/// If its file is not ready for that, the entry still tells of an error or a hangup, once: the kernel lets nobody switch that off.
fn silenced(entry: &Watched) -> io::Result<u32> {
    let fires = is_spent(entry) && is_ready(entry, FIRES)?;
    Ok(entry.events | if fires { FIRES } else { 0 })
}

fn add(set: RawFd, entry: &Watched, events: u32) -> io::Result<()> {
    control(set, libc::EPOLL_CTL_ADD, entry, events)
}
