//! Memory of windows whose bytes are in other members' images. The library of stubs marks it by advice (`MADV_DONTDUMP`), which the application may also give.
//! So the library's own advice is noted here.
//!
//! Rules of this place: runs in the trap's handler.

use core::ops::Range;

use super::ranges::Ranges;
use super::{gaps, pages};
use crate::arch::frame::PC;
use crate::arch::syscall::failed;
use crate::gate::call::Call;
use crate::gate::sites;
use crate::ground::lock::Lock;

/// Memory that an image of this process does not need. If the list is full, an image has more bytes than it needs.
static ELSEWHERE: Lock<Ranges> = Lock::new(Ranges::new());

/// Answers `madvise` that changes details of mappings.
pub fn on_advice(call: &mut Call) -> isize {
    let [address, bytes, advice, ..] = call.arguments();
    let result = gaps::advise(call);
    if !failed(result)
        && advice == libc::MADV_DONTDUMP as usize
        && by_stubs(call)
        && let Some(range) = pages(address, bytes)
    {
        let _ = ELSEWHERE.lock().insert(range);
    }
    result
}

/// Whether the library of stubs makes the call. A library that does not report where its code is may always be the one.
pub fn by_stubs(call: &Call) -> bool {
    sites::stubs().is_none_or(|code| code.contains(&call.frame().register(PC)))
}

/// Notes that new memory has come to these addresses, with no advice yet. For windows, only `mremap` brings new memory.
pub fn is_new(range: Range<usize>) {
    let mut elsewhere = ELSEWHERE.lock();
    if elsewhere.parts(range.clone()).next().is_some() && elsewhere.remove(range).is_err() {
        *elsewhere = Ranges::new();
    }
}

/// Returns the parts of a window's memory whose bytes are in this process's image.
pub fn parts(range: Range<usize>) -> Vec<Range<usize>> {
    let elsewhere = ELSEWHERE.lock();
    let (mut parts, mut rest) = (Vec::new(), range);
    while let Some(gap) = elsewhere.gap(rest.clone()) {
        rest.start = gap.end;
        parts.push(gap);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_what_is_not_elsewhere_and_what_has_come_since() {
        assert_eq!(
            parts(0x1000..0x9000),
            std::slice::from_ref(&(0x1000..0x9000))
        );
        ELSEWHERE.lock().insert(0x3000..0x8000).unwrap();
        assert_eq!(parts(0x1000..0x9000), [0x1000..0x3000, 0x8000..0x9000]);
        assert_eq!(parts(0x4000..0x5000), []);
        is_new(0x4000..0x5000);
        assert_eq!(
            parts(0x3000..0x8000),
            std::slice::from_ref(&(0x4000..0x5000))
        );
        is_new(0x1000..0x9000);
        assert_eq!(
            parts(0x1000..0x9000),
            std::slice::from_ref(&(0x1000..0x9000))
        );
    }
}
