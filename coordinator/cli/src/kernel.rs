//! The running kernel, and whether Stillpoint runs on it.

use std::fs;

use stillpoint_image::facts::OLDEST_KERNEL;

/// A kernel by its release (`uname -r`).
pub struct Kernel {
    pub release: String,
}

impl Kernel {
    pub fn here() -> Kernel {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let release = release.trim().to_owned();
        Kernel { release }
    }

    /// Whether it is [`OLDEST_KERNEL`] or later.
    pub fn is_new_enough(&self) -> bool {
        self.version() >= OLDEST_KERNEL
    }

    /// # Errors
    /// It is too old.
    pub fn suffices(self) -> Result<(), TooOld> {
        match self.is_new_enough() {
            true => Ok(()),
            false => Err(TooOld(self.release)),
        }
    }

    fn version(&self) -> (u32, u32) {
        let mut numbers = self.release.split(['.', '-']).map_while(|n| n.parse().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "this machine's kernel is Linux {0}, but Stillpoint needs Linux {major}.{minor} or later: start the program \
     without stillpoint to run it without checkpoints",
    major = OLDEST_KERNEL.0,
    minor = OLDEST_KERNEL.1
)]
pub struct TooOld(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_kernels_are_refused_by_their_release() {
        for (release, expected) in [
            ("5.10.0-46-amd64", false),
            ("4.19.0", false),
            ("5.9", false),
            ("5.11", true),
            ("5.11.0-rc1", true),
            ("6.1.0-56-amd64", true),
            ("10.0", true),
        ] {
            let release = release.to_owned();
            let kernel = Kernel { release };
            assert_eq!(kernel.is_new_enough(), expected, "{}", kernel.release);
            if let Err(refusal) = kernel.suffices() {
                let said = refusal.to_string();
                assert!(said.contains("needs Linux 5.11 or later"), "{said}");
            }
        }
        assert!(Kernel::here().is_new_enough(), "tests run on it");
    }
}
