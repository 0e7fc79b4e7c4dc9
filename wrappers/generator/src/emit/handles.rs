//! Open MPI's predefined handles: a list for both halves, and the upper half's data symbols.

use std::fmt::Write;

use super::{Input, kind};
use crate::constants::Handle;

fn sorted(input: &Input) -> Vec<(usize, &Handle)> {
    let position = |handle: &Handle| {
        kind::HANDLES
            .iter()
            .position(|entry| entry.0 == handle.kind)
    };
    let mut handles: Vec<(usize, &Handle)> = input
        .handles
        .iter()
        .map(|handle| (position(handle).unwrap_or(0), handle))
        .collect();
    handles.sort_by_key(|(position, handle)| (*position, handle.standard));
    handles
}

/// What there is, sorted by kind and standard-ABI value (`stillpoint_wrappers::openmpi`).
pub fn emit(input: &Input) -> String {
    let handles = sorted(input);
    let mut text = String::new();
    text.push_str(
        "use crate::gate::HandleKind;\nuse crate::openmpi::Predefined;\n\n/// The handles.\n",
    );
    let _ = writeln!(
        text,
        "pub const PREDEFINED: [Predefined; {}] = [",
        handles.len()
    );
    for (position, handle) in handles {
        let _ = writeln!(
            text,
            "Predefined {{ kind: HandleKind::{}, standard: {}, name: c\"{}\", symbol: c\"{}\", bytes: {}, fortran: {} }},",
            kind::HANDLES[position].2,
            handle.standard,
            handle.name,
            handle.symbol,
            handle.bytes,
            handle.fortran,
        );
    }
    text.push_str("];\n");
    text
}

/// The data symbols that stand in Open MPI's place (`upper-half/src/abi/symbols.rs`).
pub fn emit_symbols(input: &Input) -> String {
    let handles = sorted(input);
    let mut text = String::new();
    text.push_str("use super::predefined::Symbol;\n\nmacro_rules! symbols {\n($($name:ident: $bytes:literal,)*) => {\n");
    text.push_str(
        "$(#[allow(non_upper_case_globals)] // Open MPI's name, looked up by the dynamic linker.\n",
    );
    text.push_str("#[unsafe(no_mangle)]\npub static $name: Symbol<$bytes> = Symbol::new();)*\n\n");
    text.push_str(
        "/// Where the symbols are, in the order of `stillpoint_wrappers::openmpi::PREDEFINED`.\n",
    );
    let _ = writeln!(
        text,
        "pub static ADDRESSES: [super::predefined::Address; {}] =",
        handles.len()
    );
    text.push_str("[$(super::predefined::Address::of(&$name)),*];\n};\n}\n\nsymbols! {\n");
    for (_, handle) in handles {
        let _ = writeln!(text, "{}: {},", handle.symbol, handle.bytes);
    }
    text.push_str("}\n");
    text
}

/// The real MPI's data symbols.
pub fn emit_addresses(input: &Input) -> String {
    let handles = sorted(input);
    let mut text = String::new();
    text.push_str("use core::ffi::c_void;\n\nuse crate::mpi::predefined::Address;\n\n");
    text.push_str("macro_rules! symbols {\n($($name:ident,)*) => {\nunsafe extern \"C\" { $(static $name: c_void;)* }\n\n");
    text.push_str(
        "/// Where the symbols are, in the order of `stillpoint_wrappers::openmpi::PREDEFINED`.\n",
    );
    let _ = writeln!(text, "pub static ADDRESSES: [Address; {}] =", handles.len());
    text.push_str("[$(Address::of(&raw const $name)),*];\n};\n}\n\nsymbols! {\n");
    for (_, handle) in handles {
        let _ = writeln!(text, "{},", handle.symbol);
    }
    text.push_str("}\n");
    text
}
