//! Device memory: its use, the blocks given out, and each client's addresses.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::node::code;

/// The size of a device's memory, and the used part of it.
pub struct Account {
    total: u64,
    used: Mutex<u64>,
}

impl Account {
    pub fn new(total: u64) -> Account {
        Account {
            total,
            used: Mutex::new(0),
        }
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn free(&self) -> u64 {
        self.total - *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self, bytes: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = bytes <= self.total - *used;
        *used += if fits { bytes } else { 0 };
        fits
    }

    pub fn give_back(&self, bytes: u64) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
    }
}

/// A block of a device's memory. It is in use as long as it is held, by a client's addresses or by a copy under way.
pub struct Block {
    pub device: u32,
    start: NonNull<u8>,
    size: usize,
    account: Arc<Account>,
    /// The file behind managed memory.
    file: Option<PathBuf>,
}

// SAFETY: a block is memory that the client's streams read and write in the order that the client has asked for, as on a real
// device; only raw copies and the kernels touch it, and it is unmapped only when its last holder lets it go.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Makes a new block out of the account; its bytes are zero.
    pub fn new(device: u32, account: &Arc<Account>, size: u64) -> Result<Block, u32> {
        Block::make(device, account, size, None)
    }

    /// Makes a new block in a new file, for a client to map as well.
    pub fn managed(
        device: u32,
        account: &Arc<Account>,
        size: u64,
        path: PathBuf,
    ) -> Result<Block, u32> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|_| code::OUT_OF_MEMORY)?;
        let made = file
            .set_len(size)
            .map_err(|_| code::OUT_OF_MEMORY)
            .and_then(|()| Block::make(device, account, size, Some((&file, path.clone()))));
        if made.is_err() {
            // The caller gets the earlier error.
            let _ = fs::remove_file(path);
        }
        made
    }

    fn make(
        device: u32,
        account: &Arc<Account>,
        size: u64,
        file: Option<(&File, PathBuf)>,
    ) -> Result<Block, u32> {
        let length = usize::try_from(size).map_err(|_| code::INVALID_VALUE)?;
        if length == 0 {
            return Err(code::INVALID_VALUE);
        }
        if !account.take(size) {
            return Err(code::OUT_OF_MEMORY);
        }
        let (flags, descriptor) = match &file {
            Some((file, _)) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
            ),
        };
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping wherever there is room.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, both, flags, descriptor, 0) };
        let start = match start {
            libc::MAP_FAILED => None,
            start => NonNull::new(start.cast()),
        };
        let Some(start) = start else {
            account.give_back(size);
            return Err(code::OUT_OF_MEMORY);
        };
        Ok(Block {
            device,
            start,
            size: length,
            account: Arc::clone(account),
            file: file.map(|(_, path)| path),
        })
    }

    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block's own mapping, and it has no holder any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
        self.account.give_back(self.size as u64);
        if let Some(file) = &self.file {
            // The folder may have gone already.
            let _ = fs::remove_file(file);
        }
    }
}

/// A range of a block.
pub struct Span {
    pub block: Arc<Block>,
    offset: usize,
    pub size: usize,
}

impl Span {
    /// Returns the address of the range in this process. It stays as long as the span is held.
    pub fn start(&self) -> *mut u8 {
        // SAFETY: a span lies within its block (`Space::spans`).
        unsafe { self.block.start.as_ptr().add(self.offset) }
    }
}

/// A client's device addresses.
#[derive(Default)]
pub struct Space {
    pieces: RwLock<BTreeMap<u64, Arc<Block>>>,
    /// Borrowed memory: the pieces that were placed at an address together.
    borrowed: Mutex<BTreeMap<u64, Vec<u64>>>,
}

impl Space {
    /// Puts a block at a free address.
    pub fn place(&self, address: u64, block: Arc<Block>) -> Result<(), u32> {
        let mut pieces = self.pieces.write().unwrap_or_else(PoisonError::into_inner);
        let end = address
            .checked_add(block.size as u64)
            .ok_or(code::INVALID_VALUE)?;
        let before = pieces.range(..end).next_back();
        if before.is_some_and(|(&start, block)| start + block.size as u64 > address) {
            return Err(code::INVALID_VALUE);
        }
        pieces.insert(address, block);
        Ok(())
    }

    /// Returns the block that begins at an address.
    pub fn at(&self, address: u64) -> Option<Arc<Block>> {
        let pieces = self.pieces.read().unwrap_or_else(PoisonError::into_inner);
        pieces.get(&address).cloned()
    }

    /// Removes the block that begins at an address.
    pub fn remove(&self, address: u64) -> Result<(), u32> {
        let mut pieces = self.pieces.write().unwrap_or_else(PoisonError::into_inner);
        pieces.remove(&address).map(drop).ok_or(code::INVALID_VALUE)
    }

    /// Puts borrowed blocks at an address, one behind the other.
    pub fn borrow(&self, address: u64, blocks: Vec<Arc<Block>>) -> Result<(), u32> {
        let mut at = address;
        let mut placed = vec![];
        for block in blocks {
            let size = block.size as u64;
            self.place(at, block)?;
            placed.push(at);
            at += size;
        }
        let mut borrowed = self.borrowed.lock().unwrap_or_else(PoisonError::into_inner);
        borrowed.insert(address, placed);
        Ok(())
    }

    /// Removes borrowed blocks.
    pub fn give_back(&self, address: u64) -> Result<(), u32> {
        let mut borrowed = self.borrowed.lock().unwrap_or_else(PoisonError::into_inner);
        let placed = borrowed.remove(&address).ok_or(code::INVALID_VALUE)?;
        placed.into_iter().try_for_each(|at| self.remove(at))
    }

    /// Removes all blocks.
    pub fn clear(&self) {
        let mut pieces = self.pieces.write().unwrap_or_else(PoisonError::into_inner);
        pieces.clear();
    }

    /// Returns the blocks of a device in order of their addresses, without managed memory. A block with several addresses is
    /// listed once.
    pub fn of(&self, device: u32) -> Vec<Arc<Block>> {
        let pieces = self.pieces.read().unwrap_or_else(PoisonError::into_inner);
        let of = pieces
            .values()
            .filter(|block| block.device == device && block.file.is_none());
        let mut blocks: Vec<Arc<Block>> = vec![];
        for block in of {
            if !blocks.iter().any(|known| Arc::ptr_eq(known, block)) {
                blocks.push(Arc::clone(block));
            }
        }
        blocks
    }

    /// Returns the spans of a range of addresses. The address is illegal if a part of the range has no memory.
    pub fn spans(&self, address: u64, size: u64) -> Result<Vec<Span>, u32> {
        let pieces = self.pieces.read().unwrap_or_else(PoisonError::into_inner);
        let end = address.checked_add(size).ok_or(code::ILLEGAL_ADDRESS)?;
        let mut at = address;
        let mut spans = vec![];
        while at < end {
            let (&start, block) = pieces
                .range(..=at)
                .next_back()
                .ok_or(code::ILLEGAL_ADDRESS)?;
            let last = (start + block.size as u64).min(end);
            if last <= at {
                return Err(code::ILLEGAL_ADDRESS);
            }
            spans.push(Span {
                block: Arc::clone(block),
                offset: (at - start) as usize,
                size: (last - at) as usize,
            });
            at = last;
        }
        Ok(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_holds_what_is_held() {
        let account = Arc::new(Account::new(10_000));
        let block = Block::new(0, &account, 6_000).unwrap();
        assert_eq!(account.free(), 4_000);
        assert_eq!(
            Block::new(0, &account, 5_000).err(),
            Some(code::OUT_OF_MEMORY)
        );
        drop(block);
        assert_eq!(account.free(), 10_000);
    }

    #[test]
    fn a_range_goes_over_blocks_side_by_side_and_not_over_a_gap() {
        let account = Arc::new(Account::new(10_000));
        let space = Space::default();
        let block = |size| Arc::new(Block::new(0, &account, size).unwrap());
        space.place(1000, block(500)).unwrap();
        space.place(1500, block(500)).unwrap();
        space.place(3000, block(500)).unwrap();
        assert_eq!(
            space.place(2900, block(200)).err(),
            Some(code::INVALID_VALUE)
        );
        let spans = space.spans(1400, 300).unwrap();
        let sizes: Vec<usize> = spans.iter().map(|span| span.size).collect();
        assert_eq!(sizes, [100, 200]);
        assert_eq!(space.spans(1900, 200).err(), Some(code::ILLEGAL_ADDRESS));
        assert_eq!(space.spans(0, 10).err(), Some(code::ILLEGAL_ADDRESS));
        space.remove(1500).unwrap();
        assert_eq!(space.spans(1400, 300).err(), Some(code::ILLEGAL_ADDRESS));
    }
}
