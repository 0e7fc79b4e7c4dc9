//! The image's record of where memory goes.

use super::ARENA;
use super::ranges::Ranges;
use crate::arch::layout::{BREAK_END, BREAK_START};
use crate::gate::{SavedStateError, words};

/// Returns what an image must hold: where the search continues in each address range, the program break, and the ranges outside both halves.
pub fn save() -> Vec<u8> {
    let arena = ARENA.lock();
    let rooms = arena.rooms.iter().flatten().map(|room| room.next);
    let asked = arena
        .asked
        .iter()
        .flat_map(|range| [range.start, range.end]);
    rooms
        .chain([arena.end])
        .chain(asked)
        .flat_map(|word| (word as u64).to_le_bytes())
        .collect()
}

/// Takes over the state from [`save`] in another launch.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    const ROOMS: usize = 4;
    let unsound = || SavedStateError::Value { part: "memory" };
    let words = words(saved, "memory", saved.len() / 8)?;
    let (rooms, rest) = words.split_at_checked(ROOMS).ok_or_else(unsound)?;
    let (end, asked) = rest.split_first().ok_or_else(unsound)?;
    let asked = Ranges::from_words(asked).ok_or_else(unsound)?;
    let end = *end as usize;
    let mut arena = ARENA.lock();
    let mut places = rooms.iter().zip(arena.rooms.iter().flatten());
    let sound = places
        .all(|(next, room)| (room.place.start..=room.place.end).contains(&(*next as usize)))
        && (BREAK_START..=BREAK_END).contains(&end);
    if !sound {
        return Err(unsound());
    }
    for (next, room) in rooms.iter().zip(arena.rooms.iter_mut().flatten()) {
        room.next = *next as usize;
    }
    (arena.end, arena.asked) = (end, asked);
    Ok(())
}
