//! Makes some of this executable's functions those that every library of the lower half finds (`threads::lower`,
//! `threads::own_area`, `heap`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
}
