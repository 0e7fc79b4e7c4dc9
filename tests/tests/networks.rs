//! Open MPI over its other ways to the network, which it takes wherever there is a fast one: libfabric (pml cm, mtl ofi) and UCX (pml ucx, osc ucx).
//! libfabric's provider `net` keeps few messages that no receive is posted for, and nothing behind them gets through. It cannot receive a message that a matched probe has found.

use stillpoint_refusals::Code;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::ensure;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{self, Trial};

type Settings<'a> = &'a [(&'static str, &'static str)];

const NET: Settings = &[
    ("OMPI_MCA_pml", "cm"),
    ("OMPI_MCA_mtl", "ofi"),
    ("OMPI_MCA_mtl_ofi_provider_include", "net"),
];
const SOCKETS: Settings = &[
    ("OMPI_MCA_pml", "cm"),
    ("OMPI_MCA_mtl", "ofi"),
    ("OMPI_MCA_mtl_ofi_provider_include", "sockets"),
];
const UCX: Settings = &[
    ("OMPI_MCA_pml", "ucx"),
    ("OMPI_MCA_osc", "ucx"),
    ("OMPI_MCA_opal_common_ucx_tls", "any"),
    ("OMPI_MCA_opal_common_ucx_devices", "any"),
];

/// Checkpointed, then suspended and restarted twice, a program comes to its right end.
fn carried(name: &str, ranks: u32, settings: Settings) {
    let tested = (|| {
        let program = Program::named(Kind::Still, name)?;
        let way: Vec<&str> = settings.iter().map(|(_, value)| *value).collect();
        Directory::new(&format!("{name}-{}", way.join("-")))?.run(|directory| {
            let mut trial = Trial::new(&program, ranks, directory)?;
            trial.settings = settings.to_vec();
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
            for _ in 0..2 {
                trial.suspended(job)?;
                job = trial.resumed()?;
            }
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// A program that never holds still carries on, too.
fn moving(name: &str, ranks: u32, settings: Settings) {
    let tested = Program::named(Kind::Moving, name)
        .and_then(|program| trial::moves_with(&program, ranks, settings));
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn messages_in_order_over_net() {
    carried("message_order", 2, NET);
}

#[test]
fn synchronous_sends_over_net() {
    carried("synchronous_sends", 2, NET);
}

#[test]
fn datatypes_in_flight_over_net() {
    carried("derived_types_in_flight", 2, NET);
}

/// A matched message that the library cannot receive keeps the error for its receive; the checkpoint comes through.
#[test]
fn matched_message_over_net() {
    carried("matched_message_returns", 2, NET);
}

#[test]
fn large_exchanges_over_net() {
    moving("large_exchanges", 2, NET);
}

/// A probe finds messages again that were received. The job runs on.
#[test]
fn messages_over_sockets_are_refused_by_name() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "message_order")?;
        Directory::new("message_order-sockets")?.run(|directory| {
            let mut trial = Trial::new(&program, 2, directory)?;
            trial.settings = SOCKETS.to_vec();
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            for _ in 0..2 {
                let answer = command::checkpoint(trial.directory, &trial.epochs_at())?;
                answer.expect_code(exit::REFUSED, Code::MpiMessages)?;
            }
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn messages_in_order_over_ucx() {
    carried("message_order", 3, UCX);
}

/// Locks are held in a window when the launch ends, which osc ucx waits for.
#[test]
fn locked_windows_over_ucx() {
    carried("windows_locked", 2, UCX);
}

#[test]
fn windows_of_messages_over_ucx() {
    moving("windows_of_messages", 2, UCX);
}

/// Collective operations that only some ranks have begun leave messages that nothing receives; UCX does not complain of them.
#[test]
fn a_suspend_over_ucx_says_nothing_of_messages_left() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "ineighbor_alltoall_pending")?;
        Directory::new("ineighbor_alltoall_pending-quiet")?.run(|directory| {
            let mut trial = Trial::new(&program, 3, directory)?;
            trial.settings = UCX.to_vec();
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            command::suspend(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
            let ended = job.end(trial::PATIENCE)?;
            ensure!(
                ended.status == 0 && !ended.stderr.contains("UCX"),
                "{}",
                ended.show()
            );
            let job = trial.resumed()?;
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
