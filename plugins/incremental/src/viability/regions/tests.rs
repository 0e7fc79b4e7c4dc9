//! Tests of the decisions for regions, and of their histories.

use super::super::LOOK_AGAIN;
use super::*;

const WHOLE: RegionChanges = RegionChanges {
    memory: REGION,
    page_dirty: REGION,
    known: REGION,
    again: 0,
};

fn rates(ratio: f64) -> Rates {
    Rates::new(ratio * 1e9, 1e9).expect("rates")
}

fn counts(page_dirty: u64, changed: u64) -> Counts {
    Counts {
        page_dirty,
        page_dirty_known: page_dirty,
        hashed: page_dirty,
        changed,
        changed_known: changed,
        zero: 0,
    }
}

/// Decides and records one epoch. `changed` gives the share of each region's hashed bytes that has changed.
fn epoch(regions: &mut Regions, ratio: f64, changed: &BTreeMap<u64, f64>) -> Plan {
    let parts = changed.keys().map(|number| (*number, WHOLE)).collect();
    let plan = regions.decide(rates(ratio), &parts, None);
    let hashed = plan.decisions.iter();
    let hashed = hashed.filter(|(_, decision)| decision.method == Method::Hash);
    let found = hashed.map(|(number, _)| {
        let changed = (changed[number] * REGION as f64) as u64;
        (*number, counts(REGION, changed))
    });
    regions.record(&plan, &found.collect(), &parts);
    plan
}

#[test]
fn ranges_are_cut_where_regions_end() {
    let cut: Vec<_> = by_region([5..5, 100..200, REGION - 1..2 * REGION + 7]).collect();
    let expected = [
        (0, 100..200),
        (0, REGION - 1..REGION),
        (1, REGION..2 * REGION),
        (2, 2 * REGION..2 * REGION + 7),
    ];
    assert_eq!(cut, expected);
    let last = u64::MAX - 5..u64::MAX;
    assert_eq!(
        by_region([last.clone()]).collect::<Vec<_>>(),
        [(u64::MAX / REGION, last)]
    );
}

#[test]
fn each_region_is_written_as_its_own_alpha_says() {
    let mut regions = Regions::default();
    // The first region is rewritten with the same bytes, the second with others, the third half and half.
    let changed = BTreeMap::from([(3, 0.0), (4, 1.0), (9, 0.5)]);
    let first = epoch(&mut regions, 0.4, &changed);
    assert_eq!((first.taken.hash, first.taken.looks), (3, 3));
    assert_eq!(first.predicted.alpha, None);
    assert_eq!(
        first.hashed(),
        [3 * REGION..5 * REGION, 9 * REGION..10 * REGION]
    );
    let second = epoch(&mut regions, 0.4, &changed);
    assert_eq!(
        second.hashed(),
        [3 * REGION..4 * REGION, 9 * REGION..10 * REGION]
    );
    // All touched memory there is dirty: whole is as good as by pages, and simpler.
    assert_eq!(
        (second.taken.full, second.taken.page, second.taken.hash),
        (1, 0, 2)
    );
    assert_eq!(second.predicted.alpha, Some(0.5));
    assert_eq!(second.predicted.alpha_hashed, Some(0.75));
    assert_eq!(
        [3, 4, 9].map(|number| regions.alpha(number * REGION)),
        [Some(1.0), Some(0.0), Some(0.5)]
    );
    // If writing is faster, hashing pays less often.
    let third = epoch(&mut regions, 0.6, &changed);
    assert_eq!(
        third.hashed(),
        std::slice::from_ref(&(3 * REGION..4 * REGION))
    );
}

#[test]
fn what_is_predicted_is_the_sum_of_the_regions() {
    let mut regions = Regions::default();
    let changed = BTreeMap::from([(0, 0.0), (1, 1.0)]);
    epoch(&mut regions, 0.5, &changed);
    let part = |page_dirty: u64, known: u64| RegionChanges {
        memory: REGION,
        page_dirty,
        known,
        again: 100,
    };
    let (half, quarter) = (REGION / 2, REGION / 4);
    // The third region has no dirty pages. The first has hashes for half of its dirty bytes.
    let parts = BTreeMap::from([
        (0, part(half, quarter)),
        (1, part(half, half)),
        (2, part(0, 0)),
    ]);
    let predicted = regions.decide(rates(0.5), &parts, None).predicted;
    let (region, slow, fast) = (REGION as f64, 0.5e9, 1e9);
    let near = |found: Expected, seconds: f64, bytes: f64| {
        assert!(
            (found.seconds - seconds).abs() < 1e-12,
            "{found:?} {seconds}"
        );
        assert_eq!(found.bytes, bytes);
    };
    near(predicted.full, 3.0 * region / slow, 3.0 * region);
    near(
        predicted.page.expect("a base"),
        (region + 300.0) / slow,
        region + 300.0,
    );
    let left = 0.75 * region + 300.0;
    near(
        predicted.hash.expect("a base"),
        region / fast + left / slow,
        left,
    );
    let chosen = 0.5 * region / fast + left / slow;
    near(predicted.taken, chosen, left);
    // Half of the bytes have alpha 1, half alpha 0, whether there are hashes now or not.
    assert_eq!(predicted.alpha, Some(0.5));
    assert_eq!(predicted.alpha_hashed, Some(1.0));
}

#[test]
fn without_an_earlier_image_all_is_written_and_nothing_learnt() {
    let parts = BTreeMap::from([
        (0, WHOLE),
        (
            1,
            RegionChanges {
                memory: 4096,
                ..RegionChanges::default()
            },
        ),
    ]);
    let plan = Plan::whole(rates(0.5), &parts);
    assert_eq!((plan.taken.full, plan.hashed().len()), (2, 0));
    assert_eq!(plan.predicted.full.bytes, (REGION + 4096) as f64);
    assert_eq!(
        (plan.predicted.page, plan.predicted.taken),
        (None, plan.predicted.full)
    );
    let mut regions = Regions::default();
    regions.record(&plan, &BTreeMap::new(), &parts);
    let next = regions.decide(rates(0.5), &parts, None);
    assert_eq!((next.taken.looks, next.decisions.len()), (1, 1));
}

#[test]
fn a_method_that_is_forced_is_taken_for_every_region() {
    let mut regions = Regions::default();
    let changed = BTreeMap::from([(0, 0.0), (1, 1.0)]);
    epoch(&mut regions, 0.5, &changed);
    let parts = BTreeMap::from([(0, WHOLE), (1, WHOLE)]);
    let hash = regions.decide(rates(0.5), &parts, Some(Method::Hash));
    assert_eq!((hash.taken.hash, hash.taken.looks), (2, 0));
    assert_eq!(Some(hash.predicted.taken), hash.predicted.hash);
    let page = regions.decide(rates(0.5), &parts, Some(Method::Page));
    assert_eq!((page.taken.page, page.hashed().len()), (2, 0));
    assert_eq!(Some(page.predicted.taken), page.predicted.page);
}

/// A region is hashed again after eight epochs of its own, whatever the others do. Epochs in which it has no dirty pages do not count.
#[test]
fn each_region_is_looked_at_again_in_its_own_time() {
    let mut regions = Regions::default();
    let both = BTreeMap::from([(0, 1.0), (1, 1.0)]);
    epoch(&mut regions, 0.5, &both);
    let one = BTreeMap::from([(0, 1.0), (1, 0.0)]);
    let parts = BTreeMap::from([
        (0, WHOLE),
        (
            1,
            RegionChanges {
                page_dirty: 0,
                known: 0,
                ..WHOLE
            },
        ),
    ]);
    let mut looked = Vec::new();
    for number in 0..LOOK_AGAIN {
        let plan = regions.decide(rates(0.5), &parts, None);
        assert_eq!(plan.decisions.len(), 1, "{number}");
        looked.push(plan.taken.looks);
        regions.record(&plan, &BTreeMap::new(), &parts);
    }
    assert_eq!(looked, [0; LOOK_AGAIN as usize]);
    let plan = epoch(&mut regions, 0.5, &one);
    assert_eq!(plan.decisions[&0].reason, Reason::Look);
    assert_eq!(plan.decisions[&1].reason, Reason::Alpha(0.0));
}

#[test]
fn what_has_gone_is_forgotten() {
    let mut regions = Regions::default();
    epoch(&mut regions, 0.5, &BTreeMap::from([(0, 1.0), (1, 0.0)]));
    epoch(&mut regions, 0.5, &BTreeMap::from([(1, 0.0)]));
    assert_eq!(regions.alpha(0), None);
    assert_eq!(regions.alpha(REGION), Some(1.0));
    // New memory there has no history.
    let plan = epoch(&mut regions, 0.5, &BTreeMap::from([(0, 0.0), (1, 0.0)]));
    assert_eq!(plan.decisions[&0].reason, Reason::Look);
}
