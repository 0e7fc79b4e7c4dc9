//! `stillpoint man`.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use clap::Args;

use super::{CommandResult, EXIT_STATUS, Failure, definition, print};

/// Print the manual page, or write all manual pages into a directory
#[derive(Debug, Args)]
pub struct Man {
    /// Directory for stillpoint.1, stillpoint-run.1, ...
    directory: Option<PathBuf>,
}

impl Man {
    pub fn execute(self) -> CommandResult {
        let failed =
            |error: io::Error| Failure::failed(format!("cannot write manual pages: {error}"));
        let page = page().map_err(failed)?;
        match self.directory {
            Some(directory) => {
                std::fs::create_dir_all(&directory).map_err(failed)?;
                clap_mangen::generate_to(definition(), &directory).map_err(failed)?;
                std::fs::write(directory.join("stillpoint.1"), page).map_err(failed)
            }
            None => print(&String::from_utf8_lossy(&page)),
        }
    }
}

/// Commands as people type them, and their purpose.
const EXAMPLES: [(&str, &str); 6] = [
    (
        "mpirun -n 4 stillpoint run --dir melt.d -- lmp -in in.melt",
        "Start a job that can be checkpointed.",
    ),
    (
        "stillpoint suspend melt.d",
        "Write an epoch, and end the job.",
    ),
    (
        "mpirun -n 4 stillpoint restart melt.d",
        "Carry on from the newest epoch.",
    ),
    (
        "stillpoint launch --interval 30m -- mpirun -n 4 lmp -in in.melt",
        "Write an epoch every half an hour, and start the job again when a rank or a node is lost.",
    ),
    (
        "srun --mpi=pmix stillpoint run --resume --requeue --on-term suspend -- app",
        "The last line of a batch script for the first launch and for all others.",
    ),
    (
        "stillpoint suspend --all --reason 'new kernel'",
        "Suspend all jobs of this host.",
    ),
];

const FILES: [(&str, &str); 6] = [
    (
        "/etc/stillpoint.conf",
        "Defaults and fixed options of the site, in TOML.",
    ),
    (
        "DIR/job.json",
        "The job, for commands; read it by stillpoint status --json.",
    ),
    (
        "DIR/coordinator.log",
        "What has happened to the job, for people.",
    ),
    (
        "DIR/epoch-000001/",
        "A committed epoch: a manifest, and one image for each rank.",
    ),
    (
        "/run/stillpoint/UID, /run/user/UID, /tmp/stillpoint-UID",
        "The jobs of a user on this host; the first one that the user may use.",
    ),
    (
        "/usr/share/doc/stillpoint/",
        "Documentation, examples, files for Slurm.",
    ),
];

/// Variables that are no options.
const OTHER_VARIABLES: [(&str, &str); 3] = [
    (
        "STILLPOINT_CONF",
        "Another file for the site's settings; it must be root's too.",
    ),
    (
        "STILLPOINT_RUNTIME_DIR",
        "The directory in which this host's jobs are noted.",
    ),
    (
        "SLURM_JOB_ID, PBS_JOBID, LSB_JOBID",
        "The batch job. If one of them is set, a suspended job ends with status 75.",
    ),
];

/// The page of the whole command.
fn page() -> io::Result<Vec<u8>> {
    // The other pages are those of `generate_to`, which leaves this command out too.
    let page = clap_mangen::Man::new(definition().disable_help_subcommand(true));
    let mut text = vec![];
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    page.render_subcommands_section(&mut text)?;
    let exit = EXIT_STATUS.trim_start_matches("Exit status: ");
    text.extend(format!(".SH \"EXIT STATUS\"\n{}\n", roff(exit)).into_bytes());
    let variables = variables();
    let variables = variables.iter().map(|(name, told)| (&**name, &**told));
    text.extend(section("ENVIRONMENT", variables.chain(OTHER_VARIABLES)));
    text.extend(section("FILES", FILES));
    text.extend(section("EXAMPLES", EXAMPLES));
    page.render_version_section(&mut text)?;
    Ok(text)
}

fn section<'a>(title: &str, items: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let items = items.into_iter();
    let items = items.map(|(name, told)| format!(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(told)));
    format!(".SH {title}\n{}", items.collect::<String>()).into_bytes()
}

/// A text as roff takes it.
fn roff(text: &str) -> String {
    let text = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq");
    match text.starts_with('.') {
        true => format!("\\&{text}"),
        false => text,
    }
}

/// The variables of options, with the commands that have them.
fn variables() -> BTreeMap<String, String> {
    let definition = definition();
    let mut found: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for command in definition
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let below = command
            .get_subcommands()
            .flat_map(clap::Command::get_arguments);
        for argument in command.get_arguments().chain(below) {
            if let (Some(variable), Some(long)) = (argument.get_env(), argument.get_long()) {
                let variable = variable.to_string_lossy().into_owned();
                let (_, commands) = found.entry(variable).or_insert((long.to_owned(), vec![]));
                let name = command.get_name().to_owned();
                if commands.last() != Some(&name) {
                    commands.push(name);
                }
            }
        }
    }
    let told = |(long, commands): (String, Vec<String>)| {
        format!("The option --{long} of {}.", commands.join(", "))
    };
    found
        .into_iter()
        .map(|(name, about)| (name, told(about)))
        .collect()
}
