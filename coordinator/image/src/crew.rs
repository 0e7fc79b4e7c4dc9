//! Work in steps on several threads. A thread that has given way to others on the processor cannot take that back, so new threads, which
//! give way less, continue the work.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Work that another thread can continue after any step.
pub trait Steps: Send {
    /// Does a little of the work; returns false when none is left.
    fn step(&mut self) -> io::Result<bool>;
}

/// A time in which threads give way to others on the processor.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The end of the turn, counted from the beginning of all the work.
    pub until: Duration,
    /// A function that each thread of the turn calls first.
    pub give_way: fn(),
}

/// The number of threads, and the way in which they compete with others.
#[derive(Clone, Copy, Debug)]
pub struct Crew {
    threads: usize,
    begun: Instant,
    turns: &'static [Turn],
}

impl Crew {
    /// Makes threads that compete for the processor as the calling thread does.
    pub fn of(threads: usize) -> Crew {
        Crew {
            threads,
            begun: Instant::now(),
            turns: &[],
        }
    }

    /// Makes the threads give way in these turns, which begin now, and no more after the last one.
    pub fn giving_way(self, turns: &'static [Turn]) -> Crew {
        Crew {
            begun: Instant::now(),
            turns,
            ..self
        }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Does all the work, each piece of it on a thread of its own.
    ///
    /// # Errors
    /// The error of a step, returned when all threads have ended.
    pub fn carry_out<S: Steps>(&self, mut work: Vec<S>) -> io::Result<Vec<S>> {
        let mut done = Vec::new();
        for turn in self.turns {
            let until = self.begun + turn.until;
            if Instant::now() < until && !work.is_empty() {
                work = on_threads(work, Some((turn.give_way, until)), &mut done)?;
            }
        }
        on_threads(work, None, &mut done)?;
        Ok(done)
    }
}

/// Returns the pieces that were not done when the time was over. Without a time limit, this thread does one piece itself. It also does the
/// pieces for which no thread can be started.
fn on_threads<S: Steps>(
    work: Vec<S>,
    way: Option<(fn(), Instant)>,
    done: &mut Vec<S>,
) -> io::Result<Vec<S>> {
    let until = way.map(|(_, until)| until);
    let pieces: Vec<_> = work
        .into_iter()
        .map(|piece| Mutex::new(Some(piece)))
        .collect();
    let take = |piece: &Mutex<Option<S>>| {
        let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
        piece.take()
    };
    let all = std::thread::scope(|scope| -> io::Result<Vec<_>> {
        let (mut threads, mut mine) = (Vec::new(), Vec::new());
        for (number, piece) in pieces.iter().enumerate() {
            let carry_out = move || {
                if let Some((give_way, _)) = way {
                    give_way();
                }
                take(piece).map(|piece| steps(piece, until)).transpose()
            };
            let is_mine = way.is_none() && number == 0;
            let started =
                (!is_mine).then(|| std::thread::Builder::new().spawn_scoped(scope, carry_out));
            match started {
                Some(Ok(thread)) => threads.push(thread),
                Some(Err(_)) | None => mine.push(piece),
            }
        }
        let mine: Vec<_> = mine
            .into_iter()
            .filter_map(take)
            .map(|piece| steps(piece, until))
            .collect();
        let joined = threads.into_iter().filter_map(|thread| {
            let ended_early = |_| Err(io::Error::other("a worker thread ended early"));
            thread.join().unwrap_or_else(ended_early).transpose()
        });
        joined.chain(mine).collect()
    })?;
    let mut left = Vec::new();
    for (piece, is_done) in all {
        match is_done {
            true => done.push(piece),
            false => left.push(piece),
        }
    }
    Ok(left)
}

/// Takes step after step until the work is done or the time is over; returns whether it is done.
fn steps<S: Steps>(mut piece: S, until: Option<Instant>) -> io::Result<(S, bool)> {
    while piece.step()? {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok((piece, false));
        }
    }
    Ok((piece, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::thread::sleep;

    thread_local!(static WAY: Cell<u8> = const { Cell::new(0) });

    const TURNS: &[Turn] = &[
        Turn {
            until: Duration::from_millis(20),
            give_way: || WAY.set(2),
        },
        Turn {
            until: Duration::from_millis(40),
            give_way: || WAY.set(1),
        },
    ];

    /// Notes how far each step gave way.
    struct Noting {
        left: usize,
        ways: Vec<u8>,
    }

    impl Steps for Noting {
        fn step(&mut self) -> io::Result<bool> {
            if self.left == 0 {
                return Err(io::Error::other("a step too many"));
            }
            sleep(Duration::from_millis(1));
            self.ways.push(WAY.get());
            self.left -= 1;
            Ok(self.left > 0)
        }
    }

    fn noting(left: usize) -> Noting {
        let ways = Vec::new();
        Noting { left, ways }
    }

    #[test]
    fn work_goes_on_with_less_way_given_until_none_is() {
        let crew = Crew::of(2).giving_way(TURNS);
        let done = crew.carry_out(vec![noting(100), noting(1)]).unwrap();
        let [short, long] = done.as_slice() else {
            panic!("{} pieces", done.len());
        };
        assert_eq!(short.ways, [2]);
        assert_eq!(long.ways.len(), 100);
        assert!(long.ways.is_sorted_by(|one, next| one >= next));
        assert_eq!(long.ways.last(), Some(&0));
        // Work that begins later has less time to give way.
        let late = crew.carry_out(vec![noting(1)]).unwrap();
        assert_eq!(late[0].ways, [0]);
        let plain = Crew::of(1).carry_out(vec![noting(3)]).unwrap();
        assert_eq!(plain[0].ways, [0; 3]);
        assert!(crew.carry_out(vec![noting(0), noting(1)]).is_err());
    }
}
