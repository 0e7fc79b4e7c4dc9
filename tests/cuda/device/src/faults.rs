//! Faults that a test injects, in the description or by a file that is put into the folder later.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stillpoint_emulated_gpu_protocol::{FAULTS, description::Node, fault::Fault};

/// The current faults.
pub struct Faults {
    described: Mutex<BTreeMap<String, u64>>,
    folder: PathBuf,
    /// The number of strikes of each fault.
    struck: Mutex<BTreeMap<String, u64>>,
}

fn hold<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    pub fn new(node: &Node, folder: &Path) -> Faults {
        Faults {
            described: Mutex::new(node.faults.clone()),
            folder: folder.join(FAULTS),
            struck: Mutex::default(),
        }
    }

    /// Tells whether a fault strikes now. If it strikes only a number of times, this uses one up.
    pub fn strike(&self, fault: Fault) -> bool {
        let name = fault.to_string();
        let strikes = self.is_there(&name);
        if strikes {
            *hold(&self.struck).entry(name).or_default() += 1;
        }
        strikes
    }

    /// Returns how often each fault has struck, as lines.
    pub fn report(&self) -> Vec<String> {
        let struck = hold(&self.struck);
        let lines = struck
            .iter()
            .map(|(name, times)| format!("fault {name} {times}"));
        lines.collect()
    }

    fn is_there(&self, name: &str) -> bool {
        let mut described = hold(&self.described);
        if let Some(times) = described.get_mut(name)
            && *times > 0
        {
            *times -= 1;
            return true;
        }
        let file = self.folder.join(name);
        let Ok(text) = fs::read_to_string(&file) else {
            return false;
        };
        match text.trim().parse::<u64>() {
            Ok(0) => false,
            Ok(times) => fs::write(&file, (times - 1).to_string()).is_ok(),
            // Without a number it strikes every time, as long as the file exists.
            Err(_) => true,
        }
    }
}
