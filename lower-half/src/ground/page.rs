//! The agent's view of the gate page: its requests to the driver thread, and the answers.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

use stillpoint_clock::absent::{Behind, Operation, REMEMBERED};
use stillpoint_clock::rank::all_reached;
use stillpoint_clock::steps::Every;
use stillpoint_refusals::{Code, Refusal};
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{
    CLOCK_NAME, ClockCell, Command, DriverState, GatePage, HINDRANCES, UpperHooks,
};

/// The distance of cells in an upper half that does not report it.
const OLD_STRIDE: u64 = 64;

/// The gate page together with the upper half that has registered itself in it.
#[derive(Clone, Copy)]
pub struct Page {
    page: &'static GatePage,
}

impl Page {
    /// # Safety
    /// The gate page must be mapped and filled.
    pub unsafe fn mapped() -> Self {
        Self {
            // SAFETY: the caller says that the gate page is mapped and filled.
            page: unsafe { stillpoint_wrappers::gate::page() },
        }
    }

    /// Returns the upper half's functions and data, once its constructor has run.
    pub fn hooks(&self) -> Option<&'static UpperHooks> {
        let address = self.page.hooks.load(Ordering::Acquire) as *const UpperHooks;
        // SAFETY: the pointer is null or that of the hooks, which the upper half never frees; its version was compared when the library started.
        unsafe { address.as_ref() }
    }

    /// The same, if the upper half has all fields that this build knows.
    fn grown_hooks(&self) -> Option<&'static UpperHooks> {
        self.hooks().filter(|hooks| hooks.is_whole())
    }

    /// Whether MPI is initialised and not finalised.
    pub fn mpi_active(&self) -> bool {
        self.page.mpi_active.load(Ordering::Acquire) != 0
    }

    /// Sets the flag that every stub tests, so that each stub either sees it or has its increments seen. The stubs have no fence; `membarrier(2)` makes up for
    /// it here.
    pub fn begin(&self) {
        self.page.advances.store(0, Ordering::Relaxed);
        self.set(&self.page.driver_state, DriverState::Running as u32);
        self.page
            .command
            .store(Command::Reach as u32, Ordering::SeqCst);
        self.page.pending.store(1, Ordering::SeqCst);
        if let Some(hooks) = self.grown_hooks() {
            self.page.direct.store(hooks.again, Ordering::SeqCst);
        }
        fence_everywhere();
    }

    /// Ends what `begin` began: all threads run on.
    pub fn end(&self) {
        self.page
            .command
            .store(Command::Run as u32, Ordering::SeqCst);
        self.page.pending.store(0, Ordering::SeqCst);
        if let Some(hooks) = self.grown_hooks()
            && hooks.long_way.load(Ordering::SeqCst) == 0
        {
            let table = self.page.dispatch as *const Dispatch;
            // SAFETY: the pointer leads to the tables of this launch's MPI, which are never freed; only an address in them is taken.
            let direct = unsafe { &raw const (*table).direct };
            self.page.direct.store(direct as u64, Ordering::SeqCst);
        }
        self.ring();
    }

    /// Gives the driver thread its next command.
    pub fn command(&self, command: Command) {
        self.page.command.store(command as u32, Ordering::SeqCst);
        self.ring();
    }

    /// Lets the driver thread pass one more park point.
    pub fn advance(&self) {
        self.page.advances.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    /// Returns how many park points the driver thread may still pass.
    pub fn advances(&self) -> u32 {
        self.page.advances.load(Ordering::SeqCst)
    }

    /// Returns the driver thread's latest state.
    pub fn driver_state(&self) -> u32 {
        self.page.driver_state.load(Ordering::SeqCst)
    }

    /// Returns the rounds of progress made since the request.
    pub fn rounds(&self) -> u32 {
        self.page.rounds.load(Ordering::SeqCst)
    }

    /// Returns the numbers of messages (sent, received) by threads that have ended.
    pub fn ended_counts(&self) -> (u64, u64) {
        (
            self.page.sent_before.load(Ordering::SeqCst),
            self.page.received_before.load(Ordering::SeqCst),
        )
    }

    /// Returns this rank's clocks: `(ggid, committed seq)` of every communicator and set of ranks that it belongs to. These numbers are its targets until it
    /// learns of larger ones. Operations that threads are `inside` ([`ThreadRecord::inside`](stillpoint_wrappers::gate::ThreadRecord::inside)) do not bind.
    pub fn clocks(&self, inside: &[u32]) -> Vec<(u64, u64)> {
        self.in_use()
            .map(|(ggid, cell)| {
                let here = std::ptr::from_ref(cell).addr() as u32;
                let committed = match inside.contains(&here) {
                    true => cell.count.committed_before_newest(),
                    false => cell.count.committed(),
                };
                cell.target.store(committed, Ordering::SeqCst);
                (ggid, committed)
            })
            .collect()
    }

    /// Returns the ids of this rank's clocks.
    pub fn ggids(&self) -> impl Iterator<Item = u64> {
        self.in_use().map(|(ggid, _)| ggid)
    }

    /// Returns the cells in use. A cell gets its id last, after its initial numbers.
    fn in_use(&self) -> impl Iterator<Item = (u64, &'static ClockCell)> {
        let with_id = |cell: &'static ClockCell| (cell.ggid.load(Ordering::SeqCst), cell);
        self.cells().map(with_id).filter(|(ggid, _)| *ggid != 0)
    }

    /// Returns the number of collective operations that this rank has begun, over all groups.
    pub fn begun(&self) -> u64 {
        let begun = |cell: &ClockCell| cell.count.seq();
        self.cells().map(begun).sum()
    }

    /// Whether every group has reached its target.
    pub fn all_reached(&self) -> bool {
        all_reached::<Every>(self.cells().map(|cell| {
            let target = cell.target.load(Ordering::SeqCst);
            (cell.count.seq(), target)
        }))
    }

    /// Whether a thread is inside an operation that no other rank needs, among the clocks that threads are `inside` of ([`Page::clocks`]).
    pub fn is_beyond_target(&self, inside: &[u32]) -> bool {
        self.cells().any(|cell| {
            let here = std::ptr::from_ref(cell).addr() as u32;
            inside.contains(&here) && cell.count.seq() > cell.target.load(Ordering::SeqCst)
        })
    }

    /// Returns the names, for people, of the clocks that have not reached their targets.
    pub fn behind(&self) -> Vec<String> {
        let Some(hooks) = self.grown_hooks() else {
            return Vec::new();
        };
        let names = hooks.clock_names as *const [u8; CLOCK_NAME];
        let cells = self.cells().enumerate();
        let behind = cells.filter(|(_, cell)| {
            cell.ggid.load(Ordering::SeqCst) != 0
                && cell.count.seq() < cell.target.load(Ordering::SeqCst)
        });
        behind
            .map(|(index, _)| {
                // SAFETY: the upper half keeps as many names as cells, which never move. It may write one meanwhile: the name is a text for people.
                let name = unsafe { names.add(index).read_volatile() };
                let end = name.iter().position(|byte| *byte == 0);
                String::from_utf8_lossy(&name[..end.unwrap_or(CLOCK_NAME)]).into_owned()
            })
            .collect()
    }

    /// Returns the clocks that have not reached their targets.
    pub fn late(&self) -> Vec<Behind> {
        self.in_use()
            .map(|(ggid, cell)| Behind {
                ggid,
                begun: cell.count.seq(),
                target: cell.target.load(Ordering::SeqCst),
                rank: cell.rank.load(Ordering::SeqCst),
                size: cell.size.load(Ordering::SeqCst),
            })
            .filter(|behind| behind.begun < behind.target)
            .collect()
    }

    /// Returns which of the operations `first` to `last` of a clock this rank has begun, with its details of them.
    pub fn remembered(&self, ggid: u64, first: u64, last: u64) -> Vec<Operation> {
        let Some(tell) = self.grown_hooks().and_then(|hooks| hooks.remembered) else {
            return Vec::new();
        };

        let of_clock = |cell: &ClockCell| cell.ggid.load(Ordering::SeqCst) == ggid;
        let Some(index) = self.cells().position(of_clock) else {
            return Vec::new();
        };
        let first = first.max(last.saturating_sub(REMEMBERED as u64));
        let Some(cell) = self.cells().nth(index) else {
            return Vec::new();
        };
        let begun = cell.count.seq();
        let operation = |number| {
            // For an operation without details, this at least reports that the rank has begun it.
            let mut operation = Operation {
                ggid,
                number,
                teller: cell.rank.load(Ordering::SeqCst),
                ..Operation::default()
            };
            // SAFETY: the index is that of a cell, and the place lives on this stack, as the hook demands; if it returns 0, nothing is written.
            unsafe { tell(index as u32, number, &raw mut operation) };
            operation
        };
        (first..=last.min(begun)).map(operation).collect()
    }

    /// Has the driver thread stop before its targets are reached, as soon as it is out of MPI or waits for a message, and carry these operations out. They must
    /// stay in place until it has.
    pub fn carry_out(&self, operations: &[Operation]) {
        let first = operations.as_ptr() as u64;
        self.page.absent.store(first, Ordering::SeqCst);
        let count = operations.len() as u32;
        self.page.absent_count.store(count, Ordering::SeqCst);
        let carried_out = DriverState::CarriedOut as u32;
        if self.driver_state() == carried_out {
            self.set(&self.page.driver_state, DriverState::Running as u32);
        }
        self.command(Command::CarryOut);
    }

    /// Whether the driver thread has stopped and carried them out.
    pub fn carried_out(&self) -> bool {
        self.driver_state() == DriverState::CarriedOut as u32
    }

    /// Asks which collective operation the driver thread is in. The answer comes when the real MPI calls back.
    pub fn ask(&self) {
        self.page.asked.store(1, Ordering::SeqCst);
    }

    /// Returns the answer, or the name that the thread has noted by itself.
    pub fn call(&self) -> Option<String> {
        let name = self.grown_hooks()?.call.load(Ordering::SeqCst) as *const core::ffi::c_char;
        // SAFETY: a pointer that is not null leads to a name in the upper half's own text, which it keeps.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Returns each clock's count of communicators that were given up: see `ClockCell::given_up`.
    pub fn given_up(&self) -> Vec<(u64, u64)> {
        if self.grown_hooks().is_none() {
            return Vec::new();
        }
        let sums = self
            .in_use()
            .map(|(ggid, cell)| (ggid, cell.given_up.load(Ordering::SeqCst)));
        sums.filter(|(_, sum)| *sum != 0).collect()
    }

    /// Notes that the cells hold this checkpoint's targets.
    pub fn targeted(&self) {
        self.page.pending.store(2, Ordering::SeqCst);
        self.ring();
    }

    /// Raises targets, `(ggid, target)`. They belong to clocks that this rank has reported; a clock that it has given up since has no cell any more, and needs
    /// no target.
    pub fn set_targets(&self, targets: &[(u64, u64)]) {
        let targets: HashMap<u64, u64> = targets.iter().copied().collect();
        for (ggid, cell) in self.in_use() {
            if let Some(&target) = targets.get(&ggid) {
                cell.target.fetch_max(target, Ordering::SeqCst);
            }
        }
        self.ring();
    }

    /// Returns, for people, the parts of the upper half that no image can hold; empty if it can be checkpointed. May be called at any time.
    pub fn hindrances(&self) -> Vec<Refusal> {
        let Some(hooks) = self.hooks() else {
            return Vec::new();
        };
        if hooks.hindrances == 0 {
            return Vec::new();
        }
        // SAFETY: the upper half keeps as many counters there as this array has, which never move.
        let counts = unsafe { &*(hooks.hindrances as *const [AtomicU32; HINDRANCES.len()]) };
        let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
        let there = counts.zip(HINDRANCES).zip(CODES);
        let there = there.filter(|((count, _), _)| *count != 0);
        there
            .map(|((count, what), code)| Refusal::new(code, format!("{count} {what}")))
            .collect()
    }

    /// Returns why the upper half cannot be checkpointed now, one reason a line; empty if it can.
    pub fn refusals(&self) -> Vec<Refusal> {
        let Some(hooks) = self.hooks() else {
            return Vec::new();
        };
        let bytes = hooks.refusal_bytes.load(Ordering::SeqCst) as usize;
        // SAFETY: the upper half wrote that many bytes of its 4096-byte text there before it said Checked.
        let text =
            unsafe { std::slice::from_raw_parts(hooks.refusal as *const u8, bytes.min(4096)) };
        String::from_utf8_lossy(text)
            .lines()
            .filter(|line| !line.is_empty())
            .map(of_upper_half)
            .collect()
    }

    /// Returns every cell of the table, in its order.
    fn cells(&self) -> impl Iterator<Item = &'static ClockCell> + use<> {
        let (first, count) = match self.hooks() {
            Some(hooks) => (
                hooks.clock_cells,
                u64::from(hooks.clock_count.load(Ordering::SeqCst)),
            ),
            None => (0, 0),
        };
        let stride = match self.grown_hooks() {
            Some(hooks) => u64::from(hooks.clock_stride),
            None => OLD_STRIDE,
        };
        (0..count).map(move |index| {
            // SAFETY: the upper half keeps `count` cells there that never move; every field in use is atomic.
            unsafe { &*((first + index * stride) as *const ClockCell) }
        })
    }

    fn ring(&self) {
        self.page.bell.fetch_add(1, Ordering::SeqCst);
        crate::arch::syscall::futex_wake(&self.page.bell);
    }

    fn set(&self, word: &AtomicU32, value: u32) {
        word.store(value, Ordering::SeqCst);
    }
}

/// The codes of [`HINDRANCES`].
const CODES: [Code; HINDRANCES.len()] = [
    Code::MpiWindow,
    Code::MpiFile,
    Code::SpawnedProcesses,
    Code::PendingFileOperation,
    Code::ToolsHandle,
];

/// Reads a line of the upper half. It ends with its code, except for counted objects and for upper halves of releases without codes.
fn of_upper_half(line: &str) -> Refusal {
    let hindrance = HINDRANCES
        .iter()
        .zip(CODES)
        .find(|(what, _)| line.ends_with(**what));
    let otherwise = hindrance.map_or(Code::MpiObject, |(_, code)| code);
    Refusal::read(line, otherwise)
}

/// Registers for `membarrier(2)`. A process with one thread is registered at once. One with several waits until every processor has been through the scheduler,
/// which takes seconds on a busy machine.
pub fn prepare_fence() {
    const REGISTER: i32 = 1 << 4;
    // SAFETY: membarrier takes numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER, 0, 0) };
}

/// Makes a full fence on every running thread of the process. If the kernel does not provide the fast one (for example, a sandbox forbids it), a slow one is
/// used.
fn fence_everywhere() {
    const GLOBAL: i32 = 1;
    const EXPEDITED: i32 = 1 << 3;
    let fence = |command: i32| {
        // SAFETY: membarrier takes numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    };
    if fence(EXPEDITED) {
        return;
    }
    prepare_fence();
    if !fence(EXPEDITED) && !fence(GLOBAL) {
        visit_processors();
    }
}

/// Runs this thread on each of its permitted processors in turn: each then switches threads, which is a fence.
fn visit_processors() {
    // SAFETY: both sets live on this stack, and any bits are a set; the kernel reads and writes as many bytes as they have.
    unsafe {
        let bytes = size_of::<libc::cpu_set_t>();
        let mut all: libc::cpu_set_t = core::mem::zeroed();
        if libc::sched_getaffinity(0, bytes, &mut all) != 0 {
            return;
        }
        for processor in 0..8 * bytes {
            let mut one: libc::cpu_set_t = core::mem::zeroed();
            libc::CPU_SET(processor, &mut one);
            // The kernel refuses processors that do not exist.
            libc::sched_setaffinity(0, bytes, &one);
        }
        libc::sched_setaffinity(0, bytes, &all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_upper_half_has_its_code_by_word_or_by_number() {
        for (line, code) in [
            ("2 messages are lost [mpi-messages]", Code::MpiMessages),
            ("2 RMA window(s) are open (MPI_Win_*)", Code::MpiWindow),
            ("a line of an older contract", Code::MpiObject),
        ] {
            assert_eq!(of_upper_half(line).code(), code, "{line}");
        }
    }
}
