//! Reserves addresses that an image needs outside the upper half's fixed ranges. The kernel places this process's own memory at random, and it may lie there.
//! The process then executes itself again, at other addresses, before anything has been done.

use std::ops::Range;
use std::os::unix::process::CommandExt;

use stillpoint_image::Region;

use stillpoint_refusals::{Refusal, refusal};
use stillpoint_wrappers::gate::is_upper_code;

use super::RestoreError;
use crate::gate::memory::settled;

/// How many times this process has executed itself again.
const TRIES: &str = "STILLPOINT_PLACED";
/// The addresses differ each time, so this many collisions are not an accident.
const MOST_TRIES: u32 = 16;
const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x004_0000;

/// Reserves what the regions need. Nothing else has been mapped for the image yet.
///
/// # Errors
/// Names the mapping in the way, if it is there wherever the kernel places this process.
pub fn keep(regions: &[Region]) -> Result<(), RestoreError> {
    let Some(taken) = wanted(regions).into_iter().find_map(hold) else {
        return Ok(());
    };
    let tries = std::env::var(TRIES).ok().and_then(|text| text.parse().ok());
    let tries: u32 = tries.unwrap_or(0);
    if tries < MOST_TRIES {
        // SAFETY: both calls take numbers and touch no memory; they only say where the next program is put.
        unsafe {
            let personality = libc::personality(0xffff_ffff) as libc::c_ulong;
            libc::personality(personality & !ADDR_NO_RANDOMIZE);
        }
        let error = std::process::Command::new("/proc/self/exe")
            .args(std::env::args_os().skip(1))
            .env(TRIES, (tries + 1).to_string())
            .exec();
        return Err(RestoreError::System {
            what: "cannot start again at other addresses".to_owned(),
            source: error,
        });
    }
    Err(RestoreError::Refused(taken))
}

/// Returns a reason if an image has code where its system calls are not seen (`gate::CODE_END`); earlier releases put it there.
pub fn unseen(regions: &[Region]) -> Option<Refusal> {
    let executable = |region: &&Region| region.protection & libc::PROT_EXEC as u32 != 0;
    let mut code = regions.iter().filter(executable);
    let region = code.find(|region| !is_upper_code(region.start as usize))?;
    Some(refusal!(
        OtherBuild,
        "{} at {:#x} is code at an address where this release does not see its system calls: restart it with the \
         release that wrote the epoch",
        region.name,
        region.start
    ))
}

/// Returns the ranges to reserve, with adjacent ones joined.
fn wanted(regions: &[Region]) -> Vec<Range<usize>> {
    let mut wanted: Vec<Range<usize>> = Vec::new();
    for region in regions {
        let range = region.start as usize..region.end as usize;
        if settled(&range) {
            continue;
        }
        match wanted.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => wanted.push(range),
        }
    }
    wanted
}

/// Reserves a range, or returns what lies there.
fn hold(range: Range<usize>) -> Option<Refusal> {
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE maps over nothing.
    let place = unsafe {
        libc::mmap(
            range.start as *mut _,
            range.len(),
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
    if place == range.start as *mut _ {
        return None;
    }
    let Range { start, end } = range;
    Some(match place {
        libc::MAP_FAILED => refusal!(
            TakenMemory,
            "the program asked for memory at {start:#x}..{end:#x}, but this process uses it already: {}",
            super::region::taken_by(start as u64..end as u64)
        ),
        _ => refusal!(
            TakenMemory,
            "this kernel cannot map memory at {start:#x}..{end:#x}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use stillpoint_wrappers::gate::{ARENA_START, LOW_END};

    use super::*;

    #[test]
    fn only_what_belongs_to_nobody_by_address_is_kept_and_in_one_piece() {
        let region = |start: usize, end: usize| Region {
            start: start as u64,
            end: end as u64,
            ..Region::default()
        };
        let regions = [
            region(0x40_0000, 0x50_0000),
            region(LOW_END - 0x1000, LOW_END),
            region(LOW_END, LOW_END + 0x1000),
            region(LOW_END + 0x1000, LOW_END + 0x3000),
            region(ARENA_START, ARENA_START + 0x1000),
            region(0x6000_0000_0000, 0x6000_0000_1000),
        ];
        assert_eq!(
            wanted(&regions),
            [
                LOW_END..LOW_END + 0x3000,
                0x6000_0000_0000..0x6000_0000_1000
            ]
        );
    }

    #[test]
    fn what_is_taken_is_said() {
        let here = what_is_taken_is_said as *const () as usize & !4095;
        let said = hold(here..here + 4096).unwrap();
        assert!(
            said.details().contains("but this process uses it already")
                && said.details().contains("r-xp"),
            "{said}"
        );
    }
}
