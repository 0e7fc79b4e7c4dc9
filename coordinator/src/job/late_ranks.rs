//! Ranks that compute, and are late for operations that others have returned from. `stillpoint_clock::absent` decides whether these operations can be carried
//! out for them in advance.
//!
//! All ranks are asked twice. The first question finds out which operations are late, and which ranks know them. If they can be carried out, the second
//! question holds the late applications, so that the answers stay true until it has been done.

use std::collections::BTreeMap;

use stillpoint_clock::absent::{Operation, Question};
use stillpoint_ids::Rank;
use stillpoint_protocol::absent::{MemberAnswer, Missing};
use stillpoint_protocol::agent::Order;

use super::Job;
use super::attempt::Attempt;

/// The questions of an attempt.
#[derive(Debug, Default)]
pub struct Absent {
    /// The operations that ranks have said they are late for: the first and the last of each clock.
    missing: BTreeMap<u64, (u64, u64)>,
    /// The question without all answers yet.
    asked: Option<PendingQuestion>,
}

#[derive(Debug)]
struct PendingQuestion {
    question: Question,
    hold: bool,
}

/// The consequence of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// More answers have to come, or no operation can be carried out.
    Nothing,
    /// All ranks are asked once more, and late applications are held.
    Hold,
    /// Late applications run on, once each of these ranks has carried out its operations.
    CarryOut(Vec<(u32, Vec<Operation>)>),
}

impl Absent {
    /// Records that a rank is late. Returns whether to ask a question.
    fn late(&mut self, missing: Vec<Missing>) -> bool {
        for Missing { ggid, first, last } in missing {
            let range = self.missing.entry(ggid).or_insert((first, last));
            *range = (range.0.min(first), range.1.max(last));
        }
        self.asked.is_none()
    }

    /// Whether a question is out. Until all have answered, no rank may pass a park point for lack of progress. Operations that are carried out are progress,
    /// and a rank that passes a park point binds others.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Asks that many ranks a question. Returns the order for all of them.
    fn ask(&mut self, hold: bool, ranks: usize) -> Order {
        let question = Question::new(ranks);
        self.asked = Some(PendingQuestion { question, hold });
        let missing = self.missing.iter();
        let missing = missing.map(|(&ggid, &(first, last))| Missing { ggid, first, last });
        Order::Tell {
            hold,
            missing: missing.collect(),
        }
    }

    /// Records a rank's answer.
    fn told(&mut self, rank: Rank, told: MemberAnswer) -> Next {
        let Some(asked) = &mut self.asked else {
            return Next::Nothing;
        };
        if !asked.question.tell(rank.0, told.into()) {
            return Next::Nothing;
        }
        let (grant, hold) = (asked.question.grant(), asked.hold);
        self.asked = None;
        match (grant, hold) {
            (Some(_), false) => Next::Hold,
            (None, false) => Next::Nothing,
            (grant, true) => Next::CarryOut(grant.unwrap_or_default()),
        }
    }
}

impl Job {
    pub(super) fn on_late(&mut self, missing: Vec<Missing>) {
        if let Some(absent) = self.attempt.as_mut().and_then(Attempt::absent)
            && absent.late(missing)
        {
            let order = absent.ask(false, self.settings.ranks as usize);
            self.order(order);
        }
    }

    pub(super) fn on_told(&mut self, rank: Rank, told: MemberAnswer) {
        let number = self.attempts;
        let Some(absent) = self.attempt.as_mut().and_then(Attempt::absent) else {
            return;
        };
        match absent.told(rank, told) {
            Next::Nothing => {}
            Next::Hold => {
                let order = absent.ask(true, self.settings.ranks as usize);
                self.order(order);
            }
            Next::CarryOut(granted) => {
                let mut granted: BTreeMap<u32, Vec<Operation>> = granted.into_iter().collect();
                for rank in Rank::all(self.settings.ranks) {
                    let operations = granted.remove(&rank.0).unwrap_or_default();
                    let operations = operations.into_iter().map(Into::into).collect();
                    self.order_beside([rank], number, Order::CarryOut { operations });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stillpoint_clock::absent::Kind;
    use stillpoint_protocol::absent::Behind;

    use super::*;

    fn late(rank: i32) -> MemberAnswer {
        let behind = Behind {
            ggid: 1,
            begun: 4,
            target: 5,
            rank,
            size: 2,
        };
        MemberAnswer {
            behind: vec![behind],
            operations: vec![],
        }
    }

    fn knows(kind: Kind) -> MemberAnswer {
        let operation = Operation {
            ggid: 1,
            number: 5,
            kind: kind as u32,
            root: 0,
            count: 1,
            size: 4,
            ..Operation::default()
        };
        MemberAnswer {
            behind: vec![],
            operations: vec![operation.into()],
        }
    }

    const MISSING: Missing = Missing {
        ggid: 1,
        first: 5,
        last: 5,
    };

    #[test]
    fn everybody_is_asked_twice_before_something_is_carried_out() {
        let mut absent = Absent::default();
        assert!(absent.late(vec![MISSING]));
        assert!(!absent.is_asking());
        let order = absent.ask(false, 2);
        assert!(absent.is_asking());
        let missing = vec![MISSING];
        assert_eq!(
            order,
            Order::Tell {
                hold: false,
                missing: missing.clone()
            }
        );
        // A rank that is late meanwhile is part of the next question.
        let more = Missing {
            first: 3,
            last: 4,
            ..MISSING
        };
        assert!(!absent.late(vec![more]));
        assert_eq!(absent.told(Rank(0), knows(Kind::Bcast)), Next::Nothing);
        assert_eq!(absent.told(Rank(1), late(1)), Next::Hold);
        let order = absent.ask(true, 2);
        let missing = vec![Missing {
            first: 3,
            ..MISSING
        }];
        assert_eq!(
            order,
            Order::Tell {
                hold: true,
                missing
            }
        );
        absent.told(Rank(1), late(1));
        let Next::CarryOut(granted) = absent.told(Rank(0), knows(Kind::Bcast)) else {
            panic!("nothing is carried out");
        };
        assert_eq!((granted.len(), granted[0].0, granted[0].1.len()), (1, 1, 1));
        assert!(!absent.is_asking());
        assert!(absent.late(vec![MISSING]), "and may be asked again");
    }

    #[test]
    fn who_was_held_is_let_on() {
        let mut absent = Absent::default();
        absent.late(vec![MISSING]);
        absent.ask(false, 2);
        absent.told(Rank(0), knows(Kind::Bcast));
        absent.told(Rank(1), late(1));
        absent.ask(true, 2);
        absent.told(Rank(0), knows(Kind::Bcast));
        // The rank was in a call that waits for others.
        assert_eq!(absent.told(Rank(1), late(-1)), Next::CarryOut(vec![]));
    }

    #[test]
    fn nobody_is_held_for_what_cannot_be_carried_out() {
        let mut absent = Absent::default();
        absent.late(vec![MISSING]);
        absent.ask(false, 2);
        absent.told(Rank(0), knows(Kind::Gather));
        assert_eq!(absent.told(Rank(1), late(1)), Next::Nothing);
        assert_eq!(
            absent.told(Rank(1), late(1)),
            Next::Nothing,
            "no question is out"
        );
    }
}
