//! The bytes of a buffer that are its data: runs of bytes, from the datatypes.
//!
//! The real MPI is asked for the bytes of one element: it unpacks bytes that are all ones over zeros. So every datatype is understood, however it
//! was made.

use core::ops::Range;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::parts::{At, ElementRun};
use crate::ground::abi;
use crate::ground::crossing::cross;
use crate::ground::object::Object;

/// `MPI_COMM_SELF` of the standard's ABI.
const COMM_SELF: i32 = 258;

/// Adjacent bytes, from the buffer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub at: isize,
    pub bytes: usize,
}

impl Run {
    fn end(&self) -> isize {
        self.at + self.bytes as isize
    }
}

/// One element of a datatype.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Element {
    runs: Vec<Run>,
    extent: isize,
}

impl Element {
    /// An element of one byte.
    fn byte() -> Element {
        Element {
            runs: vec![Run { at: 0, bytes: 1 }],
            extent: 1,
        }
    }

    /// The real MPI's description of a datatype, or `None` if the real MPI does not accept it.
    ///
    /// # Safety
    /// Inside a stub; `datatype` must be null or a handle, alive or freed.
    unsafe fn of(datatype: *mut Object) -> Option<Element> {
        // SAFETY: the datatype is null or a handle, by the caller's promise, whose word the real MPI checks; the numbers go into local variables.
        unsafe {
            let word = abi::word(HandleKind::Datatype, datatype);
            let (mut size, mut first, mut extent) = (0, 0, 0);
            let (mut true_first, mut true_extent) = (0, 0);
            let code = cross(|lower| {
                match (lower.type_size)(word, &raw mut size) {
                    0 => {}
                    code => return code,
                }
                (lower.type_get_true_extent)(word, &raw mut true_first, &raw mut true_extent);
                (lower.type_get_extent)(word, &raw mut first, &raw mut extent)
            });
            if code != 0 {
                return None;
            }
            let (size, span) = (
                usize::try_from(size).ok()?,
                usize::try_from(true_extent).ok()?,
            );
            let runs = if size == 0 {
                Vec::new()
            } else if size == span {
                vec![Run {
                    at: true_first,
                    bytes: span,
                }]
            } else {
                asked(word, size, true_first, span)?
            };
            Some(Element { runs, extent })
        }
    }
}

/// The runs of a datatype with gaps.
///
/// # Safety
/// Inside a stub; a word of the lower half's.
unsafe fn asked(word: Word, size: usize, first: isize, span: usize) -> Option<Vec<Run>> {
    let (ones, mut mask) = (vec![0xff_u8; size], vec![0_u8; span]);
    let bytes = i32::try_from(size).ok()?;
    let myself = abi::predefined(HandleKind::Communicator, COMM_SELF);
    let mut position = 0;
    let place = mask.as_mut_ptr().wrapping_offset(-first);
    // SAFETY: the element's bytes lie in the mask, all of the ones are its data.
    let code = unsafe {
        let myself = abi::word(HandleKind::Communicator, myself);
        cross(|lower| {
            let from = ones.as_ptr().cast();
            (lower.unpack)(
                from,
                bytes,
                &raw mut position,
                place.cast(),
                1,
                word,
                myself,
            )
        })
    };
    (code == 0).then(|| runs_of(&mask, first))
}

/// The runs of bytes that are not zero; the first byte lies at `first`.
fn runs_of(mask: &[u8], first: isize) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut at = 0;
    while let Some(start) = mask[at..].iter().position(|byte| *byte != 0) {
        let start = at + start;
        let bytes = mask[start..].iter().position(|byte| *byte == 0);
        let bytes = bytes.unwrap_or(mask.len() - start);
        runs.push(Run {
            at: first + start as isize,
            bytes,
        });
        at = start + bytes;
    }
    runs
}

/// The runs of all parts, in the order of their addresses, none touching the next, or `None` if MPI does not know a datatype.
///
/// # Safety
/// Inside a stub; datatypes must be null or handles, alive or freed.
pub unsafe fn runs(parts: &[ElementRun]) -> Option<Vec<Run>> {
    let mut runs = Vec::new();
    let mut known: Option<(*mut Object, Element)> = None;
    for part in parts.iter().filter(|part| part.count > 0) {
        let element = match &known {
            Some((datatype, element)) if *datatype == part.datatype => element.clone(),
            _ if part.datatype.is_null() => Element::byte(),
            // SAFETY: the datatype is null or a handle, by the caller's promise, and the thread is inside a stub.
            _ => unsafe { Element::of(part.datatype)? },
        };
        lay(&mut runs, &element, part.at, part.count);
        known = Some((part.datatype, element));
    }
    Some(joined(runs))
}

/// Lays `count` elements.
fn lay(runs: &mut Vec<Run>, element: &Element, at: At, count: usize) {
    let at = match at {
        At::Bytes(at) => at,
        At::Extents(at) => at * element.extent,
    };
    if let [run] = element.runs[..]
        && run.bytes as isize == element.extent
    {
        runs.push(Run {
            at: at + run.at,
            bytes: run.bytes * count,
        });
        return;
    }
    for index in 0..count as isize {
        let each = element.runs.iter().map(|run| Run {
            at: at + index * element.extent + run.at,
            bytes: run.bytes,
        });
        runs.extend(each);
    }
}

/// The same bytes, each once, in as few runs as possible.
fn joined(mut runs: Vec<Run>) -> Vec<Run> {
    runs.sort_unstable_by_key(|run| run.at);
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if run.at <= last.end() => {
                last.bytes = (run.end().max(last.end()) - last.at) as usize;
            }
            _ => joined.push(run),
        }
    }
    joined
}

/// The range from the first byte of data to the last.
pub fn span(runs: &[Run]) -> Range<isize> {
    match runs {
        [] => 0..0,
        [first, .., last] => first.at..last.end(),
        [only] => only.at..only.end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: isize, bytes: usize) -> Run {
        Run { at, bytes }
    }

    #[test]
    fn a_mask_is_cut_into_its_runs() {
        assert_eq!(runs_of(&[1, 1, 0, 0, 1], -1), [run(-1, 2), run(3, 1)]);
        assert_eq!(runs_of(&[0, 0], 0), []);
        assert_eq!(runs_of(&[1], 7), [run(7, 1)]);
    }

    #[test]
    fn elements_without_gaps_are_one_run() {
        let element = Element {
            runs: vec![run(0, 8)],
            extent: 8,
        };
        let mut runs = Vec::new();
        lay(&mut runs, &element, At::Extents(3), 5);
        assert_eq!(runs, [run(24, 40)]);
    }

    #[test]
    fn a_column_stays_a_column() {
        let element = Element {
            runs: vec![run(0, 8)],
            extent: 80,
        };
        let mut runs = Vec::new();
        lay(&mut runs, &element, At::Bytes(16), 3);
        assert_eq!(joined(runs.clone()), [run(16, 8), run(96, 8), run(176, 8)]);
        assert_eq!(span(&runs), 16..184);
    }

    #[test]
    fn elements_that_reach_into_each_other_count_once() {
        assert_eq!(
            joined(vec![run(8, 8), run(0, 4), run(4, 6), run(40, 1)]),
            [run(0, 16), run(40, 1)]
        );
    }
}
