//! Room in a buffer of the application's: the bytes that hold messages on their way.

/// Bytes of a buffer that are in use, in their order.
#[derive(Default)]
pub struct BufferSpace {
    /// The beginning of each piece, and its number of bytes.
    used: Vec<(usize, usize)>,
}

impl BufferSpace {
    /// Takes the first place with that many free bytes.
    pub fn take(&mut self, bytes: usize, size: usize) -> Option<usize> {
        let mut begin = 0;
        let mut index = self.used.len();
        for (number, (at, length)) in self.used.iter().enumerate() {
            if at - begin >= bytes {
                index = number;
                break;
            }
            begin = at + length;
        }
        if index == self.used.len() && size.saturating_sub(begin) < bytes {
            return None;
        }
        self.used.insert(index, (begin, bytes));
        Some(begin)
    }

    /// Gives a place back.
    pub fn give_back(&mut self, at: usize, bytes: usize) {
        if let Some(index) = self.used.iter().position(|it| *it == (at, bytes)) {
            self.used.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_side_by_side_and_gaps_are_filled_again() {
        let mut room = BufferSpace::default();
        let places: Vec<_> = (0..4).map(|_| room.take(25, 100)).collect();
        assert_eq!(places, [Some(0), Some(25), Some(50), Some(75)]);
        assert_eq!(room.take(1, 100), None);
        room.give_back(25, 25);
        assert_eq!(room.take(26, 100), None);
        assert_eq!(room.take(10, 100), Some(25));
        assert_eq!(room.take(15, 100), Some(35));
        assert_eq!(room.take(1, 100), None);
        room.give_back(75, 25);
        room.give_back(50, 25);
        assert_eq!(room.take(50, 100), Some(50));
    }

    #[test]
    fn nothing_takes_no_room_and_all_of_it_goes() {
        let mut room = BufferSpace::default();
        assert_eq!(room.take(0, 0), Some(0));
        assert_eq!(room.take(8, 8), Some(0));
        room.give_back(0, 0);
        room.give_back(0, 8);
        assert_eq!(room.take(9, 8), None);
        assert_eq!(room.take(8, 8), Some(0));
    }
}
