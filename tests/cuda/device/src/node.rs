//! The node's devices, as all clients share them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use stillpoint_emulated_gpu_protocol::description;
use stillpoint_emulated_gpu_protocol::fault::Fault;
use stillpoint_emulated_gpu_protocol::page::Lent;

use crate::contexts::Contexts;
use crate::faults::Faults;
use crate::links::Links;
use crate::memory::{Account, Block};

/// The driver's results that the device returns.
pub mod code {
    pub const INVALID_VALUE: u32 = 1;
    pub const OUT_OF_MEMORY: u32 = 2;
    pub const INVALID_DEVICE: u32 = 101;
    pub const UNCORRECTABLE: u32 = 214;
    pub const NOT_FOUND: u32 = 500;
    pub const ILLEGAL_ADDRESS: u32 = 700;
    pub const LAUNCH_FAILED: u32 = 719;
    pub const UNKNOWN: u32 = 999;
}

/// All devices, and their common state.
pub struct Gpus {
    pub node: description::Node,
    pub accounts: Vec<Arc<Account>>,
    pub links: Links,
    pub faults: Faults,
    pub contexts: Arc<Contexts>,
    lent: Mutex<HashMap<u64, Vec<Arc<Block>>>>,
    /// Memory with a name, for as long as it is held.
    shared: Mutex<HashMap<u64, Weak<Block>>>,
    tokens: AtomicU64,
    folder: PathBuf,
}

impl Gpus {
    pub fn new(node: description::Node, folder: &Path) -> Gpus {
        Gpus {
            accounts: node
                .devices
                .iter()
                .map(|device| Arc::new(Account::new(device.memory)))
                .collect(),
            links: Links::new(&node),
            faults: Faults::new(&node, folder),
            contexts: Arc::default(),
            lent: Mutex::default(),
            shared: Mutex::default(),
            tokens: AtomicU64::new(1),
            folder: folder.to_owned(),
            node,
        }
    }

    /// Returns the account of a device.
    pub fn account(&self, device: u32) -> Result<&Arc<Account>, u32> {
        self.accounts
            .get(device as usize)
            .ok_or(code::INVALID_DEVICE)
    }

    /// Returns the free memory of each device, as lines.
    pub fn memory(&self) -> Vec<String> {
        let accounts = self.accounts.iter();
        let line = |account: &Arc<Account>| format!("memory {}", account.free());
        accounts.map(line).collect()
    }

    /// Returns a file for managed memory: its path and its name.
    pub fn managed_file(&self) -> (PathBuf, String) {
        let name = format!("nvidia-uvm-{}", self.tokens.fetch_add(1, Ordering::Relaxed));
        (self.folder.join(&name), name)
    }

    /// Tells whether a device has gone.
    pub fn lost(&self, device: u32) -> bool {
        self.faults.strike(Fault::DeviceLost(device))
    }

    /// Lends memory to a process that knows the returned name.
    pub fn lend(&self, device: u32, blocks: Vec<Arc<Block>>) -> Lent {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        let size = blocks.iter().map(|block| block.size() as u64).sum();
        self.lent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token, blocks);
        Lent {
            token,
            device,
            size,
        }
    }

    /// Gives a block a name.
    pub fn share(&self, block: &Arc<Block>) -> Lent {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        self.shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token, Arc::downgrade(block));
        Lent {
            token,
            device: block.device,
            size: block.size() as u64,
        }
    }

    /// Returns the block with a name.
    pub fn shared(&self, token: u64) -> Option<Arc<Block>> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get(&token)?.upgrade()
    }

    /// Returns memory that was lent under a name. This works once.
    pub fn borrow(&self, token: u64) -> Option<Vec<Arc<Block>>> {
        self.lent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&token)
    }
}
