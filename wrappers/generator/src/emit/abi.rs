//! An MPI's own values and layouts, and how they become neutral (`wrappers/src/openmpi.rs`), from the description of its ABI.

use std::fmt::Write;

use super::{Input, handles, kind};
use crate::abi::{Abi, Integer, Named};

mod integers;

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
         /// What it exports and nobody stands in for.\npub const UNSERVED: [&str; {}] = [",
        abi.word,
        abi.library,
        abi.unserved.len(),
    );
    for name in &abi.unserved {
        let _ = writeln!(text, "\"{name}\",");
    }
    text.push_str("];\n\n");
    values(&mut text, &abi.values);
    status(&mut text, abi);
    integers::emit(&mut text, abi);
    addresses(&mut text, &abi.addresses);
    handles::emit_list(&mut text, abi);
    text.push_str("\n/// What its Fortran and C++ layers know of its objects and internal functions.\npub mod internals {\n");
    values(&mut text, &abi.internals);
    text.push_str("}\n");
    text
}

/// The types of C, for the upper half.
pub fn emit_types(input: &Input) -> String {
    let mut text = String::new();
    for Named { name, kind, .. } in &input.abi.types {
        let _ = writeln!(
            text,
            "/// `{name}`.\npub type {} = {kind};",
            without_prefix(name)
        );
    }
    text
}

/// What the description says and what the header says, for a test of the lower half, which has both.
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

/// `MPI_X` as the modules of an ABI have it.
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

fn status(text: &mut String, abi: &Abi) {
    text.push_str(
        "\n/// `MPI_Status`.\n#[repr(C)]\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct Status {\n",
    );
    for field in &abi.status {
        if !field.documentation.is_empty() {
            let _ = writeln!(text, "/// {}", field.documentation);
        }
        let _ = writeln!(text, "pub {}: {},", field.name, field.kind);
    }
    let _ = writeln!(
        text,
        "}}\n\nconst _: () = assert!(size_of::<Status>() == {});",
        abi.status_bytes
    );
    for field in &abi.status {
        let _ = writeln!(
            text,
            "const _: () = assert!(offset_of!(Status, {}) == {});",
            field.name, field.value
        );
    }
    text.push_str(
        "\nimpl Status {\n\
         /// The status in the neutral form.\n#[inline(always)]\npub fn to_neutral(self) -> neutral::Status {\n\
         let mut status = neutral::Status {\n\
         source: rank_to_neutral(self.source),\ntag: tag_to_neutral(self.tag),\nerror: error_to_neutral(self.error),\n\
         internal: [self.cancelled, 0, 0, 0, 0],\n};\n\
         status.set_bytes(self.bytes as u64);\nstatus\n}\n\n\
         /// The form that a neutral status has here.\n#[inline(always)]\npub fn from_neutral(status: &neutral::Status) -> Self {\n\
         Self {\n\
         source: rank_from_neutral(status.source),\ntag: tag_from_neutral(status.tag),\nerror: error_from_neutral(status.error),\n\
         cancelled: status.internal[0],\nbytes: status.bytes() as usize,\n}\n}\n}\n",
    );
}

/// Pointers that are no addresses: their values here and in the neutral form, and the conversion of a set in which these differ.
fn addresses(text: &mut String, addresses: &[Integer]) {
    text.push('\n');
    for address in addresses {
        let (name, own) = (&address.name, address.own);
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
        if of.iter().all(|it| it.own == it.standard) {
            continue;
        }
        for (way, from, to) in [("to", "", "NEUTRAL_"), ("from", "NEUTRAL_", "")] {
            let _ = writeln!(
                text,
                "\n/// A pointer of the set `{set}`, converted {way} the neutral form.\n#[inline]\n\
                 pub fn {set}_{way}_neutral<T>(pointer: *const T) -> *const T {{\nmatch pointer.addr() {{"
            );
            for address in &of {
                let name = without_prefix(&address.name);
                let _ = writeln!(text, "{from}{name} => pointer.with_addr({to}{name}),");
            }
            text.push_str("_ => pointer,\n}\n}\n");
        }
    }
}

/// The standard-ABI value of a kind's null handle, for `wrappers/src/predefined.rs`.
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
