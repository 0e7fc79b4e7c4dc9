//! The cost of encryption for image blocks on their way from node to node. It compares a connection between peers over the loopback interface with the same
//! bytes in clear, in turn.
//!
//! ```text
//! cargo run --release -p stillpoint-protocol --example blocks
//! ```

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_protocol::peer::serve::serve;
use stillpoint_protocol::peer::{Answer, Peer, Request, listen};
use stillpoint_protocol::{Key, Terms};

const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 256;
const ROUNDS: usize = 15;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let terms = Terms::from(Key::random()?);
    let block: Vec<u8> = (0..BLOCK).map(|at| (at * 31) as u8).collect();
    let (mut sealed, mut clear) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        sealed.push(between_peers(&terms, &block)?);
        clear.push(in_clear(&block)?);
    }
    for (words, mut rates) in [("encrypted", sealed), ("in clear", clear)] {
        rates.sort_by(f64::total_cmp);
        let at = |part: usize| rates[(ROUNDS - 1) * part / 4];
        println!("{words:10} {:.2} GB/s [{:.2}, {:.2}]", at(2), at(1), at(3));
    }
    Ok(())
}

fn rate(begun: Instant) -> f64 {
    (BLOCK * BLOCKS) as f64 / begun.elapsed().as_secs_f64() / 1e9
}

fn between_peers(terms: &Terms, block: &[u8]) -> Result<f64, Failure> {
    let (listener, address) = listen(IpAddr::V4(Ipv4Addr::LOCALHOST))?;
    let servers_terms = terms.clone();
    thread::spawn(move || {
        let spawn = |work| thread::Builder::new().spawn(work).map(drop);
        serve(&listener, &servers_terms, spawn, |mut peer| {
            let mut buffer = vec![];
            while let Ok(Some(request)) = peer.request() {
                let done = match request {
                    Request::Probe { bytes } => peer.bytes(bytes, &mut buffer).map(drop),
                    _ => peer.answer(&Answer::Kept { bytes: 0 }),
                };
                if done.is_err() {
                    return;
                }
            }
        })
    });
    let mut peer = Peer::open(&address, terms, Duration::from_secs(10))?;
    let bytes = block.len() as u32;
    let begun = Instant::now();
    for _ in 0..BLOCKS {
        peer.send(&Request::Probe { bytes }, block)?;
    }
    peer.close()?;
    Ok(rate(begun))
}

fn in_clear(block: &[u8]) -> Result<f64, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    let server = thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; BLOCK];
        for _ in 0..BLOCKS {
            stream.read_exact(&mut buffer)?;
        }
        stream.write_all(&[1])
    });
    let begun = Instant::now();
    for _ in 0..BLOCKS {
        stream.write_all(block)?;
    }
    stream.read_exact(&mut [0])?;
    let rate = rate(begun);
    server.join().map_err(|_| "the server failed")??;
    Ok(rate)
}
