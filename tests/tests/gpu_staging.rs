//! The staging engine on emulated GPUs, by the driver's calls: every byte, and what goes wrong.

use std::process::Command;

use stillpoint_tests::{place, turn::Turn};

/// What the program says, and how it ends.
fn check(arguments: &[&str]) -> (bool, String) {
    let _turn = Turn::take().unwrap();
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
    // All that the check's ranks have.
    assert_eq!(said, "in host memory: 39654323\n");
}

#[test]
fn a_copy_that_fails_and_a_device_that_is_lost_are_named() {
    let (well, said) = check(&["--fault", "copy-error"]);
    assert!(well && said.contains("ECC_UNCORRECTABLE"), "{said}");
    let (well, said) = check(&["--fault", "device-lost-3"]);
    assert!(well && said.contains("Gpu(3)"), "{said}");
}
