//! Tests of the conversions of every ABI's integers: expanded in an ABI's module, with its name and its error classes.

macro_rules! every_conversion {
    ($abi:literal, $has_class:expr) => {
        type Conversion = fn(i32) -> i32;

        /// Every set of integers with its conversion to the neutral form and back.
        const SETS: [(&str, Conversion, Conversion); 23] = [
            ("rank", rank_to_neutral, rank_from_neutral),
            ("tag", tag_to_neutral, tag_from_neutral),
            ("error", error_to_neutral, error_from_neutral),
            ("mode", mode_to_neutral, mode_from_neutral),
            ("assertion", assertion_to_neutral, assertion_from_neutral),
            ("threads", threads_to_neutral, threads_from_neutral),
            ("order", order_to_neutral, order_from_neutral),
            (
                "distribution",
                distribution_to_neutral,
                distribution_from_neutral,
            ),
            ("darg", darg_to_neutral, darg_from_neutral),
            ("combiner", combiner_to_neutral, combiner_from_neutral),
            ("typeclass", typeclass_to_neutral, typeclass_from_neutral),
            ("comparison", comparison_to_neutral, comparison_from_neutral),
            ("topology", topology_to_neutral, topology_from_neutral),
            ("split", split_to_neutral, split_from_neutral),
            ("lock", lock_to_neutral, lock_from_neutral),
            ("flavor", flavor_to_neutral, flavor_from_neutral),
            ("model", model_to_neutral, model_from_neutral),
            ("whence", whence_to_neutral, whence_from_neutral),
            ("keyval", keyval_to_neutral, keyval_from_neutral),
            ("verbosity", verbosity_to_neutral, verbosity_from_neutral),
            ("bind", bind_to_neutral, bind_from_neutral),
            ("scope", scope_to_neutral, scope_from_neutral),
            ("pvarclass", pvarclass_to_neutral, pvarclass_from_neutral),
        ];

        #[test]
        fn every_constant_of_the_table_is_converted_both_ways() {
            let input = stillpoint_generator::emit::input($abi).unwrap();
            for integer in &input.abi.integers {
                if integer.set == "displacement" {
                    assert_eq!(
                        displacement_to_neutral(integer.own.into()),
                        integer.standard.into()
                    );
                    assert_eq!(
                        displacement_from_neutral(integer.standard.into()),
                        integer.own.into()
                    );
                    continue;
                }
                let (_, to, from) = SETS.iter().find(|set| set.0 == integer.set).unwrap();
                assert_eq!(to(integer.own), integer.standard, "{}", integer.name);
                assert_eq!(from(integer.standard), integer.own, "{}", integer.name);
            }
        }

        #[test]
        fn a_value_that_names_nothing_comes_back_as_it_was_or_still_names_nothing() {
            let input = stillpoint_generator::emit::input($abi).unwrap();
            for (set, to, from) in SETS {
                for value in (-100..2000).chain([16384, -32766, i32::MIN, 0x5fff_ffff]) {
                    if set == "error" && !$has_class(value) {
                        continue;
                    }
                    let back = from(to(value));
                    if set == "mode" || set == "assertion" {
                        // Flags without a meaning become one flag.
                        let flags = input.abi.integers.iter().filter(|it| it.set == set);
                        let known = flags.fold(0, |known, it| known | it.own);
                        assert_eq!(back & known, value & known, "{set} {value}");
                        assert_eq!(back & !known != 0, value & !known != 0, "{set} {value}");
                    } else {
                        assert_eq!(back, value, "{set} {value}");
                    }
                }
            }
        }

        #[test]
        fn no_two_values_become_the_same_neutral_one() {
            for (set, to, _) in SETS {
                if set == "mode" || set == "assertion" {
                    continue;
                }
                let mut seen = std::collections::HashMap::new();
                for value in (-100..20000).chain([-32766]) {
                    // Errors arrive as classes.
                    if set == "error" && !$has_class(value) {
                        continue;
                    }
                    let before = seen.insert(to(value), value);
                    assert_eq!(before, None, "{set}: {value}");
                }
            }
        }
    };
}
