//! How much of each region had been touched, written to, hashed and changed when its image was written. The numbers are for people: no
//! restart needs them.
//!
//! They are a blob of the image, 40 bytes a region in the order of the regions: each is [`RegionBytes`] as five little-endian numbers of 8
//! bytes. Images of older releases lack the blob.

use serde::Serialize;

use crate::reader::Reader;

/// The blob's name.
pub const NAME: &str = "bytes by region";
/// The version of the blob's form; every change of the form raises it.
pub const VERSION: u32 = 1;

/// An image with more regions gets no such blob, so that its state has room for other things.
const MOST: usize = 1 << 18;

const NUMBER: usize = size_of::<u64>();
const NUMBERS: usize = 5;
/// Stands for an unknown number.
const UNKNOWN: u64 = u64::MAX;

/// Byte counts of one region, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RegionBytes {
    /// Bytes that are not the zeros, or the file, that the region began as.
    pub touched: u64,
    /// Bytes in pages that were written to since the epoch that the image builds on; `null` if it builds on none.
    pub page_dirty: Option<u64>,
    /// Bytes that were hashed, all of them page-dirty.
    pub hashed: u64,
    /// Bytes in hashed blocks that had changed or were new. Page-dirty bytes that were not hashed may have changed, too.
    pub hash_dirty: u64,
    /// Bytes given to the image's writer, which leaves out pages of zeros.
    pub written: u64,
}

impl RegionBytes {
    fn numbers(&self) -> [u64; NUMBERS] {
        let page_dirty = self.page_dirty.unwrap_or(UNKNOWN);
        [
            self.touched,
            page_dirty,
            self.hashed,
            self.hash_dirty,
            self.written,
        ]
    }

    /// Adds up both. A number that one of them does not know is unknown in the sum.
    pub fn and(self, other: RegionBytes) -> RegionBytes {
        let page_dirty = self.page_dirty.zip(other.page_dirty);
        RegionBytes {
            touched: self.touched.saturating_add(other.touched),
            page_dirty: page_dirty.map(|(one, two)| one.saturating_add(two)),
            hashed: self.hashed.saturating_add(other.hashed),
            hash_dirty: self.hash_dirty.saturating_add(other.hash_dirty),
            written: self.written.saturating_add(other.written),
        }
    }

    /// Adds up a list; returns `None` if it is empty.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a RegionBytes>) -> Option<RegionBytes> {
        all.into_iter().copied().reduce(RegionBytes::and)
    }
}

/// Makes the blob of an image with these regions; returns `None` if there are too many.
pub fn to_blob(regions: &[RegionBytes]) -> Option<Vec<u8>> {
    let numbers = regions.iter().flat_map(RegionBytes::numbers);
    (regions.len() <= MOST).then(|| numbers.flat_map(u64::to_le_bytes).collect())
}

/// Reads the numbers of an image, one entry for each of its regions. Returns `None` if it has no such blob.
///
/// # Errors
/// The blob does not fit the image's regions.
pub fn of(image: &Reader) -> Result<Option<Vec<RegionBytes>>, String> {
    let blob = image.blob(NAME).filter(|blob| blob.version == VERSION);
    let Some(blob) = blob else {
        return Ok(None);
    };
    let (found, regions) = (parse(&blob.bytes), image.regions().len());
    match found.filter(|found| found.len() == regions) {
        Some(found) => Ok(Some(found)),
        None => Err(format!(
            "'{NAME}' in its image: {} bytes for {regions} regions: use another epoch",
            blob.bytes.len()
        )),
    }
}

fn parse(blob: &[u8]) -> Option<Vec<RegionBytes>> {
    let (numbers, rest) = blob.as_chunks::<NUMBER>();
    let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
    let (regions, odd) = numbers.as_chunks::<NUMBERS>();
    let region =
        |&[touched, page_dirty, hashed, hash_dirty, written]: &[u64; NUMBERS]| RegionBytes {
            touched,
            page_dirty: (page_dirty != UNKNOWN).then_some(page_dirty),
            hashed,
            hash_dirty,
            written,
        };
    (rest.is_empty() && odd.is_empty()).then(|| regions.iter().map(region).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: RegionBytes = RegionBytes {
        touched: 5,
        page_dirty: Some(4),
        hashed: 3,
        hash_dirty: 2,
        written: 1,
    };

    #[test]
    fn what_is_put_down_is_read_again() {
        let unknown = RegionBytes {
            page_dirty: None,
            ..SOME
        };
        let all = [SOME, unknown, RegionBytes::default()];
        let blob = to_blob(&all).unwrap();
        assert_eq!(blob.len(), 3 * 40);
        assert_eq!(parse(&blob).as_deref(), Some(&all[..]));
        assert_eq!(parse(&blob[..119]), None);
        assert_eq!(parse(&blob[..112]), None);
        assert_eq!(to_blob(&vec![SOME; MOST + 1]), None);
    }

    #[test]
    fn what_is_not_known_of_one_is_not_known_of_all() {
        let unknown = RegionBytes {
            page_dirty: None,
            ..SOME
        };
        let both = RegionBytes::sum(&[SOME, SOME]).unwrap();
        assert_eq!(
            (both.touched, both.page_dirty, both.written),
            (10, Some(8), 2)
        );
        let both = RegionBytes::sum(&[SOME, unknown]).unwrap();
        assert_eq!((both.hash_dirty, both.page_dirty), (4, None));
        assert_eq!(RegionBytes::sum(&[]), None);
    }
}
