//! A rank that computes, and is late for operations from which others have returned: they are carried out for its application in advance
//! (`stillpoint_clock::absent`).

use std::thread;
use std::time::{Duration, Instant};

use stillpoint_clock::absent::{Behind, Operation};
use stillpoint_clock::rank::Activity;
use stillpoint_protocol::absent::{MemberAnswer, Missing};
use stillpoint_wrappers::gate::Command;

use crate::executor::stopping;
use crate::ground::page::Page;

/// The time in which a rank that is on its way comes by itself.
const GRACE: Duration = Duration::from_millis(50);
/// The pause after the first question that had no effect; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long an application inside MPI may take to stand still, before the rank reports that it cannot: it is in a call that waits for
/// others.
const HOLD: Duration = Duration::from_millis(200);

/// The stage that the rank has reached.
enum Stage {
    /// No question is open.
    Idle,
    /// The application is to stand still; until then the answer waits.
    Holding {
        until: Instant,
        missing: Vec<Missing>,
    },
    /// It stands still until the coordinator gives the next order.
    Held,
    /// It carries out operations.
    CarryingOut { _operations: Box<[Operation]> },
}

/// One rank's side of it, for one attempt.
pub struct Absent {
    stage: Stage,
    next: Option<Instant>,
    pause: Duration,
}

/// A message to the coordinator.
pub enum LateMessage {
    Asks(Vec<Missing>),
    Told(MemberAnswer),
}

impl Absent {
    pub fn new() -> Self {
        Self {
            stage: Stage::Idle,
            next: None,
            pause: FIRST_PAUSE,
        }
    }

    /// Returns whether the application's threads are to be stopped although targets are ahead.
    pub fn holds(&self) -> bool {
        !matches!(self.stage, Stage::Idle)
    }

    /// Checks the progress; returns a message to the coordinator, if one is due.
    pub fn look(&mut self, page: &Page, activity: Activity) -> Option<LateMessage> {
        match &mut self.stage {
            Stage::Idle => self.question(page, activity).map(LateMessage::Asks),
            Stage::Holding { until, missing } => {
                let stands = page.carried_out();
                if !stands && stopping::driver_is_outside() {
                    *until = Instant::now() + HOLD;
                }
                if !stands && Instant::now() < *until && !page.late().is_empty() {
                    return None;
                }
                let told = told(page, missing, stands);
                self.stage = Stage::Held;
                Some(LateMessage::Told(told))
            }
            Stage::CarryingOut { .. } if page.carried_out() => {
                self.let_on(page);
                None
            }
            Stage::Held | Stage::CarryingOut { .. } => None,
        }
    }

    /// Returns this rank's question, if it is time for one.
    fn question(&mut self, page: &Page, activity: Activity) -> Option<Vec<Missing>> {
        if !matches!(activity, Activity::Running | Activity::Waiting) || page.all_reached() {
            self.next = None;
            return None;
        }
        let now = Instant::now();
        let next = *self.next.get_or_insert(now + GRACE);
        if now < next {
            return None;
        }
        self.next = Some(now + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let missing = page.late().into_iter().map(|behind| Missing {
            ggid: behind.ggid,
            first: behind.begun + 1,
            last: behind.target,
        });
        Some(missing.collect())
    }

    /// Carries out `Order::Tell`. Returns the answer, if it can be given at once.
    pub fn tell(
        &mut self,
        page: &Page,
        activity: Activity,
        hold: bool,
        missing: Vec<Missing>,
    ) -> Option<MemberAnswer> {
        let able = matches!(activity, Activity::Running | Activity::Waiting);
        if !hold || !able || page.late().is_empty() {
            return Some(told(page, &missing, able && !hold));
        }
        page.carry_out(&[]);
        self.stage = Stage::Holding {
            until: Instant::now() + HOLD,
            missing,
        };
        None
    }

    /// Carries out `Order::CarryOut`.
    pub fn carry_out(&mut self, page: &Page, operations: Vec<Operation>) {
        if !matches!(self.stage, Stage::Held) {
            return;
        }
        if operations.is_empty() {
            self.let_on(page);
            return;
        }
        // More operations may follow soon.
        (self.next, self.pause) = (None, FIRST_PAUSE);
        let operations = operations.into_boxed_slice();
        page.carry_out(&operations);
        self.stage = Stage::CarryingOut {
            _operations: operations,
        };
    }

    /// Lets the application run on.
    fn let_on(&mut self, page: &Page) {
        page.command(Command::Reach);
        self.stage = Stage::Idle;
    }

    /// Ends the attempt. Operations that are being carried out have to end first: other ranks take part in them, and do so.
    pub fn end(&mut self, page: &Page) {
        if matches!(self.stage, Stage::CarryingOut { .. }) {
            while !page.carried_out() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        self.stage = Stage::Idle;
    }
}

/// Returns this rank's answer. With `able`, its application stands still or can; otherwise it can carry out nothing.
fn told(page: &Page, missing: &[Missing], able: bool) -> MemberAnswer {
    let behind = page.late().into_iter().map(|behind| {
        let rank = if able { behind.rank } else { -1 };
        Behind { rank, ..behind }.into()
    });
    let remembered = |it: &Missing| page.remembered(it.ggid, it.first, it.last);
    let operations = missing.iter().flat_map(remembered).map(Into::into);
    MemberAnswer {
        behind: behind.collect(),
        operations: operations.collect(),
    }
}
