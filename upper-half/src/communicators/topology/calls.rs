//! The functions that make communicators with a topology.

use std::ffi::{CStr, c_int};

use stillpoint_wrappers::gate::HandleKind;

use super::graph;
use crate::communicators::{self, Body, null, together, usable};
use crate::ground::abi::{self, CommHandle, PlaceOf};
use crate::ground::object::{Comm, Info, Object};
use crate::objects::communicator::cartesian::Grid;
use crate::objects::communicator::{Graph, Topology};
use crate::objects::errhandler::run;
use crate::objects::info;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, class, give, slice};

/// A communicator that can get a topology: not an intercommunicator.
///
/// # Safety
/// `comm` must be null or a handle.
unsafe fn plain<'a>(comm: Comm) -> MpiResult<(*mut Object, &'a Body)> {
    // SAFETY: `comm` is null or a handle, by the caller's promise, and `usable` looks at it.
    unsafe {
        let (comm, body) = usable(comm)?;
        match &body.members {
            Some(members) if members.remote.is_some() => Err(class::COMM),
            _ => Ok((comm, body)),
        }
    }
}

/// `MPI_Cart_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn cart_create(
    comm: Comm,
    count: c_int,
    dims: *const c_int,
    periods: *const c_int,
    reorder: c_int,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: `plain` looks at the communicator; MPI demands `count` elements in both arrays until the call returns, and `slice` refuses null.
    unsafe {
        run(comm, c"MPI_Cart_create", || {
            let (comm, _) = plain(comm)?;
            if count < 0 {
                return Err(class::DIMS);
            }
            let grid = Grid {
                dims: slice(dims, count)?.to_vec(),
                periods: slice(periods, count)?
                    .iter()
                    .map(|period| *period != 0)
                    .collect(),
            };
            let new = together(
                comm,
                Some(Topology::Cartesian(grid)),
                Pairs::new(),
                |d, word| (d.cart_create)((*comm).lower, count, dims, periods, reorder, word),
            )?;
            give(place, new)
        })
    }
}

/// `MPI_Cart_sub`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn cart_sub(comm: Comm, remain: *const c_int, place: PlaceOf<CommHandle>) -> c_int {
    // SAFETY: `plain` looks at the communicator; MPI demands as many elements as the grid has dimensions, and `slice` refuses null.
    unsafe {
        run(comm, c"MPI_Cart_sub", || {
            let (comm, body) = plain(comm)?;
            let Some(Topology::Cartesian(grid)) = &body.topology else {
                return Err(class::TOPOLOGY);
            };
            let keep: Vec<bool> = slice(remain, grid.dims.len() as c_int)?
                .iter()
                .map(|keep| *keep != 0)
                .collect();
            let sub = Topology::Cartesian(grid.sub(&keep));
            let new = together(comm, Some(sub), Pairs::new(), |d, word| {
                (d.cart_sub)((*comm).lower, remain, word)
            })?;
            give(place, new)
        })
    }
}

/// `MPI_Graph_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn graph_create(
    comm: Comm,
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    reorder: c_int,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: `plain` looks at the communicator; MPI demands an index with as many elements as there are nodes, and as many edges as its last one says.
    unsafe {
        run(comm, c"MPI_Graph_create", || {
            let (comm, _) = plain(comm)?;
            let list = slice(index, nodes)?.to_vec();
            let graph = Graph {
                edges: slice(edges, list.last().copied().unwrap_or(0))?.to_vec(),
                index: list,
            };
            let new = together(
                comm,
                Some(Topology::Graph(graph)),
                Pairs::new(),
                |d, word| (d.graph_create)((*comm).lower, nodes, index, edges, reorder, word),
            )?;
            give(place, new)
        })
    }
}

/// Makes a distributed graph, and notes the lower half's result for this process.
///
/// # Safety
/// As the MPI function of that name.
unsafe fn distributed(
    comm: Comm,
    hints: Info,
    place: PlaceOf<CommHandle>,
    name: &'static CStr,
    call: impl Fn(&'static stillpoint_wrappers::dispatch::Dispatch, u64, u64, *mut u64) -> i32,
) -> c_int {
    // SAFETY: `plain` looks at the communicator and `pairs_of` at the info; no other thread knows the new communicator yet.
    unsafe {
        run(comm, name, || {
            let (comm, _) = plain(comm)?;
            info::pairs_of(hints)?;
            let none = abi::predefined(HandleKind::Info, 304);
            let new = together(comm, None, Pairs::new(), |d, word| {
                call(d, (*comm).lower, (*none).lower, word)
            })?;
            if new != null() {
                let own = graph::neighbours((*new).lower)?;
                communicators::set_topology(new, Topology::Distributed(own));
            }
            give(place, new)
        })
    }
}

/// `MPI_Dist_graph_create`.
///
/// # Safety
/// As the MPI function.
#[expect(clippy::too_many_arguments, reason = "the MPI function has as many")]
pub unsafe fn dist_graph_create(
    comm: Comm,
    count: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights: *const c_int,
    hints: Info,
    reorder: c_int,
    place: PlaceOf<CommHandle>,
) -> c_int {
    let weights = abi::weights_to_neutral(weights);
    // SAFETY: MPI demands `count` sources and degrees, and as many destinations and weights as the degrees say in all; `distributed` looks at the handles.
    unsafe {
        distributed(
            comm,
            hints,
            place,
            c"MPI_Dist_graph_create",
            |d, comm, none, word| {
                (d.dist_graph_create)(
                    comm,
                    count,
                    sources,
                    degrees,
                    destinations,
                    weights,
                    none,
                    reorder,
                    word,
                )
            },
        )
    }
}

/// `MPI_Dist_graph_create_adjacent`.
///
/// # Safety
/// As the MPI function.
#[expect(clippy::too_many_arguments, reason = "the MPI function has as many")]
pub unsafe fn dist_graph_create_adjacent(
    comm: Comm,
    indegree: c_int,
    sources: *const c_int,
    source_weights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destination_weights: *const c_int,
    hints: Info,
    reorder: c_int,
    place: PlaceOf<CommHandle>,
) -> c_int {
    let name = c"MPI_Dist_graph_create_adjacent";
    let from = abi::weights_to_neutral(source_weights);
    let to = abi::weights_to_neutral(destination_weights);
    // SAFETY: MPI demands `indegree` sources and `outdegree` destinations, with as many weights; `distributed` looks at the handles.
    unsafe {
        distributed(comm, hints, place, name, |d, comm, none, word| {
            (d.dist_graph_create_adjacent)(
                comm,
                indegree,
                sources,
                from,
                outdegree,
                destinations,
                to,
                none,
                reorder,
                word,
            )
        })
    }
}
