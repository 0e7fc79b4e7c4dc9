//! The command line of a launcher: where its own options end, and how a launch and a restart are written.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use stillpoint_refusals::Code;

use crate::Failure;
use crate::program::launcher_named;

/// A command line of a launcher, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The launcher and its options.
    pub launcher: Vec<OsString>,
    /// The `stillpoint` that the user has written.
    pub stillpoint: Option<OsString>,
    /// The words behind `stillpoint run`, or the program and its arguments.
    pub rest: Vec<OsString>,
}

/// The options of a kind of launcher.
struct Options {
    /// Those that take one word, or as many as the number says.
    with_words: &'static [(&'static str, usize)],
    /// Those without words of their own. They need not be known, unless the program follows them.
    without: &'static [&'static str],
}

/// Open MPI's and Hydra's.
const OF_MPIRUN: Options = Options {
    with_words: &[
        // Open MPI
        ("-n", 1),
        ("--n", 1),
        ("-np", 1),
        ("--np", 1),
        ("-c", 1),
        ("-N", 1),
        ("-npernode", 1),
        ("--npernode", 1),
        ("--npersocket", 1),
        ("-H", 1),
        ("-host", 1),
        ("--host", 1),
        ("-hostfile", 1),
        ("--hostfile", 1),
        ("-machinefile", 1),
        ("--machinefile", 1),
        ("--default-hostfile", 1),
        ("--map-by", 1),
        ("--rank-by", 1),
        ("--bind-to", 1),
        ("-x", 1),
        ("--mca", 2),
        ("-mca", 2),
        ("--gmca", 2),
        ("--prtemca", 2),
        ("--pmixmca", 2),
        ("--prefix", 1),
        ("--path", 1),
        ("-wd", 1),
        ("-wdir", 1),
        ("--wdir", 1),
        ("--output-filename", 1),
        ("--timeout", 1),
        ("--stdin", 1),
        ("--tune", 1),
        ("-rf", 1),
        ("--rankfile", 1),
        // Hydra
        ("-f", 1),
        ("-hosts", 1),
        ("-ppn", 1),
        ("-env", 2),
        ("-genv", 2),
        ("-genvlist", 1),
        ("-envlist", 1),
        ("-launcher", 1),
        ("-iface", 1),
        ("-bind-to", 1),
        ("-map-by", 1),
    ],
    without: &[
        "--oversubscribe",
        "-oversubscribe",
        "--allow-run-as-root",
        "--tag-output",
        "-tag-output",
        "--timestamp-output",
        "--report-bindings",
        "--nolocal",
        "--nooversubscribe",
        "--bynode",
        "--byslot",
        "-bynode",
        "-byslot",
        "-q",
        "-v",
        "--verbose",
        "--quiet",
        "-l",
        "-prepend-rank",
        "-genvall",
        "-genvnone",
    ],
};

const OF_SRUN: Options = Options {
    with_words: &[
        ("-n", 1),
        ("-N", 1),
        ("-c", 1),
        ("-p", 1),
        ("-t", 1),
        ("-J", 1),
        ("-o", 1),
        ("-e", 1),
        ("-w", 1),
        ("-x", 1),
        ("-D", 1),
        ("-A", 1),
        ("-q", 1),
        ("-G", 1),
        ("-m", 1),
        ("--ntasks", 1),
        ("--nodes", 1),
        ("--mpi", 1),
        ("--cpus-per-task", 1),
        ("--ntasks-per-node", 1),
        ("--nodelist", 1),
        ("--exclude", 1),
        ("--export", 1),
    ],
    without: &[
        "-v",
        "--verbose",
        "--quiet",
        "-l",
        "--label",
        "-u",
        "--unbuffered",
        "--exclusive",
        "--overlap",
        "-k",
        "-K",
        "--kill-on-bad-exit",
        "--no-kill",
    ],
};

fn options_of(launcher: &str) -> &'static Options {
    match launcher.split('.').next() {
        Some("srun") => &OF_SRUN,
        _ => &OF_MPIRUN,
    }
}

fn usage(text: String) -> Failure {
    Failure::refuse(Code::WrongOptions, Failure::USAGE, text)
}

/// Takes a command line apart.
pub fn taken_apart(words: &[OsString]) -> Result<Line, Failure> {
    let Some((first, _)) = words.split_first() else {
        return Err(usage(
            "there is no launcher to start: write mpirun or srun behind --".to_owned(),
        ));
    };
    let Some(launcher) = launcher_named(Path::new(first)) else {
        let first = first.to_string_lossy();
        return Err(usage(format!(
            "{first} is no launcher that Stillpoint knows: write mpirun, mpiexec or srun behind --"
        )));
    };
    if words.iter().any(|word| word == ":") {
        return Err(usage(
            "a launch of several programs (:) is not supervised: start one program on all ranks"
                .to_owned(),
        ));
    }
    let is_ours = |pair: &[OsString]| {
        Path::new(&pair[0]).file_name() == Some(OsStr::new("stillpoint")) && pair[1] == "run"
    };
    if let Some(at) = words.windows(2).position(is_ours) {
        return Ok(Line {
            launcher: words[..at].to_vec(),
            stillpoint: Some(words[at].clone()),
            rest: words[at + 2..].to_vec(),
        });
    }
    let at = program_at(words, options_of(launcher))?;
    Ok(Line {
        launcher: words[..at].to_vec(),
        stillpoint: None,
        rest: words[at..].to_vec(),
    })
}

/// Finds the program among the launcher's words.
fn program_at(words: &[OsString], options: &Options) -> Result<usize, Failure> {
    let mut at = 1;
    let mut unknown = None;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if text == "--" {
            return Ok(at + 1).and_then(|at| there(words, at));
        }
        if !text.starts_with('-') {
            break;
        }
        let takes = options.with_words.iter().find(|(name, _)| *name == text);
        let alone = text.contains('=') || options.without.contains(&&*text) || attached(&text);
        unknown = (takes.is_none() && !alone).then(|| text.into_owned());
        at += 1 + takes.map_or(0, |(_, words)| *words);
    }
    if let Some(unknown) = unknown {
        return Err(usage(format!(
            "cannot tell where the program begins behind the launcher's option {unknown}: write stillpoint run -- before \
             the program"
        )));
    }
    there(words, at)
}

fn there(words: &[OsString], at: usize) -> Result<usize, Failure> {
    match at < words.len() {
        true => Ok(at),
        false => Err(usage(
            "there is no program behind the launcher's options".to_owned(),
        )),
    }
}

/// Whether a short option has its value attached, as `-n4`.
fn attached(text: &str) -> bool {
    let mut letters = text.chars().skip(2);
    text.len() > 2 && !text.starts_with("--") && letters.all(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Line, Failure> {
        let words: Vec<OsString> = text.split(' ').map(Into::into).collect();
        taken_apart(&words)
    }

    fn launcher_and_rest(text: &str) -> (String, String) {
        let line = of(text).unwrap();
        let join = |words: &[OsString]| {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        (join(&line.launcher), join(&line.rest))
    }

    #[test]
    fn the_program_is_found_behind_the_launchers_options() {
        for (launcher, rest) in [
            ("mpirun -n 4", "lmp -in in.melt"),
            (
                "mpirun --mca btl tcp,self -x A=1 --oversubscribe -np 2",
                "./a",
            ),
            ("/opt/bin/mpiexec.hydra -ppn 2 -genv A 1 -n 8", "app -n 3"),
            ("srun --mpi=pmix -n4 -N 2", "app"),
            ("mpirun", "app"),
            ("mpirun -q", "app"),
            ("srun -q debug", "app"),
        ] {
            let found = launcher_and_rest(&format!("{launcher} {rest}"));
            assert_eq!(found, (launcher.to_owned(), rest.to_owned()));
        }
    }

    #[test]
    fn no_option_both_has_words_and_has_none() {
        for options in [OF_MPIRUN, OF_SRUN] {
            let names = options.with_words.iter().map(|(name, _)| name);
            let twice: Vec<_> = names
                .filter(|name| options.without.contains(name))
                .collect();
            assert!(twice.is_empty(), "{twice:?}");
        }
    }

    #[test]
    fn stillpoint_run_says_where_the_program_is() {
        let line = of("mpirun -weird 4 /opt/stillpoint run --keep 3 -- app -x").unwrap();
        assert_eq!(line.launcher, ["mpirun", "-weird", "4"]);
        assert_eq!(line.stillpoint, Some("/opt/stillpoint".into()));
        assert_eq!(line.rest, ["--keep", "3", "--", "app", "-x"]);
    }

    #[test]
    fn what_cannot_be_told_is_refused_with_what_to_do() {
        for (text, word) in [
            ("mpirun -weird app", "stillpoint run --"),
            ("mpirun -n 4", "no program"),
            ("app -n 4", "no launcher"),
            ("mpirun -n 1 a : -n 1 b", "several programs"),
        ] {
            let refused = of(text).unwrap_err();
            assert_eq!(refused.status, Failure::USAGE);
            assert!(refused.to_string().contains(word), "{refused}");
        }
    }
}
