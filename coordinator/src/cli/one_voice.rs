//! What is wrong with every rank alike is told once, by rank 0.
//!
//! Some launchers end the other ranks when rank 0 has failed, some let them run into the same wall, or wait for a job that nobody has
//! started. So a rank 0 that fails stays for a moment and lets the ranks of its host know why, by a socket without a file. Who hears what
//! it was about to say itself is silent.

use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

use super::launch::Place;
use super::{Failure, Outcome};

/// How long rank 0 stays, if not all others have heard it before.
const STAYS: Duration = Duration::from_secs(1);
/// How long another rank that has failed waits for rank 0's word; then it speaks for itself.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
/// Longest word.
const LONGEST: u64 = 64 << 10;

/// What comes of a rank's part of a launch, once.
pub fn with_one_voice(place: &Place, outcome: Outcome) -> Outcome {
    let Err(failure) = &outcome else {
        return outcome;
    };
    if place.size == 1 || failure.is_silent() {
        return outcome;
    }
    if place.rank == 0 {
        // Before the others end: a launcher may end this one with them.
        failure.say();
        tell(place, failure);
        return Err(Failure::silent(failure.status));
    }
    let failed = Instant::now();
    while failed.elapsed() < PATIENCE {
        match heard(place) {
            Some(said) if said.to_string() == failure.to_string() => {
                return Err(Failure::silent(said.status));
            }
            Some(_) => break,
            None => thread::sleep(PAUSE),
        }
    }
    outcome
}

/// Why rank 0 of this launch has failed, if it has, and is on this host.
pub fn heard(place: &Place) -> Option<Failure> {
    let mut stream = UnixStream::connect_addr(&address(place)?).ok()?;
    let peer = getsockopt(&stream, PeerCredentials).ok()?;
    if peer.uid() != geteuid().as_raw() {
        return None;
    }
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut said = Vec::new();
    Read::by_ref(&mut stream)
        .take(LONGEST)
        .read_to_end(&mut said)
        .ok()?;
    let (status, text) = said.split_first()?;
    Some(Failure::new(*status, String::from_utf8_lossy(text)))
}

/// Rank 0 tells the others of its host.
fn tell(place: &Place, failure: &Failure) {
    // Without a socket the others speak for themselves.
    let Some(listener) = address(place).and_then(|at| UnixListener::bind_addr(&at).ok()) else {
        return;
    };
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let mut word = vec![failure.status];
    word.extend(failure.to_string().bytes());
    let (began, mut heard) = (Instant::now(), 1);
    while heard < place.size && began.elapsed() < STAYS {
        match listener.accept() {
            Ok((mut stream, _)) => {
                // Who does not listen need not hear.
                let told = stream.set_nonblocking(true);
                let _ = told.and_then(|()| stream.write_all(&word));
                heard += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(_) => break,
        }
    }
}

/// In the abstract namespace: nothing is left behind.
fn address(place: &Place) -> Option<SocketAddr> {
    let name = format!("stillpoint-{}-{}", geteuid(), place.launch);
    SocketAddr::from_abstract_name(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: u32, launch: &str) -> Place {
        Place {
            rank,
            size: 3,
            launch: format!("{launch}-{}", std::process::id()),
            one_host: true,
            mpi: None,
        }
    }

    fn ended(rank: u32, launch: &'static str, text: &'static str) -> thread::JoinHandle<Failure> {
        thread::spawn(move || {
            let failed = Err(Failure::new(126, text));
            with_one_voice(&place(rank, launch), failed).unwrap_err()
        })
    }

    #[test]
    fn ranks_say_only_what_rank_0_has_not_said() {
        let ranks = ["all", "all", "mine"];
        let ranks = [0, 1, 2].map(|rank| ended(rank, "same", ranks[rank as usize]));
        let said = ranks.map(|rank| rank.join().unwrap());
        assert_eq!(said.each_ref().map(ToString::to_string), ["", "", "mine"]);
        assert!(said.iter().all(|failure| failure.status == 126));
    }

    #[test]
    fn a_rank_that_waits_hears_that_nobody_will_come() {
        let (first, second) = (place(0, "waits"), place(1, "waits"));
        assert!(heard(&second).is_none());
        let failing = thread::spawn(move || with_one_voice(&first, Err(Failure::failed("full"))));
        let began = Instant::now();
        let why = loop {
            match heard(&second) {
                Some(why) => break why,
                None => assert!(began.elapsed() < PATIENCE),
            }
        };
        assert_eq!((why.to_string(), why.status), ("full".to_owned(), 1));
        assert!(failing.join().unwrap().unwrap_err().is_silent());
    }
}
