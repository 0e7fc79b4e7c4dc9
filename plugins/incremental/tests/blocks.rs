//! Comparisons, checked against the bytes themselves.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]

mod memory;

use memory::{History, PAGES, histories};
use proptest::prelude::*;
use stillpoint_incremental::blocks::{
    BlockHashTable, BlockSize, CompareError, Counts, PAGE, Slice,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// Each epoch's changes bring an image from the last epoch's bytes to this one's, with any events in between.
    #[test]
    fn changes_bring_an_image_up_to_date(history in histories()) {
        check(&history)?;
    }

    /// Only page-dirty and unknown blocks are hashed.
    #[test]
    fn only_blocks_in_dirty_pages_are_looked_at(
        block in memory::block_sizes(), pages in prop::collection::btree_set(0..PAGES, 0..8),
    ) {
        let bytes = vec![7; (PAGES * PAGE) as usize];
        let region = 0..PAGES * PAGE;
        let mut memory = Slice { start: 0, bytes: &bytes };
        let table = BlockHashTable::new(block).compare(region.clone(), &[], &mut memory).unwrap().table;
        let dirty: Vec<_> = pages.iter().map(|page| *page..page + 1).collect();
        let mut asked = memory::Asked::of(memory);
        let compared = table.compare(region, &dirty, &mut asked).unwrap();
        let expected: u64 = (0..PAGES * PAGE / block.bytes())
            .filter(|number| {
                let at = number * block.bytes()..(number + 1) * block.bytes();
                dirty.iter().any(|page| page.start * PAGE < at.end && at.start < page.end * PAGE)
            })
            .map(|_| block.bytes())
            .sum();
        prop_assert_eq!(asked.bytes, expected);
        prop_assert_eq!(compared.counts.hashed, expected);
        prop_assert_eq!(compared.counts.page_dirty, dirty.len() as u64 * PAGE);
        prop_assert!(compared.changes.is_empty());
        prop_assert_eq!(compared.table, table);
    }
}

fn check(history: &History) -> Result<(), TestCaseError> {
    let mut table = BlockHashTable::new(history.block);
    // The content of an image of all epochs so far, by address.
    let mut image = memory::Image::default();
    for epoch in &history.epochs {
        if let Some((from, to)) = &epoch.moved {
            let kept = table.moved(from.clone(), *to);
            prop_assert_eq!(
                kept,
                (from.start.abs_diff(*to)).is_multiple_of(history.block.bytes())
            );
            image.moved(from, *to);
        }
        let mut next = BlockHashTable::new(history.block);
        let before = image.clone();
        for (start, bytes) in &epoch.regions {
            let region = *start..start + bytes.len() as u64;
            let mut slice = Slice {
                start: *start,
                bytes,
            };
            let compared = table
                .compare(region.clone(), &epoch.dirty, &mut slice)
                .unwrap();
            let mut last = region.start;
            let mut changed = 0;
            for change in &compared.changes {
                prop_assert!(last <= change.at.start && change.at.end <= region.end);
                last = change.at.end;
                let new =
                    &bytes[(change.at.start - start) as usize..(change.at.end - start) as usize];
                if change.zero {
                    prop_assert!(new.iter().all(|byte| *byte == 0));
                }
                for block in memory::blocks(history.block, &change.at) {
                    let part = &bytes[(block.start - start) as usize..(block.end - start) as usize];
                    prop_assert_eq!(part.iter().all(|byte| *byte == 0), change.zero);
                    prop_assert!(
                        !before.has(&block, part) || table.get(&block).is_none(),
                        "{:?} is the same",
                        block
                    );
                }
                image.write(change.at.start, new);
                changed += change.at.end - change.at.start;
            }
            prop_assert_eq!(changed, compared.counts.changed);
            prop_assert!(image.has(&region, bytes), "{:?} is out of date", region);
            next.add(compared.table).unwrap();
        }
        // The new table equals one made from nothing.
        for (start, bytes) in &epoch.regions {
            let region = *start..start + bytes.len() as u64;
            let mut slice = Slice {
                start: *start,
                bytes,
            };
            let fresh = BlockHashTable::new(history.block)
                .compare(region, &[], &mut slice)
                .unwrap();
            for (run, hashes) in fresh.table.runs() {
                let found = next
                    .runs()
                    .find(|(region, _)| *region == run)
                    .map(|(_, hashes)| hashes);
                prop_assert_eq!(found, Some(hashes));
            }
        }
        table = next;
    }
    Ok(())
}

/// A block that returns to its content of two epochs ago has changed since the last.
#[test]
fn pages_that_were_written_without_hashes_are_forgotten() {
    let block = BlockSize::new(1024).unwrap();
    let (old, mut bytes) = (vec![1; 8192], vec![1; 8192]);
    let region = 0..8192;
    let compare = |table: &BlockHashTable, dirty: &[_], bytes: &[u8]| {
        let mut slice = Slice { start: 0, bytes };
        table.compare(region.clone(), dirty, &mut slice).unwrap()
    };
    let mut table = compare(&BlockHashTable::new(block), &[], &old).table;
    // An epoch is written by pages.
    bytes[5000] = 2;
    table.forget_pages(&[1..2]);
    let compared = compare(&table, &[1..2], &old);
    let changes: Vec<_> = compared
        .changes
        .iter()
        .map(|change| change.at.clone())
        .collect();
    assert_eq!(changes, [4096..8192]);
    assert_eq!(compared.counts.alpha(), None);
    assert_eq!(
        compared.table.runs().map(|(region, _)| region).next(),
        Some(0..8192)
    );
}

#[test]
fn alpha_is_what_hashing_has_saved() {
    let block = BlockSize::new(1024).unwrap();
    let mut bytes = vec![1; 16 << 10];
    let region = 0..16 << 10;
    let mut slice = Slice {
        start: 0,
        bytes: &bytes,
    };
    let first = BlockHashTable::new(block)
        .compare(region.clone(), &[0..4], &mut slice)
        .unwrap();
    assert_eq!(
        (first.counts.alpha(), first.counts.page_dirty),
        (None, 16 << 10)
    );
    bytes[4096..5120].fill(0);
    bytes[6000] = 9;
    let mut slice = Slice {
        start: 0,
        bytes: &bytes,
    };
    let second = first.table.compare(region, &[1..3], &mut slice).unwrap();
    let counts = Counts {
        page_dirty: 8192,
        page_dirty_known: 8192,
        hashed: 8192,
        changed: 2048,
        changed_known: 2048,
        zero: 1024,
    };
    assert_eq!(second.counts, counts);
    assert_eq!(counts.alpha(), Some(0.75));
    let changes: Vec<_> = second
        .changes
        .iter()
        .map(|change| (change.at.clone(), change.zero))
        .collect();
    assert_eq!(changes, [(4096..5120, true), (5120..6144, false)]);
    let mut both = first.counts;
    both += second.counts;
    assert_eq!((both.page_dirty, both.zero), (24 << 10, 1024));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let bytes = [0; 4096];
    let mut slice = Slice {
        start: 4096,
        bytes: &bytes,
    };
    let table = BlockHashTable::new(BlockSize::PAGE);
    let mut compare = |region, dirty: &[_]| {
        table
            .compare(region, dirty, &mut slice)
            .expect_err("wrong")
            .to_string()
    };
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = compare(8192..4096, &[]);
    assert_eq!(
        backwards,
        "the region ends at 0x1000, before it begins at 0x2000"
    );
    let unsorted = compare(4096..8192, &[5..7, 6..8]);
    assert!(
        unsorted.starts_with("the dirty pages 6 to 8 end before they begin, or begin before"),
        "{unsorted}"
    );
    for outside in [0..4096, 4096..8193] {
        let message = compare(outside, &[]);
        assert!(
            message.ends_with("should be read, but 0 bytes came"),
            "{message}"
        );
    }
    let mut broken = memory::Broken;
    let error = table
        .compare(0..4096, &[], &mut broken)
        .expect_err("broken");
    assert_eq!(error, CompareError::Memory("it was taken back"));
    assert_eq!(error.to_string(), "it was taken back");
    // The region is too large for any table.
    let error = table.compare(0..u64::MAX, &[], &mut broken);
    assert_eq!(error, Err(CompareError::Memory("it was taken back")));
    // An empty region is not read.
    let none = table
        .compare(4096..4096, &[], &mut broken)
        .expect("nothing is read");
    assert_eq!((none.table.runs().count(), none.changes.len()), (0, 0));
}

/// A region that ends in the middle of a page: its last block is short, and dirty with the page.
#[test]
fn a_short_last_block_is_looked_at() {
    let (old, mut new) = (vec![1; 4196], vec![1; 4196]);
    let compare = |table: &BlockHashTable, bytes: &[u8]| {
        let mut slice = Slice { start: 0, bytes };
        let dirty = &[1..2];
        table.compare(0..4196, dirty, &mut slice).unwrap()
    };
    let first = compare(&BlockHashTable::new(BlockSize::PAGE), &old);
    new[4195] = 2;
    let second = compare(&first.table, &new);
    let changes: Vec<_> = second
        .changes
        .iter()
        .map(|change| change.at.clone())
        .collect();
    assert_eq!(changes, [4096..4196]);
    assert_eq!((second.counts.page_dirty, second.counts.hashed), (100, 100));
}
