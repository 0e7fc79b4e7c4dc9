//! The server loop: it serves processes of the same user that come to the socket, until there have been none for a while.

use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{UnixCredentials, getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use stillpoint_gpu_messages::{Request, receive};

use crate::checkpoint::{Connection, Node, driver};
use crate::facts;

/// How long the helper waits without any process before it ends: ranks come and go while a job is restarted.
const ALONE: Duration = Duration::from_secs(20);
const LOOK: u16 = 500;

/// Serves the node's ranks. Returns at once if another helper has the socket already.
///
/// # Errors
/// The text is for people.
pub fn until_all_have_gone(name: &[u8]) -> Result<(), String> {
    facts::see_every_device();
    let bound =
        SocketAddr::from_abstract_name(name).and_then(|place| UnixListener::bind_addr(&place));
    let listener = match bound {
        Ok(listener) => listener,
        // Two ranks have each started a helper: the other one serves both.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(()),
        Err(error) => return Err(format!("cannot open the socket: {error}")),
    };
    // Opening the driver takes seconds, so it begins now, and later processes need not wait for that. Each request reports a failure.
    thread::spawn(|| drop(driver()));
    serve(&listener, &Arc::new(Node::new()))
        .map_err(|error| format!("cannot wait for ranks: {error}"))
}

fn serve(listener: &UnixListener, node: &Arc<Node>) -> io::Result<()> {
    let there = Arc::new(AtomicUsize::new(0));
    let mut last = Instant::now();
    loop {
        let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::from(LOOK)) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => welcome(listener.accept()?.0, node, &there),
            Err(error) => return Err(error.into()),
        }
        if there.load(Ordering::SeqCst) > 0 {
            last = Instant::now();
        } else if last.elapsed() > ALONE {
            return Ok(());
        }
    }
}

/// Counts the connected processes.
struct Presence(Arc<AtomicUsize>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Serves one process on a thread of its own, if it is of this user.
fn welcome(stream: UnixStream, node: &Arc<Node>, there: &Arc<AtomicUsize>) {
    let Ok(peer) = getsockopt(&stream, PeerCredentials) else {
        return;
    };
    if !may_come(&peer) {
        return;
    }
    there.fetch_add(1, Ordering::SeqCst);
    let presence = Presence(Arc::clone(there));
    let node = Arc::clone(node);
    thread::spawn(move || {
        let _presence = presence;
        // A rank that has gone needs no answer.
        let _ = converse(&stream, &node, peer.pid());
    });
}

fn may_come(peer: &UnixCredentials) -> bool {
    peer.uid() == geteuid().as_raw()
}

fn converse(stream: &UnixStream, node: &Node, pid: i32) -> io::Result<()> {
    let mut connection = Connection::new(node, pid);
    let mut from = BufReader::new(stream);
    while let Some(request) = receive::<Request>(&mut from)? {
        connection.carry_out(request, &mut from, stream)?;
    }
    Ok(())
}
