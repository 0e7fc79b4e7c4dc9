//! Standard input, output and error, created in every way: checkpointed, and suspended and restarted.
//!
//! [`WAYS`] is the table of docs/descriptors.md.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// The lines that the program reads before a checkpoint, and in all; more than a pipe holds.
const FIRST: u32 = 1_000;
const ALL: u32 = 30_000;
/// Fewer lines than a pipe holds: Hydra ends a job whose rank does not read at once, and Open MPI's `mpirun` dies now and
/// then of SIGSEGV where its input ends while its pipe to rank 0 is full (`orte_iof_hnp_read_local_handler`, 4.1.4).
const FEW: u32 = 8_000;

/// The launcher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Mpirun,
    Hydra,
    /// The shell starts `stillpoint run` itself.
    Nobody,
}

/// The result.
#[derive(Clone, Copy)]
enum Then {
    /// A checkpoint, and a restart with each of these behind its command.
    Carried(&'static [&'static str]),
    /// A restart needs the rest of the input: it is refused with the first, and goes on with each of the others.
    Needs(&'static str, &'static [&'static str]),
    /// There is no checkpoint, and the reason contains this.
    Refused(&'static str),
}

/// One way to create the streams. `{run}` is everything up to the program, `{app}` the program with its arguments, `{in}`
/// the file with its input, `{dir}` the test's directory.
struct Way {
    by: By,
    command: &'static str,
    /// The most lines that come.
    all: u32,
    then: Then,
    /// Files with the program's output, in its order: `before`, then `after`.
    says: &'static [&'static str],
}

const ANY: &[&str] = &["</dev/null", "<{in}", "<{other}"];
const AS_BEFORE: &[&str] = &["</dev/null"];

const fn way(by: By, command: &'static str, all: u32, then: Then) -> Way {
    Way {
        by,
        command,
        all,
        then,
        says: &[],
    }
}

fn filled(text: &str, directory: &Directory, run: &str, app: &str) -> String {
    let place = |name: &str| directory.file(name).display().to_string();
    text.replace("{run}", run)
        .replace("{app}", app)
        .replace("{in}", &place("in"))
        .replace("{other}", &place("other"))
        .replace("{dir}", &directory.path().display().to_string())
}

fn quoted(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| format!("'{}'", word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

/// Makes the launcher's command, with the variables that it needs, before `words`.
fn launcher(by: By, ranks: u32, words: &[&str]) -> Result<Command, Failed> {
    let mut command = match by {
        By::Mpirun => job::mpirun(ranks),
        By::Hydra => Mpi::named(&place::target().join("mpis"), "mpich-debian")?.launcher(ranks),
        By::Nobody => {
            let mut command = Command::new(place::stillpoint()?);
            command.args(words);
            command.envs(
                job::mpirun(1)
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            return Ok(command);
        }
    };
    command.arg(place::stillpoint()?).args(words);
    Ok(command)
}

/// Makes a shell that runs `text`, in the environment of `as_of`.
fn shell(as_of: &Command, text: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", text]);
    for (name, value) in as_of.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

impl Way {
    fn ranks(&self) -> u32 {
        if self.by == By::Nobody { 1 } else { 2 }
    }

    fn start(&self, trial: &Trial) -> Result<Job, Failed> {
        let target = trial.epochs_at();
        let target = target.to_string_lossy();
        let launcher = launcher(self.by, self.ranks(), &["run", "--dir", &target, "--"])?;
        let app = format!("'{}' {FIRST} {}", trial.executable().display(), self.all);
        let text = filled(self.command, trial.directory, &quoted(&launcher), &app);
        let mut job = trial.launch(shell(&launcher, &text))?;
        trial.ready(&mut job)?;
        Ok(job)
    }

    fn restart(&self, trial: &Trial, input: &str) -> Result<Job, Failed> {
        let target = trial.epochs_at();
        let launcher = launcher(
            self.by,
            self.ranks(),
            &["restart", &target.to_string_lossy()],
        )?;
        let input = filled(input, trial.directory, "", "");
        let text = match input.split_once('|') {
            Some((before, behind)) => format!("{before} | {} {behind}", quoted(&launcher)),
            None => format!("exec {} {input}", quoted(&launcher)),
        };
        trial.launch(shell(&launcher, &text))
    }

    /// Checks the program's end and its output.
    fn ends(&self, trial: &Trial, job: Job) -> Result<(), Failed> {
        trial.go()?;
        if !self.says.is_empty() {
            let ended = job.end(stillpoint_tests::trial::PATIENCE)?;
            ensure!(ended.status == 0, "the program failed: {}", ended.show());
            for file in self.says {
                let said = fs::read_to_string(trial.directory.file(file)).unwrap_or_default();
                let last = said.rfind("before");
                let right = last.is_some() && last < said.find("after");
                ensure!(right, "{file} has '{said}': {}", ended.show());
                ensure!(!said.contains("WRONG"), "{file} has '{said}'");
            }
            return Ok(());
        }
        trial.ends_well(job).map(drop)
    }

    fn on_trial(&self, name: &str, test: impl Fn(&Trial) -> Result<(), Failed>) {
        let tested = (|| {
            let mut program = Program::named(Kind::Special, "input")?;
            if self.by == By::Hydra {
                program =
                    program.built_for(&Mpi::named(&place::target().join("mpis"), "mpich-debian")?);
            }
            Directory::new(name)?.run(|directory| {
                write_lines(&directory.file("in"), self.all)?;
                fs::write(directory.file("other"), "7\n8\n").map_err(|error| error.to_string())?;
                test(&Trial::new(&program, self.ranks(), directory)?)
            })
        })();
        if let Err(failed) = tested {
            panic!("{failed}");
        }
    }

    fn carries_on(&self, name: &str) {
        self.on_trial(name, |trial| {
            let job = self.start(trial)?;
            let answer = command::checkpoint(trial.directory, &trial.epochs_at())?;
            match self.then {
                Then::Refused(why) => answer.expect_reason(exit::REFUSED, why),
                _ => answer.expect(exit::DONE),
            }
            .map_err(|failed| format!("{failed}\n{}", job.stderr()))?;
            self.ends(trial, job)
        });
    }

    fn is_restarted(&self, name: &str) {
        let (refused, inputs) = match self.then {
            Then::Refused(_) => return,
            Then::Carried(inputs) => (None, inputs),
            Then::Needs(refused, inputs) => (Some(refused), inputs),
        };
        for input in inputs {
            self.on_trial(name, |trial| {
                trial.suspended(self.start(trial)?)?;
                if let Some(refused) = refused {
                    let ended = self
                        .restart(trial, refused)?
                        .end(stillpoint_tests::trial::PATIENCE)?;
                    let told = ended.stderr.contains("its standard input: ")
                        && ended.stderr.contains("--input-ends");
                    ensure!(ended.status != 0 && told, "{refused}: {}", ended.show());
                }
                let restarted = self.restart(trial, input)?;
                self.ends(trial, restarted)
                    .map_err(|failed| format!("restarted {input}: {failed}"))
            });
        }
    }
}

fn write_lines(path: &Path, all: u32) -> Result<(), Failed> {
    let mut text = String::new();
    for number in 1..=all {
        writeln!(text, "{number}").map_err(|error| error.to_string())?;
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes a module with a test of each kind for each way.
macro_rules! ways {
    ($($name:ident: $way:expr;)*) => {$(
        mod $name {
            use super::*;

            const WAY: Way = $way;

            #[test]
            fn carries_on() {
                WAY.carries_on(concat!("streams-on-", stringify!($name)));
            }

            #[test]
            fn is_restarted() {
                WAY.is_restarted(concat!("streams-again-", stringify!($name)));
            }
        }
    )*};
}

use By::{Hydra, Mpirun, Nobody};
use Then::{Carried, Needs, Refused};

ways! {
    mpirun_file: way(Mpirun, "exec {run} {app} <{in}", FEW, Carried(ANY));
    mpirun_pipe: way(Mpirun, "cat {in} | {run} {app}", FEW, Carried(ANY));
    mpirun_nothing: way(Mpirun, "exec {run} {app} </dev/null", 0, Carried(AS_BEFORE));
    hydra_file: way(Hydra, "exec {run} {app} <{in}", FEW, Carried(ANY));
    hydra_nothing: way(Hydra, "exec {run} {app} </dev/null", 0, Carried(AS_BEFORE));
    alone_file: way(Nobody, "exec {run} {app} <{in}", ALL, Carried(ANY));
    alone_pipe: way(Nobody, "cat {in} | {run} {app}", ALL, Carried(ANY));
    alone_here: way(Nobody, "exec {run} {app} <<<\"$(cat {in})\"", ALL, Carried(ANY));
    alone_socket: way(Nobody, "exec /usr/bin/python3 -c 'import socket, subprocess, sys; here, there = socket.socketpair(); app = subprocess.Popen(sys.argv[2:], stdin=there); there.close(); here.sendall(open(sys.argv[1], \"rb\").read()); here.close(); sys.exit(app.wait())' {in} {run} {app}", ALL, Carried(ANY));
    alone_closed: way(Nobody, "exec {run} {app} <&-", 0, Carried(AS_BEFORE));
    alone_terminal: way(Nobody, "exec script -qec \"{run} {app}\" /dev/null <{in}", FIRST, Carried(AS_BEFORE));
    still_coming: way(
        Mpirun,
        "exec {run} {app} < <(head -n 20000 {in}; while [ ! -e {dir}/go ]; do sleep 0.01; done; tail -n +20001 {in})",
        ALL,
        Needs("</dev/null", &["(cat {in}; sleep 2) |", "tail -n +20001 {in} |"])
    );
    script_file: way(Mpirun, "exec {run} bash -c 'if [ $OMPI_COMM_WORLD_RANK = 0 ]; then {app} <{in}; else {app}; fi' </dev/null", ALL, Carried(ANY));
    script_nothing: way(Mpirun, "exec {run} bash -c '{app} </dev/null' <{in}", 0, Carried(ANY));
    script_here: way(Mpirun, "exec {run} bash -c '{app} <<<\"$(cat {in})\"'", ALL, Carried(ANY));
    script_reads_first: way(Mpirun, "(sleep 1; echo skipped; cat {in}) | {run} bash -c '[ $OMPI_COMM_WORLD_RANK = 1 ] || read first; {app}; exit'", FEW, Carried(&["</dev/null", "<{other}", "(echo skipped; cat {in}) |"]));
    script_becomes: way(Mpirun, "exec {run} bash -c 'exec {app}' <{in}", FEW, Carried(ANY));
    script_pipe: way(Mpirun, "exec {run} bash -c '(cat {in}; while [ ! -e {dir}/go ]; do sleep 0.01; done) | {app}'", ALL, Refused("a pipe whose other end process"));
    output_to_file: Way {
        says: &["out.0", "out.1"],
        ..way(Mpirun, "exec {run} bash -c '{app} >{dir}/out.$OMPI_COMM_WORLD_RANK 2>&1' <{in}", FEW, Carried(ANY))
    };
    output_appended: Way {
        says: &["out.0", "err.0"],
        ..way(Mpirun, "exec {run} bash -c '{app} >>{dir}/out.$OMPI_COMM_WORLD_RANK 2>>{dir}/err.$OMPI_COMM_WORLD_RANK' <{in}", FEW, Carried(ANY))
    };
    output_to_nothing: Way {
        says: &["out.1"],
        ..way(Mpirun, "exec {run} bash -c '{app} >/dev/null 2>{dir}/out.$OMPI_COMM_WORLD_RANK' <{in}", FEW, Carried(ANY))
    };
    output_exchanged: way(Mpirun, "exec {run} bash -c '{app} 3>&1 1>&2 2>&3 3>&-; exit' 2>&1 <{in}", FEW, Carried(&["</dev/null 2>&1"]));
    output_to_pipe: way(Mpirun, "exec {run} bash -c '{app} | cat' <{in}", FEW, Refused("a pipe whose other end process"));
}
