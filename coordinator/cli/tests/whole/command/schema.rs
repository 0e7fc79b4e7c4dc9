//! The output of commands with `--json` matches the docs' schema, field by field.

use std::fs;

use serde_json::Value;

use super::house::House;

/// The schema: one definition for each kind of output.
fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/json-schema.json"
    );
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// JSON's name for the type of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Collects the places at which a value differs from its part of the schema. A field that is missing in the schema is an error too: it would be undocumented.
fn compare(root: &Value, part: &Value, value: &Value, place: &str, wrong: &mut Vec<String>) {
    if let Some(name) = part["$ref"].as_str() {
        let name = name.trim_start_matches("#/$defs/");
        return compare(root, &root["$defs"][name], value, place, wrong);
    }
    let allowed = |word: &str| match &part["type"] {
        Value::Array(words) => words.contains(&word.into()),
        Value::String(only) => only == word,
        _ => true,
    };
    let is = kind(value);
    if !(allowed(is) || is == "integer" && allowed("number")) {
        wrong.push(format!("{place}: {is}, not {}", part["type"]));
    }
    if let Some(words) = part["enum"].as_array()
        && !words.contains(value)
    {
        wrong.push(format!("{place}: {value}"));
    }
    if let (Some(fields), Some(known)) = (value.as_object(), part["properties"].as_object()) {
        for name in part["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                wrong.push(format!("{place}: no {name}"));
            }
        }
        for (name, value) in fields {
            match known.get(name) {
                Some(part) => compare(root, part, value, &format!("{place}.{name}"), wrong),
                None => wrong.push(format!("{place}.{name} is not in the schema")),
            }
        }
    }
    if let (Some(fields), Some(part)) = (value.as_object(), part.get("additionalProperties")) {
        for (name, value) in fields {
            compare(root, part, value, &format!("{place}.{name}"), wrong);
        }
    }
    if let (Some(items), Some(part)) = (value.as_array(), part.get("items")) {
        for value in items {
            compare(root, part, value, &format!("{place}[]"), wrong);
        }
    }
}

pub fn differences(definition: &str, value: &Value) -> Vec<String> {
    let root = schema();
    let mut wrong = Vec::new();
    compare(
        &root,
        &root["$defs"][definition],
        value,
        definition,
        &mut wrong,
    );
    wrong
}

#[test]
fn what_is_printed_is_what_the_schema_describes() {
    let house = House::new();
    let ranks = house.launch(2, "", &["run", "sh"]);
    house.until_state("running");
    let dir = house.checkpoints();
    let dir = dir.to_str().unwrap();
    for (definition, arguments) in [
        ("jobs", &["status", "--json"][..]),
        ("job", &["status", dir, "--json"]),
        ("all", &["status", "--all", "--json"]),
        ("checkpoint", &["checkpoint", dir, "--json"]),
        ("checkpoint", &["suspend", dir, "--json"]),
        ("inspect", &["inspect", dir, "--json"]),
        ("check", &["check", "--json"]),
        ("codes", &["explain", "--json"]),
        ("code", &["explain", "open-socket", "--json"]),
    ] {
        let wrong = differences(definition, &house.json(arguments));
        assert!(wrong.is_empty(), "{arguments:?}: {}", wrong.join("\n"));
    }
    ranks.end_well();
    let wrong = differences("job", &house.until_state("suspended"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_difference_from_the_schema_is_found() {
    let right = serde_json::json!({"jobs": [], "done": 0, "stay": 0});
    assert_eq!(differences("all", &right), [""; 0]);
    let wrong = serde_json::json!({"jobs": [], "done": "none", "more": 1});
    assert_eq!(differences("all", &wrong).len(), 3);
}
