//! Open MPI's predefined handles: a list for both halves, and the upper half's data symbols.

use std::fmt::Write;

use super::{Input, kind};
use crate::abi::{Abi, Handle};

fn sorted(abi: &Abi) -> Vec<(usize, &Handle)> {
    let position = |handle: &Handle| {
        kind::HANDLES
            .iter()
            .position(|entry| entry.0 == handle.kind)
    };
    let mut handles: Vec<(usize, &Handle)> = abi
        .handles
        .iter()
        .map(|handle| (position(handle).unwrap_or(0), handle))
        .collect();
    handles.sort_by_key(|(position, handle)| (*position, handle.standard));
    handles
}

/// What there is, sorted by kind and standard-ABI value, and the first numbers that nothing of it has in Fortran.
pub fn emit_list(text: &mut String, abi: &Abi) {
    let handles = sorted(abi);
    let _ = writeln!(
        text,
        "\n/// Predefined handles, sorted by kind and standard-ABI value.\npub const PREDEFINED: [Predefined; {}] = [",
        handles.len()
    );
    for (position, handle) in &handles {
        let _ = writeln!(
            text,
            "Predefined {{ kind: HandleKind::{}, standard: {}, name: c\"{}\", symbol: c\"{}\", bytes: {}, fortran: {} }},",
            kind::HANDLES[*position].2,
            handle.standard,
            handle.name,
            handle.symbol,
            handle.bytes,
            handle.fortran,
        );
    }
    text.push_str(
        "];\n\n/// The first number that no predefined handle of a kind (a `HandleKind`) has in Fortran.\n\
         pub const fn first_free_number(kind: u16) -> i32 {\nmatch kind {\n",
    );
    for (position, entry) in kind::HANDLES.iter().enumerate() {
        let numbers = handles.iter().filter(|it| it.0 == position);
        if let Some(last) = numbers.map(|it| it.1.fortran).max() {
            let _ = writeln!(
                text,
                "k if k == HandleKind::{} as u16 => {},",
                entry.2,
                last + 1
            );
        }
    }
    text.push_str("_ => 1,\n}\n}\n");
}

/// The data symbols that stand in Open MPI's place (`upper-half/src/ground/abi/symbols.rs`).
pub fn emit_symbols(input: &Input) -> String {
    let handles = sorted(&input.abi);
    let mut text = String::new();
    text.push_str("use super::predefined::Symbol;\n\nmacro_rules! symbols {\n($($name:ident: $bytes:literal,)*) => {\n");
    text.push_str(
        "$(#[allow(non_upper_case_globals)] // Open MPI's name, looked up by the dynamic linker.\n",
    );
    text.push_str("#[unsafe(no_mangle)]\npub static $name: Symbol<$bytes> = Symbol::new();)*\n\n");
    text.push_str("/// Where the symbols are, in the order of `PREDEFINED`.\n");
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
    let handles = sorted(&input.abi);
    let mut text = String::new();
    text.push_str("use core::ffi::c_void;\n\nuse crate::mpi::predefined::Address;\n\n");
    text.push_str("macro_rules! symbols {\n($($name:ident,)*) => {\nunsafe extern \"C\" { $(static $name: c_void;)* }\n\n");
    text.push_str("/// Where the symbols are, in the order of `PREDEFINED`.\n");
    let _ = writeln!(text, "pub static ADDRESSES: [Address; {}] =", handles.len());
    text.push_str("[$(Address::of(&raw const $name)),*];\n};\n}\n\nsymbols! {\n");
    for (_, handle) in handles {
        let _ = writeln!(text, "{},", handle.symbol);
    }
    text.push_str("}\n");
    text
}
