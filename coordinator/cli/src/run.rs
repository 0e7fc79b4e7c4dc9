//! `stillpoint run`: start a program so that it can be checkpointed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use stillpoint_directory::Directory;
use stillpoint_protocol::job_file::{JobFile, JobState};

use stillpoint_refusals::Code;

use super::job_directory::{absolute, take};
use super::launch::LaunchPosition;
use super::options::{LaunchOptions, SafeState};
use super::program::{executable, find_program, refuse_launcher};
use super::restart::RestartRequest;
use super::shared_errors::with_one_voice;
use super::start::{Decision, Home, Program, Task, new_job_id, start, text};
use super::{CommandResult, Failure, directory_name, first_process, inside, restart};
use stillpoint_coordinator::epoch::{Epochs, Mark};

/// Start an MPI program, unmodified, so that it can be checkpointed
///
/// mpirun -n 4 stillpoint run --dir /scratch/melt.d -- lmp -in in.melt
#[derive(Debug, Args)]
pub struct Run {
    /// Checkpoint directory; all hosts must share it [default: the slow tier, else ./stillpoint.d]
    ///
    /// %u stands for the user, %j for the batch job, %x for the batch job's name, %% for a percent sign
    #[arg(long, env = "STILLPOINT_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Restart the newest committed epoch in the directory, or start afresh if there is none
    #[arg(long, env = "STILLPOINT_RESUME")]
    resume: bool,

    /// With --resume: restart also if the epoch is of another command, or if the job has finished
    #[arg(long, env = "STILLPOINT_RESUME_ANYWAY", requires = "resume")]
    resume_anyway: bool,

    /// With --resume: end with status 0, not 6, if the job in the directory has finished
    #[arg(long, env = "STILLPOINT_FINISHED_OK")]
    finished_ok: bool,

    /// Give up the epochs of an earlier job in the directory. Without this, `run` refuses to begin if that job has epochs and has not finished
    #[arg(long, conflicts_with = "resume")]
    discard: bool,

    /// How a checkpoint brings the job to a safe state; a restarted job keeps the way that it was started with
    #[arg(
        long,
        env = "STILLPOINT_SAFE_STATE",
        value_name = "HOW",
        default_value = "clock"
    )]
    safe_state: SafeState,

    #[command(flatten)]
    pub options: LaunchOptions,

    /// The program
    #[arg(value_name = "APP")]
    program: OsString,

    /// Its arguments
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

impl Run {
    pub fn execute(self) -> CommandResult {
        if inside::a_rank() {
            find_program(&self.program)?;
            return Err(inside::go_on(&self.program, &self.arguments));
        }
        first_process::stay_behind()?;
        let place = LaunchPosition::here()?;
        with_one_voice(&place, self.start(&place))
    }

    /// The checkpoint directory.
    pub fn directory(&self) -> Result<PathBuf, Failure> {
        let dir = self
            .dir
            .as_deref()
            .map(directory_name::filled)
            .transpose()?;
        let directory = self.options.tiers.directory(dir.as_deref())?;
        absolute(&directory.unwrap_or_else(|| "./stillpoint.d".into()))
    }

    /// The program and its arguments.
    pub fn words(self) -> Vec<OsString> {
        [self.program].into_iter().chain(self.arguments).collect()
    }

    fn start(&self, place: &LaunchPosition) -> CommandResult {
        let directory = self.directory()?;
        let found = find_program(&self.program)?;
        refuse_launcher(&found)?;
        let executable = executable(found);
        let decide = || {
            let held = take(&directory)?;
            match self.resume {
                true => self.resumed(&held, place.size),
                false => self.afresh().map(Decision::Start),
            }
        };
        // The lower half looks the application up again, as execvp would.
        let program = Program {
            path: Path::new(&self.program),
            executable: &executable,
            arguments: &self.arguments,
            safe_state: self.safe_state,
            is_certain: !self.resume,
            finished_ok: self.finished_ok,
        };
        let home = Home {
            work: directory.clone(),
            from: directory.clone(),
        };
        start(place, home, &self.options, Some(program), decide)
    }

    /// The program and its arguments, in the form of job.json and the manifest.
    fn command(&self) -> Vec<String> {
        let words = [&self.program].into_iter().chain(&self.arguments);
        words.map(|word| text(word)).collect()
    }

    /// Decides what to restart from the directory. If there is no epoch, the program starts afresh.
    fn resumed(&self, held: &Directory, size: u32) -> Result<Decision, Failure> {
        let directory = held.path();
        let last = JobFile::read(directory)
            .ok()
            .filter(|_| !self.resume_anyway);
        if let Some(job) = &last
            && job.state == JobState::Finished
        {
            self.is_of_this_command(&job.command, "the job that has finished here", directory)?;
            return Ok(Decision::Finished(Box::new(job.clone())));
        }
        let epochs = Epochs::of(held.clone(), Mark::none());
        let newest = |is_its: &dyn Fn(&str) -> bool| {
            let newest = epochs.newest_of(|id| id.is_none_or(is_its));
            newest.map_err(|error| Failure::refuse_of(Code::BrokenImage, &error))
        };
        let of_last = newest(&|id| last.as_ref().is_none_or(|job| job.carries(id)))?;
        let Some((epoch, newest)) = of_last else {
            if let (Some((epoch, _)), Some(job)) = (newest(&|_| true)?, &last) {
                super::tell(&format!(
                    "{}: the job '{}', the last one that was started here, has written no epoch and starts from its \
                     beginning; epoch {epoch} here belongs to another job",
                    directory.display(),
                    job.name
                ));
            }
            return self.afresh().map(Decision::Start);
        };
        if let Ok(manifest) = restart::manifest(held, &newest) {
            self.is_of_this_command(&manifest.command, "the epoch here", directory)?;
        }
        let wanted = RestartRequest {
            epoch: Some(epoch),
            size,
            name: self.options.name.clone(),
        };
        restart::decide(held, &wanted, false).map(Decision::Start)
    }

    /// Refuses a job or an epoch of another command: its results must not pass for this one's.
    fn is_of_this_command(
        &self,
        theirs: &[String],
        what: &str,
        directory: &Path,
    ) -> Result<(), Failure> {
        let ours = self.command();
        if self.resume_anyway || theirs == ours {
            return Ok(());
        }
        Err(Failure::refuse(
            Code::OtherCommand,
            Failure::USAGE,
            format!(
                "{}: {what} belongs to another command: '{}', not '{}': choose another --dir, or continue it with \
                 --resume-anyway",
                directory.display(),
                theirs.join(" "),
                ours.join(" ")
            ),
        ))
    }

    fn afresh(&self) -> Result<Task, Failure> {
        let name = Path::new(&self.program)
            .file_name()
            .map_or_else(String::new, text);
        let working_directory = std::env::current_dir().map_err(|error| {
            Failure::refuse(
                Code::WorkingDirectory,
                Failure::FAILED,
                format!("the working directory is gone: {error}"),
            )
        })?;
        Ok(Task {
            job: new_job_id()?,
            origin: None,
            discard: self.discard,
            name: self.options.name.clone().unwrap_or(name),
            command: self.command(),
            working_directory,
            epoch: None,
            recovers: None,
            written: None,
        })
    }
}
