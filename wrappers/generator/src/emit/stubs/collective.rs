//! The short ways of collective operations.

use std::fmt::Write;

use super::repeated::{again, changed_in_place, keeps, of_blocks, repeatable};
use super::{beginning, cold, export_name, exported, home, names, noted, signature};
use crate::emit::kind;
use crate::table::Function;

/// Writes the short way of a nonblocking collective operation; `long` is the function for all other cases.
pub fn directly(text: &mut String, function: &Function, long: &str) {
    let name = function.rust_name();
    let home = home(function).map_or("", |parameter| parameter.name.as_str());
    let mut handles = Vec::new();
    let mut arguments = Vec::new();
    for parameter in &function.parameters {
        if parameter.kind == "request" {
            arguments.push("begun.word()".to_string());
        } else if kind::handle(&parameter.kind).is_none() {
            arguments.push(parameter.name.clone());
        } else {
            arguments.push(format!("(*{}).lower", parameter.name));
            if parameter.name != home {
                handles.push(parameter.name.as_str());
            }
        }
    }
    let handles = handles.join(", ");
    let arguments = arguments.join(", ");
    exported(text, function);
    let _ = writeln!(
        text,
        "if direct::open() && direct::predefined([{handles}]){} \
         && let Some(begun) = direct::initiate({home}, request, move |lower, word| {}) {{\n\
         let code = (direct::table().{name})({arguments});\n\
         return begun.end(code, c\"{}\");\n}}",
        match repeatable(function).as_str() {
            "true" => String::new(),
            condition => format!(" && {condition}"),
        },
        again(function),
        function.called,
    );
    let _ = writeln!(text, "{long}({})\n}}\n}}", names(function));
}

/// Returns the handles of a blocking operation.
fn handles(function: &Function) -> impl Iterator<Item = &str> {
    let handles = function.parameters.iter();
    let handles = handles.filter(|it| kind::handle(&it.kind).is_some() && !kind::by_pointer(it));
    handles.map(|it| it.name.as_str())
}

/// Writes the function that the application calls for a blocking operation if handles are numbers: it continues with objects. If one of them has to be looked
/// up, another function does that, so that this one needs no stack.
pub fn with_numbers(text: &mut String, function: &Function, long: &str) {
    let (name, all) = (function.rust_name(), names(function));
    let handles: Vec<&str> = handles(function).collect();
    let known: Vec<String> = handles
        .iter()
        .map(|it| format!("let Some({it}) = Handle::known({it})"))
        .collect();
    let signature = signature(function, kind::application_type);
    let _ = writeln!(
        text,
        "\n{}unsafe extern \"C\" fn {name}{signature} {{\n\
         // SAFETY: the caller keeps to what MPI asks of its arguments.\nunsafe {{\n\
         if {} {{\nreturn {name}_of_objects({all});\n}}\n{name}_sought({all})\n}}\n}}",
        export_name(function),
        known.join(" && "),
    );
    beginning(
        text,
        function,
        kind::application_type,
        &cold(&format!("{name}_sought")),
    );
    let _ = writeln!(
        text,
        "if !direct::objects([{}]) {{\nreturn {long}({all});\n}}\n{name}_of_objects({all})\n}}\n}}",
        handles.join(", "),
    );
}

/// Writes the short way of a blocking operation that can be begun again from its arguments, in assembly for each processor (`upper-half/src/ground/arch`). It
/// takes a handle for the address of its object, and jumps to `long` with the original arguments. If handles are not `wide`, it is a separate function that
/// receives objects, because a handle may lead to none.
pub fn in_assembly(text: &mut String, function: &Function, long: &str, wide: bool) {
    let name = function.rust_name();
    let (mut handles, mut buffers) = (0, 0);
    let last = function.parameters.len() - 1;
    assert!(function.parameters[last].kind == "communicator", "{name}");
    for (index, parameter) in function.parameters[..last].iter().enumerate() {
        handles |= u32::from(kind::handle(&parameter.kind).is_some()) << index;
        buffers |= u32::from(changed_in_place(function, parameter)) << index;
    }
    assert!(buffers < 1 << 6 && handles & 0x100 == 0, "{name}");
    let types = match wide {
        true => kind::application_type,
        false => kind::inner_type,
    };
    let signature = signature(function, types);
    let keeps = keeps(function);
    let mut stub = |exported: &str, own: &str, buffers: u32, copy: &str| {
        let _ = writeln!(
            text,
            "\n{exported}#[unsafe(naked)]\n#[unsafe(link_section = \"stillpoint_collective\")]\nunsafe extern \"C\" fn {own}{signature} {{\n\
             arch::collective!(name: \"{}\", long: {long}, failed: direct::failed, returned: direct::returned, \
             slot: core::mem::offset_of!(Direct, {name}), arguments: {}, handles: {handles}, looks: {wide}, buffers: {buffers}, noted: Kind::{}, {copy})\n}}",
            function.called,
            last + 1,
            noted(function).unwrap_or("Unknown"),
        );
    };
    let (exported, name) = match wide {
        true => (export_name(function), name.clone()),
        false => (String::new(), format!("{name}_of_objects")),
    };
    let Some(keeps) = keeps else {
        // The long way keeps the input of these calls in place.
        let goes = of_blocks(function).is_some();
        assert!(!goes || buffers == 1, "{name}");
        let copy = format!("has_copy: {goes}, copy: {long}, keeps: Keeps::Nothing");
        return stub(&exported, &name, if goes { 0 } else { buffers }, &copy);
    };
    assert!(buffers == 1 && [6, 7].contains(&(last + 1)), "{name}");
    let own = format!("{name}_in_place");
    let copy = format!("has_copy: true, copy: {own}, keeps: Keeps::Nothing");
    stub(&exported, &name, 0, &copy);
    let copy = format!("has_copy: false, copy: kept::put_back, keeps: Keeps::{keeps}");
    stub("", &own, 0, &copy);
}
