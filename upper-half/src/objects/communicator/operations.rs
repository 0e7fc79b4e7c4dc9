//! The persistent collective operations of a communicator that have a clock; see `operations::clock::persistent`.

use std::collections::BTreeMap;

/// The operations of a communicator, by number.
#[derive(Debug, Default)]
pub struct Operations {
    made: u64,
    /// Those with a clock.
    pub clocks: BTreeMap<u64, Clock>,
}

/// A clock, and whether this rank has freed its operation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub cell: u32,
    pub freed: bool,
}

impl Operations {
    /// The number of the operation that is made now.
    pub fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Takes out the clocks that `gone` chooses.
    pub fn take(&mut self, gone: impl Fn(u64, bool) -> bool) -> Vec<u32> {
        let mut taken = Vec::new();
        self.clocks.retain(|number, clock| {
            let goes = gone(*number, clock.freed);
            if goes {
                taken.push(clock.cell);
            }
            !goes
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_freed_operations_go_and_the_others_keep_their_numbers() {
        let mut operations = Operations::default();
        for cell in 10..14 {
            let number = operations.next_number();
            let freed = cell % 2 == 0;
            operations.clocks.insert(number, Clock { cell, freed });
        }
        assert_eq!(operations.take(|_, freed| freed), [10, 12]);
        assert_eq!(operations.take(|_, freed| freed), [0u32; 0]);
        assert_eq!(operations.next_number(), 5);
        assert_eq!(
            operations.clocks.keys().copied().collect::<Vec<_>>(),
            [2, 4]
        );
    }
}
