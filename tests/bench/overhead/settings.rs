//! The settings to measure.

use crate::options::Options;
use crate::way::Way;

/// A group of settings in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Blocking,
    Nonblocking,
    Overlap,
    Messages,
    Local,
    Start,
    Programs,
}

impl Group {
    pub const ALL: [Group; 7] = [
        Group::Blocking,
        Group::Nonblocking,
        Group::Overlap,
        Group::Messages,
        Group::Local,
        Group::Start,
        Group::Programs,
    ];

    /// Returns the name in `--only`, in JSON and in the marks of a page of results.
    pub fn name(self) -> &'static str {
        match self {
            Group::Blocking => "blocking",
            Group::Nonblocking => "nonblocking",
            Group::Overlap => "overlap",
            Group::Messages => "messages",
            Group::Local => "local",
            Group::Start => "start",
            Group::Programs => "programs",
        }
    }

    /// Tells whether a barrier before blocking collective operations can make a difference.
    pub fn concerns(self, way: Way) -> bool {
        way != Way::Barrier || matches!(self, Group::Blocking | Group::Start | Group::Programs)
    }
}

/// The unit of a figure, and its display.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    Nanoseconds,
    Milliseconds,
    Seconds,
    /// Nanoseconds for a message of so many bytes, shown as a rate of bytes.
    Bandwidth(u32),
    /// Nanoseconds for a message, shown as a rate of messages.
    Rate,
    /// Percent of an operation; compared by difference.
    Percent,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Milliseconds => "ms",
            Unit::Seconds => "s",
            Unit::Bandwidth(_) => "MB/s",
            Unit::Rate => "million/s",
            Unit::Percent => "%",
        }
    }

    /// Converts nanoseconds (or percent) to the unit.
    pub fn of(self, figure: f64) -> f64 {
        match self {
            Unit::Nanoseconds | Unit::Percent => figure,
            Unit::Milliseconds => figure / 1e6,
            Unit::Seconds => figure / 1e9,
            Unit::Bandwidth(bytes) => f64::from(bytes) * 1e3 / figure,
            Unit::Rate => 1e3 / figure,
        }
    }
}

/// One row of a table.
#[derive(Clone, Debug)]
pub struct Setting {
    pub group: Group,
    pub label: String,
    /// The worker's name of the measure, or a program's short name.
    pub measure: &'static str,
    pub size: u32,
    pub unit: Unit,
}

impl Setting {
    pub fn new(
        group: Group,
        label: impl Into<String>,
        measure: &'static str,
        size: u32,
        unit: Unit,
    ) -> Setting {
        Setting {
            group,
            label: label.into(),
            measure,
            size,
            unit,
        }
    }
}

/// Bytes of the paper's micro-benchmarks.
const SIZES: [(u32, &str); 3] = [(4, "4 B"), (1024, "1 KB"), (1 << 20, "1 MB")];

/// Bytes of operations in place: on a stub's stack, on the heap, and such that their members meet first.
const IN_PLACE_SIZES: [(u32, &str); 7] = [
    (4, "4 B"),
    (1024, "1 KB"),
    (16 << 10, "16 KB"),
    (64 << 10, "64 KB"),
    (256 << 10, "256 KB"),
    (1 << 20, "1 MB"),
    (8 << 20, "8 MB"),
];

const BLOCKING: [(&str, &str); 4] = [
    ("bcast", "Bcast"),
    ("alltoall", "Alltoall"),
    ("allreduce", "Allreduce"),
    ("allgather", "Allgather"),
];
const IN_PLACE: [(&str, &str); 2] = [
    ("allreduce_in_place", "Allreduce in place"),
    ("alltoall_in_place", "Alltoall in place"),
];
const NONBLOCKING: [(&str, &str); 4] = [
    ("ibcast", "Ibcast"),
    ("ialltoall", "Ialltoall"),
    ("iallreduce", "Iallreduce"),
    ("iallgather", "Iallgather"),
];
const OVERLAPS: [(&str, &str); 4] = [
    ("overlap-ibcast", "Ibcast"),
    ("overlap-ialltoall", "Ialltoall"),
    ("overlap-iallreduce", "Iallreduce"),
    ("overlap-iallgather", "Iallgather"),
];

/// Calls without another rank: measure, size, label.
const LOCAL: [(&str, u32, &str); 10] = [
    ("comm_rank", 0, "`MPI_Comm_rank`"),
    ("comm_size", 0, "`MPI_Comm_size`"),
    ("wtime", 0, "`MPI_Wtime`"),
    ("iprobe", 0, "`MPI_Iprobe`, nothing there"),
    ("testany", 0, "`MPI_Testany` of one receive, nothing there"),
    ("read_clock", 0, "`clock_gettime`"),
    ("malloc_free", 1 << 10, "`malloc` and `free` of 1 MB"),
    (
        "malloc_free",
        64 << 10,
        "`malloc` and `free` of 64 MB (mapped anew)",
    ),
    ("file_write", 4096, "`pwrite` of 4 KB"),
    ("file_open", 0, "`open` and `close`"),
];

/// Returns the wanted measures that workers carry out.
pub fn wanted(options: &Options) -> Vec<Setting> {
    let mut all = collectives();
    all.extend(messages());
    all.extend(LOCAL.map(|(measure, size, label)| {
        Setting::new(Group::Local, label, measure, size, Unit::Nanoseconds)
    }));
    all.push(Setting::new(
        Group::Programs,
        "spectral program, a step of 256 x 256 points",
        "spectral",
        256,
        Unit::Milliseconds,
    ));
    all.retain(|setting| options.wants(setting.group.name(), setting.measure));
    all
}

fn collectives() -> Vec<Setting> {
    let ns = Unit::Nanoseconds;
    let mut all = vec![Setting::new(
        Group::Blocking,
        "`MPI_Barrier`",
        "barrier",
        0,
        ns,
    )];
    let mut add = |group, unit, names: &[(&'static str, &str)], sizes: &[(u32, &str)]| {
        for &(measure, name) in names {
            for &(bytes, size) in sizes {
                let label = format!("`MPI_{name}`, {size}");
                all.push(Setting::new(group, label, measure, bytes, unit));
            }
        }
    };
    add(Group::Blocking, ns, &BLOCKING, &SIZES);
    add(Group::Blocking, ns, &IN_PLACE, &IN_PLACE_SIZES);
    add(Group::Nonblocking, ns, &NONBLOCKING, &SIZES);
    add(Group::Overlap, Unit::Percent, &OVERLAPS, &SIZES);
    let barrier = Setting::new(Group::Nonblocking, "`MPI_Ibarrier`", "ibarrier", 0, ns);
    all.push(barrier);
    all
}

fn messages() -> Vec<Setting> {
    let mut all: Vec<Setting> = [(8, "8 B")]
        .into_iter()
        .chain(SIZES.into_iter().skip(1))
        .map(|(bytes, size)| {
            let label = format!("latency, {size}");
            Setting::new(Group::Messages, label, "latency", bytes, Unit::Nanoseconds)
        })
        .collect();
    for (measure, how) in [
        (
            "stream",
            "64 `MPI_Isend` / `MPI_Irecv` and one `MPI_Waitall`",
        ),
        ("one-by-one", "64 `MPI_Send` / `MPI_Recv`"),
    ] {
        let rate = format!("message rate, 8 B, {how}");
        all.push(Setting::new(Group::Messages, rate, measure, 8, Unit::Rate));
        let bytes = 1 << 20;
        let width = format!("bandwidth, 1 MB, {how}");
        let unit = Unit::Bandwidth(bytes);
        all.push(Setting::new(Group::Messages, width, measure, bytes, unit));
    }
    all
}
