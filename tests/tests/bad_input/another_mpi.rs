//! Programs that were built for another MPI than the launcher's. That MPI is a stand-in, recognised by its name and its symbols.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_tests::command;
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::{Failed, ensure, reason};

use crate::common::{LONGEST, fails, io, must};

/// A stand-in for MPICH. Its handles are numbers, which would crash a call of Open MPI's.
const MPICH: &str = "
int PMPI_Init(int *c, char ***v) { (void)c; (void)v; return 0; }
int MPI_Init(int *c, char ***v) __attribute__((weak, alias(\"PMPI_Init\")));
int PMPI_Barrier(int comm) { return comm != 0x44000000; }
int MPI_Barrier(int comm) __attribute__((weak, alias(\"PMPI_Barrier\")));
int PMPI_Comm_rank(int comm, int *rank) { *rank = 0; return comm != 0x44000000; }
int PMPI_Type_size(int type, int *size) { *size = 4; return type == 0; }
int PMPI_Finalize(void) { return 0; }
int MPI_Finalize(void) __attribute__((weak, alias(\"PMPI_Finalize\")));
";
const USER: &str = "
int MPI_Init(int *c, char ***v);
int MPI_Barrier(int comm);
int MPI_Finalize(void);
int use_mpi(void) { return MPI_Init(0, 0) || MPI_Barrier(0x44000000) || MPI_Finalize(); }
";
const LINKED: &str = "
int use_mpi(void);
int main(void) { return use_mpi(); }
";
/// Loads a library at run time, as an interpreter loads a language's binding.
const LOADING: &str = "
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *binding = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    int (*use_mpi)(void) = binding ? (int (*)(void))dlsym(binding, \"use_mpi\") : 0;
    return use_mpi ? use_mpi() : 9;
}
";

/// Programs that use the stand-in: one linked to it through a library of its own, and one that loads that library
/// later.
struct Built {
    linked: PathBuf,
    loading: PathBuf,
    user: PathBuf,
}

fn built(directory: &Directory) -> Result<Built, Failed> {
    let compiled = |name: &str, text: &str, words: &[&str]| -> Result<PathBuf, Failed> {
        let (source, file) = (directory.file(&format!("{name}.c")), directory.file(name));
        fs::write(&source, text).map_err(io)?;
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&file).arg(&source).args(words);
        cc.arg(format!("-L{}", directory.path().display()));
        let made = cc.arg("-Wl,-rpath,$ORIGIN").output().map_err(io)?;
        let said = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "{said}");
        Ok(file)
    };
    let shared = ["-shared", "-fPIC"];
    let soname = "-Wl,-soname,libmpich.so.12";
    compiled("libmpich.so.12", MPICH, &[shared[0], shared[1], soname])?;
    let needs = [shared[0], shared[1], "-l:libmpich.so.12"];
    let user = compiled("libuser.so", USER, &needs)?;
    Ok(Built {
        linked: compiled("linked", LINKED, &["-luser"])?,
        loading: compiled("loading", LOADING, &["-ldl"])?,
        user,
    })
}

fn native(program: &Path, words: &[&Path]) -> Result<(), Failed> {
    let status = Command::new(program).args(words).status().map_err(io)?;
    ensure!(status.success(), "wrong natively: {status}");
    Ok(())
}

#[test]
fn a_program_that_is_linked_to_another_mpi_is_run_or_refused_where_it_shows_too_late() {
    must((|| {
        Directory::new("linked-to-another-mpi")?.run(|directory| {
            let built = built(directory)?;
            native(&built.linked, &[])?;
            let target = directory.file("stillpoint.d");
            let mut command = job::under_stillpoint(2, &target)?;
            command.arg(&built.linked);
            // The program's calls never go to the stand-in.
            let ended = Job::start(command, directory)?.end(LONGEST)?;
            ensure!(ended.status == 0, "{}", ended.show());
            // A script shows no MPI, so Stillpoint assumes the launcher's. It reports the other MPI as soon as the script
            // starts the program.
            let mut command = job::under_stillpoint(2, &target)?;
            command
                .args(["sh", "-c", "\"$0\"; exit $?"])
                .arg(&built.linked);
            let words = ["has loaded MPICH", "libmpich.so.12", "Open MPI"];
            fails(Job::start(command, directory)?, 126, &words)?;
            ensure!(command::epochs(&target).is_empty(), "an epoch");
            Ok(())
        })
    })());
}

#[test]
fn a_program_that_loads_another_mpi_is_refused_when_it_starts_it() {
    must((|| {
        Directory::new("loads-another-mpi")?.run(|directory| {
            let built = built(directory)?;
            native(&built.loading, &[&built.user])?;
            let mut command = job::under_stillpoint(2, &directory.file("stillpoint.d"))?;
            command.arg(&built.loading).arg(&built.user);
            let words = ["has loaded MPICH", "libmpich.so.12", "Open MPI"];
            fails(Job::start(command, directory)?, 126, &words)?;
            Ok(())
        })
    })());
}

/// A launcher that tells the rank but not the number of ranks (`prterun`) is refused: each rank would be a job of its own.
#[test]
fn a_rank_of_an_unknown_number_is_refused() {
    must((|| {
        Directory::new("rank-of-unknown")?.run(|directory| {
            let mut command = Command::new("sh");
            let both = "for rank in 0 1; do PMIX_NAMESPACE=prterun-1 PMIX_RANK=$rank \"$0\" run --dir \"$1\" -- true & done; wait";
            command.args(["-c", both]);
            command.arg(stillpoint_tests::place::stillpoint()?);
            command.arg(directory.file("stillpoint.d"));
            let ended = Job::start(command, directory)?.end(LONGEST)?;
            let said = reason::lines(&ended.stderr);
            ensure!(said.len() == 2, "{}", ended.show());
            let tells = |line: &&str| line.contains("PMIX_RANK") && line.contains("mpirun");
            ensure!(said.iter().all(tells), "{}", ended.show());
            ensure!(!directory.file("stillpoint.d").exists(), "a job was started");
            Ok(())
        })
    })());
}
