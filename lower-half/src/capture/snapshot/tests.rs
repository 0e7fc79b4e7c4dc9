//! Tests that a snapshot holds memory as it was, while the process changes it.

use memmap2::MmapMut;

use super::shared_slots::MOST_STRETCHES;
use super::*;

#[test]
fn it_keeps_what_was_there_while_that_is_changed() {
    let mut memory = MmapMut::map_anon(8 * CHUNK_BYTES).unwrap();
    for (index, byte) in memory.iter_mut().enumerate() {
        *byte = (index / 4096) as u8;
    }
    let before = memory.to_vec();
    let from = memory.as_ptr() as u64;
    let hole = MmapMut::map_anon(4096).unwrap();
    let without = hole.as_ptr() as usize..hole.as_ptr() as usize + 4096;
    let access = Access::default();
    // The kernel reads the other half of it.
    let half = from as usize..from as usize + memory.len() / 2;
    let loadable = Loadable::new(vec![half]);
    let snapshot = Snapshot::take(&access, &loadable, 2, std::slice::from_ref(&without)).unwrap();
    let pid = snapshot.pid as u32;
    assert!(children::started().contains(&pid));
    memory.fill(0xee);
    // Many stretches: more than one request holds, one longer than a request's bytes, an empty one, backwards.
    let mut stretches: Vec<Range<u64>> = (0..MOST_STRETCHES as u64 + 9)
        .rev()
        .map(|number| from + 400 * number..from + 400 * number + number % 300)
        .collect();
    stretches.push(from + 77..from + 77 + CHUNK_BYTES as u64 * 2);
    let bytes = stretches
        .iter()
        .map(|it| (it.end - it.start) as usize)
        .sum();
    let (mut gathered, mut expected) = (vec![0; bytes], Vec::<u8>::new());
    snapshot.gather(&stretches, &mut gathered).unwrap();
    for it in &stretches {
        expected.extend(&before[(it.start - from) as usize..(it.end - from) as usize]);
    }
    assert!(gathered == expected);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut read = vec![0; before.len()];
                snapshot.copy(from, &mut read).unwrap();
                assert!(read == before);
            });
        }
    });
    // Memory that was left out is missing; the rest can still be read.
    let gone = snapshot.copy(without.start as u64, &mut [0; 10]);
    let gone = gone.unwrap_err().to_string();
    assert!(gone.contains(&format!("{:#x}", without.start)), "{gone}");
    snapshot.copy(from, &mut [0; 10]).unwrap();
    drop(snapshot);
    assert!(!children::started().contains(&pid));
}

#[test]
fn it_gives_no_more_when_the_checkpoint_is_given_up() {
    let access = Access::default();
    let (text, loadable) = (*b"here", Loadable::default());
    let snapshot = Snapshot::take(&access, &loadable, 1, &[]).unwrap();
    let mut read = [0; 4];
    snapshot.copy(text.as_ptr() as u64, &mut read).unwrap();
    assert_eq!(read, text);
    access.let_go();
    snapshot.copy(text.as_ptr() as u64, &mut read).unwrap();
    access.revoke();
    assert!(snapshot.copy(text.as_ptr() as u64, &mut read).is_err());
}
