//! Ranks that compute, and are late for operations that others have returned from: whether these can be carried out for them in advance, which
//! `stillpoint_clock::absent` decides.
//!
//! Everybody is asked twice: first what is late, and who knows what that is; and if that looks well, once more with the late applications held, so that what was
//! answered stays true until it has been done.

use std::collections::BTreeMap;

use stillpoint_clock::absent::{Operation, Question};
use stillpoint_protocol::absent::{Missing, Told};
use stillpoint_protocol::agent::Order;

use super::Job;

/// What is asked in an attempt.
#[derive(Debug, Default)]
pub struct Absent {
    /// The operations that ranks have said they are late for: the first and the last of each clock.
    missing: BTreeMap<u64, (u64, u64)>,
    /// The question that is out.
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Asked {
    question: Question,
    hold: bool,
}

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// More answers have to come, or nothing can be done.
    Nothing,
    /// Everybody is asked once more, and late applications are held.
    Hold,
    /// They are let on, once they have carried out what each of these ranks is to.
    CarryOut(Vec<(u32, Vec<Operation>)>),
}

impl Absent {
    /// A rank is late. Whether a question is to go out.
    fn late(&mut self, missing: Vec<Missing>) -> bool {
        for Missing { ggid, first, last } in missing {
            let range = self.missing.entry(ggid).or_insert((first, last));
            *range = (range.0.min(first), range.1.max(last));
        }
        self.asked.is_none()
    }

    /// Whether a question is out. Until it is answered nobody is to be let past a park point for want of progress: what is carried out is progress, and
    /// what is let on binds.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Asks a question of that many ranks: what everybody is to be told.
    fn ask(&mut self, hold: bool, ranks: usize) -> Order {
        let question = Question::new(ranks);
        self.asked = Some(Asked { question, hold });
        let missing = self.missing.iter();
        let missing = missing.map(|(&ggid, &(first, last))| Missing { ggid, first, last });
        Order::Tell {
            hold,
            missing: missing.collect(),
        }
    }

    /// A rank has answered.
    fn told(&mut self, rank: u32, told: Told) -> Next {
        let Some(asked) = &mut self.asked else {
            return Next::Nothing;
        };
        if !asked.question.tell(rank, told.into()) {
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
        if let Some(attempt) = &mut self.attempt
            && attempt.absent.late(missing)
        {
            let order = attempt.absent.ask(false, self.settings.ranks as usize);
            self.order(order);
        }
    }

    pub(super) fn on_told(&mut self, rank: u32, told: Told) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        match attempt.absent.told(rank, told) {
            Next::Nothing => {}
            Next::Hold => {
                let order = attempt.absent.ask(true, self.settings.ranks as usize);
                self.order(order);
            }
            Next::CarryOut(granted) => {
                let number = attempt.number;
                let mut granted: BTreeMap<u32, Vec<Operation>> = granted.into_iter().collect();
                for rank in 0..self.settings.ranks {
                    let operations = granted.remove(&rank).unwrap_or_default();
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

    fn late(rank: i32) -> Told {
        let behind = Behind {
            ggid: 1,
            begun: 4,
            target: 5,
            rank,
            size: 2,
        };
        Told {
            behind: vec![behind],
            operations: vec![],
        }
    }

    fn knows(kind: Kind) -> Told {
        let operation = Operation {
            ggid: 1,
            number: 5,
            kind: kind as u32,
            root: 0,
            count: 1,
            size: 4,
            ..Operation::default()
        };
        Told {
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
        // Whoever is late meanwhile is asked for the next time.
        let more = Missing {
            first: 3,
            last: 4,
            ..MISSING
        };
        assert!(!absent.late(vec![more]));
        assert_eq!(absent.told(0, knows(Kind::Bcast)), Next::Nothing);
        assert_eq!(absent.told(1, late(1)), Next::Hold);
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
        absent.told(1, late(1));
        let Next::CarryOut(granted) = absent.told(0, knows(Kind::Bcast)) else {
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
        absent.told(0, knows(Kind::Bcast));
        absent.told(1, late(1));
        absent.ask(true, 2);
        absent.told(0, knows(Kind::Bcast));
        // It was in a call that waits for others.
        assert_eq!(absent.told(1, late(-1)), Next::CarryOut(vec![]));
    }

    #[test]
    fn nobody_is_held_for_what_cannot_be_carried_out() {
        let mut absent = Absent::default();
        absent.late(vec![MISSING]);
        absent.ask(false, 2);
        absent.told(0, knows(Kind::Gather));
        assert_eq!(absent.told(1, late(1)), Next::Nothing);
        assert_eq!(absent.told(1, late(1)), Next::Nothing, "no question is out");
    }
}
