//! Accepts connections, authenticates them, and passes their messages on.
//!
//! A stranger is a connection that has not shown the job's key, and it costs little. At most [`MAX_STRANGERS`] of them are open at once, each for at most
//! [`STRANGER_PATIENCE`]. When more come, the oldest are closed, so that clients with the key need not wait behind them. Until the handshake is over, only
//! bytes of fixed sizes are read, and none reach the job.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stillpoint_protocol::agent::FromAgent;
use stillpoint_protocol::codec::{Decode, Frames};
use stillpoint_protocol::command::FromCommand;
use stillpoint_protocol::handshake::{self, CLIENT_HELLO_BYTES, HandshakeError, PROOF_BYTES, Role};
use stillpoint_protocol::lasting::was_silent;
use stillpoint_protocol::sealed::{Channel, Opener, Sealer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::{Event, Listening, ServerState};

/// The most connections that have not shown the key yet.
const MAX_STRANGERS: usize = 256;
/// The time that a connection may take to show it, and then to send its first message.
const STRANGER_PATIENCE: Duration = Duration::from_secs(5);
/// The time for which a stranger is left alone even when others want its place, since the ranks of a large job all come at once.
const UNTROUBLED: Duration = Duration::from_millis(500);

/// Accepts connections for ever.
pub(super) async fn accept(listening: Listening, shared: Arc<ServerState>) {
    // Dropping its sender here closes a stranger. A connection that is no stranger any more drops the receiver.
    let mut strangers: VecDeque<(Instant, oneshot::Sender<()>)> = VecDeque::new();
    loop {
        match listening.accept(shared.terms.silence).await {
            Ok(stream) => {
                make_room(&mut strangers).await;
                let (stays, leaves) = oneshot::channel();
                strangers.push_back((Instant::now(), stays));
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let known = tokio::select! {
                        known = timeout(STRANGER_PATIENCE, shake_hands(stream, &shared)) => known.ok().flatten(),
                        _ = leaves => None,
                    };
                    if let Some((role, channel, stream)) = known {
                        match role {
                            // Blocks go from agent to agent, never through the coordinator.
                            Role::Peer => {}
                            Role::Agent => serve_agent(stream, channel, shared).await,
                            Role::Command => {
                                let watcher = shared.watchers.fetch_add(1, Ordering::Relaxed);
                                serve_command(stream, channel, shared, watcher).await;
                            }
                        }
                    }
                });
            }
            // The process is out of descriptors, or the connection ended at once: others may do better.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Waits until there is room for one more stranger.
async fn make_room(strangers: &mut VecDeque<(Instant, oneshot::Sender<()>)>) {
    loop {
        strangers.retain(|(_, stays)| !stays.is_closed());
        match strangers.front() {
            Some((since, _)) if strangers.len() >= MAX_STRANGERS => {
                if since.elapsed() >= UNTROUBLED {
                    strangers.pop_front();
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            _ => return,
        }
    }
}

/// Performs the server's side of the handshake. Returns `None` if the client does not belong to the job.
async fn shake_hands(
    mut stream: TcpStream,
    shared: &ServerState,
) -> Option<(Role, Channel, TcpStream)> {
    let mut hello = [0; CLIENT_HELLO_BYTES];
    stream.read_exact(&mut hello).await.ok()?;
    let server = match handshake::Server::new(&shared.terms.key, &hello) {
        Ok(server) => server,
        Err(HandshakeError::WrongKey) => {
            stream.write_all(&handshake::REFUSAL).await.ok()?;
            return None;
        }
        Err(_) => return None,
    };
    stream.write_all(server.hello()).await.ok()?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await.ok()?;
    let (role, _version, channel) = server.check(&proof).ok()?;
    Some((role, channel, stream))
}

/// The reason why a connection has ended.
enum Gone {
    /// The other side has ended it, or does not speak this protocol.
    Ended,
    /// The other side's host was silent.
    Silent,
}

impl From<std::io::Error> for Gone {
    fn from(error: std::io::Error) -> Gone {
        match was_silent(&error) {
            true => Gone::Silent,
            false => Gone::Ended,
        }
    }
}

/// Reads whole messages.
struct Messages {
    stream: OwnedReadHalf,
    opener: Opener,
    frames: Frames,
}

impl Messages {
    /// Waits for the next message. The error is the reason why there is none.
    async fn next<M: Decode<()>>(&mut self) -> Result<M, Gone> {
        loop {
            if let Some(message) = self.frames.next_message().map_err(|_| Gone::Ended)? {
                return Ok(message);
            }
            self.stream.readable().await?;
            self.take_what_is_there()?;
        }
    }

    /// Reads the bytes that have arrived. The buffer is on the thread's stack, which all connections share; in the task, each waiting connection would keep
    /// one.
    fn take_what_is_there(&mut self) -> Result<(), Gone> {
        let mut bytes = [0; 16 << 10];
        match self.stream.try_read(&mut bytes) {
            Ok(0) => Err(Gone::Ended),
            Ok(count) => {
                let mut opened = Vec::new();
                let opening = self.opener.open(&bytes[..count], &mut opened);
                opening.map_err(|_| Gone::Ended)?;
                self.frames.push(&opened);
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes encrypted frames.
struct Writer {
    stream: OwnedWriteHalf,
    sealer: Sealer,
}

fn halves(stream: TcpStream, channel: Channel) -> (Messages, Writer) {
    let (reader, stream) = stream.into_split();
    let (sealer, opener) = channel.split();
    let messages = Messages {
        stream: reader,
        opener,
        frames: Frames::default(),
    };
    (messages, Writer { stream, sealer })
}

/// Writes frames until their senders are gone, then ends the connection.
async fn write(mut writer: Writer, mut frames: mpsc::UnboundedReceiver<Arc<[u8]>>) {
    while let Some(frame) = frames.recv().await {
        let mut sealed = Vec::new();
        if writer.sealer.seal(&frame, &mut sealed).is_err()
            || writer.stream.write_all(&sealed).await.is_err()
        {
            return;
        }
    }
    // The other side may have ended it before.
    let _ = writer.stream.shutdown().await;
}

async fn serve_agent(stream: TcpStream, channel: Channel, shared: Arc<ServerState>) {
    let (mut messages, writer) = halves(stream, channel);
    let hello = match timeout(STRANGER_PATIENCE, messages.next()).await {
        Ok(Ok(FromAgent::Hello(hello))) => hello,
        _ => return,
    };
    let rank = hello.rank;
    let (outbox, frames) = mpsc::unbounded_channel();
    tokio::spawn(write(writer, frames));
    let (answer, admitted) = oneshot::channel();
    let event = Event::Admit {
        hello,
        outbox,
        answer,
    };
    // When the job has ended, sending fails, and no answer comes.
    let _ = shared.events.send(event);
    let Ok(Some(session)) = admitted.await else {
        return;
    };
    let gone = loop {
        match messages.next().await {
            Ok(message) => {
                let _ = shared.events.send(Event::Agent {
                    rank,
                    session,
                    message,
                });
            }
            Err(gone) => break gone,
        }
    };
    let _ = shared.events.send(match gone {
        Gone::Ended => Event::Disconnected { rank, session },
        Gone::Silent => Event::Unreachable { rank, session },
    });
}

async fn serve_command(
    stream: TcpStream,
    channel: Channel,
    shared: Arc<ServerState>,
    watcher: u64,
) {
    let (mut messages, writer) = halves(stream, channel);
    let message: FromCommand = match timeout(STRANGER_PATIENCE, messages.next()).await {
        Ok(Ok(message)) => message,
        _ => return,
    };
    let (outbox, frames) = mpsc::unbounded_channel();
    shared.commands.insert(watcher, outbox);
    // When the job has ended, sending fails, and the connection ends without an answer.
    let _ = shared.events.send(Event::Command { watcher, message });
    let gone = async {
        // A command sends one message only, so this waits for the end.
        while messages.next::<FromCommand>().await.is_ok() {}
    };
    tokio::select! {
        () = write(writer, frames) => {}
        () = gone => {}
    }
    shared.commands.remove(&watcher);
}
