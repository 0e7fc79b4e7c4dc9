//! The existing thread areas, those that are lent, and the number that is wanted: no system calls.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// At most `MOST` areas: as many as there can be borrowers.
pub struct Lending<const MOST: usize> {
    /// The areas that have been made, by number.
    areas: [AtomicU64; MOST],
    /// Whether an area is lent, by number.
    lent: [AtomicU32; MOST],
    /// The number of areas that have been made.
    pub made: AtomicU32,
    /// The number of areas that must exist.
    pub wanted: AtomicU32,
}

impl<const MOST: usize> Lending<MOST> {
    pub const fn new() -> Lending<MOST> {
        Lending {
            areas: [const { AtomicU64::new(0) }; MOST],
            lent: [const { AtomicU32::new(0) }; MOST],
            made: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
        }
    }

    /// Adds an area. Called by one thread at a time.
    pub fn add(&self, area: u64) {
        let number = self.made.load(Ordering::Acquire);
        if let Some(place) = self.areas.get(number as usize) {
            place.store(area, Ordering::Release);
            self.made.store(number + 1, Ordering::Release);
        }
    }

    /// Takes an area that is not lent, and returns its number and the area. If all are lent, requests one more and returns how many have been made. The caller
    /// then asks again when another has been made: another thread may have taken it.
    pub fn take(&self) -> Result<(usize, u64), u32> {
        let made = self.made.load(Ordering::Acquire);
        let areas = self.areas.iter().zip(&self.lent).take(made as usize);
        for (number, (area, lent)) in areas.enumerate() {
            if lent
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return Ok((number, area.load(Ordering::Acquire)));
            }
        }
        let wanted = (made + 1).min(MOST as u32);
        self.wanted.fetch_max(wanted, Ordering::AcqRel);
        Err(made)
    }

    /// Gives an area back when its borrower ends.
    pub fn give_back(&self, number: usize) {
        if let Some(lent) = self.lent.get(number) {
            lent.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the keeper's work.
    fn keep(lending: &Lending<4>) {
        while lending.made.load(Ordering::Acquire) < lending.wanted.load(Ordering::Acquire) {
            lending.add(0x1000 + u64::from(lending.made.load(Ordering::Acquire)));
        }
    }

    #[test]
    fn an_area_is_made_when_all_are_lent_and_lent_again_when_it_is_back() {
        let lending = Lending::<4>::new();
        assert_eq!(lending.take(), Err(0));
        keep(&lending);
        assert_eq!(lending.take(), Ok((0, 0x1000)));
        assert_eq!(lending.take(), Err(1));
        lending.give_back(0);
        assert_eq!(lending.take(), Ok((0, 0x1000)));
    }

    #[test]
    fn who_asked_first_and_finds_the_new_area_taken_has_another_made() {
        let lending = Lending::<4>::new();
        assert_eq!(lending.take(), Err(0));
        keep(&lending);
        assert_eq!(lending.take(), Ok((0, 0x1000)), "somebody who never asked");
        assert_eq!(lending.take(), Err(1));
        keep(&lending);
        assert_eq!(lending.take(), Ok((1, 0x1001)));
    }

    #[test]
    fn no_more_are_made_than_there_can_be_borrowers() {
        let lending = Lending::<4>::new();
        for number in 0..4 {
            assert_eq!(lending.take(), Err(number));
            keep(&lending);
            assert!(lending.take().is_ok());
        }
        assert_eq!(lending.take(), Err(4));
        keep(&lending);
        assert_eq!(lending.made.load(Ordering::Acquire), 4);
    }
}
