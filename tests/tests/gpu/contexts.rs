//! The helper's own contexts on GPUs: it has none except during a checkpoint.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use stillpoint_tests::command::exit;
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

/// Bytes that a context takes of a device's memory.
const CONTEXT: u64 = 8 << 20;
const HELPER: &str = "stillpoint-gpu";
const LOOK: Duration = Duration::from_millis(2);

/// Asks for a checkpoint, and returns the most contexts that helpers of the job had on the devices until it was there.
fn most_while_checkpointed(heat: &mut Heat, helpers: impl Fn() -> Vec<i32>) -> Result<u64, Failed> {
    let (directory, target) = (heat.directory, heat.directory.epochs());
    let (told, ends) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let answer = heat::ask("checkpoint", directory, target);
            // The receiver waits until the answer comes.
            let _ = told.send(answer.and_then(|answer| answer.expect(exit::DONE).map(drop)));
        });
        let mut most = 0;
        loop {
            for helper in helpers() {
                most = most.max(heat.gpus.contexts(helper)?);
            }
            match ends.recv_timeout(LOOK) {
                Ok(answer) => return answer.map(|()| most),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err("no answer".to_owned()),
            }
        }
    })
}

#[test]
fn the_helper_gives_up_its_contexts_and_the_devices_their_memory() {
    let mut node = node(2);
    node.context = CONTEXT;
    heat::on(&node, 2, LONG, |heat| {
        heat.idle = 16;
        let natively = heat.natively()?;
        let mut job = heat.start(&["--gpu-staging", "on"])?;
        heat.waits(&mut job)?;
        let before = heat.gpus.free()?;
        ensure!(
            heat.helpers(&job).is_empty(),
            "a helper before there is a checkpoint"
        );
        for _ in 0..2 {
            let most = most_while_checkpointed(heat, || job.processes(HELPER))?;
            ensure!(most >= 2, "it had {most} contexts on two devices");
            heat.idle(&mut job)?;
            let helpers = heat.helpers(&job);
            ensure!(helpers.len() == 1, "{helpers:?}");
            job.until("without contexts of the helper", PATIENCE, |_| {
                heat.gpus.contexts(helpers[0]) == Ok(0) && heat.gpus.free().as_ref() == Ok(&before)
            })?;
        }
        heat.ends_as(job, &natively)
    });
}
