//! The paper's equations, checked against each other.

use proptest::prelude::*;
use stillpoint_incremental::viability::{Cost, Estimate, Load, Method, Rates};

/// Rates of a kilobyte to a terabyte a second.
fn rates() -> impl Strategy<Value = Rates> {
    let rate = || (3.0..12.0f64).prop_map(|exponent| 10f64.powf(exponent));
    (rate(), rate()).prop_map(|(beta_ckpt, beta_hash)| Rates::new(beta_ckpt, beta_hash).unwrap())
}

/// Tells whether rounding could decide a comparison either way.
fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

proptest! {
    /// Equation 2 equals equation 3. With no `T_dirty`, equation 5 equals equation 6, for any `c`.
    #[test]
    fn the_equations_reduce_as_the_paper_says(rates in rates(), c in 1.0..1e15, alpha in -1.0..1.0f64) {
        prop_assume!(!near(rates.ratio(), alpha));
        prop_assert_eq!(rates.pays_in_time(c, alpha, 0.0), rates.pays(alpha));
    }

    /// Equation 5 holds above the least alpha, and not below it.
    #[test]
    fn the_least_alpha_divides_what_pays(rates in rates(), c in 1.0..1e15, t_dirty in 0.0..1e3) {
        let least = rates.least_alpha(c, t_dirty).expect("there is something to write");
        let step = 1e-6 * least.max(1.0);
        prop_assert!(rates.pays_in_time(c, least + step, t_dirty));
        prop_assert!(!rates.pays_in_time(c, least - step, t_dirty));
    }

    /// If all memory is page-dirty, a hash-based checkpoint beats a whole one exactly when equation 5 holds.
    #[test]
    fn a_whole_checkpoint_is_beaten_by_equation_5(rates in rates(), changed in 0.0..=1.0, t_dirty in 0.0..10.0) {
        let load = Load::new(1 << 30, 1.0, t_dirty).unwrap();
        let estimate = Estimate::of(rates, load, changed).unwrap();
        let [full, _, hash] = estimate.costs;
        prop_assume!(!near(full.seconds, hash.seconds));
        let pays = rates.pays_in_time(estimate.c, estimate.alpha, t_dirty);
        prop_assert_eq!(hash.seconds < full.seconds, pays);
        prop_assert_eq!(estimate.pays, pays);
    }

    /// The least alpha of a load separates where hashing is fastest from where it is not.
    #[test]
    fn hashing_is_fastest_above_the_least_alpha(
        rates in rates(), dirty in 0.01..=1.0, changed in 0.0..=1.0, t_dirty in 0.0..10.0,
    ) {
        let load = Load::new(1 << 34, dirty, t_dirty).unwrap();
        let estimate = Estimate::of(rates, load, changed).unwrap();
        let least = estimate.least_alpha.expect("there is something to write");
        prop_assume!((least - estimate.alpha).abs() > 1e-6 * least.max(1.0));
        prop_assert_eq!(estimate.fastest == Method::Hash, estimate.alpha > least);
    }

    #[test]
    fn nothing_is_faster_than_the_fastest(
        rates in rates(), dirty in 0.0..=1.0, changed in 0.0..=1.0, t_dirty in 0.0..10.0,
    ) {
        let costs = Load::new(1 << 34, dirty, t_dirty).unwrap().costs(&rates, 1.0 - changed);
        let fastest = Cost::fastest(&costs);
        let of = |method| costs.iter().find(|cost| cost.method == method).unwrap().seconds;
        prop_assert!(costs.iter().all(|cost| of(fastest) <= cost.seconds));
    }
}
