//! The number of threads with which a rank packs, checks and fills memory.
//!
//! Meanwhile the application's threads are stopped, and so are those of the other ranks on the node: these ranks share its cores.

use std::thread::available_parallelism;

/// More threads would wait for memory or the disk, each with two blocks of memory of its own.
const MOST: usize = 16;

/// The launchers' variables with the number of the job's ranks on this node: Open MPI's, MPICH's, PMI's.
const LOCAL_SIZE: [&str; 3] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_LOCAL_SIZE",
];

/// Returns the number of threads for this rank, one of `ranks`.
pub fn for_one_of(ranks: u32) -> usize {
    // A rank that is bound to some cores uses no others.
    let mine = available_parallelism().map_or(1, usize::from);
    share(online(), mine, said().unwrap_or(ranks as usize))
}

/// Returns the number of the job's ranks on this node, or 1 if the launcher does not say.
pub fn ranks_here() -> usize {
    said().unwrap_or(1)
}

fn said() -> Option<usize> {
    LOCAL_SIZE.iter().find_map(|name| {
        let value = std::env::var(name).ok()?;
        value.parse().ok()
    })
}

/// Returns the share of so many cores for one of so many ranks; `mine` is the number of cores that this process may use.
fn share(cores: usize, mine: usize, ranks: usize) -> usize {
    (cores / ranks.max(1)).min(mine).clamp(1, MOST)
}

fn online() -> usize {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_of_a_node_share_its_cores_and_bindings_are_kept() {
        assert_eq!(share(64, 64, 4), 16);
        assert_eq!(share(64, 64, 24), 2);
        assert_eq!(share(64, 64, 128), 1);
        assert_eq!(share(64, 1, 4), 1);
        assert_eq!(share(256, 256, 1), MOST);
        assert_eq!(share(0, 0, 0), 1);
        assert!(for_one_of(1) >= 1);
    }
}
