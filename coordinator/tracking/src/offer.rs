//! The ways of tracking that this machine has. They are found out by trying them: a kernel that has one may report false results.

use std::fmt;

use stillpoint_incremental::tracking::Tracking;

mod trial;

/// One way of tracking, on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    pub tracking: Tracking,
    /// The reason why the machine does not have it.
    pub lacks: Option<String>,
}

/// Returns all ways, the best first.
pub fn all() -> Vec<Offer> {
    let offer = |tracking| Offer {
        tracking,
        lacks: lacks(tracking),
    };
    Tracking::ALL.into_iter().map(offer).collect()
}

fn lacks(tracking: Tracking) -> Option<String> {
    match tracking {
        Tracking::WpAsync => trial::wp_async().err().map(|fault| fault.to_string()),
        Tracking::None => None,
    }
}

/// The error if the wanted way is missing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Unavailable {
    wanted: Tracking,
    why: String,
    offers: Vec<Tracking>,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unavailable {
            wanted,
            why,
            offers,
        } = self;
        let names: Vec<&str> = offers.iter().map(|offer| offer.name()).collect();
        let names = names.join(", ");
        write!(
            formatter,
            "this machine does not have {wanted}: {why}; it has: {names}"
        )
    }
}

/// Returns the wanted way, or the best one that is there.
///
/// # Errors
/// The wanted way is missing.
pub fn choose(wanted: Option<Tracking>) -> Result<Tracking, Unavailable> {
    chosen(wanted, &all())
}

fn chosen(wanted: Option<Tracking>, offers: &[Offer]) -> Result<Tracking, Unavailable> {
    let there = offers.iter().filter(|offer| offer.lacks.is_none());
    let there: Vec<Tracking> = there.map(|offer| offer.tracking).collect();
    let Some(wanted) = wanted else {
        return Ok(there.first().copied().unwrap_or_default());
    };
    let lacked = |offer: &&Offer| offer.tracking == wanted && offer.lacks.is_some();
    match offers.iter().find(lacked) {
        None => Ok(wanted),
        Some(offer) => Err(Unavailable {
            wanted,
            why: offer.lacks.clone().unwrap_or_default(),
            offers: there,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_that_is_there_is_taken_or_what_is_asked_for() {
        let offer = |tracking, lacks: Option<&str>| Offer {
            tracking,
            lacks: lacks.map(str::to_owned),
        };
        let new = Tracking::ALL.map(|tracking| offer(tracking, None));
        assert_eq!(chosen(None, &new), Ok(Tracking::WpAsync));
        for tracking in Tracking::ALL {
            assert_eq!(chosen(Some(tracking), &new), Ok(tracking));
        }
        let old = [
            offer(Tracking::WpAsync, Some("too old")),
            offer(Tracking::None, None),
        ];
        assert_eq!(chosen(None, &old), Ok(Tracking::None));
        let error = chosen(Some(Tracking::WpAsync), &old).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this machine does not have wp-async: too old; it has: none"
        );
    }

    #[test]
    fn the_last_rung_is_everywhere() {
        assert_eq!(all().last().unwrap().tracking, Tracking::None);
        assert_eq!(all().last().unwrap().lacks, None);
        assert_eq!(choose(Some(Tracking::None)), Ok(Tracking::None));
    }
}
