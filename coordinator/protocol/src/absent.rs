//! Operations that a rank is late for: `stillpoint_clock::absent` on the wire.

use stillpoint_clock::absent;

use crate::codec::{Decode, Encode};

/// Operations `first` to `last` of a clock that a rank is late for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Missing {
    pub ggid: u64,
    pub first: u64,
    pub last: u64,
}

/// [`absent::Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Operation {
    pub ggid: u64,
    pub number: u64,
    pub kind: u32,
    pub root: i32,
    pub teller: i32,
    pub count: i32,
    pub size: i32,
}

/// [`absent::Behind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Behind {
    pub ggid: u64,
    pub begun: u64,
    pub target: u64,
    pub rank: i32,
    pub size: i32,
}

/// [`absent::MemberAnswer`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct MemberAnswer {
    pub behind: Vec<Behind>,
    pub operations: Vec<Operation>,
}

impl From<absent::Operation> for Operation {
    fn from(operation: absent::Operation) -> Operation {
        let absent::Operation {
            ggid,
            number,
            kind,
            root,
            teller,
            count,
            size,
            ..
        } = operation;
        Operation {
            ggid,
            number,
            kind,
            root,
            teller,
            count,
            size,
        }
    }
}

impl From<Operation> for absent::Operation {
    fn from(operation: Operation) -> absent::Operation {
        let Operation {
            ggid,
            number,
            kind,
            root,
            teller,
            count,
            size,
        } = operation;
        absent::Operation {
            ggid,
            number,
            kind,
            root,
            teller,
            count,
            size,
            reserved: 0,
        }
    }
}

impl From<absent::Behind> for Behind {
    fn from(behind: absent::Behind) -> Behind {
        let absent::Behind {
            ggid,
            begun,
            target,
            rank,
            size,
        } = behind;
        Behind {
            ggid,
            begun,
            target,
            rank,
            size,
        }
    }
}

impl From<Behind> for absent::Behind {
    fn from(behind: Behind) -> absent::Behind {
        let Behind {
            ggid,
            begun,
            target,
            rank,
            size,
        } = behind;
        absent::Behind {
            ggid,
            begun,
            target,
            rank,
            size,
        }
    }
}

impl From<MemberAnswer> for absent::MemberAnswer {
    fn from(told: MemberAnswer) -> absent::MemberAnswer {
        absent::MemberAnswer {
            behind: told.behind.into_iter().map(Into::into).collect(),
            operations: told.operations.into_iter().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_comes_over_the_wire_as_it_was() {
        let operation = absent::Operation {
            ggid: 1,
            number: 2,
            kind: 3,
            root: 4,
            teller: 5,
            count: 6,
            size: 7,
            reserved: 0,
        };
        let behind = absent::Behind {
            ggid: 1,
            begun: 2,
            target: 3,
            rank: 4,
            size: 5,
        };
        let told = MemberAnswer {
            behind: vec![behind.into()],
            operations: vec![operation.into()],
        };
        assert_eq!(absent::Operation::from(told.operations[0]), operation);
        let there = absent::MemberAnswer::from(told);
        assert_eq!(there.behind, [behind]);
        assert_eq!(there.operations, [operation]);
    }
}
