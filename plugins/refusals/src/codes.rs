//! The codes, in one list. The enumeration, the names, the tables of the page and `stillpoint explain` are made from it.
//!
//! A name never changes, because scripts compare it. A name that is no longer used is never given to another code.

use std::fmt;

/// The operation that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// A checkpoint or a suspend.
    Checkpoint,
    /// A start by `stillpoint run`, or a restart that cannot start at all.
    Start,
    /// A restart.
    Restart,
}

impl Section {
    pub const ALL: [Section; 3] = [Section::Checkpoint, Section::Start, Section::Restart];

    /// The operation, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Section::Checkpoint => "a checkpoint or suspend",
            Section::Start => "a start",
            Section::Restart => "a restart",
        }
    }
}

macro_rules! codes {
    ($($section:ident { $($variant:ident $name:literal $meaning:literal $remedy:literal;)+ })+) => {
        /// A reason for a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $meaning] $variant,)+)+
        }

        impl Code {
            pub const ALL: &[Code] = &[$($(Code::$variant,)+)+];

            /// The name, for the end of messages and for JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Code::$variant => $name,)+)+
                }
            }

            /// The meaning, in one line of Markdown.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $($(Code::$variant => $meaning,)+)+
                }
            }

            /// Advice for the user, in one line of Markdown.
            pub const fn remedy(self) -> &'static str {
                match self {
                    $($(Code::$variant => $remedy,)+)+
                }
            }

            pub const fn section(self) -> Section {
                match self {
                    $($(Code::$variant => Section::$section,)+)+
                }
            }
        }
    };
}

codes! {
    Checkpoint {
        OpenSocket "open-socket" "a TCP, UDP, netlink or Unix socket that leads out of the process"
            "close it; with `--sockets reset` a restart loses connections, and makes sockets of UDP, and those that listen, again. Socket pairs inside the process, and sockets that listen at abstract names, are carried";
        PassedDescriptors "passed-descriptors" "a Unix socket with descriptors under way"
            "receive them";
        OpenPipe "open-pipe" "a pipe with an end in another process, a FIFO"
            "close it";
        LiveChild "live-child" "a live child process"
            "let it end; short-lived ones are waited for";
        EndedChildren "ended-children" "more children that have ended than can be carried"
            "wait for them (`wait`)";
        SharedMemory "shared-memory" "memory shared with another process; an attached System V segment of several processes"
            "unmap it, detach it";
        LostMapping "lost-mapping" "a mapped file that a restart could not map again"
            "unmap it";
        UnmovableMemory "unmovable-memory" "memory of an inode without a file, or a System V segment that is attached in parts"
            "unmap it";
        LostFile "lost-file" "a file that no path leads to, that has lost the name that it was opened by, or may no longer be opened"
            "close it; `tmpfile()` and `O_TMPFILE` are carried";
        NamelessFile "nameless-file" "a file without a name that another process has too"
            "close it, or have the other process close it";
        FileAttributes "file-attributes" "an unlinked file with extended attributes `user.*`"
            "close it";
        NotReopened "not-reopened" "a descriptor that a restart could not have again as it is"
            "close it";
        OpenDevice "open-device" "a device that keeps state"
            "close it";
        DeviceMemory "device-memory" "memory of a device"
            "unmap it";
        AnonymousInode "anonymous-inode" "a pidfd, a namespace, another anonymous inode"
            "close it";
        MessageQueue "message-queue" "a POSIX message queue"
            "close it";
        HugePagesFile "huge-pages-file" "a memory file in huge pages"
            "close it";
        ProcFile "proc-file" "what `/proc` shows of one thread or of another process"
            "close it";
        Lease "lease" "a lease on a file (`F_SETLEASE`)"
            "give it up";
        DirectoryNotices "directory-notices" "notices of changes in a directory (`F_NOTIFY`)"
            "close the directory";
        UnreadEvents "unread-events" "unread inotify events"
            "read them";
        SignalOwner "signal-owner" "a signal owner outside of the program (`F_SETOWN`)"
            "take it back";
        EpollEntry "epoll-entry" "an epoll set with an entry that no descriptor leads to any more"
            "remove the entry before its descriptor is closed";
        UnclearDescriptor "unclear-descriptor" "a descriptor of which the kernel does not tell enough; one that may be open once or twice, as a container forbids `kcmp`"
            "close it; [containers](../operators/containers.md#podman-and-dockers-profile)";
        UnseenDescriptor "unseen-descriptor" "a descriptor that may have come by io_uring or fanotify"
            "close it";
        HighDescriptor "high-descriptor" "a descriptor above 65535"
            "use smaller numbers";
        ThreadsOwn "threads-own" "a thread with a descriptor table, working directory or namespace of its own"
            "none";
        WorkingDirectory "working-directory" "a working directory that has been removed or cannot be entered again"
            "change to a directory that exists";
        RootDirectory "root-directory" "another root directory (`chroot`)"
            "none";
        AsynchronousIo "asynchronous-io" "contexts of asynchronous I/O (`io_setup`)"
            "destroy them";
        KeyRings "key-rings" "the kernel's key rings"
            "none: they stay for the process's life";
        Landlock "landlock" "Landlock"
            "none: it stays for the process's life";
        OwnFilter "own-filter" "a filter of its own (seccomp)"
            "none: it stays for the process's life";
        SecurityLabel "security-label" "a security label"
            "none: it stays for the process's life";
        OwnNamespace "own-namespace" "namespaces of its own"
            "none: they stay for the process's life";
        LocalSegments "local-segments" "segments of its own (`modify_ldt`)"
            "none";
        IoPorts "io-ports" "access to I/O ports"
            "none";
        ProtectionKeys "protection-keys" "protection keys (`pkey_alloc`)"
            "free them";
        SealedMemory "sealed-memory" "sealed memory (`mseal`)"
            "none";
        ProcessSettings "process-settings" "settings of `prctl` or `arch_prctl` that cannot be carried"
            "none";
        TracesProcess "traces-process" "another process that it traces"
            "detach from it";
        FaultHandling "fault-handling" "a `userfaultfd` that handles faults"
            "close it";
        SecretMemory "secret-memory" "secret memory (`memfd_secret`)"
            "unmap it";
        GuardedPages "guarded-pages" "guarded pages (`MADV_GUARD_INSTALL`) that the kernel does not tell of"
            "remove them, or use a newer kernel";
        FullMessageQueue "full-message-queue" "a System V message queue with messages"
            "receive them";
        SemaphoreUndo "semaphore-undo" "a semaphore with `SEM_UNDO`"
            "give the semaphore back";
        UnclearIpc "unclear-ipc" "System V objects that cannot be read, or too many of them"
            "use fewer; remove them";
        UnseenCode "unseen-code" "code at an address where its system calls are not seen"
            "let the kernel choose the address";
        UnreadableMemory "unreadable-memory" "memory, or the process's state, that cannot be read"
            "try again; unmap the page that it names";
        MainThreadEnded "main-thread-ended" "a main thread, or the thread that has started MPI, that has ended while others run on"
            "have that thread wait for the others";
        FileLimit "file-limit" "a limit on the length of files (`RLIMIT_FSIZE`) below the image's"
            "start the job with a higher one";
        StandardInput "standard-input" "a standard input that cannot be held still"
            "try again, or start the job with its input in a file";
        MpiNotRunning "mpi-not-running" "a program before `MPI_Init` or after `MPI_Finalize`"
            "try again while it computes";
        MpiWindow "mpi-window" "a window of one process on Open MPI 4.1; windows with `--mca osc sm`"
            "free it, or run on another library";
        SpawnedProcesses "spawned-processes" "processes of `MPI_Comm_spawn`, `accept`, `connect`, `join`; a published name"
            "disconnect";
        MpiFile "mpi-file" "an MPI file that belongs to processes of other worlds, or whose name is not UTF-8"
            "close it";
        LostMpiFile "lost-mpi-file" "an MPI file that cannot be opened again, whose name another file has, or that is not regular"
            "close it";
        MpiFilePosition "mpi-file-position" "an MPI file with a position that the MPI does not tell"
            "close it";
        PendingFileOperation "pending-file-operation" "an operation on an MPI file or window that takes long"
            "try again later";
        ToolsHandle "tools-handle" "a handle of the tool interface (`MPI_T_*`)"
            "free it";
        PartitionedRequest "partitioned-request" "a request of partitioned communication"
            "free it";
        NoSafeState "no-safe-state" "collective operations that `--safe-state barrier` has no safe state with"
            "run the program with `--safe-state clock`";
        MpiObject "mpi-object" "an MPI object that could not be made again as it is"
            "free it; if it should be carried, report it";
        MpiMessages "mpi-messages" "messages that the MPI cannot be asked for"
            "try again; if libfabric's provider `sockets` is below, start the job on another one";
        CommunicatorFreed "communicator-freed" "a communicator that some ranks have freed already"
            "try again";
        RankComputes "rank-computes" "a rank that computes, yet to come to what others have returned from"
            "wait, or raise `--timeout`";
        StoppedRank "stopped-rank" "a rank whose process is stopped, by a signal or a debugger"
            "let it run on (`kill -CONT`), or detach the debugger";
        NoAnswer "no-answer" "a thread of the program, or a rank, that does not answer or stand still"
            "try again";
        GpuUnsupported "gpu-unsupported" "GPUs that the driver cannot checkpoint: parts (MIG), an old driver"
            "see [GPUs](gpus.md#what-is-refused-and-what-is-lost)";
        GpuBusy "gpu-busy" "long work on a GPU"
            "try again; see [GPUs](gpus.md#what-is-refused-and-what-is-lost)";
        GpuDriver "gpu-driver" "something that the GPUs' driver or the node's helper refuses"
            "see [GPUs](gpus.md#what-is-refused-and-what-is-lost)";
        GpuStaging "gpu-staging" "GPU memory that cannot be staged, with `--gpu-staging on`"
            "start it with `--gpu-staging auto`";
        NoSpace "no-space" "no space left, or a quota"
            "make room; the next checkpoint succeeds";
        PermissionDenied "permission-denied" "permission denied in the checkpoint directory or for a file"
            "give the right back; the next checkpoint succeeds";
        NotWritten "not-written" "an image or an epoch that cannot be written, also in a moved checkpoint directory"
            "restore the directory; the next checkpoint succeeds";
        NotSynced "not-synced" "a file of the application that cannot be synced"
            "try again, or start it with `--sync-files off`";
        NoRoom "no-room" "no memory, thread or process for the checkpoint's own work"
            "free memory, raise the limits, or use `--copy off`";
        TierFailed "tier-failed" "a storage tier that fails or is missing"
            "see [tiers](tiers.md)";
        DirectoryTaken "directory-taken" "a checkpoint directory that another coordinator has now"
            "none: that one leads the job";
        RanksGone "ranks-gone" "a rank that has ended or died"
            "none: there is no checkpoint of the whole job any more";
        RankUnreachable "rank-unreachable" "a host or rank that cannot be reached"
            "wait, or see [lost hosts](../operators/hosts.md)";
        RanksMissing "ranks-missing" "ranks that are not connected yet, or have started another program"
            "wait until all ranks run";
        UnsplitProgram "unsplit-program" "a rank whose process has become a statically linked program, such as one of valgrind's tools"
            "start the MPI program without it; it runs as natively, but cannot be checkpointed";
        RankTwice "rank-twice" "two processes that start MPI as one rank"
            "let one program of each rank use MPI";
        JobBusy "job-busy" "an epoch that is still being written or copied"
            "wait, or raise `--timeout`";
        JobEnds "job-ends" "a job that ends or has ended"
            "none";
        TooLate "too-late" "a checkpoint that took longer than it may"
            "raise `--timeout`; the message tells what it waited for";
        OperatorsRight "operators-right" "a request that operators may not make"
            "ask for a suspend, or ask the job's user";
        FaultPoint "fault-point" "a fault that was asked for (`STILLPOINT_FAULT`)"
            "unset the variable";
        BatchSystem "batch-system" "a batch system that does not answer the request to start a suspended job again"
            "wait: it is asked again as long as the job's processes live";
        AnotherRelease "another-release" "a reason that only another release of Stillpoint knows"
            "ask `stillpoint explain` of that release";
        Internal "internal" "an error in Stillpoint"
            "report it";
    }
    Start {
        OldKernel "old-kernel" "a kernel before 5.11, or without what Stillpoint needs"
            "run natively, or use a newer kernel";
        StaticProgram "static-program" "a statically linked program"
            "link it dynamically";
        NoProgram "no-program" "a program that is not there, or cannot be executed"
            "check its name, its first line and its permissions";
        WrongProgram "wrong-program" "a program of another machine, damaged, or at addresses that are not free"
            "build it for this machine, position-independent";
        LauncherInside "launcher-inside" "a launcher behind `stillpoint run`"
            "put the launcher first";
        MpiMissing "mpi-missing" "an MPI, or a pair of MPIs, that is not installed or supported"
            "see [MPI libraries](mpi-libraries.md)";
        OtherMpi "other-mpi" "a program of another MPI, started by a script or interpreter that was taken for the launcher's MPI"
            "start the MPI program itself";
        RanksDiffer "ranks-differ" "ranks with different options, builds or MPI libraries"
            "give all ranks the same";
        NoProc "no-proc" "`/proc` missing, or of another PID namespace"
            "mount one in the container";
        UnsafeDirectory "unsafe-directory" "a checkpoint directory that somebody else owns or may write to, or that cannot be used"
            "`chmod go-w`, or another directory";
        DirectoryInUse "directory-in-use" "a directory in which another job works, or has epochs"
            "wait for it, or take another directory; `--discard`";
        OtherCommand "other-command" "`--resume` with another command than the epoch's"
            "`--resume-anyway`, or another directory";
        SiteSettings "site-settings" "a site file that cannot be read; an option that the site has fixed"
            "ask your operators";
        WrongOptions "wrong-options" "options that do not go together"
            "leave one of them out";
        LittleSpace "little-space" "a limit on address space (`RLIMIT_AS`) that leaves too little"
            "raise the limit";
        Incomplete "incomplete" "an incomplete installation, or libraries of another build"
            "install all of one build";
        NoJob "no-job" "a rank that cannot join its job: no coordinator, or it was turned away"
            "see the reason; start all ranks with one launcher";
        NotSetUp "not-set-up" "something that the kernel or the launcher does not give to the process"
            "see the reason; `stillpoint check` tells what the machine lacks";
    }
    Restart {
        NoEpoch "no-epoch" "no committed epoch in the directory, or not that one"
            "check the directory and `--epoch`";
        OtherSize "other-size" "another number of ranks"
            "start as many as the epoch has";
        Processor "processor" "a feature of the processor, or another kind of machine"
            "restart on a processor that has it";
        KernelFeature "kernel-feature" "a feature of the kernel that the job uses"
            "restart on a kernel that has it";
        MappedFile "mapped-file" "a program, library or mapped file that is missing or different"
            "bring it back; checkpoint with `--mapped-files keep` beforehand";
        BrokenImage "broken-image" "a broken or missing image, its own or of an epoch that it needs"
            "restart an earlier epoch (`--epoch K`); `stillpoint verify` tells which are whole";
        OtherBuild "other-build" "contracts or payloads of another build"
            "restart with the build that wrote the epoch";
        OtherLibrary "other-library" "an MPI library that cannot carry the job on: `MPI_TAG_UB` smaller than the application was told; positions of MPI files; windows of one process"
            "restart on the former library";
        MissingFile "missing-file" "a file or directory that is missing or shorter"
            "bring it back";
        LockedFile "locked-file" "a file that somebody has locked"
            "end the holder";
        OtherUser "other-user" "a user, group or capability that the launch may not have"
            "restart as that user; grant the right";
        IpcObject "ipc-object" "a System V object that cannot be had again"
            "restart on its host, or as a user who may choose its id";
        OtherInput "other-input" "a standard input that does not go on where it was"
            "restart it with the input that it had";
        SeveralHosts "several-hosts" "ranks that share memory, on several hosts"
            "restart them on one host";
        OtherGpu "other-gpu" "another GPU, fewer GPUs, another driver"
            "see [GPUs](gpus.md#what-is-refused-and-what-is-lost)";
        LostBlocks "lost-blocks" "part of a staged epoch that is lost"
            "restart a durable epoch";
        StagedEpoch "staged-epoch" "a staged epoch with another directory to work in"
            "restart it without `--dir`";
        TakenMemory "taken-memory" "addresses that are not free in the new process"
            "try again; without sanitizers or preloaded libraries of the launch's own";
        NotRestored "not-restored" "something that the kernel does not give back"
            "see the reason; the epoch stays";
        JobFinished "job-finished" "a job that has finished"
            "nothing, or `--resume-anyway`";
        InsideJob "inside-job" "a restart inside of a running job"
            "restart from outside of it";
    }
}

impl Code {
    /// Returns the code with this name.
    pub fn named(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Code::named(&name).unwrap_or(Code::AnotherRelease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns `OpenSocket` into `open-socket`.
    fn kebab(variant: &str) -> String {
        let mut name = String::new();
        for letter in variant.chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    #[test]
    fn a_name_is_its_variants_and_leads_back_to_it() {
        for code in Code::ALL {
            assert_eq!(code.name(), kebab(&format!("{code:?}")));
            assert_eq!(Code::named(code.name()), Some(*code));
        }
        assert_eq!(Code::named("nobody"), None);
    }

    #[test]
    fn every_code_says_something_in_one_line() {
        for code in Code::ALL {
            for text in [code.meaning(), code.remedy()] {
                assert!(!text.is_empty() && !text.contains(['\n', '|']), "{code}");
                assert!(!text.ends_with('.'), "{code}");
            }
        }
    }
}
