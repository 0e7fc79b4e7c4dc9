//! What a driver does not carry: while it is there a checkpoint is refused, and it is said what it may be; the job runs on. When it has gone, all is as with every job.

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::ensure;

use crate::heat::node;
use crate::running;

/// Refused while it is there, by each way for device memory; carried when it has gone.
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
