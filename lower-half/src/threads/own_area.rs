//! Functions of libc and the dynamic linker that need the lower half's thread control block. On a thread that calls them with the upper half's
//! ([`super::near`]), they run with the thread's own area.
//!
//! For every library of the lower half, this executable's functions come before libc's, as `pthread_create` does.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::registry::Thread;
use crate::arch::{self, registers};

/// Returns the lower half's FS, on a thread that has another one in place.
fn own_area() -> Option<u64> {
    let own = Thread::current().map_or(0, Thread::fs_lower);
    (own != 0 && own != registers::fs()).then_some(own)
}

/// Runs `call` with the lower half's FS, whichever is in place.
pub fn in_own_area<R>(call: impl FnOnce() -> R) -> R {
    let Some(own) = own_area() else {
        return call();
    };
    let fs = registers::fs();
    // SAFETY: the area is the thread's own, and `call` is code of the lower half; the previous area is put back.
    unsafe {
        registers::set_fs(own);
        let result = call();
        registers::set_fs(fs);
        result
    }
}

/// Returns the address of the next library's function of that name.
pub fn next(known: &AtomicUsize, name: &'static core::ffi::CStr) -> usize {
    let address = known.load(Ordering::Relaxed);
    if address != 0 {
        return address;
    }
    // SAFETY: the name is a constant that ends in NUL.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    known.store(address, Ordering::Relaxed);
    address
}

macro_rules! in_own_areas {
    ($($function:ident $name:literal ($($argument:ident: $kind:ty),*) -> $result:ty, $failure:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            ///
            /// # Safety
            /// As the function itself.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function($($argument: $kind),*) -> $result {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                in_own_area(|| {
                    let address = next(&NEXT, match core::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => c"",
                    });
                    if address == 0 {
                        return $failure;
                    }
                    // SAFETY: libc's function has this type, and the caller gives what it takes.
                    unsafe {
                        core::mem::transmute::<usize, unsafe extern "C" fn($($kind),*) -> $result>(address)($($argument),*)
                    }
                })
            }
        )*
    };
}

in_own_areas! {
    __tls_get_addr "__tls_get_addr" (index: *mut c_void) -> *mut c_void, core::ptr::null_mut();
    pthread_getspecific "pthread_getspecific" (key: libc::pthread_key_t) -> *mut c_void, core::ptr::null_mut();
    pthread_setspecific "pthread_setspecific" (key: libc::pthread_key_t, value: *const c_void) -> c_int, libc::EINVAL;
    dlclose "dlclose" (library: *mut c_void) -> c_int, -1;
}

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// `dlopen`. It depends on its caller (on the caller's run path), so if FS does not have to be switched, this jumps to libc's own.
///
/// # Safety
/// As dlopen(3).
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    arch::go_where!(way_to_open)
}

fn next_open() -> Option<Open> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let address = next(&NEXT, c"dlopen");
    // SAFETY: libc's function has this type.
    (address != 0).then(|| unsafe { core::mem::transmute::<usize, Open>(address) })
}

extern "C" fn way_to_open() -> Open {
    match next_open() {
        Some(open) if own_area().is_none() => open,
        _ => open_in_own_area,
    }
}

unsafe extern "C" fn open_in_own_area(name: *const c_char, flags: c_int) -> *mut c_void {
    in_own_area(|| match next_open() {
        // SAFETY: a library calls this in place of `dlopen`, with a name that ends in NUL or null; `open` is libc's function.
        Some(open) => unsafe { open(name, flags) },
        None => core::ptr::null_mut(),
    })
}

/// Whether the lower half's libraries find these functions before libc's.
pub fn found_first() -> bool {
    // SAFETY: the name is a constant that ends in NUL.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tls_get_addr".as_ptr()) };
    core::ptr::eq(first, __tls_get_addr as *const c_void)
}
