//! The staging engine on emulated GPUs, with the driver's calls: every byte, and faults.

use std::process::{Command, Output, Stdio};

use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};

/// Runs the program, and returns whether it succeeded and its output.
fn check(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(place::binaries().join("gpu-staging"))
        .arg("--check")
        .args(arguments)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn every_byte_is_staged_filled_back_and_drained() {
    let (well, said) = check(&[]);
    assert!(well && said == "every byte is where it was\n", "{said}");
}

#[test]
fn where_no_gpu_has_room_all_goes_to_host_memory() {
    let (well, said) = check(&["--fault", "out-of-memory"]);
    assert!(well, "{said}");
    // The whole memory of the check's ranks.
    assert_eq!(said, "in host memory: 39654323\n");
}

#[test]
fn a_copy_that_fails_and_a_device_that_is_lost_are_named() {
    let (well, said) = check(&["--fault", "copy-error"]);
    assert!(well && said.contains("ECC_UNCORRECTABLE"), "{said}");
    // After a device is lost, the driver reports that error for every copy of the process.
    let (well, said) = check(&["--fault", "device-lost-3"]);
    let named = said.starts_with("a copy of ") && said.contains("CUDA_ERROR_UNKNOWN");
    assert!(well && named, "{said}");
}

/// A program's device memory is taken away and given back while it computes, again and again; its result must not
/// change.
#[test]
fn a_program_goes_on_with_what_was_staged() {
    // The memory fits the program's two fields, but not a copy of both.
    let gpus = Gpus::start(&Node::of(2, 24 << 20)).unwrap();
    let directory = Directory::new("gpu-staging").unwrap();
    let heat = Program::named(Kind::Gpu, "heat").unwrap().build().unwrap();
    let run = |disturb: bool| {
        let mut command = Command::new(&heat);
        command.args(["900", "900", "1500"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ]);
        gpus.reach(&mut command).unwrap();
        let program = command.spawn().unwrap();
        let staged = disturb.then(|| {
            let mut stage = Command::new(place::binaries().join("gpu-staging"));
            stage.args(["--process", &program.id().to_string(), "--times", "5"]);
            stage
                .arg("--record")
                .arg(directory.path().join("gpu-streams.json"));
            gpus.reach(&mut stage).unwrap();
            stage.output().unwrap()
        });
        (
            said(&program.wait_with_output().unwrap()),
            staged.map(|output| said(&output)),
        )
    };
    let (alone, _) = run(false);
    let (disturbed, staged) = run(true);
    let staged = staged.unwrap();
    assert!(staged.starts_with("staged 5 times, "), "{staged}");
    assert!(
        !staged.ends_with(" 0 of them not on their own GPU\n"),
        "{staged}"
    );
    assert!(alone.contains("digest "), "{alone}");
    assert_eq!(alone, disturbed, "{staged}");
    // The measurements are there for the next epoch, and for people.
    let mut plan = Command::new(place::binaries().join("stillpoint"));
    plan.args(["plan", "streams", "--json", "--measured"])
        .arg(directory.path());
    let shown: serde_json::Value = serde_json::from_str(&said(&plan.output().unwrap())).unwrap();
    let ways = shown["ways"].as_array().unwrap();
    let known = |way: &&serde_json::Value| way["way"] == "own" && way["newest"]["epoch"] == 5;
    assert!(ways.iter().any(|way| known(&way)), "{shown}");
}

fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}
