//! The features of a processor that a program may have found out, and a check whether another processor will do.
//!
//! A C library chooses its string functions once, at start-up, and a program chooses its kernels. After a restart they would run
//! into an illegal instruction on a processor that offers less. So an image records what *programs* can use, and leaves out
//! features that only kernels see.

use serde::{Deserialize, Serialize};

/// The processor that a program saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// The processor's name, for people.
    pub model: String,
    /// Names as in `/proc/cpuinfo`, sorted.
    pub features: Vec<String>,
    /// State components that the operating system saves (XCR0); a signal frame holds them.
    pub xcr0: u64,
    /// The bytes that these components take (CPUID leaf 13).
    pub xsave_bytes: u32,
    /// The auxiliary vector's AT_HWCAP and AT_HWCAP2.
    pub hwcap: u64,
    pub hwcap2: u64,
}

impl Cpu {
    /// Returns the names of what this image needs and `here` lacks. If there are none, the image will run.
    pub fn missing_on(&self, here: &Cpu) -> Vec<String> {
        let mut missing: Vec<String> = self
            .features
            .iter()
            .filter(|feature| !here.features.contains(feature))
            .cloned()
            .collect();
        let states = self.xcr0 & !here.xcr0;
        if states != 0 {
            missing.push(format!("xsave state components {states:#x}"));
        }
        let hwcap2 = self.hwcap2 & !here.hwcap2;
        if hwcap2 & 2 != 0 {
            missing.push("fsgsbase enabled by the kernel".to_owned());
        }
        missing
    }
}

/// Returns the processor that this code runs on.
#[cfg(target_arch = "x86_64")]
pub fn here(hwcap: u64, hwcap2: u64) -> Cpu {
    x86_64::detect(hwcap, hwcap2)
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{__cpuid_count, CpuidResult};

    use super::Cpu;

    /// A register of a CPUID answer.
    #[derive(Clone, Copy)]
    enum Register {
        A,
        B,
        C,
        D,
    }
    use Register::{A, B, C, D};

    /// Leaf, sub-leaf, register, bit, name: instructions that programs can use (Intel SDM volume 2A,
    /// CPUID; AMD APM volume 3, appendix E).
    const FEATURES: &[(u32, u32, Register, u32, &str)] = &[
        (1, 0, C, 0, "pni"),
        (1, 0, C, 1, "pclmulqdq"),
        (1, 0, C, 9, "ssse3"),
        (1, 0, C, 12, "fma"),
        (1, 0, C, 13, "cx16"),
        (1, 0, C, 19, "sse4_1"),
        (1, 0, C, 20, "sse4_2"),
        (1, 0, C, 22, "movbe"),
        (1, 0, C, 23, "popcnt"),
        (1, 0, C, 25, "aes"),
        (1, 0, C, 26, "xsave"),
        (1, 0, C, 27, "osxsave"),
        (1, 0, C, 28, "avx"),
        (1, 0, C, 29, "f16c"),
        (1, 0, C, 30, "rdrand"),
        (7, 0, B, 0, "fsgsbase"),
        (7, 0, B, 3, "bmi1"),
        (7, 0, B, 4, "hle"),
        (7, 0, B, 5, "avx2"),
        (7, 0, B, 8, "bmi2"),
        (7, 0, B, 11, "rtm"),
        (7, 0, B, 16, "avx512f"),
        (7, 0, B, 17, "avx512dq"),
        (7, 0, B, 18, "rdseed"),
        (7, 0, B, 19, "adx"),
        (7, 0, B, 21, "avx512ifma"),
        (7, 0, B, 23, "clflushopt"),
        (7, 0, B, 24, "clwb"),
        (7, 0, B, 28, "avx512cd"),
        (7, 0, B, 29, "sha_ni"),
        (7, 0, B, 30, "avx512bw"),
        (7, 0, B, 31, "avx512vl"),
        (7, 0, C, 1, "avx512vbmi"),
        (7, 0, C, 4, "ospke"),
        (7, 0, C, 5, "waitpkg"),
        (7, 0, C, 6, "avx512_vbmi2"),
        (7, 0, C, 8, "gfni"),
        (7, 0, C, 9, "vaes"),
        (7, 0, C, 10, "vpclmulqdq"),
        (7, 0, C, 11, "avx512_vnni"),
        (7, 0, C, 12, "avx512_bitalg"),
        (7, 0, C, 14, "avx512_vpopcntdq"),
        (7, 0, C, 22, "rdpid"),
        (7, 0, C, 25, "cldemote"),
        (7, 0, C, 27, "movdiri"),
        (7, 0, C, 28, "movdir64b"),
        (7, 0, D, 8, "avx512_vp2intersect"),
        (7, 0, D, 14, "serialize"),
        (7, 0, D, 22, "amx_bf16"),
        (7, 0, D, 23, "avx512_fp16"),
        (7, 0, D, 24, "amx_tile"),
        (7, 0, D, 25, "amx_int8"),
        (7, 1, A, 4, "avx_vnni"),
        (7, 1, A, 5, "avx512_bf16"),
        (7, 1, A, 21, "amx_fp16"),
        (7, 1, A, 23, "avx_ifma"),
        (0xd, 1, A, 0, "xsaveopt"),
        (0xd, 1, A, 1, "xsavec"),
        (0xd, 1, A, 2, "xgetbv1"),
        (0x8000_0001, 0, C, 0, "lahf_lm"),
        (0x8000_0001, 0, C, 5, "abm"),
        (0x8000_0001, 0, C, 6, "sse4a"),
        (0x8000_0001, 0, C, 8, "3dnowprefetch"),
        (0x8000_0001, 0, C, 11, "xop"),
        (0x8000_0001, 0, C, 16, "fma4"),
        (0x8000_0001, 0, C, 21, "tbm"),
        (0x8000_0001, 0, D, 27, "rdtscp"),
        (0x8000_0008, 0, B, 0, "clzero"),
    ];

    /// Returns the answer of CPUID, or zeros if the processor does not know the leaf.
    fn cpuid(leaf: u32, sub: u32) -> CpuidResult {
        let highest = __cpuid_count(leaf & 0x8000_0000, 0).eax;
        if leaf > highest {
            return CpuidResult {
                eax: 0,
                ebx: 0,
                ecx: 0,
                edx: 0,
            };
        }
        __cpuid_count(leaf, sub)
    }

    pub(super) fn detect(hwcap: u64, hwcap2: u64) -> Cpu {
        let mut features: Vec<String> = FEATURES
            .iter()
            .filter(|(leaf, sub, register, bit, _)| {
                let answer = cpuid(*leaf, *sub);
                let word = match register {
                    A => answer.eax,
                    B => answer.ebx,
                    C => answer.ecx,
                    D => answer.edx,
                };
                word >> bit & 1 == 1
            })
            .map(|(.., name)| (*name).to_owned())
            .collect();
        features.sort();
        let states = cpuid(0xd, 0);
        Cpu {
            model: model(),
            features,
            xcr0: u64::from(states.edx) << 32 | u64::from(states.eax),
            xsave_bytes: states.ebx,
            hwcap,
            hwcap2,
        }
    }

    /// Returns the brand string.
    fn model() -> String {
        let mut bytes = Vec::with_capacity(48);
        for leaf in 0x8000_0002..=0x8000_0004 {
            let answer = cpuid(leaf, 0);
            for word in [answer.eax, answer.ebx, answer.ecx, answer.edx] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        text.trim_end_matches('\0').trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesser_processor_is_refused_by_name() {
        let cpu = here(0, 2);
        assert!(cpu.missing_on(&cpu).is_empty());
        let mut lesser = cpu.clone();
        let taken = lesser.features.remove(0);
        lesser.hwcap2 = 0;
        assert_eq!(
            cpu.missing_on(&lesser),
            [taken, "fsgsbase enabled by the kernel".to_owned()]
        );
        assert!(lesser.missing_on(&cpu).is_empty());
    }

    #[test]
    fn names_are_those_of_the_kernel() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = cpuinfo
            .lines()
            .find(|line| line.starts_with("flags"))
            .unwrap();
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let strange: Vec<String> = here(0, 0)
            .features
            .into_iter()
            // The kernel has no name for osxsave, and hides rdseed where the processor's is broken.
            .filter(|name| !["osxsave", "rdseed"].contains(&name.as_str()))
            .filter(|name| !flags.contains(&name.as_str()))
            .collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
}
