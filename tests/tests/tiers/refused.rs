//! Impossible requests get a message, and the job runs on.

use std::io::{Read, Write};
use std::net::TcpStream;

use stillpoint_protocol::Key;
use stillpoint_protocol::handshake::HandshakeError;
use stillpoint_protocol::peer::{Peer, PeerError};
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::ensure;
use stillpoint_tests::job;
use stillpoint_tests::place::{self, Directory};

use crate::nodes::{PATIENCE, bytes, on_nodes};

#[test]
fn more_than_all_tiers_hold_is_refused_and_the_job_runs_on() {
    on_nodes(
        "too-much",
        |nodes| nodes.slow = ",capacity=20M",
        |nodes| {
            let job = nodes.start()?;
            nodes
                .checkpoint()?
                .expect_reason(exit::FAILED, "the slow tier has room for 20 MB")?;
            ensure!(
                command::epochs(&nodes.target()).is_empty(),
                "an epoch was written"
            );
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn one_node_has_no_partner() {
    on_nodes(
        "alone",
        |nodes| nodes.more = &["--redundancy=partner", "--tier=fast=shared,capacity=1G"],
        |nodes| {
            let mut command = job::mpirun(2);
            let slow = format!("--tier=slow={}", nodes.target().display());
            command
                .arg(place::stillpoint()?)
                .arg("run")
                .arg(slow)
                .args(nodes.more)
                .arg("--");
            command.arg(nodes.trial.program.build()?).args(nodes.sizes);
            let mut job = nodes.trial.launch(command)?;
            nodes.trial.ready(&mut job)?;
            nodes
                .checkpoint()?
                .expect_reason(exit::FAILED, "there is no partner")?;
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn a_stranger_at_the_peers_port_gets_nowhere() {
    on_nodes(
        "stranger",
        |nodes| nodes.slow = ",limit=20MB/s",
        |nodes| {
            let job = nodes.start()?;
            let status = nodes.status()?;
            let address = status["live"]["tiers"][1]["address"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let key = Key::random().map_err(|error| error.to_string())?;
            match Peer::open(&address, &key.into(), PATIENCE) {
                Err(PeerError::Handshake {
                    source: HandshakeError::WrongKey,
                    ..
                }) => {}
                other => return Err(format!("not told that the key is wrong: {other:?}")),
            }
            let mut stranger = TcpStream::connect(&address).map_err(|error| error.to_string())?;
            stranger
                .write_all(&[b'G'; 100])
                .map_err(|error| error.to_string())?;
            let mut answer = vec![];
            // The coordinator closes the connection: an end, or a reset.
            let _ = stranger.read_to_end(&mut answer);
            ensure!(
                answer.is_empty(),
                "a stranger was answered {} bytes",
                answer.len()
            );
            let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
            ensure!(bytes(&answer, "peer_bytes") > 0, "{answer}");
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn bad_options_are_named_by_their_field() {
    let tested = Directory::new("tiers-options").and_then(|directory| {
        directory.run(|directory| {
            let slow = format!("slow={}", directory.file("slow").display());
            let fast = format!("fast={}", directory.file("fast").display());
            for (options, word) in [
                (
                    vec![format!("--tier={fast},capacity=-5G")],
                    "capacity: '-5G' is negative",
                ),
                (vec![format!("--tier={fast}")], "capacity"),
                (vec![format!("--tier={fast},capacity=1G,limit=0")], "limit"),
                (
                    vec![format!("--tier={fast},capacity=1G,bandwidth=5G")],
                    "bandwidth",
                ),
                (vec!["--tier=medium=/x".to_owned()], "medium"),
                (
                    vec![format!("--tier={slow}"), "--redundancy=partner".to_owned()],
                    "--tier fast",
                ),
                (
                    vec![format!("--tier={slow}"), "--dir=/elsewhere".to_owned()],
                    "/elsewhere",
                ),
                (vec!["--peer-limit=0".to_owned()], "0"),
                (
                    vec!["--tier=fast=/proc/x,capacity=1G".to_owned()],
                    "/proc/x",
                ),
            ] {
                let words = ["run".to_owned()]
                    .into_iter()
                    .chain(options)
                    .chain(["true".to_owned()]);
                let answer = command::stillpoint(directory, words)?;
                ensure!(
                    [exit::USAGE, exit::FAILED].contains(&answer.status)
                        && answer.stderr.contains(word),
                    "does not speak of '{word}': {}",
                    answer.show()
                );
            }
            Ok(())
        })
    });
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
