//! How it is known which pages were written to: the ladder, best rung first.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::blocks::BlockSize;

/// How it is known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tracking {
    /// The kernel takes a page's write protection away at the first write to it (`userfaultfd`, Linux 6.7).
    WpAsync,
    /// It is not known: all memory counts as page-dirty, and what has changed shows when it is hashed.
    #[default]
    None,
}

impl Tracking {
    /// All of them, the best first.
    pub const ALL: [Tracking; 2] = [Tracking::WpAsync, Tracking::None];

    /// As `--tracking` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Tracking::WpAsync => "wp-async",
            Tracking::None => "none",
        }
    }

    /// Whether it tells pages that were written to from others.
    pub fn tells_pages(self) -> bool {
        self != Tracking::None
    }

    /// The blocks that are hashed. Where pages are told apart little is hashed, and small blocks find what of it has changed: the table is
    /// 16 % of the memory that is written again and again. Where everything is hashed, a table for pages is 0.2 % of all memory, hashing
    /// takes half the time, and what is found is what a kernel would tell.
    pub fn block(self) -> BlockSize {
        match self {
            Tracking::WpAsync => BlockSize::SMALLEST,
            Tracking::None => BlockSize::PAGE,
        }
    }
}

impl fmt::Display for Tracking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What manifests call them is what the option takes.
    #[test]
    fn they_have_one_name_everywhere() {
        for tracking in Tracking::ALL {
            let json = serde_json::to_string(&tracking).expect("JSON");
            assert_eq!(json, format!("\"{tracking}\""));
        }
    }
}
