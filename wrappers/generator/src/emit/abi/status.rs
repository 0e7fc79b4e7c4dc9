//! `MPI_Status`: its layout, and its conversion to the neutral form. Each value has a field of its own, or is packed into bits of others.

use std::fmt::Write;

use crate::abi::{Abi, Named, Packed, width};

/// The values of a status: the name, the conversion from the field, and the conversion to the field.
const VALUES: [(&str, &str, &str); 5] = [
    (
        "source",
        "rank_to_neutral(self.source)",
        "rank_from_neutral(status.source)",
    ),
    (
        "tag",
        "tag_to_neutral(self.tag)",
        "tag_from_neutral(status.tag)",
    ),
    (
        "error",
        "error_to_neutral(self.error)",
        "error_from_neutral(status.error)",
    ),
    ("cancelled", "self.cancelled", "status.internal[0]"),
    ("bytes", "self.bytes as u64", "status.bytes() as usize"),
];

/// Returns the values of a status that the description lacks, or describes in an impossible way.
#[cfg(test)]
pub fn missing(abi: &Abi) -> Vec<&'static str> {
    let field = |name: &str| abi.status.iter().any(|it| it.name == name);
    let packed = |name: &str| abi.packed.iter().any(|it| it.value == name);
    let told = |name: &str| match name {
        "cancelled" | "bytes" => field(name) != packed(name),
        _ => field(name) && !packed(name),
    };
    let names = VALUES.iter().map(|it| it.0);
    names.filter(|name| !told(name)).collect()
}

/// Writes the structure and its conversions.
pub fn emit(text: &mut String, abi: &Abi) {
    layout(text, abi);
    let value = |name: &str| match packed_value(abi, name) {
        Some(packed) => packed,
        None => VALUES
            .iter()
            .find(|it| it.0 == name)
            .map_or("", |it| it.1)
            .to_string(),
    };
    let cancelled = match packed_value(abi, "cancelled") {
        Some(packed) => format!("({packed}) as i32"),
        None => value("cancelled"),
    };
    let _ = writeln!(
        text,
        "\nimpl Status {{\n\
         /// The status in the neutral form.\n#[inline(always)]\npub fn to_neutral(self) -> neutral::Status {{\n\
         let mut status = neutral::Status {{\n\
         source: {},\ntag: {},\nerror: {},\n\
         internal: [{cancelled}, 0, 0, 0, 0],\n}};\n\
         status.set_bytes({});\nstatus\n}}\n\n\
         /// The form that a neutral status has here.\n#[inline(always)]\npub fn from_neutral(status: &neutral::Status) -> Self {{\n\
         Self {{",
        value("source"),
        value("tag"),
        value("error"),
        value("bytes"),
    );
    for field in &abi.status {
        let _ = writeln!(text, "{}: {},", field.name, field_from_neutral(abi, field));
    }
    text.push_str("}\n}\n}\n");
}

fn layout(text: &mut String, abi: &Abi) {
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
}

/// Returns the expression for a packed value, as a `u64`, or `None` for a value with a field of its own.
fn packed_value(abi: &Abi, name: &str) -> Option<String> {
    let parts: Vec<String> = abi
        .packed
        .iter()
        .filter(|it| it.value == name)
        .map(|it| {
            // All bits of the field, without copies of its sign.
            let kind = abi.status.iter().find(|field| field.name == it.field);
            let width = kind.and_then(|field| width(&field.kind)).unwrap_or(64);
            let field = format!("(self.{} as u{width} as u64)", it.field);
            moved(&field, it.at, it, it.from)
        })
        .collect();
    either(&parts)
}

/// Returns the expression for a field: a value, several packed ones, or a default.
fn field_from_neutral(abi: &Abi, field: &Named) -> String {
    let parts: Vec<String> = abi
        .packed
        .iter()
        .filter(|it| it.field == field.name)
        .map(|it| {
            let value = match it.value.as_str() {
                "cancelled" => "u64::from(status.cancelled())",
                _ => "status.bytes()",
            };
            moved(value, it.from, it, it.at)
        })
        .collect();
    if let Some(all) = either(&parts) {
        return format!("({all}) as {}", field.kind);
    }
    let own = VALUES.iter().find(|it| it.0 == field.name);
    own.map_or("Default::default()", |it| it.2).to_string()
}

/// Returns the bits of a `u64` from `from` on, moved to another place.
fn moved(expression: &str, from: u32, packed: &Packed, to: u32) -> String {
    let mask = u64::MAX >> (64 - packed.bits);
    let bits = match from {
        0 => format!("{expression} & {mask:#x}"),
        _ => format!("({expression} >> {from}) & {mask:#x}"),
    };
    match to {
        0 => bits,
        _ => format!("({bits}) << {to}"),
    }
}

/// Combines all parts.
fn either(parts: &[String]) -> Option<String> {
    match parts {
        [] => None,
        [part] => Some(part.clone()),
        _ => Some(format!("({})", parts.join(") | ("))),
    }
}
