//! Predefined handles: a list for both halves, and the data symbols whose addresses they are in some ABIs.

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

/// Writes the list, sorted by kind and standard-ABI value. If numbers of handles are only Fortran's, also writes the first number of each kind that is free
/// there.
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
    narrow(text, abi);
}

/// Writes the kinds whose handles are numbers of 32 bits, with each kind's null handle: all handles of the kind contain its bits.
fn narrow(text: &mut String, abi: &Abi) {
    let mut arms = String::new();
    for (word, _, kind, own) in kind::HANDLES {
        let is_narrow = abi
            .types
            .iter()
            .any(|it| it.name == own && it.kind == "c_int");
        let mut of = abi.handles.iter().filter(|it| it.kind == word);
        if is_narrow && let Some(null) = of.find(|it| it.name.ends_with("_NULL")) {
            let _ = writeln!(arms, "HandleKind::{kind} => Some({:#x}),", null.fortran);
        }
    }
    text.push_str("\n/// The null handle of a kind whose handles are numbers of 32 bits.\n");
    let _ = match arms.is_empty() {
        true => writeln!(
            text,
            "pub const fn narrow(_kind: HandleKind) -> Option<i32> {{\nNone\n}}"
        ),
        false => writeln!(
            text,
            "pub const fn narrow(kind: HandleKind) -> Option<i32> {{\nmatch kind {{\n{arms}_ => None,\n}}\n}}"
        ),
    };
}

/// If handles are numbers, those of the program's own objects come after all predefined ones.
const NUMBERS: &str = "
/// From this number on, handles are those of objects that programs make.
pub const FIRST_NUMBER: i32 = 4096;

/// The first number that an object of a kind may have in Fortran.
pub const fn first_free_number(_kind: u16) -> i32 {
FIRST_NUMBER
}
";

/// Returns the data symbols of handles that are addresses: names and sizes.
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

/// Writes the data symbols that stand in Open MPI's place (`upper-half/src/ground/abi/symbols.rs`).
pub fn emit_symbols(input: &Input) -> String {
    let handles = sorted(&input.abi);
    let symbols = symbols(&handles);
    if symbols.is_empty() {
        let mut text = objects(&handles);
        held(&mut text, &input.abi);
        return text;
    }
    let mut text = String::new();
    text.push_str("use stillpoint_wrappers::gate::HandleKind;\n\nuse super::predefined::Symbol;\n\nmacro_rules! symbols {\n($($name:ident: $bytes:literal,)*) => {\n");
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
         pub fn numbered(_kind: HandleKind, _number: i32) -> *mut super::Object {\ncore::ptr::null_mut()\n}\n",
    );
    text
}

/// Writes pointers that are not addresses and that data symbols hold: the symbols, and the conversion of each set. They point to places that are never read.
fn held(text: &mut String, abi: &Abi) {
    let mut sets: Vec<&str> = abi.held.iter().map(|it| it.set.as_str()).collect();
    sets.dedup();
    for set in sets {
        let of: Vec<_> = abi.held.iter().filter(|it| it.set == set).collect();
        for it in &of {
            let symbol = &it.symbol;
            let _ = writeln!(
                text,
                "\nstatic PLACE_OF_{symbol}: core::ffi::c_int = 0;\n\
                 /// `{}`.\n#[unsafe(no_mangle)]\nstatic {symbol}: &core::ffi::c_int = &PLACE_OF_{symbol};",
                it.name
            );
        }
        let _ = writeln!(
            text,
            "\n/// A pointer of the set `{set}`, made neutral.\n\
             pub fn {set}_to_neutral<T>(pointer: *const T) -> *const T {{"
        );
        for it in &of {
            let _ = writeln!(
                text,
                "if core::ptr::addr_eq(pointer, {}) {{\nreturn pointer.with_addr({});\n}}",
                it.symbol, it.standard
            );
        }
        text.push_str("pointer\n}\n");
    }
}

/// Writes the objects of predefined handles that are numbers.
fn objects(handles: &[(usize, &Handle)]) -> String {
    let count = handles.len();
    let mut text = format!(
        "use stillpoint_wrappers::gate::HandleKind;\n\nuse super::predefined::{{Address, Found, Symbol}};\nuse crate::ground::narrow::NUMBERED;\n\
         use crate::ground::object::Object;\n\n\
         /// The objects, in the order of `PREDEFINED`.\n\
         static OBJECTS: [Symbol<NUMBERED>; {count}] = [const {{ Symbol::new() }}; {count}];\n\
         /// Where they are.\npub static ADDRESSES: [Address; {count}] = [\n"
    );
    for index in 0..count {
        let _ = writeln!(text, "Address::of(&OBJECTS[{index}]),");
    }
    text.push_str("];\n");
    let mut arms = String::new();
    for (position, (_, _, kind, own)) in kind::HANDLES.iter().enumerate() {
        let of: Vec<(usize, i32)> = (0..count)
            .filter(|index| handles[*index].0 == position)
            .map(|index| (index, handles[index].1.fortran))
            .collect();
        let Some(first) = of.first() else { continue };
        let scattered = Scattered::of(&of.iter().map(|it| it.1).collect::<Vec<_>>());
        let (name, places) = (format!("OF_{}", own.to_uppercase()), 1 << scattered.bits);
        let _ = writeln!(
            text,
            "\n/// Where numbers of `{own}` lead, by [`Found::place`].\nstatic {name}: [Found; {places}] = ["
        );
        for place in 0..places {
            // A place that is free holds an entry of another place.
            let here = of.iter().find(|it| scattered.place(it.1) == place);
            let (index, number) = here.unwrap_or(first);
            let _ = writeln!(text, "Found::new(&OBJECTS, {index}, {number}),");
        }
        text.push_str("];\n");
        let _ = writeln!(
            arms,
            "HandleKind::{kind} => &{name}[Found::place(number, {:#x}, {})],",
            scattered.factor, scattered.bits
        );
    }
    let _ = write!(
        text,
        "\n/// The object of a predefined handle; null where the number is none's.\n#[inline(always)]\n\
         pub fn numbered(kind: HandleKind, number: i32) -> *mut Object {{\nlet found = match kind {{\n{arms}\
         #[allow(unreachable_patterns, reason = \"not every ABI has all kinds\")]\n_ => return core::ptr::null_mut(),\n}};\n\
         found.object(&OBJECTS, number)\n}}\n"
    );
    text
}

/// Numbers, each with a place of its own among a power of two: the highest bits of its product with a factor.
struct Scattered {
    factor: u32,
    bits: u32,
}

impl Scattered {
    /// Finds the smallest number of places that some factor permits; the same factors are tried in every build.
    fn of(numbers: &[i32]) -> Scattered {
        let fewest = numbers.len().next_power_of_two().trailing_zeros().max(1);
        let found = (fewest..24).find_map(|bits| {
            let mut factor = 0x9e37_79b9_u32;
            (0..20_000).find_map(|_| {
                factor = factor.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35e);
                let it = Scattered { factor, bits };
                let mut places: Vec<usize> = numbers.iter().map(|it_is| it.place(*it_is)).collect();
                places.sort_unstable();
                places.dedup();
                (places.len() == numbers.len()).then_some(it)
            })
        });
        found.expect("no number is there twice")
    }

    fn place(&self, number: i32) -> usize {
        (number.cast_unsigned().wrapping_mul(self.factor) >> (32 - self.bits)) as usize
    }
}

/// Writes the real MPI's data symbols: the linker fills in their addresses, or null if a version of the library lacks one.
pub fn emit_addresses(input: &Input) -> String {
    let handles = sorted(&input.abi);
    let symbols = symbols(&handles);
    let mut text = String::from(
        "use crate::mpi::library::Address;\n\ncore::arch::global_asm!(\n\
         \".pushsection .data.rel.ro.stillpoint_predefined, \\\"aw\\\", @progbits\",\n\".balign 8\",\n\
         \".globl stillpoint_predefined\",\n\".hidden stillpoint_predefined\",\n\"stillpoint_predefined:\",\n",
    );
    for (name, _) in &symbols {
        let _ = writeln!(text, "\".weak {name}\",\n\".quad {name}\",");
    }
    let _ = writeln!(
        text,
        "\".popsection\",\n);\n\nunsafe extern \"C\" {{\n/// Where the symbols are, in the order of `PREDEFINED`.\n\
         #[link_name = \"stillpoint_predefined\"]\npub safe static ADDRESSES: [Address; {}];\n}}",
        symbols.len()
    );
    text
}
