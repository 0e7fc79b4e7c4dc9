//! The points, in one list: an enumeration, its names and the page about them follow from it.
//!
//! A number is for good: the number of a point that was removed is not used again.

use std::fmt::Write;

/// The process that passes a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// A rank, its agent and their helpers.
    Rank,
    /// The job's coordinator.
    Coordinator,
    /// `stillpoint restart` before it becomes a rank.
    Launcher,
}

/// The kind of run in which a point is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// A checkpoint.
    Checkpoint,
    /// A checkpoint on storage tiers.
    Staging,
    /// A suspend.
    Suspend,
    /// A restart.
    Restart,
    /// A restart on storage tiers.
    RestartOnTiers,
    /// A restart that carries on before all memory is there.
    LazyRestart,
    /// A checkpoint of ranks with GPUs.
    Gpu,
    /// A restart of ranks with GPUs.
    GpuRestart,
}

impl Run {
    const fn name(self) -> &'static str {
        match self {
            Run::Checkpoint => "checkpoint",
            Run::Staging => "staging",
            Run::Suspend => "suspend",
            Run::Restart => "restart",
            Run::RestartOnTiers => "restart on tiers",
            Run::LazyRestart => "lazy restart",
            Run::Gpu => "checkpoint with GPUs",
            Run::GpuRestart => "restart with GPUs",
        }
    }
}

macro_rules! points {
    ($(
        $number:literal $variant:ident $name:literal $process:ident $can:ident
        [$($run:ident $(@ $pass:literal)?),+] $(after $($before:ident),+)? : $text:literal;
    )+) => {
        /// A place at which a fault can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Point {
            $(#[doc = $text] $variant = $number,)+
        }

        impl Point {
            /// Every point.
            pub const ALL: &'static [Point] = &[$(Point::$variant),+];

            /// Its name in the variable.
            pub const fn name(self) -> &'static str {
                match self { $(Point::$variant => $name,)+ }
            }

            /// The step that is about to be done there.
            pub const fn text(self) -> &'static str {
                match self { $(Point::$variant => $text,)+ }
            }

            /// The process that passes it.
            pub const fn process(self) -> Process {
                match self { $(Point::$variant => Process::$process,)+ }
            }

            /// Whether the step can return an error. Otherwise it can only die there, or stall.
            pub const fn can_fail(self) -> bool {
                match self { $(Point::$variant => points!(@ $can),)+ }
            }

            /// The runs that pass it, with the number of that pass since the process began.
            pub const fn runs(self) -> &'static [(Run, u32)] {
                match self { $(Point::$variant => &[$((Run::$run, points!(# $($pass)?))),+],)+ }
            }

            /// Points that have to fail first, or no process comes to this one.
            pub const fn after(self) -> &'static [Point] {
                match self { $(Point::$variant => &[$($(Point::$before),+)?],)+ }
            }
        }
    };
    (@ fails) => { true };
    (@ dies) => { false };
    (#) => { 1 };
    (# $pass:literal) => { $pass };
}

points! {
    // A rank's part of a checkpoint, in its order.
    1 Flag "flag" Rank fails [Checkpoint]: "the agent is told of the checkpoint and sets the flag";
    2 Targets "targets" Rank dies [Checkpoint]: "the agent is told its targets";
    3 Executor "executor" Rank fails [Checkpoint]: "the executor's thread is started";
    4 Check "check" Rank fails [Checkpoint]: "the check";
    5 Drain "drain" Rank fails [Checkpoint]: "a round of the drain";
    6 Seal "seal" Rank fails [Checkpoint]: "requests and objects are sealed";
    7 Write "write" Rank fails [Checkpoint]: "the rank is told to write its image";
    8 Written "written" Rank fails [Checkpoint]: "the image is on disk, and the coordinator is told";
    9 Released "released" Rank dies [Checkpoint]: "the epoch is committed, and the application is released";
    10 GivenUp "given-up" Rank dies [Checkpoint] after Write: "the checkpoint is given up, and the application is released";
    11 Terminated "terminated" Rank dies [Suspend]: "the epoch is committed, and the rank ends";

    12 Apart "apart" Rank fails [Checkpoint]: "the application's memory is set apart from what it changes";
    13 RunOn "run-on" Rank dies [Checkpoint]: "every rank is apart, and the application is released";
    14 GpuLock "gpu-lock" Rank fails [Gpu]: "a rank's GPUs are locked";
    15 GpuSave "gpu-save" Rank fails [Gpu]: "memory of GPUs comes into the rank's own";
    16 GpuBack "gpu-back" Rank dies [Gpu]: "a rank's GPUs go back to work";

    17 GpuStage "gpu-stage" Rank fails [Gpu]: "memory of GPUs is staged";
    18 GpuDrain "gpu-drain" Rank fails [Gpu]: "what is staged of GPUs goes into the image";
    19 GpuUnstage "gpu-unstage" Rank dies [Gpu]: "what is staged goes back to the GPUs";

    // Contents of an image.
    20 CaptureGate "capture-gate" Rank fails [Checkpoint]: "state of the gate page and the gate";
    21 CaptureScheduling "capture-scheduling" Rank fails [Checkpoint]: "scheduling of the threads";
    22 CaptureIpc "capture-ipc" Rank fails [Checkpoint]: "System V objects";
    23 CaptureProcess "capture-process" Rank fails [Checkpoint]: "process state";
    24 CaptureSignals "capture-signals" Rank fails [Checkpoint]: "signals that wait";
    25 CaptureThreads "capture-threads" Rank fails [Checkpoint]: "threads";
    26 CaptureCredentials "capture-credentials" Rank fails [Checkpoint]: "users and capabilities";
    27 CaptureAttributes "capture-attributes" Rank fails [Checkpoint]: "attributes of process and threads";
    28 CaptureInventory "capture-inventory" Rank fails [Checkpoint]: "the inventory of MPI objects";
    29 CaptureDescriptors "capture-descriptors" Rank fails [Checkpoint]: "descriptors";
    30 CaptureMemory "capture-memory" Rank fails [Checkpoint]: "the memory map";
    31 CaptureMapped "capture-mapped" Rank fails [Checkpoint]: "mapped files are opened and read";

    // The end of the part of its GPUs.
    32 GpuUnlock "gpu-unlock" Rank dies [Gpu]: "a rank's GPUs have their memory again, and are unlocked";

    // Earlier images, which an image may build on.
    33 EarlierImages "earlier-images" Rank dies [Checkpoint]: "images that this one may build on are looked for";

    // An image on its way to the disk.
    40 ImageCreate "image-create" Rank fails [Checkpoint]: "the image's file is made";
    41 ImagePages "image-pages" Rank fails [Checkpoint]: "a chunk of page data is written";
    42 ImageSections "image-sections" Rank fails [Checkpoint]: "small sections, table and trailer are written";
    43 ImageHeader "image-header" Rank fails [Checkpoint]: "the header is written";
    44 ImageSync "image-sync" Rank fails [Checkpoint]: "the image is synced";
    45 ImageReadAgain "image-read-again" Rank fails [Checkpoint]: "the image is read again";
    46 ImageRemove "image-remove" Rank fails [Checkpoint] after ImageSync: "an image that was given up is removed";
    47 ChunkTable "chunk-table" Rank fails [Checkpoint]: "what the ranks of the node have written already is looked up";
    48 FilesSync "files-sync" Rank fails [Checkpoint]: "files that the application has written are synced";

    // The commit.
    60 EpochClear "epoch-clear" Coordinator fails [Checkpoint]: "what is left of an earlier attempt is removed";
    61 EpochMake "epoch-make" Coordinator fails [Checkpoint]: "the epoch's directory is made";
    62 Commit "commit" Coordinator fails [Checkpoint]: "every image is written, and the commit begins";
    63 ManifestWrite "manifest-write" Coordinator fails [Checkpoint]: "the manifest is written under a draft's name";
    64 ManifestSync "manifest-sync" Coordinator fails [Checkpoint]: "the draft is synced";
    65 ManifestRename "manifest-rename" Coordinator fails [Checkpoint]: "the manifest gets its name";
    66 ManifestDirectory "manifest-directory" Coordinator fails [Checkpoint]: "the epoch's directory is synced";
    67 EpochRename "epoch-rename" Coordinator fails [Checkpoint, Suspend]: "the epoch gets its name";
    68 EpochSync "epoch-sync" Coordinator fails [Checkpoint, Suspend]: "the checkpoint directory is synced";
    69 EpochRenameBack "epoch-rename-back" Coordinator fails [Checkpoint] after EpochSync: "the epoch's name is taken back";
    70 EpochDiscard "epoch-discard" Coordinator fails [Checkpoint] after Write: "an epoch that was given up is removed";
    71 PruneRename "prune-rename" Coordinator fails [Checkpoint]: "an older epoch loses its name";
    72 PruneRemove "prune-remove" Coordinator fails [Checkpoint]: "an older epoch is removed";
    73 PrunePart "prune-part" Coordinator fails [Checkpoint] after Write, EpochDiscard: "what an older attempt has left is removed";
    74 Committed "committed" Coordinator dies [Checkpoint, Suspend]: "the epoch is committed, and the job is told";

    // Files of the job.
    80 JobWrite "job-write" Coordinator fails [Checkpoint@3, Suspend@3, Restart]: "job.json is written under a draft's name";
    81 JobSync "job-sync" Coordinator fails [Checkpoint@3, Suspend@3, Restart]: "the draft is synced";
    82 JobRename "job-rename" Coordinator fails [Checkpoint@3, Suspend@3, Restart]: "job.json gets its name";
    83 JobDirectory "job-directory" Coordinator fails [Checkpoint@3, Suspend@3, Restart]: "the checkpoint directory is synced";

    // A launch that restarts.
    90 Decide "decide" Launcher fails [Restart]: "rank 0 chooses the epoch";
    91 StartCoordinator "start-coordinator" Launcher fails [Restart]: "rank 0 starts the coordinator";
    92 LaunchWrite "launch-write" Coordinator fails [Restart]: ".launch.json is written under a draft's name";
    94 LaunchRename "launch-rename" Coordinator fails [Restart]: ".launch.json gets its name";
    96 PartsRemove "parts-remove" Coordinator fails [Restart]: "what unfinished checkpoints have left is removed";
    97 Serving "serving" Coordinator dies [Restart]: "job.json is written, and rank 0 is told";
    98 Become "become" Launcher fails [Restart]: "the process becomes the rank's lower half";

    // A rank's part of a restart, in its order.
    110 RestartOpen "restart-open" Rank fails [Restart]: "the image is opened and checked";
    111 RestartReserve "restart-reserve" Rank fails [Restart]: "descriptor numbers are occupied";
    112 RestartRead "restart-read" Rank fails [Restart]: "what the image says of the process is read";
    113 RestartJoin "restart-join" Rank fails [Restart]: "the rank joins its job";
    114 RestartChecked "restart-checked" Rank fails [Restart]: "every rank has checked its image";
    115 RestartMpi "restart-mpi" Rank fails [Restart]: "MPI is started";
    116 RestartMap "restart-map" Rank fails [Restart]: "memory is mapped";
    117 RestartMapped "restart-mapped" Rank fails [Restart]: "every rank has mapped its memory";
    118 RestartFiles "restart-files" Rank fails [Restart]: "files are cut back";
    119 RestartIpc "restart-ipc" Rank fails [Restart]: "System V objects are made again";
    120 RestartShared "restart-shared" Rank fails [Restart]: "shared files are mapped";
    121 RestartDescriptors "restart-descriptors" Rank fails [Restart]: "descriptors are opened again";
    122 RestartLocks "restart-locks" Rank fails [Restart]: "locks are taken again";
    123 RestartGate "restart-gate" Rank fails [Restart]: "the gate gets its state";
    124 RestartMain "restart-main" Rank fails [Restart]: "the main thread is adopted";
    125 RestartSignals "restart-signals" Rank fails [Restart]: "signal handlers are put in place";
    126 RestartRebuild "restart-rebuild" Rank fails [Restart]: "MPI objects are made again";
    127 RestartRebuilt "restart-rebuilt" Rank fails [Restart]: "every rank has its MPI objects";
    128 RestartThreads "restart-threads" Rank fails [Restart]: "another thread is made";
    129 RestartTimers "restart-timers" Rank fails [Restart]: "timers are made again";
    130 RestartProcess "restart-process" Rank fails [Restart]: "working directory and masks are set";
    131 RestartAgent "restart-agent" Rank fails [Restart]: "the agent's thread is started";
    132 RestartScheduling "restart-scheduling" Rank dies [Restart]: "threads get their scheduling";
    133 RestartFinish "restart-finish" Rank fails [Restart]: "descriptors get their owners";
    134 RestartClocks "restart-clocks" Rank dies [Restart]: "interval timers and waiting signals are set";
    135 RestartLimits "restart-limits" Rank dies [Restart]: "attributes and limits are set";
    136 RestartCredentials "restart-credentials" Rank fails [Restart]: "users and capabilities are set";
    137 RestartLast "restart-last" Rank dies [Restart]: "the threads run";
    138 RestartRefers "restart-refers" Rank fails [Restart]: "files that the image refers to are opened and compared";
    139 RestartArrive "restart-arrive" Rank fails [LazyRestart]: "memory that comes late is read and put in place";
    140 RestartGpu "restart-gpu" Rank fails [GpuRestart]: "memory of GPUs goes back to them";
    141 RestartGpuUnlock "restart-gpu-unlock" Rank fails [GpuRestart]: "a rank's GPUs go back to work";

    142 RestartGpuFill "restart-gpu-fill" Rank fails [GpuRestart]: "bytes of the image go to GPUs";

    // A checkpoint on storage tiers.
    150 Size "size" Rank fails [Staging]: "the rank says how long its image will be";
    152 Stage "stage" Rank fails [Staging]: "the rank is told what goes where";
    153 FastMake "fast-make" Rank fails [Staging]: "a directory on the fast tier is made";
    154 FastCreate "fast-create" Rank fails [Staging]: "a file on the fast tier is made";
    155 FastWrite "fast-write" Rank fails [Staging]: "a block is written to the fast tier";
    156 FastSync "fast-sync" Rank fails [Staging]: "the fast tier's file is synced";
    157 SlowCreate "slow-create" Rank fails [Staging]: "the image's file on the slow tier is made";
    158 SlowWrite "slow-write" Rank fails [Staging]: "a block is written to the slow tier";
    159 SlowSync "slow-sync" Rank fails [Staging]: "the slow tier's file is synced";
    160 PeerOpen "peer-open" Rank fails [Staging]: "a peer is connected to";
    161 PeerSend "peer-send" Rank fails [Staging]: "a block is sent to a peer";
    162 PeerKeep "peer-keep" Rank fails [Staging]: "a peer's block is kept";
    163 PeerClose "peer-close" Rank fails [Staging]: "a peer is asked whether it has kept all";
    164 BlocksWrite "blocks-write" Rank fails [Staging]: "the table of blocks is written";
    165 BlocksSync "blocks-sync" Rank fails [Staging]: "the table of blocks is synced";
    166 StagedClear "staged-clear" Coordinator fails [Staging]: "a staged epoch of the same number is removed";
    167 StagedRename "staged-rename" Coordinator fails [Staging]: "the epoch is called staged";
    168 StagedSync "staged-sync" Coordinator fails [Staging]: "the checkpoint directory is synced";
    169 StagedRenameBack "staged-rename-back" Coordinator fails [Staging] after StagedSync: "the staged epoch's name is taken back";
    170 Flush "flush" Rank fails [Staging]: "the agent begins to copy blocks to the slow tier";
    171 FlushRead "flush-read" Rank fails [Staging]: "a block is read from the fast tier";
    172 FlushWrite "flush-write" Rank fails [Staging]: "it is written to the slow tier";
    173 FlushSync "flush-sync" Rank fails [Staging]: "the image on the slow tier is synced";
    174 Flushed "flushed" Rank dies [Staging]: "the coordinator is told that all is copied";
    175 DurableRename "durable-rename" Coordinator fails [Staging]: "the staged epoch gets its name";
    176 DurableSync "durable-sync" Coordinator fails [Staging]: "the checkpoint directory is synced";
    177 DurableRenameBack "durable-rename-back" Coordinator fails [Staging] after DurableSync: "the durable epoch's name is taken back";
    178 StagedLost "staged-lost" Coordinator fails [Staging] after Flush: "a staged epoch that was overtaken loses its name";
    179 StagedRemove "staged-remove" Coordinator fails [Staging] after Flush: "a staged epoch that was overtaken is removed";

    // A fast tier is taken into use.
    190 OwnerWrite "owner-write" Launcher fails [RestartOnTiers]: "the owner of a part of the fast tier is written under a draft's name";
    191 OwnerSync "owner-sync" Launcher fails [RestartOnTiers]: "the draft is synced";
    192 OwnerRename "owner-rename" Launcher fails [RestartOnTiers]: "the owner gets its name";
    193 OwnerDirectory "owner-directory" Launcher fails [RestartOnTiers]: "the part of the fast tier is synced";
}

impl Point {
    /// Its number, for good.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// Its place in [`Point::ALL`].
    pub(crate) fn place(self) -> usize {
        let all = Point::ALL.iter();
        all.take_while(|other| other.number() < self.number())
            .count()
    }
}

/// The steps by which a file gets new contents.
#[derive(Clone, Copy, Debug)]
pub struct Replacement {
    pub write: Point,
    pub rename: Point,
    /// `None`: after the machine has failed, no process needs the file.
    pub durable: Option<Durable>,
}

/// The steps by which new contents get onto the disk.
#[derive(Clone, Copy, Debug)]
pub struct Durable {
    pub sync: Point,
    pub directory: Point,
}

impl Replacement {
    pub const MANIFEST: Replacement = Replacement {
        write: Point::ManifestWrite,
        rename: Point::ManifestRename,
        durable: Some(Durable {
            sync: Point::ManifestSync,
            directory: Point::ManifestDirectory,
        }),
    };
    /// job.json.
    pub const JOB: Replacement = Replacement {
        write: Point::JobWrite,
        rename: Point::JobRename,
        durable: Some(Durable {
            sync: Point::JobSync,
            directory: Point::JobDirectory,
        }),
    };
    /// The description of a launch for a coordinator that takes over. It need not be durable, since no launch outlives a failure of its machine.
    pub const LAUNCH: Replacement = Replacement {
        write: Point::LaunchWrite,
        rename: Point::LaunchRename,
        durable: None,
    };
    /// The owner of a part of a fast tier.
    pub const OWNER: Replacement = Replacement {
        write: Point::OwnerWrite,
        rename: Point::OwnerRename,
        durable: Some(Durable {
            sync: Point::OwnerSync,
            directory: Point::OwnerDirectory,
        }),
    };
}

/// The points as a table, for the page about them.
pub fn page() -> String {
    let mut page = String::from(
        "| no. | name | passed by | in | what is about to be done |\n|---|---|---|---|---|\n",
    );
    for point in Point::ALL {
        let process = match point.process() {
            Process::Rank => "rank",
            Process::Coordinator => "coordinator",
            Process::Launcher => "`stillpoint restart`",
        };
        let runs: Vec<&str> = point.runs().iter().map(|(run, _)| run.name()).collect();
        let after: Vec<String> = point
            .after()
            .iter()
            .map(|before| format!("`{}`", before.name()))
            .collect();
        let after = match after.is_empty() {
            true => String::new(),
            false => format!(" (after {} has failed)", after.join(" and ")),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| {} | `{}`{} | {process} | {} | {}{after} |",
            point.number(),
            point.name(),
            if point.can_fail() { "" } else { " *" },
            runs.join(", "),
            point.text(),
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_their_own_and_numbers_ascend() {
        let mut names: Vec<&str> = Point::ALL.iter().map(|point| point.name()).collect();
        let kebab = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        assert!(names.iter().all(kebab), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Point::ALL.len(), "a name is used twice");
        assert!(Point::ALL.is_sorted_by_key(|point| point.number()));
        for (place, point) in Point::ALL.iter().enumerate() {
            assert_eq!(point.place(), place);
            assert!(point.after().iter().all(|before| before.can_fail()));
        }
    }
}
