//! Tests of the tables and of the generated files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::{BEFORE_ANY, Input, LINKED, LOADED, OF_ABI, SHARED, UPPER};
use crate::abi::ABIS;
use crate::constants::Sort;
use crate::table::Form;

/// The functions in `golden/`: one of each form, and of each kind of parameter.
const FUNCTIONS: [&str; 24] = [
    "MPIX_Barrier_init",
    "MPI_Abort",
    "MPI_Allgather",
    "MPI_Alltoallw",
    "MPI_Bcast",
    "MPI_Cart_shift",
    "MPI_Comm_create_keyval",
    "MPI_Comm_get_attr",
    "MPI_Comm_split_type",
    "MPI_Dist_graph_create_adjacent",
    "MPI_File_open",
    "MPI_File_read_at",
    "MPI_Get_count",
    "MPI_Ineighbor_alltoallw",
    "MPI_Ireduce",
    "MPI_Isend",
    "MPI_Op_create",
    "MPI_Rput",
    "MPI_Status_set_cancelled",
    "MPI_T_pvar_handle_alloc",
    "MPI_Type_create_darray",
    "MPI_Type_struct",
    "MPI_Waitall",
    "MPI_Win_create",
];
/// The sets of integers there: swapped ones, flags, offsets, and all others.
const SETS: [&str; 4] = ["rank", "assertion", "displacement", "threads"];
/// The constants of the set that programs may add to.
const ERRORS: [&str; 4] = [
    "MPI_SUCCESS",
    "MPI_ERR_IN_STATUS",
    "MPI_ERR_PENDING",
    "MPI_ERR_WIN",
];
/// The kinds of handles there.
const HANDLES: [&str; 2] = ["communicator", "errhandler"];

/// The file for a packed status: MPICH's, which has the count's high bits and the cancelled flag in one word.
const PACKED: &str = "packed_status.rs";

/// The file for functions whose handles are narrower than words.
const NARROW: &str = "narrow_handles.rs";

/// The file for functions that have a twin with large counts: a message, a list, and a place that is read and written.
const LARGE: &str = "large_counts.rs";
const TWINS: [&str; 3] = ["MPI_Igatherv", "MPI_Pack", "MPI_Send"];

fn input() -> Input {
    super::input("openmpi").expect("the tables can be read")
}

fn a_few() -> Input {
    let mut input = input();
    for name in FUNCTIONS {
        assert!(input.functions.iter().any(|f| f.name == name), "{name}");
    }
    input
        .functions
        .retain(|function| FUNCTIONS.contains(&function.name.as_str()));
    input.abi.integers.retain(|integer| {
        SETS.contains(&integer.set.as_str()) || ERRORS.contains(&integer.name.as_str())
    });
    input
        .abi
        .handles
        .retain(|handle| HANDLES.contains(&handle.kind.as_str()));
    // All of them have one form.
    input.abi.refused.truncate(1);
    input.abi.own.truncate(1);
    input.abi.also.truncate(1);
    input
}

/// Compares generated text with the kept one, or keeps it if the environment has `variable`.
fn is_kept(path: &Path, made: &str, variable: &str) {
    if std::env::var_os(variable).is_some() {
        std::fs::write(path, made).expect("the source tree can be written to");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == made,
        "{} is not what is made now: look at the difference after {variable}=1 has written it",
        path.display()
    );
}

#[test]
fn what_is_made_of_a_few_functions_is_what_was_reviewed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let input = a_few();
    let files = SHARED
        .into_iter()
        .chain(UPPER)
        .chain(BEFORE_ANY)
        .chain(LINKED)
        .chain(LOADED);
    let mut names = BTreeSet::new();
    for (name, emit) in files.chain([("openmpi.rs", OF_ABI)]) {
        let made = super::output(name, emit, &input).text;
        is_kept(&folder.join(name), &made, "STILLPOINT_WRITE_GOLDEN");
        names.insert(name.to_string());
    }
    let mut numbers = a_few();
    numbers.abi = super::input("mpich").expect("the tables can be read").abi;
    let made = super::output(NARROW, super::loaded::emit, &numbers).text;
    is_kept(&folder.join(NARROW), &made, "STILLPOINT_WRITE_GOLDEN");
    names.insert(NARROW.to_string());
    let mut twins = super::input("mpich").expect("the tables can be read");
    twins
        .functions
        .retain(|it| TWINS.contains(&it.name.as_str()));
    twins.abi.refused.clear();
    let made = super::output(LARGE, super::stubs::emit, &twins).text;
    is_kept(&folder.join(LARGE), &made, "STILLPOINT_WRITE_GOLDEN");
    names.insert(LARGE.to_string());
    let mut packed = String::from("use core::mem::{offset_of, size_of};\n");
    let mpich = super::input("mpich").expect("the tables can be read").abi;
    super::abi::status::emit(&mut packed, &mpich);
    let made = super::laid_out(&packed);
    is_kept(&folder.join(PACKED), &made, "STILLPOINT_WRITE_GOLDEN");
    names.insert(PACKED.to_string());
    let kept: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("the golden files")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    assert_eq!(kept, names);
}

#[test]
fn every_abi_has_what_the_halves_ask_of_one() {
    let constants = input().constants;
    for (name, description) in ABIS {
        let abi = crate::abi::read(description, &constants).expect("a good description");
        assert!(super::abi::status::missing(&abi).is_empty(), "{name}");
        assert!(abi.word.len() == 8 && !abi.library.is_empty(), "{name}");
        for sort in [Sort::Address, Sort::Last] {
            for constant in constants.iter().filter(|it| it.sort == sort) {
                let mut given = abi.addresses.iter().chain(&abi.last);
                let held = abi.held.iter().any(|it| it.name == constant.name);
                assert!(
                    held || given.any(|it| it.name == constant.name),
                    "{name}: {}",
                    constant.name
                );
            }
        }
        let sets: BTreeSet<&str> = abi.integers.iter().map(|it| it.set.as_str()).collect();
        let all = constants.iter().filter(|it| it.sort == Sort::Integer);
        assert_eq!(sets, all.map(|it| it.set.as_str()).collect(), "{name}");
    }
}

#[test]
fn stubs_of_an_abi_whose_handles_are_numbers_convert_them_before_they_go_on_in_assembly() {
    let mut input = a_few();
    let (addresses, types) = (super::stubs::emit(&input), &mut input.abi.types);
    assert!(addresses.contains("arch::collective!") && !addresses.contains("_of_objects"));
    for handle in types.iter_mut().filter(|it| it.kind == "*mut Object") {
        handle.kind = "c_int".to_string();
    }
    let numbers = super::stubs::emit(&input);
    assert!(numbers.contains("arch::collective!") && numbers.contains("bcast_of_objects(buffer,"));
    for text in [addresses, numbers] {
        assert!(text.contains("let comm = Handle::object(comm);"));
        assert!(text.contains("let request = PlaceOf::at(request);"));
    }
    let types = super::abi::emit_types(&input);
    assert!(types.contains("pub struct CommHandle(c_int);"));
}

#[test]
fn the_page_of_functions_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/mpi-coverage.md");
    let page = super::coverage::emit(&input());
    is_kept(&path, &page, "STILLPOINT_WRITE_PAGE");
}

#[test]
fn the_table_is_written_as_it_is_read() {
    for line in include_str!("../../../table/functions.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let function = &crate::table::read(line).expect("a good line")[0];
        assert_eq!(function.to_string(), line);
    }
}

#[test]
fn a_bad_line_is_named() {
    let error = crate::table::read("# head\nMPI_Bcast collective sideways code").unwrap_err();
    assert_eq!(error.to_string(), "line 2: unknown form");
}

/// Returns `nm`'s dynamic symbols of the installed library.
pub fn exported() -> BTreeSet<String> {
    let library = library();
    let output = Command::new("nm")
        .args(["-D", "--defined-only", &library])
        .output()
        .expect("nm runs");
    assert!(output.status.success(), "nm {library}");
    String::from_utf8(output.stdout)
        .expect("symbol names are ASCII")
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(str::to_string)
        .collect()
}

fn library() -> String {
    let cache = Command::new("/sbin/ldconfig")
        .arg("-p")
        .output()
        .expect("ldconfig runs");
    let cache = String::from_utf8_lossy(&cache.stdout).to_string();
    let line = cache
        .lines()
        .find(|line| line.split_whitespace().next() == Some(&input().abi.library));
    line.and_then(|line| line.split("=> ").nth(1))
        .expect("Open MPI is installed")
        .to_string()
}

#[test]
fn the_table_has_every_function_of_the_installed_mpi_and_no_other() {
    let exported = exported();
    let functions = input().functions;
    let table: BTreeSet<String> = functions
        .iter()
        .filter(|f| f.form != Form::Absent)
        .map(|f| f.name.clone())
        .collect();
    let installed: BTreeSet<String> = exported
        .iter()
        .filter_map(|name| name.strip_prefix('P'))
        .filter(|name| name.starts_with("MPI_") || name.starts_with("MPIX_"))
        .map(str::to_string)
        .collect();
    assert_eq!(table, installed);
    for function in functions.iter().filter(|f| f.form == Form::Absent) {
        assert!(
            !exported.contains(&function.name),
            "{} is exported",
            function.name
        );
    }
}

#[test]
fn every_stub_has_a_class_and_the_page_names_it() {
    let input = input();
    let page = super::coverage::emit(&input);
    for function in &input.functions {
        assert_eq!(
            page.matches(&format!("| `{}` |", function.name)).count(),
            1,
            "{}",
            function.name
        );
    }
}
