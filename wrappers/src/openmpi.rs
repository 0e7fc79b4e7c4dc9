//! Open MPI 4.1's values and layouts (its `mpi.h`), and how they become neutral: what both the application's
//! side (`upper-half/src/abi`) and the real MPI's side (`lower-half/src/mpi`) need when that MPI is Open MPI.

use core::ffi::CStr;

use crate::gate::HandleKind;
use crate::neutral;

/// Predefined handles, sorted by kind and standard-ABI value: made by `wrappers/generator` (`golden/handles.rs` has some).
mod handles {
    include!(concat!(env!("OUT_DIR"), "/handles.rs"));
}

/// Integer constants, and their conversion to the standard ABI's values and back: made by `wrappers/generator`
/// (`golden/integers.rs` has some). A value that names nothing is carried through both ways, so that the real MPI sees it and complains.
mod integers {
    include!(concat!(env!("OUT_DIR"), "/integers.rs"));
}

pub use handles::PREDEFINED;
pub use integers::*;

/// Open MPI's ABI among those that [`crate::direct::Direct::abi`] may name.
pub const ABI: u64 = u64::from_le_bytes(*b"openmpi4");

/// A predefined handle.
#[derive(Clone, Copy, Debug)]
pub struct Predefined {
    pub kind: HandleKind,
    /// Value in the MPI 5.0 standard's ABI; from 1024 on this project's own.
    pub standard: i32,
    /// MPI's name.
    pub name: &'static CStr,
    /// Open MPI's data symbol, whose address is the handle, and its size.
    pub symbol: &'static CStr,
    pub bytes: usize,
    /// The handle's number in Fortran.
    pub fortran: i32,
}

impl Predefined {
    /// Whether it is its kind's null handle.
    pub const fn is_null(&self) -> bool {
        self.standard == null_handle(self.kind)
    }
}

/// Standard-ABI value of a kind's null handle (MPI 5.0, section 20.4).
pub const fn null_handle(kind: HandleKind) -> i32 {
    match kind {
        HandleKind::Communicator => 256,
        HandleKind::Group => 264,
        HandleKind::Datatype => 512,
        HandleKind::Operator => 32,
        HandleKind::Request => 384,
        HandleKind::Errhandler => 320,
        HandleKind::Info => 304,
        HandleKind::Message => 296,
        HandleKind::Window => 272,
        HandleKind::File => 280,
        HandleKind::Session => 288,
    }
}

/// `MPI_Status` of Open MPI.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    pub error: i32,
    /// `_cancelled`
    pub cancelled: i32,
    /// `_ucount`: bytes received.
    pub bytes: usize,
}

const _: () = assert!(core::mem::size_of::<Status>() == 24);

impl Status {
    /// The status in the neutral form.
    #[inline(always)]
    pub fn to_neutral(self) -> neutral::Status {
        let mut status = neutral::Status {
            source: rank_to_neutral(self.source),
            tag: tag_to_neutral(self.tag),
            error: error_to_neutral(self.error),
            internal: [self.cancelled, 0, 0, 0, 0],
        };
        status.set_bytes(self.bytes as u64);
        status
    }

    /// Open MPI's form of a neutral status.
    #[inline(always)]
    pub fn from_neutral(status: &neutral::Status) -> Self {
        Self {
            source: rank_from_neutral(status.source),
            tag: tag_from_neutral(status.tag),
            error: error_from_neutral(status.error),
            cancelled: status.internal[0],
            bytes: status.bytes() as usize,
        }
    }
}

/// A rank, made neutral. Values that name nothing are swapped with ones that do, so that they stay invalid.
#[inline(always)]
pub const fn rank_to_neutral(rank: i32) -> i32 {
    match rank {
        -2 => -3,
        -3 => -2,
        other => other,
    }
}

/// A neutral rank, made Open MPI's.
#[inline(always)]
pub const fn rank_from_neutral(rank: i32) -> i32 {
    rank_to_neutral(rank)
}

/// A tag, made neutral.
#[inline(always)]
pub const fn tag_to_neutral(tag: i32) -> i32 {
    match tag {
        -1 => -2,
        -2 => -1,
        other => other,
    }
}

/// A neutral tag, made Open MPI's.
#[inline(always)]
pub const fn tag_from_neutral(tag: i32) -> i32 {
    tag_to_neutral(tag)
}

/// The last predefined error class: codes that a program adds come after it.
pub const ERR_LASTCODE: i32 = 92;
/// The same of the standard's ABI.
pub const NEUTRAL_ERR_LASTCODE: i32 = 16383;

/// An error class or code, made neutral.
#[inline(always)]
pub const fn error_to_neutral(code: i32) -> i32 {
    if code == 0 {
        0
    } else {
        nonzero_error(code, true)
    }
}

/// A neutral error class or code, made Open MPI's.
#[inline(always)]
pub const fn error_from_neutral(code: i32) -> i32 {
    if code == 0 {
        0
    } else {
        nonzero_error(code, false)
    }
}

const fn nonzero_error(code: i32, to_neutral: bool) -> i32 {
    let mut index = 0;
    while index < ERROR.len() {
        let (standard, openmpi) = ERROR[index];
        if to_neutral && openmpi == code {
            return standard;
        }
        if !to_neutral && standard == code {
            return openmpi;
        }
        index += 1;
    }
    let added = NEUTRAL_ERR_LASTCODE - ERR_LASTCODE;
    match (to_neutral, code) {
        (true, code) if code > ERR_LASTCODE => code.wrapping_add(added),
        (false, code) if code > NEUTRAL_ERR_LASTCODE => code - added,
        // Neither predefined nor added: no class of any MPI. Both ways the same, so that nothing is lost.
        (_, code) => code,
    }
}

/// `MPI_UNWEIGHTED`, `MPI_WEIGHTS_EMPTY`: pointers that are not addresses.
pub const UNWEIGHTED: usize = 2;
/// See [`UNWEIGHTED`].
pub const WEIGHTS_EMPTY: usize = 3;
/// `MPI_UNWEIGHTED` of the standard's ABI.
pub const NEUTRAL_UNWEIGHTED: usize = 10;
/// `MPI_WEIGHTS_EMPTY` of the standard's ABI.
pub const NEUTRAL_WEIGHTS_EMPTY: usize = 11;

/// An array of weights, made neutral.
#[inline]
pub fn weights_to_neutral<T>(weights: *const T) -> *const T {
    match weights.addr() {
        UNWEIGHTED => weights.with_addr(NEUTRAL_UNWEIGHTED),
        WEIGHTS_EMPTY => weights.with_addr(NEUTRAL_WEIGHTS_EMPTY),
        _ => weights,
    }
}

/// A neutral array of weights, made Open MPI's.
#[inline]
pub fn weights_from_neutral<T>(weights: *const T) -> *const T {
    match weights.addr() {
        NEUTRAL_UNWEIGHTED => weights.with_addr(UNWEIGHTED),
        NEUTRAL_WEIGHTS_EMPTY => weights.with_addr(WEIGHTS_EMPTY),
        _ => weights,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Conversion = fn(i32) -> i32;

    /// Every set of integers with its conversion to the neutral form and back.
    const SETS: [(&str, Conversion, Conversion); 18] = [
        ("rank", rank_to_neutral, rank_from_neutral),
        ("tag", tag_to_neutral, tag_from_neutral),
        ("error", error_to_neutral, error_from_neutral),
        ("mode", mode_to_neutral, mode_from_neutral),
        ("assertion", assertion_to_neutral, assertion_from_neutral),
        ("threads", threads_to_neutral, threads_from_neutral),
        ("order", order_to_neutral, order_from_neutral),
        (
            "distribution",
            distribution_to_neutral,
            distribution_from_neutral,
        ),
        ("combiner", combiner_to_neutral, combiner_from_neutral),
        ("typeclass", typeclass_to_neutral, typeclass_from_neutral),
        ("comparison", comparison_to_neutral, comparison_from_neutral),
        ("topology", topology_to_neutral, topology_from_neutral),
        ("split", split_to_neutral, split_from_neutral),
        ("lock", lock_to_neutral, lock_from_neutral),
        ("flavor", flavor_to_neutral, flavor_from_neutral),
        ("model", model_to_neutral, model_from_neutral),
        ("whence", whence_to_neutral, whence_from_neutral),
        ("keyval", keyval_to_neutral, keyval_from_neutral),
    ];

    #[test]
    fn every_constant_of_the_table_is_converted_both_ways() {
        let (integers, _) =
            stillpoint_generator::constants::read(include_str!("../table/constants.txt")).unwrap();
        for integer in &integers {
            if integer.set == "displacement" {
                assert_eq!(
                    displacement_to_neutral(integer.openmpi.into()),
                    integer.standard.into()
                );
                assert_eq!(
                    displacement_from_neutral(integer.standard.into()),
                    integer.openmpi.into()
                );
                continue;
            }
            let (_, to, from) = SETS.iter().find(|set| set.0 == integer.set).unwrap();
            assert_eq!(to(integer.openmpi), integer.standard, "{}", integer.name);
            assert_eq!(from(integer.standard), integer.openmpi, "{}", integer.name);
        }
    }

    #[test]
    fn a_value_that_names_nothing_comes_back_as_it_was_or_still_names_nothing() {
        for (set, to, from) in SETS {
            for value in (-100..2000).chain([16384, -32766, i32::MIN, 0x5fff_ffff]) {
                let back = from(to(value));
                if set == "mode" || set == "assertion" {
                    // Flags without a meaning are joined into one.
                    let known = if set == "mode" { 0x1ff } else { 0x1f };
                    assert_eq!(back & known, value & known, "{set} {value}");
                    assert_eq!(back & !known != 0, value & !known != 0, "{set} {value}");
                } else {
                    assert_eq!(back, value, "{set} {value}");
                }
            }
        }
    }

    #[test]
    fn no_two_values_become_the_same_neutral_one() {
        for (set, to, _) in SETS {
            if set == "mode" || set == "assertion" {
                continue;
            }
            let mut seen = std::collections::HashMap::new();
            for value in (-100..20000).chain([-32766]) {
                let before = seen.insert(to(value), value);
                assert_eq!(before, None, "{set}: {value}");
            }
        }
    }

    #[test]
    fn codes_that_a_program_adds_follow_the_last_predefined_one() {
        assert_eq!(error_to_neutral(ERR_LASTCODE + 1), NEUTRAL_ERR_LASTCODE + 1);
        assert_eq!(
            error_from_neutral(NEUTRAL_ERR_LASTCODE + 7),
            ERR_LASTCODE + 7
        );
    }

    #[test]
    fn a_status_keeps_every_field_there_and_back() {
        let status = Status {
            source: -2,
            tag: -1,
            error: 15,
            cancelled: 1,
            bytes: 0x12_3456_789a,
        };
        let neutral = status.to_neutral();
        assert_eq!((neutral.source, neutral.tag, neutral.error), (-3, -2, 15));
        assert!(neutral.cancelled());
        assert_eq!(neutral.bytes(), 0x12_3456_789a);
        assert_eq!(Status::from_neutral(&neutral), status);
    }

    #[test]
    fn predefined_handles_are_sorted_and_distinct() {
        let keys: std::vec::Vec<_> = PREDEFINED
            .iter()
            .map(|entry| (entry.kind as u32, entry.standard))
            .collect();
        assert!(keys.is_sorted());
        let mut symbols: std::vec::Vec<_> = PREDEFINED.iter().map(|entry| entry.symbol).collect();
        symbols.sort();
        symbols.dedup();
        assert_eq!(symbols.len(), PREDEFINED.len());
    }
}
