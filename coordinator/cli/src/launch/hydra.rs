//! The name of a launch by Hydra, the launcher of MPICH and of libraries derived from it. Hydra sets no variable with such a name. But the launch has a space
//! of keys by which the ranks find each other. Its name is the same on every host and in every PID namespace. A rank asks for it at the socket that it was
//! given.
//!
//! The question changes nothing at the launcher: the real MPI can then begin at this socket as usual.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};

/// The variable with the socket's descriptor.
const SOCKET: &str = "PMI_FD";
/// The question, and the beginning of the answer; the name follows `kvsname=`.
const QUESTION: &[u8] = b"cmd=get_my_kvsname\n";
const ANSWER: &str = "cmd=my_kvsname ";
const NAME: &str = "kvsname=";
/// The longest answer.
const LONGEST: usize = 4096;
/// The time for the answer: a launcher with many ranks on a busy host has much to answer.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(1);

/// Whether a rank with these variables was started by Hydra. Slurm sets some of them too, but not the number of ranks on the host.
pub fn started(variables: &BTreeMap<String, String>) -> bool {
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"]
        .iter()
        .all(|name| variables.contains_key(*name))
}

/// Asks at the socket for the launch's name; `None`: there is no socket.
///
/// # Errors
/// The launcher does not answer, or its answer is not the expected one.
pub fn name(variables: &BTreeMap<String, String>) -> io::Result<Option<String>> {
    let socket = variables.get(SOCKET).and_then(|text| text.parse().ok());
    let Some(socket) = socket else {
        return Ok(None);
    };
    match send(socket, QUESTION, MsgFlags::MSG_NOSIGNAL) {
        Ok(sent) if sent == QUESTION.len() => answer(socket).map(Some),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(error) => Err(error.into()),
    }
}

fn answer(socket: RawFd) -> io::Result<String> {
    let (mut line, begun) = (vec![], Instant::now());
    while !line.ends_with(b"\n") {
        let mut bytes = [0; LONGEST];
        match recv(socket, &mut bytes, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => line.extend(&bytes[..count]),
            Err(Errno::EAGAIN | Errno::EINTR) if begun.elapsed() < PATIENCE => {
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
        if line.len() > LONGEST {
            break;
        }
    }
    let line = String::from_utf8_lossy(&line);
    told(&line).ok_or_else(|| io::Error::other(format!("it answered {line:?}")))
}

/// The name in an answer.
fn told(line: &str) -> Option<String> {
    let mut words = line.strip_prefix(ANSWER)?.split_ascii_whitespace();
    let name = words.find_map(|word| word.strip_prefix(NAME))?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether a name is unique to one launch. MPICH's names have a random part. Intel's are the launcher's process id, which may be used again.
pub fn is_drawn(name: &str) -> bool {
    name.split('_').count() > 3
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn every_hydra_is_understood() {
        let name = |line| told(line);
        let four = "cmd=my_kvsname kvsname=kvs_23449_0_65567975_vm\n";
        assert_eq!(name(four).as_deref(), Some("kvs_23449_0_65567975_vm"));
        let five = "cmd=my_kvsname rc=0 kvsname=kvs_23643_0_585734310_vm\n";
        assert_eq!(name(five).as_deref(), Some("kvs_23643_0_585734310_vm"));
        let intel = "cmd=my_kvsname kvsname=kvs_23776_0\n";
        assert_eq!(name(intel).as_deref(), Some("kvs_23776_0"));
        assert_eq!(name("cmd=response_to_init rc=-1\n"), None);
        assert_eq!(name("cmd=my_kvsname kvsname=\n"), None);
        assert!(is_drawn("kvs_23449_0_65567975_vm") && !is_drawn("kvs_23776_0"));
    }

    #[test]
    fn the_name_is_asked_for_and_read_to_its_end() {
        let (own, mut launcher) = UnixStream::pair().unwrap();
        let answers = thread::spawn(move || {
            let mut question = [0; QUESTION.len()];
            launcher.read_exact(&mut question).unwrap();
            assert_eq!(question, QUESTION);
            launcher.write_all(b"cmd=my_kvsname kvs").unwrap();
            thread::sleep(Duration::from_millis(20));
            launcher.write_all(b"name=kvs_1_0_2_h\n").unwrap();
        });
        let variables = BTreeMap::from([(SOCKET.to_owned(), own.as_raw_fd().to_string())]);
        assert_eq!(name(&variables).unwrap().as_deref(), Some("kvs_1_0_2_h"));
        answers.join().unwrap();
        // The launcher has gone.
        assert!(name(&variables).is_err());
        assert_eq!(name(&BTreeMap::new()).unwrap(), None);
    }
}
