//! Makes the filled dispatch table that `src/mpi/generated.rs` includes.
//!
//! Makes some of this executable's functions those that every library of the lower half finds (`threads::lower`,
//! `threads::own_area`, `heap`).

use std::error::Error;

use stillpoint_generator::{Part, write};

fn main() -> Result<(), Box<dyn Error>> {
    let first = [
        "pthread_create",
        "__tls_get_addr",
        "pthread_getspecific",
        "pthread_setspecific",
        "dlopen",
        "dlclose",
        "__cxa_atexit",
        "calloc",
        "realloc",
    ];
    for function in first {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={function}");
    }
    write(Part::Lower("openmpi"))
}
