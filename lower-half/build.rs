//! Makes this executable's `pthread_create` the one that every library of the lower half finds (`threads::lower`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=pthread_create");
}
