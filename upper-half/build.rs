//! Links the library so that its own functions are found by itself first: a tool's `MPI_X` calls `PMPI_X`, which must not lead
//! to the tool's `MPI_X` again (`src/export.rs`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
