//! A job that measures on request and otherwise sleeps (`tests/programs/bench/overhead/worker.c`).

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use stillpoint_tests::Failed;
use stillpoint_tests::place::Directory;

use crate::programs::Programs;
use crate::way::{RANKS, Way};

/// The time after which a measure counts as hanging.
const LONGEST: Duration = Duration::from_secs(60);

pub struct Worker {
    way: Way,
    child: Child,
    /// A pipe to every rank.
    commands: Vec<File>,
    figures: Receiver<String>,
    /// The job's directory, which is removed after the job.
    _directory: Directory,
}

impl Worker {
    pub fn start(way: Way, programs: &Programs) -> Result<Worker, Failed> {
        let directory = Directory::new(&format!("overhead-{}", way.name()))?;
        let commands = (0..RANKS)
            .map(|rank| pipe(&directory.file(&format!("commands.{rank}"))))
            .collect::<Result<_, _>>()?;
        let mut command = way.command(&programs.mpi, directory.path())?;
        let mut child = command
            .args(programs.worker(way))
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start mpirun: {error}"))?;
        let output = child.stdout.take().ok_or("no output of mpirun")?;
        let (tell, figures) = channel();
        // The thread ends with the job.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Worker {
            way,
            child,
            commands,
            figures,
            _directory: directory,
        })
    }

    /// Returns one measure's figure.
    pub fn measure(&mut self, name: &str, size: u32, calls: u32) -> Result<f64, Failed> {
        let line = format!("{name} {size} {calls}\n");
        for pipe in &mut self.commands {
            pipe.write_all(line.as_bytes())
                .map_err(|error| format!("cannot tell a rank what to measure: {error}"))?;
        }
        let what = || format!("{} ({} bytes, {})", name, size, self.way.name());
        let figure = self
            .figures
            .recv_timeout(LONGEST)
            .map_err(|error| format!("{}: no answer: {error}", what()))?;
        figure
            .parse()
            .map_err(|_| format!("{}: not a figure: {figure}", what()))
    }
}

impl Drop for Worker {
    /// Without commands the ranks end by themselves; the rest is ended by a signal.
    fn drop(&mut self) {
        self.commands.clear();
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(10) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        // mpirun ends its ranks.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// Makes a named pipe, open for both ways, so that neither end waits for the other to be opened.
fn pipe(path: &Path) -> Result<File, Failed> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|error| failed(&error))?;
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| failed(&error))
}
