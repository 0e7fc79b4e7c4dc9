//! Generates files from the tables and descriptions: dispatch table, stubs, shims, values of an MPI's ABI, coverage page.

use std::collections::BTreeSet;

use crate::abi::{ABIS, Abi};
use crate::constants::Constant;
use crate::large::Twin;
use crate::layout::laid_out;
use crate::table::{BadLine, Function};

mod abi;
#[cfg(test)]
mod coverage;
mod direct;
mod dispatch;
mod handles;
mod imports;
mod internals;
mod kind;
mod loaded;
mod served;
mod shims;
mod stubs;
#[cfg(test)]
mod tests;

/// The tables, and the description of one ABI.
pub struct Input {
    pub functions: Vec<Function>,
    pub constants: Vec<Constant>,
    pub twins: Vec<Twin>,
    pub abi: Abi,
    /// The ABI's module in `stillpoint_wrappers`.
    pub module: &'static str,
}

/// The crate that the files belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `wrappers/`: the files that both halves share, and all ABIs.
    Shared,
    /// `upper-half/`, for programs that were built for the ABI of this name.
    Upper(&'static str),
    /// `lower-half/`, linked to a real MPI with the ABI of this name.
    Lower(&'static str),
    /// `lower-half/`, for a real MPI with the ABI of this name that is loaded at launch.
    Loaded(&'static str),
}

/// A file to write, and its text.
pub struct Output {
    pub name: String,
    pub text: String,
}

/// An emitter: makes the text of one file, in lines.
type Emitter = fn(&Input) -> String;

/// The files that both halves share, with their emitters.
const SHARED: [(&str, Emitter); 3] = [
    ("dispatch.rs", dispatch::emit),
    ("direct.rs", direct::emit),
    ("null_handles.rs", abi::emit_null_handles),
];
/// The emitter of the file that is named after each ABI.
const OF_ABI: Emitter = abi::emit;
/// The upper half's files.
const UPPER: [(&str, Emitter); 4] = [
    ("stubs.rs", stubs::emit),
    ("internals.rs", internals::emit),
    ("symbols.rs", handles::emit_symbols),
    ("types.rs", abi::emit_types),
];
/// The lower half's files.
const BEFORE_ANY: [(&str, Emitter); 2] = [
    ("shims.rs", shims::emit),
    ("functions.rs", direct::emit_functions),
];
/// The files of a lower half that is linked to its MPI.
const LINKED: [(&str, Emitter); 3] = [
    ("missing.rs", shims::emit_missing),
    ("addresses.rs", handles::emit_addresses),
    ("header.rs", abi::emit_header),
];

/// The files of a lower half that loads its MPI.
const LOADED: [(&str, Emitter); 1] = [("ffi.rs", loaded::emit)];

/// Reads the tables that were in the source tree when this was compiled, and the description of an ABI.
pub fn input(abi: &str) -> Result<Input, BadLine> {
    let functions = crate::table::read(include_str!("../../table/functions.txt"))?;
    let constants = crate::constants::read(include_str!("../../table/constants.txt"))?;
    let described = ABIS.iter().find(|it| it.0 == abi);
    let (module, description) = described.ok_or_else(|| BadLine {
        line: 0,
        reason: format!("no ABI {abi} is described"),
    })?;
    Ok(Input {
        abi: crate::abi::read(description, &constants)?,
        functions,
        constants,
        twins: crate::large::read(include_str!("../../table/large.txt"))?,
        module,
    })
}

/// Returns the functions that the upper half exports for programs of an ABI, carried or refused.
pub fn exported(input: &Input) -> BTreeSet<String> {
    let refused = input.abi.refused.iter().map(|it| it.name.clone());
    let functions = served::functions(input);
    let twins = functions.iter().filter_map(|it| served::twin(input, it));
    let twins: Vec<String> = twins.map(|it| format!("{}_c", it.name)).collect();
    let served = functions.into_iter().map(|it| it.called);
    let beside = input.abi.beside.iter().cloned();
    let also = input.abi.also.iter().map(|it| it.name.clone());
    let all = served.chain(twins).chain(refused);
    all.chain(beside).chain(also).collect()
}

/// Returns the files of a part.
pub fn outputs(part: Part) -> Result<Vec<Output>, BadLine> {
    let made = |files: &[(&str, Emitter)], input: &Input| -> Vec<Output> {
        files
            .iter()
            .map(|file| output(file.0, file.1, input))
            .collect()
    };
    Ok(match part {
        Part::Shared => {
            let mut outputs = made(&SHARED, &input(ABIS[0].0)?);
            for (abi, _) in ABIS {
                outputs.push(output(&format!("{abi}.rs"), OF_ABI, &input(abi)?));
            }
            outputs
        }
        Part::Upper(abi) => made(&UPPER, &input(abi)?),
        Part::Lower(abi) => made(&[&BEFORE_ANY[..], &LINKED].concat(), &input(abi)?),
        Part::Loaded(abi) => made(&[&BEFORE_ANY[..], &LOADED].concat(), &input(abi)?),
    })
}

fn output(name: &str, emit: Emitter, input: &Input) -> Output {
    Output {
        name: name.to_string(),
        text: format!(
            "// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.\n\n{}",
            laid_out(&emit(input))
        ),
    }
}

/// Capitalises the first letter.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().to_string() + letters.as_str(),
        None => String::new(),
    }
}
