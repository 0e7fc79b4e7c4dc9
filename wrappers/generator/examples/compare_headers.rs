//! Compares the description of an ABI with the header of a library that has it. `ci/headers` runs this, since a machine that builds Stillpoint does not need
//! these libraries. Open MPI's header is compared where the lower half is built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_generator::abi::Abi;
use stillpoint_generator::emit::{exported, input};

/// Returns the include directory of a library that `ci/mpis` has put into `target/mpis`.
fn include(mpi: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root.join("target"));
    let include = target.join("mpis").join(mpi).join("include");
    assert!(
        include.exists(),
        "{} is not there: ci/mpis gets it",
        include.display()
    );
    include
}

/// Returns expressions of C by their text, with their values in the description.
fn told(abi: &Abi) -> BTreeMap<String, i64> {
    let mut told = BTreeMap::new();
    let mut add = |expression: String, value: i64| told.insert(expression, value);
    for integer in abi.integers.iter().chain(&abi.addresses).chain(&abi.last) {
        if !abi.is_undeclared(&integer.name) {
            add(integer.name.clone(), integer.own.into());
        }
    }
    for handle in &abi.handles {
        add(handle.name.clone(), handle.fortran.into());
    }
    let values = abi.values.iter();
    for value in values.filter(|it| !abi.is_undeclared(&it.name)) {
        add(value.name.clone(), value.value.parse().expect("a number"));
    }
    let types = abi.types.iter();
    for kind in types.filter(|it| !abi.is_undeclared(&it.name)) {
        let bytes = match kind.kind.as_str() {
            "c_int" => 4,
            _ => 8,
        };
        add(format!("sizeof({})", kind.name), bytes);
    }
    add("sizeof(MPI_Status)".into(), abi.status_bytes as i64);
    for field in &abi.status {
        let name = match field.name.as_str() {
            "source" => "MPI_SOURCE",
            "tag" => "MPI_TAG",
            "error" => "MPI_ERROR",
            _ => field.documentation.trim_matches('`'),
        };
        let offset = field.value.parse().expect("an offset");
        add(format!("offsetof(MPI_Status, {name})"), offset);
    }
    told
}

/// Returns the values of the same expressions that a C compiler computes with a header.
fn installed<'a>(
    include: &Path,
    header: &str,
    expressions: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, i64> {
    let mut source = format!(
        "#include <{header}>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n"
    );
    for expression in expressions {
        source += &format!(
            "printf(\"%s\\t%lld\\n\", \"{expression}\", (long long)(long)({expression}));\n"
        );
    }
    source += "}\n";
    let folder = tempfile::tempdir().expect("a folder");
    let (file, program) = (folder.path().join("values.c"), folder.path().join("values"));
    std::fs::write(&file, source).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.arg("-w").arg("-I").arg(include);
    let built = compiler.arg(&file).arg("-o").arg(&program).output();
    let built = built.expect("gcc runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let output = Command::new(&program).output().expect("it runs").stdout;
    let output = String::from_utf8(output).expect("text");
    let value = |line: &str| {
        let (expression, value) = line.split_once('\t')?;
        Some((expression.to_owned(), value.parse().ok()?))
    };
    output.lines().filter_map(value).collect()
}

/// Returns MPI's functions that a library exports.
fn functions_of(library: &Path) -> BTreeSet<String> {
    let mut nm = Command::new("nm");
    let output = nm.args(["-D", "--defined-only"]).arg(library).output();
    let output = String::from_utf8(output.expect("nm runs").stdout).expect("text");
    let names = output
        .lines()
        .filter_map(|line| line.split(' ').next_back());
    let is_mpi = |name: &&str| name.starts_with("MPI_") || name.starts_with("MPIX_");
    names.filter(is_mpi).map(str::to_owned).collect()
}

fn main() {
    // Each function that a program may call there is carried or refused by name, and the upper half has no others.
    let mpich = include("mpich").with_file_name("lib/libmpi_abi.so.1");
    let standard = exported(&input("abi").expect("a good description"));
    assert_eq!(standard, functions_of(&mpich), "abi");
    println!("abi: {} functions are those of the library", standard.len());
    for (name, mpi, header) in [
        ("abi", "mpich", "mpi_abi.h"),
        ("mpich", "mpich-debian", "mpi.h"),
    ] {
        let abi = input(name).expect("a good description").abi;
        let told = told(&abi);
        assert!(told.len() > 250, "only {}", told.len());
        let installed = installed(&include(mpi), header, told.keys());
        assert_eq!(told, installed, "{name}");
        println!("{name}: {} values are as the header has them", told.len());
    }
}
