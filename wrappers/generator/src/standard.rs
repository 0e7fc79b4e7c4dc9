//! Checks that every constant of the standard's ABI (`wrappers/table/standard.txt`) is handled. A number that differs between ABIs and crosses unconverted
//! would silently mean another constant.

use std::collections::{BTreeMap, BTreeSet};

use crate::abi::Abi;
use crate::emit::input;

const LIST: &str = include_str!("../../table/standard.txt");

/// Returns the list: names, values, and how each is handled.
fn list() -> BTreeMap<&'static str, (i64, Vec<&'static str>)> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let mut words = line.split_whitespace();
        let name = words.next().expect("a name");
        let value = words.next().and_then(|it| it.parse().ok());
        (name, (value.expect("a value"), words.collect()))
    };
    let list: BTreeMap<_, _> = lines.clone().map(read).collect();
    assert_eq!(list.len(), lines.count(), "a name is told twice");
    list
}

/// Returns the constants of a description, with their values there.
fn described(abi: &Abi) -> BTreeMap<&str, i64> {
    let integers = abi.integers.iter().chain(&abi.addresses).chain(&abi.last);
    let integers = integers.map(|it| (it.name.as_str(), it.own.into()));
    let handles = abi.handles.iter();
    let handles = handles.map(|it| (it.name.as_str(), it.fortran.into()));
    integers.chain(handles).collect()
}

/// Returns the error in a constant of the list, if there is one.
fn wrong(name: &str, value: i64, words: &[&str], abi: &Abi) -> Option<String> {
    let list = list();
    let described = described(abi);
    let own_value = abi.values.iter().find(|it| it.name == name);
    let good = match words {
        ["converted"] => described.get(name) == Some(&value),
        ["value"] => own_value.is_some_and(|it| it.value == value.to_string()),
        ["also", other] => list.get(other).is_some_and(|it| it.0 == value),
        ["same"] => value == 0,
        ["function"] => value == 0 || abi.duplicates.is_some_and(|it| it as i64 == value),
        ["refused", function] => abi.refused.iter().any(|it| it.name == *function),
        ["program" | "missing"] => true,
        _ => false,
    };
    let elsewhere = words != ["converted"] && described.contains_key(name);
    (!good || elsewhere).then(|| format!("{name} {value} {}", words.join(" ")))
}

#[test]
fn every_constant_of_the_standard_is_dealt_with() {
    let abi = input("abi").expect("a good description").abi;
    let list = list();
    assert!(list.len() > 350, "only {}", list.len());
    let bad: Vec<String> = list
        .iter()
        .filter_map(|(name, (value, words))| wrong(name, *value, words, &abi))
        .collect();
    assert_eq!(bad, [""; 0]);
    let unlisted: Vec<&str> = described(&abi)
        .into_keys()
        .filter(|name| !list.contains_key(name))
        .collect();
    assert_eq!(unlisted, [""; 0], "not in wrappers/table/standard.txt");
}

#[test]
fn what_is_forgotten_or_told_wrongly_is_named() {
    let abi = input("abi").expect("a good description").abi;
    let told = |value, words: &[&str]| wrong("MPI_DISTRIBUTE_DFLT_DARG", value, words, &abi);
    assert_eq!(told(19, &["converted"]), None);
    assert!(told(18, &["converted"]).is_some());
    assert!(told(19, &["program"]).is_some());
    assert!(wrong("MPI_NEW", 3, &["converted"], &abi).is_some());
    assert!(wrong("MPI_NEW", 3, &["same"], &abi).is_some());
    assert!(wrong("MPI_NEW", 3, &["refused", "MPI_Send"], &abi).is_some());
    assert!(wrong("MPI_NEW", 3, &[], &abi).is_some());
}

/// Checks that the other ABIs' descriptions have all of their headers' constants: the sets of MPI 3.1 are complete in each.
#[test]
fn what_one_abi_has_of_a_set_the_others_have_too() {
    let newer = [
        "MPI_T_BIND_MPI_SESSION",
        "MPI_ERR_ERRHANDLER",
        "MPI_ERR_ABI",
        "MPI_T_ERR_NOT_ACCESSIBLE",
        "MPI_T_ERR_NOT_SUPPORTED",
    ];
    let standard = input("abi").expect("a good description").abi;
    for name in ["openmpi", "mpich"] {
        let abi = input(name).expect("a good description").abi;
        let have: BTreeSet<&str> = abi.integers.iter().map(|it| it.name.as_str()).collect();
        let lack: Vec<&str> = standard
            .integers
            .iter()
            .map(|it| it.name.as_str())
            .filter(|it| !have.contains(it) && !newer.contains(it))
            .collect();
        assert_eq!(lack, [""; 0], "{name}");
    }
}
