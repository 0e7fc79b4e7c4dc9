//! The place in the springboard where a signal has interrupted a thread, and so what a restart would do there.

use super::{Piece, SYSCALL, after_call, makes_calls};

/// The pieces that make a system call, in the order of their addresses.
const CALLS: [Piece; 23] = [
    Piece::CallPlain,
    Piece::CallNoting,
    Piece::CallArgument0Noting,
    Piece::CallArgument1Noting,
    Piece::CallMask0,
    Piece::CallSignalMask0,
    Piece::CallMask1Noting,
    Piece::CallMask3,
    Piece::CallMask4,
    Piece::CallMask5,
    Piece::CallRest1,
    Piece::CallRest3,
    Piece::CallRecvmsg,
    Piece::CallRecvmmsg,
    Piece::CallClose,
    Piece::CallFutexAgain,
    Piece::CallUntil,
    Piece::CallMask4Until,
    Piece::CallSignalMask0Until,
    Piece::CallPolled,
    Piece::RestBytes,
    Piece::RestVector,
    Piece::RestCount,
];

/// The place of a thread in a piece that makes a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not in a piece that makes a system call.
    Elsewhere,
    /// At its beginning: nothing is done yet. The trapped call's registers are unchanged except for r11; rcx holds the address behind the call.
    Begins,
    /// At its system call, which may have been interrupted.
    Calls(Piece),
    /// Behind its system call.
    Called(Piece),
    /// At another place, which the thread soon leaves.
    Passes,
}

/// Returns the place of a thread at this address.
pub fn standing(rip: usize) -> Standing {
    if !makes_calls(rip) {
        return Standing::Elsewhere;
    }
    let piece = CALLS.into_iter().rev().find(|piece| piece.address() <= rip);
    let Some(piece) = piece else {
        return Standing::Passes;
    };
    let behind = after_call(piece.address());
    if rip == piece.address() && !piece.goes_on() {
        Standing::Begins
    } else if rip + SYSCALL.len() == behind {
        Standing::Calls(piece)
    } else if rip == behind {
        Standing::Called(piece)
    } else {
        Standing::Passes
    }
}

impl Piece {
    /// Whether its call returns a descriptor that is noted afterwards.
    pub fn notes_result(self) -> bool {
        matches!(
            self,
            Piece::CallNoting
                | Piece::CallArgument0Noting
                | Piece::CallArgument1Noting
                | Piece::CallMask1Noting
        )
    }

    /// Whether another launch must not begin with its call: the descriptor that it has given up, or the id that it is about to use, is this launch's.
    pub fn is_bound(self) -> bool {
        matches!(
            self,
            Piece::CallClose | Piece::CallArgument0Noting | Piece::CallArgument1Noting
        )
    }

    /// Whether it has more to do after a call that succeeded, which only the piece can do.
    pub fn reads_result(self) -> bool {
        matches!(
            self,
            Piece::CallRecvmsg
                | Piece::CallRecvmmsg
                | Piece::CallSignalMask0
                | Piece::CallSignalMask0Until
        )
    }

    /// Whether its wait has a timeout, whose end it keeps.
    pub fn is_until(self) -> bool {
        matches!(
            self,
            Piece::CallUntil
                | Piece::CallMask4Until
                | Piece::CallSignalMask0Until
                | Piece::CallPolled
        )
    }

    /// Whether it transfers the rest of an interrupted transfer.
    pub fn is_rest(self) -> bool {
        matches!(
            self,
            Piece::RestBytes | Piece::RestVector | Piece::RestCount
        )
    }

    /// Whether it continues an interrupted call, rather than beginning one.
    fn goes_on(self) -> bool {
        self.is_rest() || self == Piece::CallPolled
    }

    /// Returns the stack space of the piece, if all arguments are unchanged while its call is made.
    pub fn takes(self) -> Option<usize> {
        match self {
            Piece::CallPlain | Piece::CallNoting => Some(160),
            Piece::CallRecvmsg | Piece::CallRecvmmsg => Some(192),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::layout::SPRINGBOARD;
    use crate::arch::springboard::code;

    #[test]
    fn every_piece_that_calls_is_known_in_the_order_of_addresses() {
        let addresses: Vec<usize> = CALLS.iter().map(|piece| piece.address()).collect();
        assert!(addresses.is_sorted_by(|one, two| one < two));
        let code = code();
        let mut range = SPRINGBOARD..SPRINGBOARD + code.len();
        assert!(addresses.iter().all(|address| makes_calls(*address)));
        // Each piece has one such return, and no other code in these ranges has one: a piece that is missing above is counted here.
        let at = |address: usize| code.get(address - SPRINGBOARD).copied().unwrap_or(0);
        const RETURN_AND_POP: u8 = 0xc2;
        let ends = range.by_ref().filter(|address| {
            makes_calls(*address)
                && at(*address) == RETURN_AND_POP
                && [152, 168, 184, 200, 216].contains(&at(address + 1))
                && at(address + 2) == 0
        });
        assert_eq!(ends.count(), CALLS.len());
    }
}
