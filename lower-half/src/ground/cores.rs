//! How many threads a rank packs, checks and fills memory with.
//!
//! While it does, the application's threads stand still, and so do those of the other ranks on the node: its cores are
//! theirs to share.

use std::thread::available_parallelism;

/// More threads wait for memory or for the disk, each with two blocks of room of its own.
const MOST: usize = 16;

/// Where launchers say how many ranks of the job are on this node: Open MPI's, MPICH's, PMI's.
const LOCAL_SIZE: [&str; 3] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_LOCAL_SIZE",
];

/// Threads for this rank, one of `ranks`.
pub fn for_one_of(ranks: u32) -> usize {
    // Who is bound to some cores uses no others.
    let mine = available_parallelism().map_or(1, usize::from);
    share(online(), mine, said().unwrap_or(ranks as usize))
}

/// The job's ranks on this node, as far as the launcher says.
pub fn ranks_here() -> usize {
    said().unwrap_or(1)
}

fn said() -> Option<usize> {
    LOCAL_SIZE.iter().find_map(|name| {
        let value = std::env::var(name).ok()?;
        value.parse().ok()
    })
}

/// Of so many cores, `mine` being those that this process may use, among so many ranks.
fn share(cores: usize, mine: usize, ranks: usize) -> usize {
    (cores / ranks.max(1)).min(mine).clamp(1, MOST)
}

fn online() -> usize {
    // SAFETY: sysconf touches no memory.
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
