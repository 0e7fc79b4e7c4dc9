//! Virtual topologies: kept as recipes, made again on a communicator after a restart. Questions about them
//! go to the lower half, which has the same.

mod calls;
mod graph;

use stillpoint_wrappers::neutral::Word;

pub use calls::*;

use crate::ground::crossing;
use crate::objects::communicator::cartesian::Grid;
use crate::objects::communicator::{Graph, Topology};
use crate::objects::outcome::{MpiResult, check};

/// `MPI_CART`, `MPI_GRAPH` and `MPI_DIST_GRAPH` in the standard ABI.
const CART: i32 = 211;
const GRAPH: i32 = 212;
const DIST_GRAPH: i32 = 213;

/// Gives a communicator of the lower half its topology: ranks stay as they are. The plain communicator is
/// freed.
///
/// # Safety
/// Inside MPI; all members call it with what is theirs; `word` is ours.
pub unsafe fn construct(topology: &Topology, word: Word) -> MpiResult<Word> {
    let (mut plain, mut new) = (word, 0);
    let place = &raw mut new;
    // SAFETY: inside; the arrays are as long as the topology says.
    unsafe {
        let error = match topology {
            Topology::Cartesian(grid) => {
                let periods: Vec<i32> = grid
                    .periods
                    .iter()
                    .map(|period| i32::from(*period))
                    .collect();
                let (count, dims) = (grid.dims.len() as i32, grid.dims.as_ptr());
                let periods = periods.as_ptr();
                crossing::cross(|d| (d.cart_create)(plain, count, dims, periods, 0, place))
            }
            Topology::Graph(graph) => {
                let count = graph.index.len() as i32;
                let (index, edges) = (graph.index.as_ptr(), graph.edges.as_ptr());
                crossing::cross(|d| (d.graph_create)(plain, count, index, edges, 0, place))
            }
            Topology::Distributed(own) => graph::construct(own, plain, place),
        };
        crossing::cross(|d| (d.comm_free)(&raw mut plain));
        check(error)?;
    }
    Ok(new)
}

/// Whether a communicator of the lower half has this topology.
///
/// # Safety
/// Inside MPI; `word` must be a communicator of the lower half's.
pub unsafe fn is_of(topology: &Topology, word: Word) -> MpiResult<bool> {
    let mut kind = 0;
    // SAFETY: inside; the lower half writes as much as it is given room for.
    unsafe {
        check(crossing::cross(|d| (d.topo_test)(word, &raw mut kind)))?;
        match topology {
            Topology::Cartesian(grid) => {
                let mut count = 0;
                if kind != CART {
                    return Ok(false);
                }
                check(crossing::cross(|d| (d.cartdim_get)(word, &raw mut count)))?;
                let room = || vec![0; usize::try_from(count).unwrap_or(0)];
                let (mut dims, mut periods, mut place) = (room(), room(), room());
                let (to, around, at) =
                    (dims.as_mut_ptr(), periods.as_mut_ptr(), place.as_mut_ptr());
                check(crossing::cross(|d| {
                    (d.cart_get)(word, count, to, around, at)
                }))?;
                let periods: Vec<bool> = periods.iter().map(|period| *period != 0).collect();
                Ok(*grid == Grid { dims, periods })
            }
            Topology::Graph(graph) => {
                let (mut nodes, mut edges) = (0, 0);
                if kind != GRAPH {
                    return Ok(false);
                }
                check(crossing::cross(|d| {
                    (d.graphdims_get)(word, &raw mut nodes, &raw mut edges)
                }))?;
                let room = |count: i32| vec![0; usize::try_from(count).unwrap_or(0)];
                let mut found = Graph {
                    index: room(nodes),
                    edges: room(edges),
                };
                let (index, to) = (found.index.as_mut_ptr(), found.edges.as_mut_ptr());
                check(crossing::cross(|d| {
                    (d.graph_get)(word, nodes, edges, index, to)
                }))?;
                Ok(found == *graph)
            }
            Topology::Distributed(own) => {
                Ok(kind == DIST_GRAPH && graph::neighbours(word)? == *own)
            }
        }
    }
}
