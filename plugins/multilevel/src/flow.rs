//! Maximum flow by Dinic's algorithm, and the minimum cut that proves it.
//!
//! Only whole numbers. Capacities may be raised between two calls, and the flow found so far stays and is augmented. This
//! makes a parametric maximum flow cheap. E. A. Dinic, "Algorithm for solution of a problem of maximum flow in a network
//! with power estimation", Soviet Math. Doklady 11 (1970).

use std::ops::{AddAssign, SubAssign};

/// Units of flow: `u64` for bytes, `u128` for fractions of bytes.
pub trait Amount: Copy + Ord + Default + AddAssign + SubAssign {}

impl Amount for u64 {}
impl Amount for u128 {}

/// Tells whether an arc leads along its edge and not against it.
pub fn forward(arc: usize) -> bool {
    arc & 1 == 0
}

/// No level: not reached from the source, or a dead end.
const UNREACHED: u32 = u32::MAX;

/// Vertices and edges, before the first flow.
#[derive(Clone, Debug)]
pub struct Builder {
    vertices: usize,
    /// Tail and head of each edge.
    edges: Vec<(u32, u32)>,
}

impl Builder {
    pub fn new(vertices: usize) -> Builder {
        Builder {
            vertices,
            edges: Vec::new(),
        }
    }

    /// Adds a vertex, and returns its number.
    pub fn vertex(&mut self) -> u32 {
        self.vertices += 1;
        self.vertices as u32 - 1
    }

    /// Adds an edge, and returns its number. Both ends must exist.
    pub fn edge(&mut self, from: u32, to: u32) -> usize {
        debug_assert!((from as usize) < self.vertices && (to as usize) < self.vertices);
        self.edges.push((from, to));
        self.edges.len() - 1
    }

    /// Builds the network; all capacities are zero.
    pub fn build<A: Amount>(self) -> Network<A> {
        let mut first = vec![0u32; self.vertices + 1];
        let mut to = Vec::with_capacity(2 * self.edges.len());
        for &(tail, head) in &self.edges {
            first[tail as usize + 1] += 1;
            first[head as usize + 1] += 1;
            to.extend([head, tail]);
        }
        for vertex in 0..self.vertices {
            first[vertex + 1] += first[vertex];
        }
        let mut next = first.clone();
        let mut arcs = vec![0u32; to.len()];
        for (edge, &(tail, head)) in self.edges.iter().enumerate() {
            for (arc, end) in [(2 * edge, tail), (2 * edge + 1, head)] {
                arcs[next[end as usize] as usize] = arc as u32;
                next[end as usize] += 1;
            }
        }
        Network {
            residual: vec![A::default(); to.len()],
            level: vec![UNREACHED; self.vertices],
            cursor: vec![0; self.vertices],
            queue: Vec::with_capacity(self.vertices),
            path: Vec::new(),
            first,
            arcs,
            to,
        }
    }
}

/// A network with a flow in it. Edge `e` is arc `2e`, and arc `2e + 1` is the same edge backwards.
#[derive(Clone, Debug)]
pub struct Network<A> {
    /// The index in `arcs` of each vertex's first arc.
    first: Vec<u32>,
    arcs: Vec<u32>,
    /// The head of each arc.
    to: Vec<u32>,
    /// The room left on each arc. On a backward arc, this is the flow that can be taken back.
    residual: Vec<A>,
    /// The distance from the source in the latest search.
    level: Vec<u32>,
    cursor: Vec<u32>,
    queue: Vec<u32>,
    path: Vec<u32>,
}

impl<A: Amount> Network<A> {
    pub fn edges(&self) -> usize {
        self.to.len() / 2
    }

    pub fn vertices(&self) -> usize {
        self.level.len()
    }

    /// Returns the tail and head of an edge.
    pub fn ends(&self, edge: usize) -> (u32, u32) {
        (self.to[2 * edge + 1], self.to[2 * edge])
    }

    /// Returns the vertex at which an arc of [`Network::arcs`] starts.
    pub fn tail(&self, arc: usize) -> u32 {
        self.to[arc ^ 1]
    }

    pub fn flow(&self, edge: usize) -> A {
        self.residual[2 * edge + 1]
    }

    /// Returns the room left on the edge.
    pub fn room(&self, edge: usize) -> A {
        self.residual[2 * edge]
    }

    /// Raises the capacity of the edge by `more`.
    pub fn raise(&mut self, edge: usize, more: A) {
        self.residual[2 * edge] += more;
    }

    /// Takes all flow out and sets all capacities to zero.
    pub fn clear(&mut self) {
        self.residual.fill(A::default());
    }

    /// Returns the arcs that leave a vertex, backward ones included: `(arc, head)`.
    pub fn arcs(&self, vertex: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let range = self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize;
        self.arcs[range]
            .iter()
            .map(|&arc| (arc as usize, self.to[arc as usize]))
    }

    /// Returns the room left on an arc of [`Network::arcs`].
    pub fn residual(&self, arc: usize) -> A {
        self.residual[arc]
    }

    /// Moves `amount` along an arc, which must have that much room.
    pub fn push(&mut self, arc: usize, amount: A) {
        self.residual[arc] -= amount;
        self.residual[arc ^ 1] += amount;
    }

    /// Augments the flow until it is maximal, and returns the added flow.
    pub fn augment(&mut self, source: u32, sink: u32) -> A {
        let mut added = A::default();
        while self.search(source, sink) {
            for vertex in 0..self.level.len() {
                self.cursor[vertex] = self.first[vertex];
            }
            added += self.blocking_flow(source, sink);
        }
        added
    }

    /// Tells whether a vertex is on the source's side of the minimum cut. This holds only right after
    /// [`Network::augment`].
    pub fn inside(&self, vertex: u32) -> bool {
        self.level[vertex as usize] != UNREACHED
    }

    /// Computes breadth-first distances from the source, and returns false if the sink cannot be reached.
    fn search(&mut self, source: u32, sink: u32) -> bool {
        self.level.fill(UNREACHED);
        self.level[source as usize] = 0;
        self.queue.clear();
        self.queue.push(source);
        let mut head = 0;
        while head < self.queue.len() {
            let vertex = self.queue[head];
            head += 1;
            let level = self.level[vertex as usize] + 1;
            let range =
                self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize;
            for &arc in &self.arcs[range] {
                let next = self.to[arc as usize];
                if self.level[next as usize] == UNREACHED
                    && self.residual[arc as usize] > A::default()
                {
                    self.level[next as usize] = level;
                    if next == sink {
                        return true;
                    }
                    self.queue.push(next);
                }
            }
        }
        false
    }

    /// Fills the level graph, path by path. Each vertex continues at the arc where it stopped.
    fn blocking_flow(&mut self, source: u32, sink: u32) -> A {
        let mut total = A::default();
        let mut vertex = source;
        self.path.clear();
        loop {
            if vertex == sink {
                let amount = self
                    .path
                    .iter()
                    .map(|&arc| self.residual[arc as usize])
                    .min()
                    .unwrap_or_default();
                total += amount;
                let mut saturated = 0;
                for at in (0..self.path.len()).rev() {
                    let arc = self.path[at] as usize;
                    self.push(arc, amount);
                    if self.residual[arc] == A::default() {
                        saturated = at;
                    }
                }
                vertex = self.to[self.path[saturated] as usize ^ 1];
                self.path.truncate(saturated);
            } else if let Some(arc) = self.next_arc(vertex) {
                self.path.push(arc);
                vertex = self.to[arc as usize];
            } else {
                // A dead end: no other path of this phase comes here.
                self.level[vertex as usize] = UNREACHED;
                match self.path.pop() {
                    Some(arc) => vertex = self.to[arc as usize ^ 1],
                    None => return total,
                }
            }
        }
    }

    fn next_arc(&mut self, vertex: u32) -> Option<u32> {
        let vertex = vertex as usize;
        let (end, below) = (self.first[vertex + 1], self.level[vertex].wrapping_add(1));
        while self.cursor[vertex] < end {
            let arc = self.arcs[self.cursor[vertex] as usize];
            let head = self.to[arc as usize] as usize;
            if self.level[head] == below && self.residual[arc as usize] > A::default() {
                return Some(arc);
            }
            self.cursor[vertex] += 1;
        }
        None
    }
}

impl Network<u64> {
    /// Returns the same network in units `factor` times as fine, with its flow and new capacities, each of which must be
    /// at least that flow.
    pub fn finer(&self, factor: u64, capacity: impl Fn(usize) -> u128) -> Network<u128> {
        let mut residual = vec![0u128; self.residual.len()];
        for edge in 0..self.edges() {
            let flow = u128::from(self.flow(edge)) * u128::from(factor);
            residual[2 * edge] = capacity(edge) - flow;
            residual[2 * edge + 1] = flow;
        }
        Network {
            first: self.first.clone(),
            arcs: self.arcs.clone(),
            to: self.to.clone(),
            residual,
            level: self.level.clone(),
            cursor: self.cursor.clone(),
            queue: Vec::new(),
            path: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn network(vertices: usize, edges: &[(u32, u32, u64)]) -> Network<u64> {
        let mut builder = Builder::new(vertices);
        for &(from, to, _) in edges {
            builder.edge(from, to);
        }
        let mut network = builder.build();
        for (edge, &(_, _, capacity)) in edges.iter().enumerate() {
            network.raise(edge, capacity);
        }
        network
    }

    /// Computes the maximum flow the slow and plain way: Ford and Fulkerson with depth-first paths in a matrix.
    fn plain_maximum(vertices: usize, edges: &[(u32, u32, u64)]) -> u64 {
        fn path(
            room: &mut [Vec<u64>],
            seen: &mut [bool],
            at: usize,
            sink: usize,
            amount: u64,
        ) -> u64 {
            if at == sink {
                return amount;
            }
            seen[at] = true;
            for next in 0..room.len() {
                if !seen[next] && room[at][next] > 0 {
                    let moved = path(room, seen, next, sink, amount.min(room[at][next]));
                    if moved > 0 {
                        room[at][next] -= moved;
                        room[next][at] += moved;
                        return moved;
                    }
                }
            }
            0
        }
        let mut room = vec![vec![0; vertices]; vertices];
        for &(from, to, capacity) in edges {
            room[from as usize][to as usize] += capacity;
        }
        let mut total = 0;
        loop {
            let moved = path(&mut room, &mut vec![false; vertices], 0, 1, u64::MAX);
            if moved == 0 {
                return total;
            }
            total += moved;
        }
    }

    #[test]
    fn a_wrong_first_path_is_taken_back() {
        // The path 0 -> 2 -> 3 -> 1 has to be undone in the middle.
        let edges = [(0, 2, 1), (2, 3, 1), (3, 1, 1), (0, 3, 1), (2, 1, 1)];
        let mut network = network(4, &edges);
        assert_eq!(network.augment(0, 1), 2);
        assert_eq!(network.flow(1), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn flow_is_conserved_maximal_and_equal_to_its_cut(
            vertices in 2usize..12,
            edges in proptest::collection::vec((0u32..12, 0u32..12, 0u64..20), 0..50),
        ) {
            let bound = vertices as u32;
            let edges: Vec<_> = edges.iter().map(|&(a, b, c)| (a % bound, b % bound, c)).filter(|e| e.0 != e.1).collect();
            let mut network = network(vertices, &edges);
            let value = network.augment(0, 1);
            prop_assert_eq!(value, plain_maximum(vertices, &edges));
            let mut balance = vec![0i64; vertices];
            let mut cut = 0;
            for (edge, &(from, to, capacity)) in edges.iter().enumerate() {
                prop_assert!(network.flow(edge) <= capacity);
                balance[from as usize] -= network.flow(edge) as i64;
                balance[to as usize] += network.flow(edge) as i64;
                if network.inside(from) && !network.inside(to) {
                    cut += capacity;
                }
            }
            prop_assert_eq!(value, cut);
            prop_assert_eq!((balance[0], balance[1]), (-(value as i64), value as i64));
            prop_assert!(balance[2..].iter().all(|&excess| excess == 0));
        }

        #[test]
        fn raising_capacities_and_augmenting_equals_starting_afresh(
            edges in proptest::collection::vec((0u32..8, 0u32..8, 0u64..20, 0u64..20), 1..40),
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|edge| edge.0 != edge.1).collect();
            let before: Vec<_> = edges.iter().map(|&(a, b, c, _)| (a, b, c)).collect();
            let after: Vec<_> = edges.iter().map(|&(a, b, c, more)| (a, b, c + more)).collect();
            let mut warm = network(8, &before);
            let mut value = warm.augment(0, 1);
            let mut fine = warm.finer(3, |edge| 3 * u128::from(after[edge].2));
            for (edge, &(_, _, _, more)) in edges.iter().enumerate() {
                warm.raise(edge, more);
            }
            let fine_value = 3 * u128::from(value) + fine.augment(0, 1);
            value += warm.augment(0, 1);
            prop_assert_eq!(value, network(8, &after).augment(0, 1));
            prop_assert_eq!(fine_value, 3 * u128::from(value));
        }
    }
}
