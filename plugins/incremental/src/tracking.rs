//! The ways to find pages that were written to, best first.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::blocks::BlockSize;

/// A way to find pages that were written to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tracking {
    /// The kernel takes a page's write protection away at the first write to it (`userfaultfd`, Linux 6.7).
    WpAsync,
    /// No tracking: all memory counts as page-dirty, and only hashing shows what has changed.
    #[default]
    None,
}

impl Tracking {
    /// All ways, the best first.
    pub const ALL: [Tracking; 2] = [Tracking::WpAsync, Tracking::None];

    /// Returns the name, as `--tracking` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Tracking::WpAsync => "wp-async",
            Tracking::None => "none",
        }
    }

    /// Whether this way distinguishes pages that were written to from others.
    pub fn tells_pages(self) -> bool {
        self != Tracking::None
    }

    /// Returns the size of the blocks that are hashed. If pages are tracked, there is little to hash, and small blocks find the changes in
    /// it: the table takes 16 % of the memory that is written again and again. If everything is hashed, a table with one hash a page takes
    /// 0.2 % of all memory, hashing takes half the time, and it finds what a kernel would tell.
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

    /// Manifests use the same names as the option.
    #[test]
    fn they_have_one_name_everywhere() {
        for tracking in Tracking::ALL {
            let json = serde_json::to_string(&tracking).expect("JSON");
            assert_eq!(json, format!("\"{tracking}\""));
        }
    }
}
