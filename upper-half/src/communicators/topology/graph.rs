//! Graph topologies: whole graphs, and distributed ones of which each process knows its own part.

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::{abi, crossing};
use crate::objects::communicator::Distributed;
use crate::objects::outcome::{MpiResult, check};

/// `MPI_UNWEIGHTED` in the standard ABI.
const UNWEIGHTED: usize = 10;

/// Asks the lower half for a process's neighbours.
///
/// # Safety
/// Inside MPI; `word` must be a communicator with a distributed graph.
pub unsafe fn neighbours(word: Word) -> MpiResult<Distributed> {
    let (mut sources, mut destinations, mut weighted) = (0, 0, 0);
    // SAFETY: inside; the arrays are as long as the lower half says.
    unsafe {
        check(crossing::cross(|d| {
            (d.dist_graph_neighbors_count)(
                word,
                &raw mut sources,
                &raw mut destinations,
                &raw mut weighted,
            )
        }))?;
        let room = |count: i32| vec![0; usize::try_from(count).unwrap_or(0)];
        let mut own = Distributed {
            sources: room(sources),
            source_weights: room(sources),
            destinations: room(destinations),
            destination_weights: room(destinations),
            weighted: weighted != 0,
        };
        let (from, from_weights) = (own.sources.as_mut_ptr(), own.source_weights.as_mut_ptr());
        let (to, to_weights) = (
            own.destinations.as_mut_ptr(),
            own.destination_weights.as_mut_ptr(),
        );
        check(crossing::cross(|d| {
            (d.dist_graph_neighbors)(
                word,
                sources,
                from,
                from_weights,
                destinations,
                to,
                to_weights,
            )
        }))?;
        Ok(own)
    }
}

/// Makes a distributed graph on a plain communicator. Returns the error.
///
/// # Safety
/// Inside MPI; all members call it.
pub unsafe fn construct(own: &Distributed, plain: Word, place: *mut Word) -> i32 {
    let weights = |weights: &[i32]| match own.weighted {
        true => weights.as_ptr(),
        false => std::ptr::without_provenance(UNWEIGHTED),
    };
    let (sources, destinations) = (own.sources.as_ptr(), own.destinations.as_ptr());
    let (indegree, outdegree) = (own.sources.len() as i32, own.destinations.len() as i32);
    let (from, to) = (
        weights(&own.source_weights),
        weights(&own.destination_weights),
    );
    // SAFETY: inside; the arrays are as long as said.
    unsafe {
        let none = (*abi::predefined(HandleKind::Info, 304)).lower;
        crossing::cross(|d| {
            (d.dist_graph_create_adjacent)(
                plain,
                indegree,
                sources,
                from,
                outdegree,
                destinations,
                to,
                none,
                0,
                place,
            )
        })
    }
}
