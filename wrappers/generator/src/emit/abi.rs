//! An MPI's own values and layouts, and their conversion to neutral ones (`wrappers/src/openmpi.rs`), from the description of its ABI.

use std::fmt::Write;

use super::{Input, handles, kind};
use crate::abi::{Abi, Held, Integer, Named};

mod integers;
pub mod status;

/// Writes the module.
pub fn emit(input: &Input) -> String {
    let abi = &input.abi;
    let mut text = String::from(
        "use core::mem::{offset_of, size_of};\n\nuse crate::gate::HandleKind;\nuse crate::neutral;\n\n",
    );
    let _ = writeln!(
        text,
        "/// This ABI among those that [`crate::direct::Direct::abi`] may name.\npub const ABI: u64 = u64::from_le_bytes(*b\"{}\");\n\
         /// The library that programs are linked to.\npub const LIBRARY: &str = \"{}\";\n\
         /// Names of its library for Fortran's layers, and data: written by hand.\npub const OF_LAYERS: [&str; {}] = [",
        abi.word,
        abi.library,
        abi.of_layers.len(),
    );
    for name in &abi.of_layers {
        let _ = writeln!(text, "\"{name}\",");
    }
    text.push_str("];\n");
    let later = abi.also.iter().chain(&abi.refused).map(|it| &it.name);
    let later: Vec<&String> = abi.own.iter().chain(later).collect();
    let _ = writeln!(
        text,
        "/// What later releases of it export: carried, or refused.\npub const LATER: [&str; {}] = [",
        later.len(),
    );
    for it in later {
        let _ = writeln!(text, "\"{it}\",");
    }
    text.push_str("];\n");
    internal_symbols(&mut text, abi);
    text.push('\n');
    values(&mut text, &abi.values);
    status::emit(&mut text, abi);
    integers::emit(&mut text, abi);
    addresses(&mut text, &abi.addresses);
    held(&mut text, &abi.held);
    handles::emit_list(&mut text, abi);
    let _ = writeln!(
        text,
        "\n/// Whether a null pointer among an attribute's functions stands for one that does nothing.\npub const NULL_FUNCTIONS: bool = {};\n\
         /// What stands for a function that copies an attribute as it is, where that is none.\npub const DUPLICATES: Option<usize> = {:?};",
        abi.null_functions, abi.duplicates
    );
    text.push_str("\n/// What its Fortran and C++ layers know of its objects and internal functions.\npub mod internals {\n");
    values(&mut text, &abi.internals);
    text.push_str("}\n");
    text
}

fn internal_symbols(text: &mut String, abi: &Abi) {
    let functions = abi.internal_functions.iter().map(|it| &it.name);
    let names: Vec<&String> = functions
        .chain(abi.internal_data.iter().map(|it| &it.name))
        .collect();
    let _ = writeln!(
        text,
        "/// What it exports to its Fortran and C++ layers, and the upper half in its place.\npub const INTERNAL: [&str; {}] = [",
        names.len()
    );
    for name in names {
        let _ = writeln!(text, "\"{name}\",");
    }
    text.push_str("];\n");
}

/// Writes the C types for the upper half. Handles of each kind have a type of their own (`upper-half/src/ground/abi/handles.rs`).
pub fn emit_types(input: &Input) -> String {
    let mut text = String::from("use handles::Raw;\n\n");
    for Named { name, kind, .. } in &input.abi.types {
        if let Some(handle) = kind::HANDLES.iter().find(|it| it.3 == name) {
            let (own, of) = (kind::handle_type(handle.1), handle.2);
            let _ = writeln!(
                text,
                "/// `{name}`.\n#[repr(transparent)]\n#[derive(Clone, Copy)]\npub struct {own}({kind});\n\n\
                 impl Handle for {own} {{\n\
                 #[inline(always)]\nfn object(self) -> *mut Object {{\nRaw::object(self.0, HandleKind::{of})\n}}\n\n\
                 #[inline(always)]\nfn of(object: *mut Object) -> Self {{\nSelf(Raw::of(object))\n}}\n\n\
                 #[inline(always)]\nfn same(self, other: Self) -> bool {{\nself.0 == other.0\n}}\n\n\
                 #[cfg(application = \"mpich\")]\n#[inline(always)]\nfn known(self) -> Option<*mut Object> {{\nRaw::known(self.0, HandleKind::{of})\n}}\n}}\n"
            );
            continue;
        }
        let _ = writeln!(
            text,
            "/// `{name}`.\npub type {} = {kind};",
            without_prefix(name)
        );
    }
    text
}

/// Writes the values of the description and of the header, for a test of the lower half, which has both.
pub fn emit_header(input: &Input) -> String {
    let module = input.module;
    let mut text = format!(
        "use mpi_sys as ffi;\nuse stillpoint_wrappers::{module} as abi;\n\nuse core::mem::size_of;\n\n"
    );
    let mut numbers: Vec<&str> = input.abi.values.iter().map(|it| it.name.as_str()).collect();
    for integer in input.abi.integers.iter().chain(&input.abi.last) {
        let name = integer.name.as_str();
        if !numbers.contains(&name) && !input.abi.is_undeclared(name) {
            numbers.push(name);
        }
    }
    let _ = writeln!(
        text,
        "/// Names, and their values here and there.\n#[allow(clippy::unnecessary_cast, reason = \"one of them is as wide\")]\npub const NUMBERS: [(&str, i64, i64); {}] = [",
        numbers.len()
    );
    for name in numbers {
        let own = without_prefix(name);
        let _ = writeln!(text, "(\"{name}\", abi::{own} as i64, ffi::{name} as i64),");
    }
    // The bindings have no name for Fortran's integers.
    let types = || input.abi.types.iter().filter(|it| it.name != "MPI_Fint");
    let _ = writeln!(
        text,
        "];\n\n/// Types, and their sizes here and there.\npub const SIZES: [(&str, usize, usize); {}] = [",
        types().count()
    );
    for Named { name, kind, .. } in types() {
        let kind = kind.replace("Object", "()");
        let _ = writeln!(
            text,
            "(\"{name}\", size_of::<{kind}>(), size_of::<ffi::{name}>()),"
        );
    }
    text.push_str("];\n");
    text
}

/// Returns the name of `MPI_X` in the modules of an ABI.
fn without_prefix(name: &str) -> &str {
    name.strip_prefix("MPI_").unwrap_or(name)
}

fn values(text: &mut String, values: &[Named]) {
    for value in values {
        let documentation = match value.documentation.as_str() {
            "" => format!("`{}`.", value.name),
            told => told.to_string(),
        };
        let _ = writeln!(
            text,
            "/// {documentation}\npub const {}: {} = {};",
            without_prefix(&value.name),
            value.kind,
            value.value
        );
    }
}

/// Writes pointers that are not addresses: their values here and in the neutral form, and the conversion of each set.
fn addresses(text: &mut String, addresses: &[Integer]) {
    text.push('\n');
    for address in addresses {
        let (name, own) = (&address.name, pointer(address.own));
        let constant = without_prefix(name);
        let _ = writeln!(
            text,
            "/// `{name}`.\npub const {constant}: usize = {own};\n\
             /// `{name}` of the standard's ABI.\npub const NEUTRAL_{constant}: usize = {};",
            address.standard
        );
    }
    let mut sets: Vec<&str> = addresses.iter().map(|it| it.set.as_str()).collect();
    sets.dedup();
    for set in sets {
        let of: Vec<&Integer> = addresses.iter().filter(|it| it.set == set).collect();
        let differ = of.iter().any(|it| it.own != it.standard);
        // If several names stand for one pointer, one line converts it.
        let same = |one: &&&Integer, other: &&Integer| {
            (one.own, one.standard) == (other.own, other.standard)
        };
        let first = |it: &&&Integer| of.iter().find(|other| same(it, other)) == Some(*it);
        for (way, from, to) in [("to", "", "NEUTRAL_"), ("from", "NEUTRAL_", "")] {
            let _ = writeln!(
                text,
                "\n/// A pointer of the set `{set}`, converted {way} the neutral form.\n#[inline]\n\
                 pub fn {set}_{way}_neutral<T>(pointer: *const T) -> *const T {{"
            );
            if !differ {
                text.push_str("pointer\n}\n");
                continue;
            }
            text.push_str("match pointer.addr() {\n");
            for address in of.iter().filter(first) {
                let name = without_prefix(&address.name);
                let _ = writeln!(text, "{from}{name} => pointer.with_addr({to}{name}),");
            }
            text.push_str("_ => pointer,\n}\n}\n");
        }
    }
}

/// Returns a pointer as an expression of type `usize`.
fn pointer(value: i32) -> String {
    match value {
        0.. => value.to_string(),
        _ => format!("({value}_isize).cast_unsigned()"),
    }
}

/// Writes pointers that are not addresses and lie in data of the library: their symbols and neutral values, a list for each set.
fn held(text: &mut String, held: &[Held]) {
    let mut sets: Vec<&str> = held.iter().map(|it| it.set.as_str()).collect();
    sets.dedup();
    for set in sets {
        let of: Vec<&Held> = held.iter().filter(|it| it.set == set).collect();
        let _ = writeln!(
            text,
            "\n/// The set `{set}`: data symbols that hold the pointers, and what these are in the neutral form.\n\
             pub const {}: [(&core::ffi::CStr, usize); {}] = [",
            set.to_uppercase(),
            of.len()
        );
        for it in of {
            let _ = writeln!(
                text,
                "(c\"{}\", {}), // {}",
                it.symbol, it.standard, it.name
            );
        }
        text.push_str("];\n");
    }
}

/// Writes the standard-ABI value of each kind's null handle, for `wrappers/src/predefined.rs`.
pub fn emit_null_handles(input: &Input) -> String {
    let mut text = String::from(
        "/// Standard-ABI value of a kind's null handle (MPI 5.0, section 20.4).\n\
         pub const fn null_handle(kind: HandleKind) -> i32 {\nmatch kind {\n",
    );
    for handle in kind::HANDLES {
        let constant = input
            .constants
            .iter()
            .find(|it| it.set == handle.0 && it.name.ends_with("_NULL"));
        if let Some(constant) = constant {
            let _ = writeln!(
                text,
                "HandleKind::{} => {}, // {}",
                handle.2, constant.standard, constant.name
            );
        }
    }
    text.push_str("}\n}\n");
    text
}
