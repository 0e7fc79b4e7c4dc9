//! The rehearsal of a restart, while the job lives: every MPI object that a restart makes again is tried.
//!
//! Objects that one rank can make by itself are made a second time out of their recipes, compared with the living ones, and freed
//! again: groups, infos, datatypes, operators. Objects that all members make together - communicators, their topologies, windows - are not
//! made, since a rank that gives up would leave the others waiting in the real MPI. Instead, the recipe is compared with the real MPI's
//! answers about the living object. For an open file, the real MPI must be able to give its position. Every difference is a reason to refuse the checkpoint.

use stillpoint_refusals::Code;

use crate::communicators;
use crate::ground::hindrances::Text;
use crate::ground::lock::SpinLock;
use crate::objects::{datatype, file, group, info, operator};
use crate::windows;

/// The last rehearsal's finding.
static FOUND: SpinLock<Option<(Code, String)>> = SpinLock::new(None);

/// Tries every object of this rank.
///
/// # Safety
/// MPI is active; parked on the driver thread, every other thread stopped.
pub unsafe fn everything() {
    // SAFETY: MPI is active, the caller is parked on the driver thread, and every other thread is stopped.
    let tried = unsafe {
        group::rehearse()
            .and_then(|()| info::rehearse())
            .and_then(|()| datatype::rehearse())
            .and_then(|()| operator::rehearse())
            .and_then(|()| communicators::rehearse())
            .and_then(|()| windows::rehearse())
            .map_err(|what| (Code::MpiObject, what))
            .and_then(|()| file::rehearse().map_err(|what| (Code::MpiFilePosition, what)))
    };
    *FOUND.lock() = tried.err();
}

/// Writes down the last rehearsal's finding.
pub fn describe(text: &mut Text) {
    if let Some(found) = FOUND.lock().as_ref() {
        let (code, what) = found;
        text.reason(*code, format_args!("{what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_a_reason_until_the_next_rehearsal() {
        let mut text = Text::new();
        describe(&mut text);
        assert!(text.is_empty());
        let what = crate::objects::rehearsal_outcome::differs("datatype 7 (vector)");
        *FOUND.lock() = Some((Code::MpiObject, what));
        describe(&mut text);
        let said = std::str::from_utf8(text.as_bytes()).unwrap();
        assert_eq!(
            said,
            "datatype 7 (vector) would not be the same after a restart [mpi-object]"
        );
        *FOUND.lock() = None;
    }
}
