//! The lower half's side of the dispatch table (`lower-half/src/mpi/generated.rs`), a module for each class.

use std::fmt::Write;

use super::imports::Imports;
use super::{Input, kind};
use crate::abi::Abi;
use crate::table::{CLASSES, Direction, Function, Parameter};

/// Shims written by hand, in `lower-half/src/mpi/attributes.rs`.
const BY_HAND: [&str; 3] = ["MPI_Comm_get_attr", "MPI_Attr_get", "MPI_Win_get_attr"];

/// The one of these that calls another of them rather than the library.
pub const SAME_AS_ANOTHER: &str = "MPI_Attr_get";

/// Results that are texts of the ABI's maximal length: function, parameter, and the constant with the length. For other texts, the caller passes a length.
const TEXTS: [(&str, &str, &str); 9] = [
    ("MPI_Comm_get_name", "comm_name", "object_name"),
    ("MPI_Type_get_name", "type_name", "object_name"),
    ("MPI_Win_get_name", "win_name", "object_name"),
    ("MPI_Error_string", "string", "error_string"),
    ("MPI_Get_library_version", "version", "library_version"),
    ("MPI_Get_processor_name", "name", "processor_name"),
    ("MPI_Info_get_nthkey", "key", "info_key"),
    ("MPI_File_get_view", "datarep", "datarep_string"),
    ("MPI_Open_port", "port_name", "port_name"),
];
/// The same for a name that is looked up.
const LOOKED_UP: (&str, &str, &str) = ("MPI_Lookup_name", "port_name", "port_name");

/// Returns the constant with the length of a result that is a text, if no parameter gives it.
pub fn text_length(function: &Function, parameter: &Parameter) -> Option<&'static str> {
    let mut told = TEXTS.iter().chain([&LOOKED_UP]);
    let is_it = |it: &&(&str, &str, &'static str)| it.0 == function.name && it.1 == parameter.name;
    told.find(is_it).map(|it| it.2)
}

/// Writes the shims and the filled table.
pub fn emit(input: &Input) -> String {
    let functions: Vec<&Function> = input
        .functions
        .iter()
        .filter(|f| kind::crosses(f))
        .collect();
    let mut text = String::from(
        "use stillpoint_wrappers::dispatch::Dispatch;\nuse stillpoint_wrappers::extra::Extra;\n\nuse super::attributes;\n\n",
    );
    let mut modules = String::new();
    let mut fields = String::new();
    for (class, name) in CLASSES {
        let module = name.replace('-', "_");
        let mut bodies = String::new();
        for function in functions.iter().filter(|f| f.class == class) {
            let rust = function.rust_name();
            if BY_HAND.contains(&function.name.as_str()) {
                let _ = writeln!(fields, "{rust}: attributes::{rust},");
                continue;
            }
            shim(&mut bodies, function, &input.abi);
            let _ = writeln!(fields, "{rust}: {module}::{rust},");
        }
        if !bodies.is_empty() {
            let imports = imports(&bodies, input.module);
            let _ = writeln!(modules, "\nmod {module} {{\n{imports}{bodies}}}");
        }
    }
    text.push_str(
        "/// The table, with what is not MPI's own.\npub fn dispatch(extra: Extra) -> Dispatch {\nDispatch {\n",
    );
    text.push_str(&fields);
    text.push_str("extra,\ndirect: direct::direct(),\n}\n}\n");
    text.push_str(&modules);
    text
}

fn imports(shims: &str, module: &str) -> String {
    let mut imports = Imports::of(shims);
    imports.from("core::ffi", &["c_char", "c_void"]);
    imports.from("stillpoint_wrappers::neutral", &["Status", "Word"]);
    let line = format!("use stillpoint_wrappers::{module} as abi;");
    imports.line("abi", &line);
    imports.from("crate::mpi", &["convert", "library"]);
    imports.modules("crate::mpi::library", &["ffi", "missing"]);
    imports.text()
}

fn shim(text: &mut String, function: &Function, abi: &Abi) {
    let name = function.rust_name();
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, kind::neutral_type(parameter)))
        .collect();
    let _ = writeln!(
        text,
        "\npub unsafe extern \"C\" fn {name}({}) -> i32 {{\n\
         // SAFETY: the stub passes on what the application gave it, and places of its own for results.\nunsafe {{",
        parameters.join(", ")
    );
    for parameter in &function.parameters {
        before(text, parameter);
        if let Some(length) = text_length(function, parameter) {
            let name = &parameter.name;
            let _ = writeln!(
                text,
                "let mut own_{name} = library::text({name}, |lengths| lengths.{length});"
            );
        }
    }
    let texts = || {
        let parameters = function.parameters.iter();
        parameters.filter(|it| text_length(function, it).is_some())
    };
    let argument = |parameter: &Parameter| match text_length(function, parameter) {
        Some(_) => format!("own_{}.place()", parameter.name),
        None => argument(parameter, abi),
    };
    let arguments: Vec<String> = function.parameters.iter().map(argument).collect();
    let home = if abi.is_undeclared(&function.name) {
        "missing"
    } else {
        "ffi"
    };
    let call = format!("{home}::{}({})", function.name, arguments.join(", "));
    if function.parameters.iter().any(gives_back) || texts().next().is_some() {
        let _ = writeln!(text, "let code = {call};");
        for parameter in function
            .parameters
            .iter()
            .filter(|parameter| gives_back(parameter))
        {
            after(text, parameter);
        }
        let length = function.parameters.iter().find(|it| it.name == "resultlen");
        let length = length.map_or("core::ptr::null_mut()", |it| it.name.as_str());
        for parameter in texts() {
            let _ = writeln!(text, "own_{}.give({length}, code);", parameter.name);
        }
        text.push_str("library::error_to_neutral(code)\n}\n}\n");
    } else {
        let _ = writeln!(text, "library::error_to_neutral({call})\n}}\n}}");
    }
}

fn is_array(parameter: &Parameter) -> bool {
    parameter
        .length
        .as_deref()
        .is_some_and(|length| length != "*")
}

/// Whether a result has to be converted.
fn gives_back(parameter: &Parameter) -> bool {
    let converted = parameter.kind == "status"
        || kind::is_special(&parameter.kind) && parameter.length.as_deref() != Some("*");
    converted && parameter.direction != Direction::In
}

fn before(text: &mut String, parameter: &Parameter) {
    let name = &parameter.name;
    let kind = parameter.kind.as_str();
    let mutable = if parameter.direction == Direction::In {
        ""
    } else {
        "mut "
    };
    let length = parameter.length.as_deref().unwrap_or("");
    if kind == "status" && is_array(parameter) {
        let _ = writeln!(
            text,
            "let {mutable}own_{name} = convert::statuses({name}, {length});"
        );
    } else if kind == "status" {
        // A status that a function changes in part is passed as a whole.
        let form = match parameter.direction {
            Direction::In | Direction::InOut => "given_status",
            Direction::Out => "status",
        };
        let _ = writeln!(text, "let {mutable}own_{name} = convert::{form}({name});");
    } else if kind::is_special(kind) && is_array(parameter) {
        let _ = writeln!(
            text,
            "let {mutable}own_{name} = convert::integers({name}, {length}, abi::{kind}_from_neutral);"
        );
    } else if kind::is_special(kind) && gives_back(parameter) {
        let _ = writeln!(
            text,
            "let mut own_{name} = convert::integer({name}, abi::{kind}_from_neutral);"
        );
    }
}

fn argument(parameter: &Parameter, abi: &Abi) -> String {
    let name = &parameter.name;
    let kind = parameter.kind.as_str();
    let out = parameter.direction != Direction::In;
    if kind == "status" || kind::is_special(kind) && is_array(parameter) {
        return if out {
            format!("own_{name}.place()")
        } else {
            format!("own_{name}.given()")
        };
    }
    if kind::is_special(kind) && parameter.length.is_none() {
        return if out {
            format!("own_{name}.place()")
        } else {
            format!("abi::{kind}_from_neutral({name})")
        };
    }
    match kind {
        "weights" if out => format!("library::weights_from_neutral({name}).cast_mut()"),
        "weights" => format!("library::weights_from_neutral({name})"),
        "buffer" if out && differ(abi, kind) => {
            format!("abi::buffer_from_neutral({name}).cast_mut()")
        }
        "buffer" if differ(abi, kind) => format!("abi::buffer_from_neutral({name})"),
        "displacement" => format!("abi::displacement_from_neutral({name})"),
        "int" | "count" | "offset" | "aint" if !kind::by_pointer(parameter) => name.clone(),
        kind if kind::handle(kind).is_some() && !kind::by_pointer(parameter) => {
            format!("convert::handle({name})")
        }
        kind if kind.starts_with("function:") => format!("convert::function({name})"),
        kind if kind::handle(kind).is_some() => format!("{name} as _"),
        // `int ranges[][3]` in C.
        "int" if name == "ranges" => format!("{name} as _"),
        "buffer" | "strings" | "tool" | "toolobject" | "pointer" => format!("{name} as _"),
        _ => name.clone(),
    }
}

/// Whether a set's pointers that are not addresses differ from the neutral form.
fn differ(abi: &Abi, set: &str) -> bool {
    let mut of = abi.addresses.iter().filter(|it| it.set == set);
    of.any(|it| it.own != it.standard)
}

fn after(text: &mut String, parameter: &Parameter) {
    let name = &parameter.name;
    let kind = parameter.kind.as_str();
    if kind == "status" {
        let _ = writeln!(text, "own_{name}.give({name});");
    } else {
        let _ = writeln!(text, "own_{name}.give({name}, abi::{kind}_to_neutral);");
    }
}

/// Writes functions that rsmpi's bindings do not declare.
pub fn emit_missing(input: &Input) -> String {
    let mut text = String::from(
        "// Functions that the real MPI exports and its `mpi.h` does not declare. Not every version has them, or has them under these names: they are\n\
         // looked up when they are called. Handles are pointers, hence words.\n\n\
         use core::ffi::c_void;\nuse core::mem::transmute;\n\nuse crate::mpi::library::named::Named;\n",
    );
    let functions = input.functions.iter().filter(|it| kind::crosses(it));
    for function in functions.filter(|it| input.abi.is_undeclared(&it.name)) {
        let parameters = &function.parameters;
        let plain = |it: &Parameter| kind::neutral_type(it).replace("Word", "*mut c_void");
        let types: Vec<String> = parameters.iter().map(plain).collect();
        let names: Vec<&str> = parameters.iter().map(|it| it.name.as_str()).collect();
        let declared = names.iter().zip(&types);
        let declared: Vec<String> = declared.map(|(name, of)| format!("{name}: {of}")).collect();
        let _ = writeln!(
            text,
            "\n/// `{name}`.\n///\n/// # Safety\n/// As the MPI function.\npub unsafe fn {name}({}) -> i32 {{\n\
             static NAMED: Named = Named::new(c\"{name}\");\n\
             let Some(function) = NAMED.found() else {{\nreturn NAMED.absent();\n}};\n\
             // SAFETY: what has this name is such a function, and the arguments are the caller's.\nunsafe {{\n\
             transmute::<*const c_void, unsafe extern \"C\" fn({}) -> i32>(function)({})\n}}\n}}",
            declared.join(", "),
            types.join(", "),
            names.join(", "),
            name = function.name,
        );
    }
    text
}
