//! Images of ranks without an application.

use std::ops::Range;
use std::path::Path;

use stillpoint_image::descriptors::Descriptors;
use stillpoint_image::{Base, Environment, Identity, PageRun, Region, Writer};
use stillpoint_protocol::agent::{Begin, Written};

const ADDRESS: u64 = 0x1000_0000_0000;
const PAGE: usize = 4096;
/// The most earlier images that one has chunks in.
const MOST: usize = 2;

/// The base of a rank's images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Builds {
    base: Option<Base>,
    /// The base after the image that is written, but not committed yet.
    pending: Option<Base>,
}

impl Builds {
    pub fn upon(base: Base) -> Builds {
        Builds {
            base: Some(base),
            pending: None,
        }
    }

    pub fn settled(&mut self, committed: bool) {
        let pending = self.pending.take();
        if committed && pending.is_some() {
            self.base = pending;
        }
    }
}

/// Writes a real image, of one page or, with `builds`, of four. Each epoch then changes a little of the four pages. If the earlier images are still there,
/// only the changed memory is written.
pub fn write(begin: &Begin, identity: &Identity, builds: Option<&mut Builds>) -> Written {
    let path = Path::new(&begin.image);
    let mut writer = Writer::create(path, begin.compress.parse().unwrap()).unwrap();
    let pages = if builds.is_some() { 4 } else { 1 };
    let memory = vec![(identity.rank.0 % 255) as u8 + 1; pages * PAGE];
    let all = ADDRESS..ADDRESS + memory.len() as u64;
    let base = builds.as_ref().and_then(|builds| builds.base.as_ref());
    let changed: Vec<Range<u64>> = match base.filter(|base| base.check(path).is_ok()) {
        None => vec![all.clone()],
        Some(base) => {
            let start = ADDRESS + begin.epoch.0 % 4 * PAGE as u64 + 100;
            let changed = start..start + 300;
            let unchanged = [all.start..changed.start, changed.end..all.end];
            let regions = std::slice::from_ref(&all);
            let (carried, renewed) = base.carry_within(&unchanged, regions, MOST);
            writer.carry(carried);
            [renewed, vec![changed]].concat()
        }
    };
    let run = |range: &Range<u64>| PageRun {
        address: range.start,
        bytes: memory[(range.start - ADDRESS) as usize..(range.end - ADDRESS) as usize].into(),
    };
    writer
        .memory(&changed.iter().map(run).collect::<Vec<_>>())
        .unwrap();
    let region = Region {
        start: all.start,
        end: all.end,
        ..Region::default()
    };
    writer.regions(&[region]).unwrap();
    writer.threads(&[]).unwrap();
    writer.identity(identity).unwrap();
    writer.environment(&Environment::default()).unwrap();
    writer.descriptors(&Descriptors::default()).unwrap();
    writer.inventory(b"{\"communicators\": [1, 2]}").unwrap();
    let written = writer.finish().unwrap();
    if let Some(builds) = builds {
        builds.pending = Some(written.base(begin.epoch, identity.rank));
    }
    Written {
        stored_bytes: written.bytes,
        bytes: written.page_bytes,
        digest: written.digest,
        seconds: 0.0,
        contract: 5,
        needs: written.tables.needs(),
        increment: None,
    }
}
