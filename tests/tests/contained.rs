//! Jobs in containers: PID and user namespaces of their own, for a whole job or for each rank. (`ci/containers` tests more kinds.)

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// The prefix of a command line that runs in a container, as its first process.
const CONTAINER: [&str; 6] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--kill-child",
];
const OWN_PROC: &str = "--mount-proc";

fn tried(name: &str, ranks: u32, run: impl FnOnce(&Trial) -> Result<(), Failed>) {
    tried_with("clocks", name, ranks, run);
}

fn tried_with(
    program: &str,
    name: &str,
    ranks: u32,
    run: impl FnOnce(&Trial) -> Result<(), Failed>,
) {
    let tested = (|| {
        let program = Program::named(Kind::Still, program)?;
        Directory::new(name)?.run(|directory| run(&Trial::new(&program, ranks, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Makes `LAUNCHER CONTAINER stillpoint WORDS`. Without a launcher there is one rank.
fn in_containers<'a>(
    ranks: Option<u32>,
    container: impl IntoIterator<Item = &'a str>,
    words: &[&OsStr],
) -> Result<Command, Failed> {
    let mut container = container.into_iter();
    let mut command = match ranks {
        Some(ranks) => {
            let mut command = job::mpirun(ranks);
            // Open MPI's shared memory does not connect such containers, natively either.
            command.args(["--mca", "btl", "self,tcp"]);
            // Other tests add and remove network interfaces.
            command.args(["--mca", "btl_tcp_if_include", "lo"]);
            command
        }
        None => Command::new(container.next().unwrap_or_default()),
    };
    command
        .args(container)
        .arg(place::stillpoint()?)
        .args(words);
    Ok(command)
}

fn run_of(trial: &Trial, target: &Path, ranks: Option<u32>) -> Result<Command, Failed> {
    let words = [
        OsStr::new("run"),
        OsStr::new("--dir"),
        target.as_os_str(),
        OsStr::new("--"),
        trial.executable().as_os_str(),
    ];
    let container = CONTAINER.into_iter().chain([OWN_PROC]);
    let mut command = in_containers(ranks, container, &words)?;
    command.args(&trial.arguments);
    Ok(command)
}

/// Checks that the job can be checkpointed, suspended and restarted, and is known to have finished, all from outside.
fn carries_on(trial: &Trial, ranks: Option<u32>) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut started = trial.launch(run_of(trial, &target, ranks)?)?;
    trial.ready(&mut started)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    trial.suspended(started)?;
    let words = [OsStr::new("restart"), target.as_os_str()];
    let container = CONTAINER.into_iter().chain([OWN_PROC]);
    let started = trial.launch(in_containers(ranks, container, &words)?)?;
    trial.go()?;
    trial.ends_well(started)?;
    let state = command::state(trial.directory, &target)?;
    ensure!(state == "finished", "the job is known as {state}");
    Ok(())
}

#[test]
fn the_first_process_of_a_container_is_carried_on() {
    tried("first", 1, |trial| carries_on(trial, None));
}

#[test]
fn ranks_that_do_not_see_each_others_processes_are_one_job() {
    tried("apart", 2, |trial| carries_on(trial, Some(2)));
}

#[test]
fn the_first_process_of_a_container_passes_signals_and_its_end_on() {
    tried("signals", 1, |trial| {
        let script = "trap 'exit 9' TERM; kill -TERM 1; while :; do sleep 0.1; done";
        for (script, status) in [("exit 7", 7), (script, 9), ("kill -KILL $$", 128 + 9)] {
            let target = trial.directory.file(&format!("ends-{status}"));
            let words = ["run", "--dir"].map(OsStr::new).into_iter();
            let words = words.chain([target.as_os_str()]);
            let program = ["--", "sh", "-c", script].map(OsStr::new);
            let words: Vec<&OsStr> = words.chain(program).collect();
            let container = CONTAINER.into_iter().chain([OWN_PROC]);
            let command = in_containers(None, container, &words)?;
            let ended = Job::start(command, trial.directory)?.end(Duration::from_secs(60))?;
            ensure!(ended.status == status, "{script}: {}", ended.show());
        }
        Ok(())
    });
}

#[test]
fn a_container_that_shows_other_processes_is_refused() {
    tried("shown", 1, |trial| {
        let target = trial.epochs_at();
        let words = [
            OsStr::new("run"),
            OsStr::new("--dir"),
            target.as_os_str(),
            OsStr::new("--"),
            OsStr::new("true"),
        ];
        let command = in_containers(None, CONTAINER, &words)?;
        let ended = Job::start(command, trial.directory)?.end(Duration::from_secs(60))?;
        ensure!(ended.status == 1, "{}", ended.show());
        let said = "/proc shows the processes of another PID namespace";
        ensure!(ended.stderr.contains(said), "{}", ended.show());
        Ok(())
    });
}

/// Forbids the system calls that Stillpoint uses and that Docker's and Podman's seccomp profiles forbid.
fn under_a_profile(mut command: Command) -> Command {
    // SAFETY: between fork and exec it makes two system calls, which read its own stack.
    unsafe { command.pre_exec(forbid) };
    command
}

fn forbid() -> io::Result<()> {
    let instruction = |code, yes, no, k| libc::sock_filter {
        code,
        jt: yes,
        jf: no,
        k,
    };
    const NUMBER_OF_THE_CALL: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        instruction(NUMBER_OF_THE_CALL, 0, 0, 0),
        instruction(IS, 1, 0, libc::SYS_kcmp as u32),
        instruction(IS, 0, 1, libc::SYS_userfaultfd as u32),
        instruction(ANSWER, 0, 0, refused),
        instruction(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the filter.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    match set {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

#[test]
fn what_a_seccomp_profile_forbids_changes_nothing_of_open_files() {
    tried_with("files_alike", "profile", 2, |trial| {
        let target = trial.epochs_at();
        let mut command = job::mpirun(2);
        command
            .arg(place::stillpoint()?)
            .args(["run", "--dir"])
            .arg(&target)
            .arg("--")
            .arg(trial.executable())
            .args(&trial.arguments);
        let mut started = trial.launch(under_a_profile(command))?;
        trial.ready(&mut started)?;
        trial.suspended(started)?;
        let mut command = job::mpirun(2);
        command
            .arg(place::stillpoint()?)
            .args(["restart", "--lazy"])
            .arg(&target);
        let started = trial.launch(under_a_profile(command))?;
        trial.go()?;
        trial.ends_well(started)?;
        Ok(())
    });
}
