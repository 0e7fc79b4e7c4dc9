//! The machine and software that this process runs on, as an image records them and a restart compares them.

use std::ffi::CStr;

use stillpoint_image::{Environment, features};
use stillpoint_refusals::{Code, Refusal, refusal};
use stillpoint_wrappers::contract;

use crate::arch::{PAGE, springboard};

/// Returns the facts of this machine and build. The caller adds the MPI library's own description.
pub fn here() -> Environment {
    // SAFETY: getauxval looks numbers up in the auxiliary vector, which the process has from its start.
    let (hwcap, hwcap2) = unsafe {
        (
            libc::getauxval(libc::AT_HWCAP),
            libc::getauxval(libc::AT_HWCAP2),
        )
    };
    let mut name = std::mem::MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: uname fills the structure, for which zeros are valid too.
    let name = unsafe {
        libc::uname(name.as_mut_ptr());
        name.assume_init()
    };
    let text = |field: &[libc::c_char]| {
        // SAFETY: every field of utsname is a string that ends in NUL, and `name` lives on this stack.
        let text = unsafe { CStr::from_ptr(field.as_ptr()) };
        text.to_string_lossy().into_owned()
    };
    Environment {
        kernel: text(&name.release),
        architecture: text(&name.machine),
        hostname: text(&name.nodename),
        page_bytes: PAGE as u64,
        gate_version: contract::VERSION,
        springboard: springboard::digest(),
        mpi_abi: "openmpi".into(),
        mpi_library: String::new(),
        mpi_thread_level: -1,
        cpu: features::here(hwcap, hwcap2),
        stillpoint: env!("CARGO_PKG_VERSION").into(),
    }
}

/// Returns the reasons, in words for people, against a restart here of an image written in environment `then`.
pub fn forbids(then: &Environment, here: &Environment) -> Vec<Refusal> {
    let mut reasons = Vec::new();
    let mut differs = |code: Code, what: &str, then: &str, here: &str, advice: &str| {
        if then != here {
            let text =
                format!("the image was written with {what} {then}, here it is {here}: {advice}");
            reasons.push(Refusal::new(code, text));
        }
    };
    differs(
        Code::Processor,
        "architecture",
        &then.architecture,
        &here.architecture,
        "restart on the same kind of machine",
    );
    let (pages_then, pages_here) = (then.page_bytes.to_string(), here.page_bytes.to_string());
    differs(
        Code::Processor,
        "page size",
        &pages_then,
        &pages_here,
        "restart on a kernel with that page size",
    );
    // This build serves some older contracts: an upper half with one of these finds what it knows.
    let contract = match contract::serves(then.gate_version) {
        true => here.gate_version,
        false => then.gate_version,
    };
    let springboard = match springboard::serves(then.springboard) {
        true => here.springboard,
        false => then.springboard,
    };
    differs(
        Code::OtherBuild,
        "a contract between the halves of",
        &format!("{contract:08x}-{springboard:08x}"),
        &format!("{:08x}-{:08x}", here.gate_version, here.springboard),
        "restart with the Stillpoint build that wrote it",
    );
    differs(
        Code::OtherLibrary,
        "MPI ABI",
        &then.mpi_abi,
        &here.mpi_abi,
        "restart under that MPI",
    );
    let missing = then.cpu.missing_on(&here.cpu);
    if !missing.is_empty() {
        reasons.push(refusal!(Processor, "this processor ({}) lacks {}, which the program may use since it was started on {}: restart on a \
             processor that has them",
            here.cpu.model,
            missing.join(", "),
            then.cpu.model
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_machine_is_allowed_and_a_lesser_one_refused_by_name() {
        let then = here();
        assert!(forbids(&then, &then).is_empty());
        assert!(then.cpu.hwcap != 0 && then.kernel.contains('.'));
        let mut lesser = then.clone();
        lesser.cpu.features.retain(|feature| feature != "pni");
        let reasons = forbids(&then, &lesser);
        assert!(
            reasons.len() == 1 && reasons[0].details().contains("lacks pni"),
            "{reasons:?}"
        );
        let other = Environment {
            gate_version: 999,
            ..then.clone()
        };
        assert!(forbids(&other, &then)[0].details().contains("000003e7-"));
        let older = Environment {
            gate_version: 0x390b_4e2f,
            ..then.clone()
        };
        assert_eq!(forbids(&older, &then), [] as [Refusal; 0]);
    }
}
