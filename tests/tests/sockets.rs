//! Connections that lead out of the process, with `--sockets reset`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

use stillpoint_tests::Failed;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;

/// Sends back what comes, for each client, as long as the test lives.
fn echo(mut client: impl Read + Write + Send + 'static) {
    thread::spawn(move || {
        let mut byte = [0];
        while client.read_exact(&mut byte).is_ok() && client.write_all(&byte).is_ok() {}
    });
}

/// Runs a test of a program whose restarts may lose connections, with further settings.
fn with(
    program: &str,
    settings: impl FnOnce(&Directory) -> Result<Vec<(&'static str, &'static str)>, Failed>,
    test: impl FnOnce(&Trial) -> Result<(), Failed>,
) {
    let tested = (|| {
        let program = Program::named(Kind::Special, program)?;
        Directory::new("sockets")?.run(|directory| {
            let mut trial = Trial::new(&program, 2, directory)?;
            trial.settings = settings(directory)?;
            trial.settings.push(("STILLPOINT_SOCKETS", "reset"));
            test(&trial)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Runs a test of the program beside servers that are no part of the job.
fn beside_servers(test: impl FnOnce(&Trial) -> Result<(), Failed>) {
    let served = |directory: &Directory| {
        let failed = |error: std::io::Error| format!("cannot serve: {error}");
        let tcp = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = tcp.local_addr().map_err(failed)?.port().to_string();
        let path = directory.file("server");
        let unix = UnixListener::bind(&path).map_err(failed)?;
        thread::spawn(move || tcp.incoming().flatten().for_each(echo));
        thread::spawn(move || unix.incoming().flatten().for_each(echo));
        let path = path.to_string_lossy().into_owned();
        let settings = [("OUTWARD_PORT", port), ("OUTWARD_PATH", path)];
        Ok(settings
            .map(|(name, value)| (name, &*value.leak()))
            .to_vec())
    };
    with("outward_sockets", served, test);
}

#[test]
fn a_checkpoint_leaves_them_alone() {
    beside_servers(|trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        for _ in 0..2 {
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
        }
        trial.go()?;
        trial.ends_well(job).map(drop)
    });
}

#[test]
fn after_a_restart_their_peers_have_closed_them() {
    beside_servers(|trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        fs::write(trial.directory.file("restarted"), b"").map_err(|error| error.to_string())?;
        // Once more: they are lost already, and are so again.
        trial.suspended(trial.resumed()?)?;
        trial.go()?;
        trial.ends_well(trial.restarted()?).map(drop)
    });
}

/// Runs a test of the program that serves.
fn with_servers(test: impl FnOnce(&Trial) -> Result<(), Failed>) {
    with("outward_servers", |_| Ok(vec![]), test);
}

#[test]
fn servers_are_served_after_a_checkpoint_and_after_restarts() {
    with_servers(|trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
        trial.suspended(job)?;
        trial.suspended(trial.resumed()?)?;
        trial.go()?;
        trial.ends_well(trial.restarted()?).map(drop)
    });
}

/// Another process has the port meanwhile.
#[test]
fn a_port_that_is_taken_refuses_the_restart_by_name() {
    with_servers(|trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        let port = fs::read_to_string(trial.directory.file("port.0"));
        let port = port.map_err(|error| error.to_string())?;
        let name = format!("127.0.0.1:{port}");
        let taken = TcpListener::bind(&name).map_err(|error| format!("{name}: {error}"))?;
        trial.go()?;
        let ended = trial.restarted()?.end(stillpoint_tests::trial::PATIENCE)?;
        stillpoint_tests::ensure!(
            ended.status != 0
                && ended.stderr.contains(&name)
                && ended.stderr.contains("Address already in use"),
            "{}",
            ended.show()
        );
        drop(taken);
        trial.ends_well(trial.restarted()?).map(drop)
    });
}
