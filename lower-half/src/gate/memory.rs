//! Where the upper half's memory goes: `mmap`, `mremap`, `brk` and `shmat`, all inside the arena.
//!
//! Rules of this place: runs in the trap's handler. New mappings go next-fit, small and large ones in rooms of
//! their own, each tried with MAP_FIXED_NOREPLACE: the kernel alone knows what is free, since `munmap`
//! is not trapped.

use stillpoint_wrappers::gate::{GATE_ADDRESS, GATE_BYTES, LOW_END, is_upper};

use super::layout::{BREAK_END, BREAK_START, LARGE_END, LARGE_START, SMALL_END, SMALL_START};
use super::lock::Lock;
use super::trap::{Call, errno};
use crate::arch::syscall::{failed, syscall3, syscall4, syscall6};

const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
/// Mappings from this size on are first tried where the last one of about that size went: it may be free again.
const WORTH_REUSING: usize = 1 << 20;
/// Attempts to find a free place before the arena counts as full.
const ATTEMPTS: usize = 1 << 20;

struct Arena {
    small: usize,
    large: usize,
    /// Last place of a mapping by the size's logarithm.
    last: [usize; 64],
    /// The program break.
    end: usize,
}

static ARENA: Lock<Arena> = Lock::new(Arena {
    small: SMALL_START,
    large: LARGE_START,
    last: [0; 64],
    end: BREAK_START,
});

const fn up(value: usize, to: usize) -> usize {
    value.wrapping_add(to - 1) & !(to - 1)
}

/// Whether the whole range belongs to the upper half.
fn all_upper(address: usize, bytes: usize) -> bool {
    match address.checked_add(bytes) {
        Some(end) if bytes > 0 => {
            is_upper(address) && is_upper(end - 1) && (address < LOW_END) == (end - 1 < LOW_END)
        }
        _ => false,
    }
}

/// Whether the range touches what the process cannot do without: the gate region.
fn touches_gate(address: usize, bytes: usize) -> bool {
    address < GATE_ADDRESS + GATE_BYTES && address.saturating_add(bytes) > GATE_ADDRESS
}

/// `mmap` with every argument as the kernel takes it.
fn map(
    address: usize,
    bytes: usize,
    protection: usize,
    flags: usize,
    fd: usize,
    offset: usize,
) -> isize {
    // SAFETY: all callers map with MAP_FIXED_NOREPLACE, or pass on what the application itself asked for in its
    // own half.
    unsafe {
        syscall6(
            libc::SYS_mmap,
            [address, bytes, protection, flags, fd, offset],
        )
    }
}

/// Maps at exactly this free address; `EEXIST` where it is not free.
fn map_free(
    address: usize,
    bytes: usize,
    protection: usize,
    flags: usize,
    fd: usize,
    offset: usize,
) -> isize {
    let flags = flags & !(libc::MAP_FIXED as usize) | libc::MAP_FIXED_NOREPLACE as usize;
    let result = map(address, bytes, protection, flags, fd, offset);
    if failed(result) || result as usize == address {
        return result;
    }
    // A kernel that does not know the flag took the address for a hint.
    // SAFETY: unmaps exactly what was just mapped.
    unsafe { syscall3(libc::SYS_munmap, result as usize, bytes, 0) };
    errno(libc::EEXIST)
}

impl Arena {
    /// Maps `bytes` at the next free place, a multiple of `alignment`.
    fn place(&mut self, bytes: usize, alignment: usize, rest: [usize; 4]) -> isize {
        let [protection, flags, fd, offset] = rest;
        if bytes == 0 {
            return errno(libc::EINVAL);
        }
        let span = up(bytes, PAGE);
        if span == 0 || span > LARGE_END - LARGE_START {
            return errno(libc::ENOMEM);
        }
        let class = span.ilog2() as usize & 63;
        let last = self.last.get(class).copied().unwrap_or(0);
        if span >= WORTH_REUSING && last != 0 && last % alignment == 0 && last + span <= LARGE_END {
            let result = map_free(last, bytes, protection, flags, fd, offset);
            if result == last as isize {
                return result;
            }
        }
        let small = span < HUGE && alignment < HUGE;
        let (start, end) = if small {
            (SMALL_START, SMALL_END)
        } else {
            (LARGE_START, LARGE_END)
        };
        let mut at = up(if small { self.small } else { self.large }, alignment);
        let mut wrapped = false;
        for _ in 0..ATTEMPTS {
            if at + span > end {
                if wrapped {
                    break;
                }
                wrapped = true;
                at = up(start, alignment);
            }
            let result = map_free(at, bytes, protection, flags, fd, offset);
            if result != errno(libc::EEXIST) {
                if !failed(result) {
                    let next = at + up(span, alignment.min(HUGE));
                    if small {
                        self.small = next;
                    } else {
                        self.large = next;
                    }
                    if let Some(last) = self.last.get_mut(class) {
                        *last = at;
                    }
                }
                return result;
            }
            at += up(span, alignment);
        }
        errno(libc::ENOMEM)
    }

    /// A free place of `bytes`, held by an inaccessible mapping.
    fn reserve(&mut self, bytes: usize, alignment: usize) -> isize {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
        self.place(
            bytes,
            alignment,
            [libc::PROT_NONE as usize, flags, usize::MAX, 0],
        )
    }
}

/// As the kernel does, where no flag asks for more: what consists of whole huge pages is aligned for them. Other large mappings
/// lie side by side: arrays that all begin at a huge page's start meet in the same sets of caches.
fn unasked(bytes: usize) -> usize {
    let whole = bytes >= HUGE && bytes.is_multiple_of(HUGE);
    if whole { HUGE } else { PAGE }
}

/// What a new mapping is a multiple of. Stacks are not aligned for huge pages, they would swell.
fn alignment(bytes: usize, flags: usize) -> usize {
    if flags & libc::MAP_HUGETLB as usize != 0 {
        let shift = (flags >> libc::MAP_HUGE_SHIFT) & 63;
        return if shift == 0 { HUGE } else { 1 << shift };
    }
    let plain = flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) as usize == 0;
    if plain && flags & libc::MAP_ANONYMOUS as usize != 0 {
        unasked(bytes)
    } else {
        PAGE
    }
}

/// Maps memory for the upper half: the loader's way, and the trap's.
pub fn mmap(
    address: usize,
    bytes: usize,
    protection: usize,
    flags: usize,
    fd: usize,
    offset: usize,
) -> isize {
    let (fixed, free) = (libc::MAP_FIXED as usize, libc::MAP_FIXED_NOREPLACE as usize);
    if flags & free == free {
        if !all_upper(address, bytes) {
            return errno(libc::EEXIST);
        }
        return map_free(address, bytes, protection, flags, fd, offset);
    }
    if flags & fixed != 0 {
        if touches_gate(address, bytes) || (address >= LOW_END && !all_upper(address, bytes)) {
            return errno(libc::ENOMEM);
        }
        return map(address, bytes, protection, flags, fd, offset);
    }
    if flags & libc::MAP_32BIT as usize != 0 {
        // The kernel's choice lies below 2 GiB, which is the upper half's.
        return map(address, bytes, protection, flags, fd, offset);
    }
    let hint = address & !(PAGE - 1);
    if hint >= PAGE * 16 && all_upper(hint, up(bytes, PAGE)) {
        let result = map_free(hint, bytes, protection, flags, fd, offset);
        if !failed(result) {
            return result;
        }
    }
    ARENA.lock().place(
        bytes,
        alignment(bytes, flags),
        [protection, flags, fd, offset],
    )
}

/// `mmap`.
pub fn on_mmap(call: &mut Call) -> isize {
    let [address, bytes, protection, flags, fd, offset] = call.arguments();
    mmap(address, bytes, protection, flags, fd, offset)
}

/// `mremap`: what has to move stays in the arena.
pub fn on_mremap(call: &mut Call) -> isize {
    let [old, old_bytes, new_bytes, flags, to, _] = call.arguments();
    let remap = |flags: i32, to: usize| {
        // SAFETY: the application's own request on its own memory; a destination was checked or reserved.
        unsafe {
            syscall6(
                libc::SYS_mremap,
                [old, old_bytes, new_bytes, flags as usize, to, 0],
            )
        }
    };
    let flags = flags as i32;
    if flags & libc::MREMAP_FIXED != 0 {
        if touches_gate(to, new_bytes) || (to >= LOW_END && !all_upper(to, up(new_bytes, PAGE))) {
            return errno(libc::ENOMEM);
        }
        return remap(flags, to);
    }
    if flags & libc::MREMAP_DONTUNMAP == 0 {
        // In place where that is possible.
        let result = remap(flags & !libc::MREMAP_MAYMOVE, 0);
        if result != errno(libc::ENOMEM) || flags & libc::MREMAP_MAYMOVE == 0 {
            return result;
        }
    } else if flags & libc::MREMAP_MAYMOVE == 0 {
        return remap(flags, 0);
    }
    let place = ARENA.lock().reserve(new_bytes, unasked(new_bytes));
    if failed(place) {
        return place;
    }
    let result = remap(flags | libc::MREMAP_FIXED, place as usize);
    if failed(result) {
        // SAFETY: gives back exactly what was reserved.
        unsafe { syscall3(libc::SYS_munmap, place as usize, new_bytes, 0) };
    }
    result
}

/// `brk`: the upper half's own, emulated.
pub fn on_brk(call: &mut Call) -> isize {
    let wanted = call.argument(0);
    let mut arena = ARENA.lock();
    let end = arena.end;
    if !(BREAK_START..=BREAK_END).contains(&wanted) {
        return end as isize;
    }
    let (mapped, needed) = (up(end, PAGE), up(wanted, PAGE));
    if needed > mapped {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        if failed(map_free(
            mapped,
            needed - mapped,
            protection,
            flags,
            usize::MAX,
            0,
        )) {
            return end as isize;
        }
    } else if needed < mapped {
        // SAFETY: the application gives this part of its break back.
        unsafe { syscall3(libc::SYS_munmap, needed, mapped - needed, 0) };
    }
    arena.end = wanted;
    wanted as isize
}

/// `shmat`: System V segments are attached in the arena too.
pub fn on_shmat(call: &mut Call) -> isize {
    let [id, address, flags, ..] = call.arguments();
    // SAFETY: as the application asks, once the place is known to be its own.
    let attach = |address, flags| unsafe { syscall3(libc::SYS_shmat, id, address, flags) };
    if address != 0 {
        return if is_upper(address) {
            attach(address, flags)
        } else {
            errno(libc::EINVAL)
        };
    }
    let mut status = core::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure.
    let result = unsafe {
        syscall4(
            libc::SYS_shmctl,
            id,
            libc::IPC_STAT as usize,
            status.as_mut_ptr() as usize,
            0,
        )
    };
    if failed(result) {
        return result;
    }
    // SAFETY: zero is a valid value for every field, and the kernel has filled it.
    let bytes = unsafe { status.assume_init_ref() }.shm_segsz;
    let place = ARENA.lock().reserve(bytes, unasked(bytes));
    if failed(place) {
        return place;
    }
    let result = attach(place as usize, flags | libc::SHM_REMAP as usize);
    if failed(result) {
        // SAFETY: gives back exactly what was reserved.
        unsafe { syscall3(libc::SYS_munmap, place as usize, bytes, 0) };
    }
    result
}

/// A place of `bytes` in the arena that the caller will map over.
pub fn reserve(bytes: usize, alignment: usize) -> isize {
    ARENA.lock().reserve(bytes, alignment)
}

/// Holds the arena still.
pub fn while_still<R>(action: impl FnOnce() -> R) -> R {
    let _still = ARENA.lock();
    action()
}

/// What an image must hold: the cursors and the program break.
pub fn save() -> Vec<u8> {
    let arena = ARENA.lock();
    [arena.small, arena.large, arena.end]
        .iter()
        .flat_map(|word| (*word as u64).to_le_bytes())
        .collect()
}

/// Takes up what [`save`] gave, in another launch.
pub fn restore(saved: &[u8]) -> Result<(), super::SavedStateError> {
    let words: Vec<usize> = super::words(saved, "memory", 3)?
        .iter()
        .map(|word| *word as usize)
        .collect();
    let (small, large, end) = (words[0], words[1], words[2]);
    let sound = (SMALL_START..=SMALL_END).contains(&small)
        && (LARGE_START..=LARGE_END).contains(&large)
        && (BREAK_START..=BREAK_END).contains(&end);
    if !sound {
        return Err(super::SavedStateError::Value { part: "memory" });
    }
    let mut arena = ARENA.lock();
    (arena.small, arena.large, arena.end) = (small, large, end);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{HUGE, PAGE, alignment};

    #[test]
    fn whole_huge_pages_are_aligned_and_other_arrays_lie_side_by_side() {
        let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        for (bytes, aligned) in [
            (PAGE, PAGE),
            (HUGE - PAGE, PAGE),
            (HUGE, HUGE),
            (HUGE + PAGE, PAGE),
            (8 * HUGE, HUGE),
        ] {
            assert_eq!(alignment(bytes, anonymous), aligned, "{bytes} bytes");
            assert_eq!(alignment(bytes, libc::MAP_PRIVATE as usize), PAGE);
            let stack = anonymous | libc::MAP_STACK as usize;
            assert_eq!(alignment(bytes, stack), PAGE, "a stack of {bytes} bytes");
            let huge = anonymous | libc::MAP_HUGETLB as usize;
            assert_eq!(alignment(bytes, huge), HUGE, "{bytes} bytes of huge pages");
        }
    }
}
