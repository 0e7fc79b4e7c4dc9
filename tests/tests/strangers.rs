//! Strangers without the job's key get nothing from its coordinator, and cannot disturb it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use stillpoint_protocol::client::{ClientError, CommandConnection};
use stillpoint_protocol::handshake::HandshakeError;
use stillpoint_protocol::{Key, Received};
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, reason, strike};

/// The number of connections that are opened and left alone: more than the coordinator serves at once.
const HALF_OPEN: usize = 400;
/// The longest time until a connection without the key is closed.
const SHOWN_OUT: Duration = Duration::from_secs(15);

fn disturbed(name: &str, test: impl FnOnce(&Trial, &[String]) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new(name)?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            let file = strike::job_file(&trial.epochs_at())?;
            let addresses: Vec<String> = file["addresses"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|address| address.as_str().map(str::to_owned))
                .collect();
            ensure!(!addresses.is_empty(), "no addresses in job.json: {file}");
            test(&trial, &addresses)?;
            ensure!(job.runs(), "the job has ended: {}", job.stderr());
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn connect(addresses: &[String]) -> Result<TcpStream, Failed> {
    let address: SocketAddr = addresses[0]
        .parse()
        .map_err(|error| format!("{}: {error}", addresses[0]))?;
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))
        .map_err(|error| format!("{address}: {error}"))?;
    stream
        .set_read_timeout(Some(SHOWN_OUT))
        .and_then(|()| stream.set_write_timeout(Some(SHOWN_OUT)))
        .map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Checks that a checkpoint is committed within `seconds`.
fn checkpoint_within(trial: &Trial, seconds: f64) -> Result<(), Failed> {
    let answer = command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    ensure!(
        answer.took.as_secs_f64() <= seconds,
        "later than {seconds:.1} s: {}",
        answer.show()
    );
    Ok(())
}

/// Returns the time of a checkpoint without strangers.
fn undisturbed(trial: &Trial) -> Result<f64, Failed> {
    let answer = command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    Ok(answer.took.as_secs_f64())
}

#[test]
fn a_wrong_key_is_refused() {
    disturbed("strangers-key", |trial, addresses| {
        for _ in 0..20 {
            let key = Key::random().map_err(|error| error.to_string())?;
            match CommandConnection::open(addresses, &key.into(), Duration::from_secs(10)) {
                Err(ClientError::Handshake {
                    source: HandshakeError::WrongKey,
                    ..
                }) => {}
                Err(error) => return Err(format!("not told that the key is wrong: {error}")),
                Ok(_) => return Err("a wrong key was let in".to_owned()),
            }
        }
        // The command reports it too, when it uses the job.json of another job.
        let forged = trial.directory.file("forged.d");
        fs::create_dir(&forged).map_err(|error| error.to_string())?;
        let mut file = strike::job_file(&trial.epochs_at())?;
        let key = Key::random().map_err(|error| error.to_string())?;
        file["key"] = serde_json::Value::String(String::from(key));
        // The file must not show that it is a copy.
        file["inode"] = serde_json::Value::Null;
        let text = serde_json::to_string(&file).map_err(|error| error.to_string())?;
        fs::write(forged.join("job.json"), text).map_err(|error| error.to_string())?;
        for asked in ["checkpoint", "suspend"] {
            command::stillpoint(trial.directory, [Path::new(asked), forged.as_path()])?
                .expect_one_reason(exit::NOT_ALLOWED, &["key"])?;
        }
        checkpoint_within(trial, 20.0)
    });
}

#[test]
fn garbage_is_not_listened_to() {
    disturbed("strangers-garbage", |trial, addresses| {
        let mut seed = Seed::new();
        eprintln!("STILLPOINT_TEST_SEED={}", seed.start);
        let say = |bytes: &[u8]| -> Result<(), Failed> {
            let mut stream = connect(addresses)?;
            // The other side may hang up in the middle of it.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = vec![];
            let _ = stream.take(4096).read_to_end(&mut answer);
            ensure!(
                answer.len() < 1024,
                "garbage was answered with {} bytes",
                answer.len()
            );
            Ok(())
        };
        say(b"")?;
        say(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        say(&[0; 100_000])?;
        say(&[0xff; 100_000])?;
        for _ in 0..60 {
            let bytes: Vec<u8> = (0..seed.below(5000)).map(|_| seed.draw() as u8).collect();
            say(&bytes)?;
        }
        checkpoint_within(trial, 20.0)
    });
}

/// The beginning of a right handshake, then nonsense: this reaches the code behind the first bytes, which refuses it.
#[test]
fn a_handshake_that_goes_wrong_later_is_refused() {
    use stillpoint_protocol::handshake::{Client, Role};
    disturbed("strangers-handshake", |trial, addresses| {
        let file = strike::job_file(&trial.epochs_at())?;
        let key: Key = file["key"]
            .as_str()
            .and_then(|key| key.parse().ok())
            .ok_or("no key in job.json")?;
        for role in [Role::Agent, Role::Command] {
            for end in [0, 1, 31, 32, 200] {
                let client = Client::new(&key, role).map_err(|error| error.to_string())?;
                let mut stream = connect(addresses)?;
                stream
                    .write_all(client.hello())
                    .map_err(|error| error.to_string())?;
                let _ = stream.write_all(&vec![0x5a; end]);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let mut answer = vec![];
                let _ = stream.take(4096).read_to_end(&mut answer);
                ensure!(
                    answer.len() < 1024,
                    "half a handshake was answered with {} bytes",
                    answer.len()
                );
            }
        }
        checkpoint_within(trial, 20.0)
    });
}

/// A stranger without a key lets a command's handshake pass and then speaks for it, or changes its messages.
#[test]
fn somebody_in_between_gives_no_orders() {
    use stillpoint_protocol::codec;
    use stillpoint_protocol::command::FromCommand;
    disturbed("strangers-between", |trial, addresses| {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let file = strike::job_file(&trial.epochs_at())?;
        let key: Key = file["key"]
            .as_str()
            .and_then(|key| key.parse().ok())
            .ok_or("no key in job.json")?;
        let suspend = FromCommand::Checkpoint {
            suspend: true,
            timeout: None,
            waits: false,
            asked: None,
        };
        let plain = codec::encode(&suspend).map_err(|error| failed(&error))?;
        for change in [Change::Say(plain), Change::Flip, Change::Repeat] {
            let (address, between) = between(addresses, change)?;
            let connection =
                CommandConnection::open(&[address], &key.clone().into(), Duration::from_secs(10))
                    .map_err(|error| failed(&error))?;
            let (sender, mut receiver) = connection.split().map_err(|error| failed(&error))?;
            sender
                .send(&FromCommand::Status)
                .map_err(|error| failed(&error))?;
            // The coordinator hangs up, or has answered the one question.
            while let Ok(Received::Message(_)) = receiver.receive_within(SHOWN_OUT) {}
            sender.close();
            between.join().map_err(|_| "the one in between failed")?;
        }
        checkpoint_within(trial, 20.0)
    });
}

/// A change that a stranger in between makes to the first bytes after a handshake.
enum Change {
    /// Sends other bytes before them.
    Say(Vec<u8>),
    /// Changes a bit.
    Flip,
    /// Sends them twice.
    Repeat,
}

/// Forwards one connection with that change, and returns the address to connect to.
fn between(
    addresses: &[String],
    change: Change,
) -> Result<(String, thread::JoinHandle<()>), Failed> {
    use stillpoint_protocol::handshake::{CLIENT_HELLO_BYTES, PROOF_BYTES, SERVER_HELLO_BYTES};
    let failed = |error: std::io::Error| error.to_string();
    let mut there = connect(addresses)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?.to_string();
    let thread = thread::spawn(move || {
        let (mut here, _) = listener.accept().expect("the command comes");
        let pass = |from: &mut TcpStream, to: &mut TcpStream, bytes: usize| {
            let mut handshake = vec![0; bytes];
            from.read_exact(&mut handshake).expect("a handshake");
            to.write_all(&handshake).expect("a handshake");
        };
        pass(&mut here, &mut there, CLIENT_HELLO_BYTES);
        pass(&mut there, &mut here, SERVER_HELLO_BYTES);
        pass(&mut here, &mut there, PROOF_BYTES);
        let mut first = vec![0; 4096];
        let count = here.read(&mut first).expect("an order");
        first.truncate(count);
        let changed = match change {
            Change::Say(before) => [before, first].concat(),
            Change::Flip => first.iter().map(|byte| byte ^ 4).collect(),
            Change::Repeat => [first.clone(), first].concat(),
        };
        // The coordinator may hang up before it has all of it.
        let _ = there.write_all(&changed);
        let _ = std::io::copy(&mut there, &mut here);
        let _ = here.shutdown(std::net::Shutdown::Both);
    });
    Ok((address, thread))
}

#[test]
fn hundreds_of_half_open_connections_do_not_keep_a_checkpoint_waiting() {
    disturbed("strangers-half-open", |trial, addresses| {
        let alone = undisturbed(trial)?;
        let mut held = vec![];
        for _ in 0..HALF_OPEN {
            held.push(connect(addresses)?);
        }
        // A command with the key does not wait behind the strangers.
        checkpoint_within(trial, alone * 3.0 + 2.0)?;
        for stream in &mut held {
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(0) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
                other => return Err(format!("a stranger was not shown out: {other:?}")),
            }
        }
        checkpoint_within(trial, alone * 3.0 + 2.0)
    });
}

#[test]
fn slow_strangers_do_not_keep_a_checkpoint_waiting() {
    disturbed("strangers-slow", |trial, addresses| {
        let alone = undisturbed(trial)?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let slow: Vec<_> = (0..50)
                .map(|_| connect(addresses))
                .collect::<Result<_, _>>()?;
            scope.spawn(|| {
                let mut slow = slow;
                while !over.load(Ordering::Relaxed) {
                    for stream in &mut slow {
                        // The coordinator may have closed the connection in the meantime.
                        let _ = stream.write_all(b"S");
                    }
                    thread::sleep(Duration::from_millis(100));
                }
            });
            let checked = (|| {
                for _ in 0..3 {
                    checkpoint_within(trial, alone * 3.0 + 2.0)?;
                }
                Ok(())
            })();
            over.store(true, Ordering::Relaxed);
            checked
        })
    });
}

/// Strangers connect and leave all the time, while the job is suspended and restarted.
#[test]
fn strangers_are_no_reason_to_lose_a_suspend() {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("strangers-suspend")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            let file = strike::job_file(&trial.epochs_at())?;
            let address = file["addresses"][0].as_str().unwrap_or_default().to_owned();
            let held: Vec<_> = (0..100)
                .map(|_| connect(std::slice::from_ref(&address)))
                .collect::<Result<_, _>>()?;
            trial.suspended(job)?;
            drop(held);
            let answer = command::checkpoint(directory, &trial.epochs_at())?;
            ensure!(answer.status == exit::NO_SUCH, "{}", answer.show());
            reason::one(&answer.stderr, &["suspended"])?;
            trial.go()?;
            trial.ends_well(trial.restarted()?)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        let failed: Failed = failed;
        panic!("{failed}");
    }
}
