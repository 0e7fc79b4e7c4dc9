//! The choice of hasher: the processor, a GPU, or none.

use serde::Serialize;

use super::{Estimate, Load, ModelError, Rates};

/// A device that can hash memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hasher {
    Processor,
    Gpu,
}

impl Estimate {
    /// Computes the model's answer with the fastest of the offered hashers, and returns the chosen one. Each offer has a rate in bytes a second, which
    /// includes handing memory to the hasher. Of two equally fast offers, the first wins. The hasher is `None` if hashing does not pay with any.
    ///
    /// # Errors
    /// There are no offers, or a number is out of its range.
    pub fn with_fastest(
        beta_ckpt: f64,
        offers: &[(Hasher, f64)],
        load: Load,
        changed: f64,
    ) -> Result<(Estimate, Option<Hasher>), ModelError> {
        let (mut chosen, mut fastest) = (None, 0.0);
        for &(hasher, beta_hash) in offers {
            // Every rate must be valid, even if its hasher is not chosen.
            Rates::new(beta_ckpt, beta_hash)?;
            if beta_hash > fastest {
                (chosen, fastest) = (Some(hasher), beta_hash);
            }
        }
        let estimate = Estimate::of(Rates::new(beta_ckpt, fastest)?, load, changed)?;
        let chosen = chosen.filter(|_| estimate.pays);
        Ok((estimate, chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(beta_ckpt: f64, offers: &[(Hasher, f64)], changed: f64) -> Option<Hasher> {
        let load = Load::new(1_000_000, 1.0, 0.0).expect("a load");
        let found = Estimate::with_fastest(beta_ckpt, offers, load, changed);
        found.expect("rates").1
    }

    #[test]
    fn the_fastest_hashes_where_hashing_pays_and_otherwise_nobody() {
        use Hasher::{Gpu, Processor};
        let both = |processor, gpu| [(Processor, processor), (Gpu, gpu)];
        assert_eq!(chosen(1e9, &both(4e9, 2e9), 0.5), Some(Processor));
        assert_eq!(chosen(1e9, &both(4e9, 8e9), 0.5), Some(Gpu));
        assert_eq!(chosen(1e9, &both(4e9, 4e9), 0.5), Some(Processor));
        // Writing runs at 6 GB/s. Only a GPU hashes fast enough to make it worthwhile to leave out half.
        assert_eq!(chosen(6e9, &both(4e9, 20e9), 0.5), Some(Gpu));
        assert_eq!(chosen(6e9, &both(4e9, 10e9), 0.5), None);
        assert_eq!(chosen(6e9, &[(Processor, 4e9)], 0.5), None);
    }

    #[test]
    fn an_offer_is_a_rate() {
        let load = Load::new(1, 1.0, 0.0).expect("a load");
        for offers in [
            &[][..],
            &[(Hasher::Gpu, 0.0)],
            &[(Hasher::Processor, 1.0), (Hasher::Gpu, f64::NAN)],
        ] {
            assert!(
                Estimate::with_fastest(1.0, offers, load, 0.5).is_err(),
                "{offers:?}"
            );
        }
    }
}
