//! Virtual topologies: kept as recipes, made again on a communicator after a restart. Questions about them
//! go to the lower half, which has the same.

mod calls;
pub mod cartesian;
mod graph;

use stillpoint_wrappers::neutral::Word;

pub use calls::*;
pub use graph::{Distributed, Graph};

use crate::crossing;
use crate::stub::{Outcome, check};
use cartesian::Grid;

/// A communicator's topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cartesian(Grid),
    Graph(Graph),
    /// This process's own neighbours.
    Distributed(Distributed),
}

impl Topology {
    /// Its name in an inventory.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cartesian(_) => "cart",
            Self::Graph(_) => "graph",
            Self::Distributed(_) => "dist_graph",
        }
    }
}

/// Gives a communicator of the lower half its topology: ranks stay as they are. The plain communicator is
/// freed.
///
/// # Safety
/// Inside MPI; all members call it with what is theirs; `word` is ours.
pub unsafe fn construct(topology: &Topology, word: Word) -> Outcome<Word> {
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
