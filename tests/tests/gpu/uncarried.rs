//! Resources that a driver does not support. While one exists, a checkpoint is refused with the possible causes, and the job runs on. Afterwards the job
//! behaves like any other.

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::ensure;

use crate::heat::node;
use crate::running;

/// Checks that a checkpoint is refused while the resource exists, with each way to save device memory, and succeeds
/// when it has gone.
fn refused_until_it_has_gone(kind: &str, named: &str) {
    for option in ["--gpu-staging=auto", "--gpu-staging=off"] {
        running::on(&node(2), ("uncarried", kind), |it| {
            let mut job = it.natively()?;
            it.tell("destroy")?;
            it.wait(&mut job, "destroyed")?;
            it.ends_well(job)?;
            it.forget("destroy")?;
            it.forget("go")?;
            it.forget_mark("ready")?;
            it.forget_mark("destroyed")?;
            let mut job = it.start(option)?;
            for what in ["checkpoint", "suspend"] {
                it.ask(what)?
                    .expect_reason(exit::FAILED, "CUDA_ERROR_NOT_SUPPORTED")?
                    .expect_reason(exit::FAILED, named)?;
                ensure!(
                    job.runs() && command::epochs(it.directory.epochs()).is_empty(),
                    "{}",
                    job.stderr()
                );
            }
            it.tell("destroy")?;
            it.wait(&mut job, "destroyed")?;
            it.ask("checkpoint")?.expect(exit::DONE)?;
            let job = it.moved(job)?;
            let job = it.moved(job)?;
            it.ends_well(job).map(drop)
        });
    }
}

#[test]
fn memory_that_a_process_has_by_a_name() {
    refused_until_it_has_gone("name", "cuIpcGetMemHandle");
}

#[test]
fn memory_that_a_process_has_by_a_descriptor() {
    refused_until_it_has_gone("descriptor", "cuMemExportToShareableHandle");
}

#[test]
fn multicast_objects() {
    refused_until_it_has_gone("multicast", "multicast objects");
}
