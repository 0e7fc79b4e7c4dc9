//! Tells waiting people what a rank does that takes long to come to its still point, or to write its image.

use std::time::{Duration, Instant};

use stillpoint_clock::rank::Activity;

use crate::executor::stopping;
use crate::ground::page::Page;
use crate::ground::writing::Seen;

/// The time after which a rank says what it does.
const LONG: Duration = Duration::from_secs(1);
/// The time between two looks.
pub const PAUSE: Duration = Duration::from_millis(250);

/// The coordinator's knowledge of a late rank, and the time of the next look.
pub struct Late {
    next: Instant,
    asked: bool,
    said: String,
}

impl Late {
    pub fn new() -> Self {
        Self {
            next: Instant::now() + LONG,
            asked: false,
            said: String::new(),
        }
    }

    /// Returns what is to be said now, if that is something new. Empty text says that the rank keeps no one waiting any more.
    pub fn look(&mut self, page: &Page, activity: Activity) -> Option<String> {
        if Instant::now() < self.next {
            return None;
        }
        self.next = Instant::now() + PAUSE;
        let inside = stopping::driver_in_collective();
        if inside && !self.asked {
            // The answer is there at the next look.
            page.ask();
            self.asked = true;
            return None;
        }
        self.asked = inside;
        let call = page.call().filter(|_| inside);
        let said = in_words(activity, call.as_deref(), &page.behind());
        let news = said != self.said;
        self.said.clone_from(&said);
        news.then_some(said)
    }
}

/// A rank that writes its image.
pub struct Writes {
    next: Instant,
    seen: Seen,
    at: Instant,
    /// The time at which storage was last seen to answer.
    answered: Instant,
    said: &'static str,
}

impl Writes {
    pub fn begin() -> Self {
        Self {
            next: Instant::now() + LONG,
            seen: Seen::now(),
            at: Instant::now(),
            answered: Instant::now(),
            said: "",
        }
    }

    /// Returns what it waits for, if that is something new.
    pub fn look(&mut self) -> Option<String> {
        if Instant::now() < self.next {
            return None;
        }
        let seen = Seen::now();
        if !seen.waits_for_storage(&self.seen) {
            self.answered = Instant::now();
        }
        let said = seen.since(&self.seen, self.at.elapsed(), self.answered.elapsed());
        (self.seen, self.at) = (seen, Instant::now());
        self.next = self.at + LONG;
        let news = said != self.said;
        self.said = said;
        news.then(|| said.to_owned())
    }
}

/// Describes what a rank does. The text is empty for a parked rank, which keeps no one waiting.
fn in_words(activity: Activity, call: Option<&str>, behind: &[String]) -> String {
    let does = match activity {
        Activity::Parked => return String::new(),
        Activity::InCollective => format!("in {}", call.unwrap_or("a collective operation")),
        Activity::Waiting => "waiting for a message".to_owned(),
        Activity::Running => "computing".to_owned(),
    };
    match behind {
        [] => does,
        names => format!(
            "{does}, yet to come to what others have returned from on {}",
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_says_what_it_does_and_what_it_is_waited_for() {
        let world = ["MPI_COMM_WORLD".to_owned()];
        assert_eq!(in_words(Activity::Parked, None, &world), "");
        assert_eq!(
            in_words(Activity::Running, None, &world),
            "computing, yet to come to what others have returned from on MPI_COMM_WORLD"
        );
        assert_eq!(
            in_words(Activity::InCollective, Some("MPI_Bcast"), &[]),
            "in MPI_Bcast"
        );
        assert_eq!(
            in_words(Activity::Waiting, None, &[]),
            "waiting for a message"
        );
    }
}
