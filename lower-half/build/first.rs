//! Makes some of the executable's functions those that every library of the lower half finds (`threads::lower`,
//! `threads::own_area`, `heap`).

pub fn found_first() {
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
    // Not called by anybody: what the executable says of itself (`mpi::backend`).
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=STILLPOINT_NEAR");
}

/// Which library the executable is built for (`src/mpi/library.rs`), and where its sources are, for tests that read them.
pub fn library(name: &str) {
    println!("cargo::rustc-check-cfg=cfg(library, values(\"abi\", \"mpich\", \"openmpi\"))");
    println!("cargo::rustc-cfg=library=\"{name}\"");
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let sources = here.trim_end_matches("/abi").trim_end_matches("/mpich");
    println!("cargo::rustc-env=LOWER_HALF={sources}");
}
