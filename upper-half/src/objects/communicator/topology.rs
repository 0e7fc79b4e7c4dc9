//! A communicator's virtual topology (MPI 5.0, chapter 8), as a restart makes it again.

use super::cartesian::Grid;

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

/// The arguments of `MPI_Graph_create`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub index: Vec<i32>,
    pub edges: Vec<i32>,
}

/// A process's neighbours in a distributed graph, in the order that `MPI_Dist_graph_neighbors` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distributed {
    pub sources: Vec<i32>,
    pub source_weights: Vec<i32>,
    pub destinations: Vec<i32>,
    pub destination_weights: Vec<i32>,
    pub weighted: bool,
}
