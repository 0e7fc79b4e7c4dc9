//! `/etc/ld.so.cache`, in the format that glibc has written since 2.2: a table of names and paths, with strings behind it.

use std::path::PathBuf;

const FILE: &str = "/etc/ld.so.cache";
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// The most bytes of a cache, more than any machine has: a larger file is ignored.
const LARGEST: u64 = 64 << 20;

/// The cache; it is empty if there is none that can be read.
pub(crate) struct Cache(Vec<u8>);

impl Cache {
    pub fn read() -> Cache {
        let small = std::fs::metadata(FILE).is_ok_and(|about| about.len() <= LARGEST);
        let bytes = small.then(|| std::fs::read(FILE).unwrap_or_default());
        Cache::of(&bytes.unwrap_or_default())
    }

    fn of(bytes: &[u8]) -> Cache {
        // An older table may come first; offsets count from the newer one.
        let mut starts = bytes.windows(MAGIC.len());
        let start = starts.position(|window| window == MAGIC);
        Cache(start.map_or(vec![], |start| bytes[start..].to_vec()))
    }

    /// Returns the paths under which the cache has a library, the preferred one first.
    pub fn find(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        let count = self.number(MAGIC.len()).unwrap_or(0) as usize;
        let most = self.0.len() / ENTRY;
        (0..count.min(most)).filter_map(move |index| {
            let at = HEADER + index * ENTRY;
            let is_it = self.has(at + 4, name)?;
            let path = || String::from_utf8(self.text(at + 8)?.to_vec()).ok();
            is_it.then(path).flatten().map(PathBuf::from)
        })
    }

    fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Returns whether the string whose place is written at `at` equals `wanted`. Most do not, and need not be read to their end.
    fn has(&self, at: usize, wanted: &str) -> Option<bool> {
        let text = self.0.get(self.number(at)? as usize..)?;
        let behind = text.strip_prefix(wanted.as_bytes());
        Some(behind.is_some_and(|behind| behind.first().is_none_or(|byte| *byte == 0)))
    }

    /// Returns the string whose place is written at `at`.
    fn text(&self, at: usize) -> Option<&[u8]> {
        let text = self.0.get(self.number(at)? as usize..)?;
        text.split(|byte| *byte == 0).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_cache_knows_the_libc() {
        let cache = Cache::read();
        let found: Vec<PathBuf> = cache.find("libc.so.6").collect();
        assert!(found.iter().any(|path| path.exists()), "{found:?}");
        assert_eq!(cache.find("libnobody-has-this.so.1").count(), 0);
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_never_read_past_its_end() {
        let whole = Cache::read().0;
        for length in (0..whole.len().min(4000)).step_by(7) {
            let _ = Cache::of(&whole[..length]).find("libc.so.6").count();
        }
        let mut damaged = whole[..whole.len().min(400)].to_vec();
        for at in MAGIC.len()..damaged.len() {
            damaged[at] ^= 0xff;
            let _ = Cache::of(&damaged).find("libc.so.6").count();
        }
    }
}
