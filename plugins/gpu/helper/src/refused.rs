//! Explains to people why the driver has not checkpointed a process's devices. The driver has one result for everything that it does not support. Its
//! documents list the possible causes, and the process shows some of them.

use std::fs;

use stillpoint_gpu_driver::Error;

/// Results after which a process can no longer use the driver, as the driver's documents say of each: `CUDA_ERROR_ECC_UNCORRECTABLE`,
/// `..._NVLINK_UNCORRECTABLE`, `..._ILLEGAL_ADDRESS`, `..._LAUNCH_TIMEOUT`, `..._ASSERT`, `..._HARDWARE_STACK_ERROR` to `..._INVALID_PC`,
/// `..._LAUNCH_FAILED`; and `..._UNKNOWN`, which may mean anything.
const STAYS: [u32; 12] = [214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999];

/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_CARRIED: u32 = 801;

/// The beginning of the file name of NCCL's library.
const NCCL: &str = "libnccl.so";

/// Explains an error for a process.
pub fn because(error: &Error, pid: i32) -> String {
    match error.code() {
        Some(code) if STAYS.contains(&code) => format!(
            "{error}; this error may stay with the process, and then its own calls to its GPUs fail from now on, as they would without Stillpoint"
        ),
        Some(NOT_CARRIED) => {
            // A process that is gone has no list of mappings.
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            format!(
                "{error}: it uses something that this driver cannot checkpoint, for example memory that processes \
                 share (cuIpcGetMemHandle, cuMemExportToShareableHandle), multicast objects or managed memory{}",
                nccl(&maps).map_or_else(String::new, |library| format!(
                    "; it has loaded NCCL ({library}), and NCCL's communicators use such memory, and multicast \
                     objects unless NCCL_NVLS_ENABLE=0 forbids them"
                ))
            )
        }
        _ => error.to_string(),
    }
}

/// Finds NCCL's library in the kernel's list of a process's mappings.
fn nccl(maps: &str) -> Option<&str> {
    let paths = maps.lines().filter_map(|line| line.split_once('/'));
    let mut names = paths.filter_map(|(_, path)| path.rsplit('/').next());
    names.find(|name| name.starts_with(NCCL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nccl_is_known_by_its_library() {
        let maps = "\
200000000-200001000 rw-s 00000000 00:05 7                     /dev/nvidia0
7f0000000000-7f0000001000 r-xp 00000000 00:05 8               /opt/torch lib/libnccl.so.2
";
        assert_eq!(nccl(maps), Some("libnccl.so.2"));
        assert_eq!(
            nccl("7f0000000000-7f0000001000 r-xp 00000000 00:05 8 /tmp/notlibnccl.so"),
            None
        );
    }

    #[test]
    fn what_stays_with_a_process_and_what_is_not_carried_are_told_apart() {
        let of = |code| Error::Returned {
            call: "cuCheckpointProcessCheckpoint",
            code,
            name: "CUDA_ERROR".to_owned(),
        };
        let said = |code| because(&of(code), std::process::id() as i32);
        assert!(said(700).contains("may stay with the process"));
        assert!(said(801).contains("multicast objects") && !said(801).contains("NCCL"));
        assert_eq!(said(304), of(304).to_string());
    }
}
