//! Handles that are significant at the root only: other ranks may pass any value, which is not read. The exported function first replaces such values by null
//! handles.

use std::fmt::Write;

use super::{export_name, kind, names, signature};
use crate::table::{Form, Function, Parameter};

/// Functions that are written by hand, and check their handles themselves.
const BY_HAND: [&str; 2] = ["MPI_Comm_spawn", "MPI_Comm_spawn_multiple"];

fn is_handle(parameter: &Parameter) -> bool {
    kind::handle(&parameter.kind).is_some()
}

/// Whether the function has such handles, which its stub must not see.
pub fn has(function: &Function) -> bool {
    let mut handles = function
        .parameters
        .iter()
        .filter(|it| it.root_only && is_handle(it));
    let has = handles.next().is_some();
    let by_hand = function.form == Form::Written;
    assert!(
        !has || by_hand == BY_HAND.contains(&function.name.as_str()),
        "{}",
        function.name
    );
    has && !by_hand
}

/// Returns the statements that replace handles which are not for this process by null handles. On an intercommunicator, the root's group passes only arguments
/// that are significant at the root.
pub fn nulls(function: &Function) -> String {
    let mut text = String::new();
    for parameter in &function.parameters {
        let Some((.., kind, _)) = kind::handle(&parameter.kind) else {
            continue;
        };
        let (name, for_root) = (&parameter.name, parameter.root_only);
        if for_root || parameter.kind == "datatype" {
            let _ = writeln!(
                text,
                "let {name} = steps::significant({name}, HandleKind::{kind}, {for_root}, root, Handle::object(comm));"
            );
        }
    }
    text
}

/// Makes the function that the application calls out of a stub, and takes the stub's exported names.
pub fn given(text: &mut String, function: &Function, stub: &str) {
    let (name, called) = (function.rust_name(), &function.called);
    let exported = export_name(function);
    assert!(stub.contains(&exported), "{}", function.name);
    let own = format!("export!(P{called} => {name});");
    text.push_str(&stub.replacen(&exported, "", 1).replacen(&own, "", 1));
    let _ = writeln!(
        text,
        "\n{exported}unsafe extern \"C\" fn {name}_given{} {{\n\
         // SAFETY: the caller keeps to what MPI asks of its arguments.\nunsafe {{\n{}{name}({})\n}}\n}}\nexport!(P{called} => {name}_given);",
        signature(function, kind::application_type),
        nulls(function),
        names(function),
    );
}
