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
    match symbols.is_empty() {
        true => text.push_str(NUMBERS),
        false => first_free_numbers(text, &handles),
    }
}

/// Where handles are numbers, those of objects that the program makes come behind all predefined ones.
const NUMBERS: &str = "
/// From this number on, handles are those of objects that programs make.
pub const FIRST_NUMBER: i32 = 4096;

/// The first number that an object of a kind may have in Fortran.
pub const fn first_free_number(_kind: u16) -> i32 {
FIRST_NUMBER
}
";

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
        "\n/// From this number on, handles have numbers of Fortran's: predefined ones too.\npub const FIRST_NUMBER: i32 = 0;\n\n\
         /// The first number that no predefined handle of a kind (a `HandleKind`) has in Fortran.\n\
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
    if symbols.is_empty() {
        return objects(&handles);
    }
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
    text.push_str(
        "\n/// The object of a predefined handle that is a number: here none is.\n#[inline(always)]\n\
         pub fn numbered(_number: i32) -> *mut super::Object {\ncore::ptr::null_mut()\n}\n",
    );
    text
}

/// The objects of predefined handles that are numbers.
fn objects(handles: &[(usize, &Handle)]) -> String {
    let count = handles.len();
    let mut text = format!(
        "use super::predefined::{{Address, Symbol}};\nuse crate::ground::object::{{Object, ROOM}};\n\n\
         /// The objects, in the order of `PREDEFINED`.\n\
         static OBJECTS: [Symbol<ROOM>; {count}] = [const {{ Symbol::new() }}; {count}];\n\
         /// Where they are.\npub static ADDRESSES: [Address; {count}] = [\n"
    );
    for index in 0..count {
        let _ = writeln!(text, "Address::of(&OBJECTS[{index}]),");
    }
    text.push_str(
        "];\n\n/// The object of a predefined handle; null where the number is none's.\n#[inline(always)]\n\
         pub fn numbered(number: i32) -> *mut Object {\nlet index: usize = match number {\n",
    );
    for (index, (_, handle)) in handles.iter().enumerate() {
        let _ = writeln!(text, "{} => {index}, // {}", handle.fortran, handle.name);
    }
    text.push_str("_ => return core::ptr::null_mut(),\n};\nADDRESSES[index].object()\n}\n");
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
