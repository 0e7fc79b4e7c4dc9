//! The functions of the table that an ABI has, and their names there.

use super::Input;
use crate::abi::Abi;
use crate::large::Twin;
use crate::table::{Form, Function};

/// Returns the functions that the upper half implements, without those that it refuses. The description must mention every function that the table calls
/// absent; a missing one is an error here.
pub fn functions(input: &Input) -> Vec<Function> {
    let has = |function: &&Function| !input.abi.without.contains(&function.name);
    input
        .functions
        .iter()
        .filter(has)
        .filter_map(|function| served(input, function))
        .collect()
}

fn served(input: &Input, function: &Function) -> Option<Function> {
    let (abi, name) = (&input.abi, &function.name);
    let mut served = function.clone();
    served.called = called(abi, name);
    if function.form != Form::Absent {
        return Some(served);
    }
    let extension = |it: &Function| it.name != *name && called(abi, &it.name) == *name;
    let refused = || abi.refused.iter().any(|it| it.name == *name);
    if abi.own.contains(name) {
        served.form = Form::Written;
        return Some(served);
    }
    let told = abi.older || refused() || input.functions.iter().any(extension);
    assert!(
        told,
        "{name}: the description of {} does not say what becomes of it",
        input.module
    );
    None
}

/// Returns the twin with large counts of a served function, if the ABI has it.
pub fn twin<'a>(input: &'a Input, function: &Function) -> Option<&'a Twin> {
    let refused = format!("{}_c", function.called);
    if !input.abi.large || input.abi.refused.iter().any(|it| it.name == refused) {
        return None;
    }
    input.twins.iter().find(|it| it.name == function.called)
}

/// Returns an ABI's name of a function of the table.
fn called(abi: &Abi, name: &str) -> String {
    let renamed =
        |(table, own): &(String, String)| Some(own.clone() + name.strip_prefix(table.as_str())?);
    abi.called.iter().find_map(renamed).unwrap_or(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::input;

    fn of(abi: &str) -> Vec<Function> {
        functions(&input(abi).expect("a good description"))
    }

    #[test]
    fn an_abi_has_each_function_under_its_own_name() {
        let named = |abi: &str, name: &str| of(abi).iter().filter(|it| it.called == name).count();
        for (name, openmpi, standard) in [
            ("MPI_Send", 1, 1),
            ("MPIX_Bcast_init", 1, 0),
            ("MPI_Bcast_init", 0, 1),
            ("MPI_Comm_c2f", 1, 0),
            ("MPI_Comm_toint", 0, 1),
            ("MPI_Session_init", 0, 1),
            // Refused: its stub differs from the others.
            ("MPI_T_event_read", 0, 0),
            ("MPI_Buffer_flush", 0, 1),
            ("MPI_Psend_init", 0, 1),
        ] {
            assert_eq!(named("openmpi", name), openmpi, "{name} of Open MPI");
            assert_eq!(named("abi", name), standard, "{name} of the standard");
        }
    }

    #[test]
    fn twins_with_large_counts_are_of_functions_that_are_served() {
        let has = |abi: &str, name: &str| {
            let input = input(abi).expect("a good description");
            let functions = functions(&input);
            let found = functions.iter().find(|it| it.called == name);
            found.is_some_and(|it| twin(&input, it).is_some())
        };
        assert!(has("mpich", "MPI_Send") && has("abi", "MPI_Bcast_init"));
        assert!(!has("openmpi", "MPI_Send"));
        assert!(!has("mpich", "MPI_Comm_rank") && has("mpich", "MPI_Comm_attach_buffer"));
    }

    #[test]
    fn every_twin_is_carried_or_refused() {
        for abi in ["abi", "mpich"] {
            let input = input(abi).expect("a good description");
            let exported = crate::emit::exported(&input);
            for twin in &input.twins {
                let name = format!("{}_c", twin.name);
                assert!(exported.contains(&name), "{name} of {abi}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "MPI_T_event_read: the description of abi does not say")]
    fn a_newer_function_that_is_forgotten_stops_the_build() {
        let mut input = input("abi").expect("a good description");
        input.abi.refused.retain(|it| it.name != "MPI_T_event_read");
        functions(&input);
    }
}
