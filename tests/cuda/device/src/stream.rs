//! A stream: work that is done in order, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::channel::EVENTS;
use stillpoint_emulated_gpu_protocol::fault::Fault;
use stillpoint_emulated_gpu_protocol::futex;
use stillpoint_emulated_gpu_protocol::message::Work;

use crate::client::Client;
use crate::copy::Dma;
use crate::kernels;
use crate::node::code;

/// A piece of work and its position.
pub struct Piece {
    pub device: u32,
    pub sequence: u32,
    pub after: Vec<(u32, u32)>,
    pub work: Work,
}

/// The sending end of a stream. The thread ends once this is gone and everything is done.
pub struct Stream {
    work: Sender<Piece>,
}

impl Stream {
    pub fn new(client: &Arc<Client>, number: u32) -> Stream {
        let (work, pieces) = mpsc::channel();
        let client = Arc::clone(client);
        thread::spawn(move || run(&client, number, &pieces));
        Stream { work }
    }

    pub fn submit(&self, piece: Piece) {
        // The thread exists as long as this.
        let _ = self.work.send(piece);
    }
}

fn run(client: &Client, number: u32, pieces: &Receiver<Piece>) {
    for piece in pieces {
        wait(client, &piece.after);
        if client.gone.load(Ordering::Acquire) {
            return;
        }
        let channel = client.channel();
        // Later work of a client with an error is not done.
        if channel.error.load(Ordering::Acquire) == 0
            && let Err(code) = perform(client, number, &piece)
        {
            channel.fail(code);
        }
        channel.finish(number, piece.sequence);
    }
}

/// Waits until other streams have done the work that comes first.
fn wait(client: &Client, after: &[(u32, u32)]) {
    let channel = client.channel();
    for &(stream, sequence) in after {
        let Some(word) = channel.done.get(stream as usize) else {
            continue;
        };
        while let Some(seen) = channel.pending(stream, sequence)
            && !client.gone.load(Ordering::Acquire)
        {
            // A client may go while one stream waits for another that has ended with it.
            futex::wait(futex::place(word), seen, Some(Duration::from_millis(100)));
        }
    }
}

/// Asks for a function of the host, and waits for it.
fn call(client: &Client, stream: u32, ticket: u32) {
    let channel = client.channel();
    channel.ask(stream, ticket);
    let word = &channel.asked[stream as usize];
    while word.load(Ordering::Acquire) == ticket && !client.gone.load(Ordering::Acquire) {
        futex::wait(futex::place(word), ticket, Some(Duration::from_millis(100)));
    }
}

fn perform(client: &Client, number: u32, piece: &Piece) -> Result<(), u32> {
    let gpus = &client.gpus;
    if gpus.lost(piece.device) {
        return Err(code::UNKNOWN);
    }
    let dma = Dma {
        pid: client.pid,
        space: &client.space,
        links: &gpus.links,
    };
    let copies = matches!(
        piece.work,
        Work::ToDevice { .. } | Work::ToHost { .. } | Work::Within { .. }
    );
    if copies {
        if gpus.faults.strike(Fault::CopyError) {
            return Err(code::UNCORRECTABLE);
        }
        let latency = gpus.node.devices[piece.device as usize].latency;
        let over = gpus.links.now() + (latency * 1e9) as u64;
        gpus.links.wait(over);
    }
    match &piece.work {
        &Work::ToDevice {
            host,
            address,
            size,
        } => dma.to_device(host, address, size),
        &Work::ToHost {
            address,
            host,
            size,
        } => dma.to_host(address, host, size),
        &Work::Within { from, to, size } => dma.within(from, to, size),
        Work::Fill {
            address,
            pattern,
            count,
        } => dma.fill(*address, pattern, *count),
        Work::Launch(launch) => kernels::run(launch, &client.space),
        &Work::Stamp { event } => {
            let now = gpus.links.now();
            client.channel().times[event as usize % EVENTS].store(now, Ordering::Release);
            Ok(())
        }
        &Work::Host { ticket } => {
            call(client, number, ticket);
            Ok(())
        }
        &Work::Free { address } => client.space.remove(address),
        Work::Nothing => Ok(()),
    }
}
