//! Predefined handles: a list for both halves, and the data symbols that they are the addresses of where an ABI has such.

use std::fmt::Write;

use super::{Input, kind};
use crate::abi::{Abi, Handle, Is};

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

/// What there is, sorted by kind and standard-ABI value, and, where numbers of handles are Fortran's alone, the first ones that nothing of it has.
pub fn emit_list(text: &mut String, abi: &Abi) {
    let handles = sorted(abi);
    let symbols = symbols(&handles);
    let kind = if symbols.is_empty() {
        "Numbered"
    } else {
        "Predefined"
    };
    let _ = writeln!(
        text,
        "\n/// Predefined handles, sorted by kind and standard-ABI value.\npub const PREDEFINED: [{kind}; {}] = [",
        handles.len()
    );
    for (position, handle) in &handles {
        let _ = write!(
            text,
            "{kind} {{ kind: HandleKind::{}, standard: {}, name: c\"{}\", ",
            kind::HANDLES[*position].2,
            handle.standard,
            handle.name,
        );
        let _ = match &handle.is {
            Is::Symbol { name, bytes } => writeln!(
                text,
                "symbol: c\"{name}\", bytes: {bytes}, fortran: {} }},",
                handle.fortran
            ),
            Is::Number => writeln!(text, "value: {} }},", handle.fortran),
        };
    }
    text.push_str("];\n");
    if !symbols.is_empty() {
        first_free_numbers(text, &handles);
    }
}

/// The data symbols of those that are addresses: names and sizes.
fn symbols<'a>(handles: &[(usize, &'a Handle)]) -> Vec<(&'a str, usize)> {
    let symbol = |(_, handle): &(usize, &'a Handle)| match &handle.is {
        Is::Symbol { name, bytes } => Some((name.as_str(), *bytes)),
        Is::Number => None,
    };
    handles.iter().filter_map(symbol).collect()
}

fn first_free_numbers(text: &mut String, handles: &[(usize, &Handle)]) {
    text.push_str(
        "\n/// The first number that no predefined handle of a kind (a `HandleKind`) has in Fortran.\n\
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
    let symbols = symbols(&handles);
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
        symbols.len()
    );
    text.push_str("[$(super::predefined::Address::of(&$name)),*];\n};\n}\n\nsymbols! {\n");
    for (name, bytes) in symbols {
        let _ = writeln!(text, "{name}: {bytes},");
    }
    text.push_str("}\n");
    text
}

/// The real MPI's data symbols.
pub fn emit_addresses(input: &Input) -> String {
    let handles = sorted(&input.abi);
    let symbols = symbols(&handles);
    let mut text = String::new();
    text.push_str("use core::ffi::c_void;\n\nuse crate::mpi::library::Address;\n\n");
    text.push_str("macro_rules! symbols {\n($($name:ident,)*) => {\nunsafe extern \"C\" { $(static $name: c_void;)* }\n\n");
    text.push_str("/// Where the symbols are, in the order of `PREDEFINED`.\n");
    let _ = writeln!(text, "pub static ADDRESSES: [Address; {}] =", symbols.len());
    text.push_str("[$(Address::of(&raw const $name)),*];\n};\n}\n\nsymbols! {\n");
    for (name, _) in symbols {
        let _ = writeln!(text, "{name},");
    }
    text.push_str("}\n");
    text
}
