//! The handshake on a blocking connection. One deadline holds for the whole handshake, not for each of its bytes, so the other side cannot make it last
//! longer.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::handshake::{self, Client, HandshakeError, Role, Server};
use crate::key::Key;
use crate::lasting::Lasting;
use crate::sealed::Channel;

/// The reason why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    #[error(transparent)]
    Broken(#[from] io::Error),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

/// Performs the client's side, within `patience`. The stream then has no deadline for reading.
///
/// # Errors
/// See [`GreetingError`]; [`io::ErrorKind::TimedOut`] if the other side was silent for too long.
pub fn greet(
    stream: &Lasting,
    key: &Key,
    role: Role,
    patience: Duration,
) -> Result<Channel, GreetingError> {
    let mut until = Until::new(stream, patience);
    let client = Client::new(key, role)?;
    until.say(client.hello())?;
    let mut hello = [0; handshake::SERVER_HELLO_BYTES];
    until.hear(&mut hello)?;
    let (_version, proof, channel) = client.answer(&hello)?;
    until.say(&proof)?;
    until.over()?;
    Ok(channel)
}

/// Performs the server's side, within `patience`. Returns the client's role.
///
/// # Errors
/// As [`greet`].
pub fn admit(
    stream: &Lasting,
    key: &Key,
    patience: Duration,
) -> Result<(Role, Channel), GreetingError> {
    let mut until = Until::new(stream, patience);
    let mut hello = [0; handshake::CLIENT_HELLO_BYTES];
    until.hear(&mut hello)?;
    let server = match Server::new(key, &hello) {
        Ok(server) => server,
        Err(error) => {
            if error == HandshakeError::WrongKey {
                until.say(&handshake::REFUSAL)?;
            }
            return Err(error.into());
        }
    };
    until.say(server.hello())?;
    let mut proof = [0; handshake::PROOF_BYTES];
    until.hear(&mut proof)?;
    let (role, _version, channel) = server.check(&proof)?;
    until.over()?;
    Ok((role, channel))
}

/// A stream, until its deadline.
struct Until<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl<'a> Until<'a> {
    fn new(stream: &'a TcpStream, patience: Duration) -> Until<'a> {
        Until {
            stream,
            deadline: Instant::now() + patience,
        }
    }

    fn left(&self) -> io::Result<Duration> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }

    fn hear(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let mut heard = 0;
        while heard < bytes.len() {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(&mut bytes[heard..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => heard += count,
                Err(error) => again(error)?,
            }
        }
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut said = 0;
        while said < bytes.len() {
            self.stream.set_write_timeout(Some(self.left()?))?;
            match self.stream.write(&bytes[said..]) {
                Ok(count) => said += count,
                Err(error) => again(error)?,
            }
        }
        Ok(())
    }

    /// Removes the deadline from the stream: later messages have deadlines of their own.
    fn over(self) -> io::Result<()> {
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)
    }
}

/// Turns `WouldBlock` into `TimedOut`, since an expired deadline looks like missing data.
fn again(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock => Err(io::ErrorKind::TimedOut.into()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lasting::{Silence, listen};
    use std::thread;

    #[test]
    fn one_byte_at_a_time_does_not_stretch_the_deadline() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let slow = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            // It writes until the other side hangs up.
            while stream.write_all(b"S").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        });
        let begun = Instant::now();
        let key = Key::random().unwrap();
        let stream = Lasting::accept(&listener, Silence::default()).unwrap();
        let admitted = admit(&stream, &key, Duration::from_millis(400));
        assert!(
            matches!(&admitted, Err(GreetingError::Broken(error)) if error.kind() == io::ErrorKind::TimedOut)
        );
        assert!(begun.elapsed() < Duration::from_secs(3));
        drop(stream);
        slow.join().unwrap();
    }
}
