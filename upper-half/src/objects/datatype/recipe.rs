//! The recipe of a datatype: its combiner and arguments in the form that `MPI_Type_get_envelope` and
//! `MPI_Type_get_contents` give (MPI 5.0, section 5.1.13). A restart needs no more to make it again.

use crate::ground::object::Object;

/// The constructor that made a datatype, with the standard ABI's value.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combiner {
    Dup = 102,
    Contiguous = 103,
    Vector = 104,
    Hvector = 105,
    Indexed = 106,
    Hindexed = 107,
    IndexedBlock = 108,
    HindexedBlock = 109,
    Struct = 110,
    Subarray = 111,
    Darray = 112,
    F90Real = 113,
    F90Complex = 114,
    F90Integer = 115,
    Resized = 116,
}

/// `MPI_COMBINER_NAMED` in the standard ABI.
pub const COMBINER_NAMED: i32 = 101;

impl Combiner {
    /// Every constructor.
    const ALL: [Self; 15] = [
        Self::Dup,
        Self::Contiguous,
        Self::Vector,
        Self::Hvector,
        Self::Indexed,
        Self::Hindexed,
        Self::IndexedBlock,
        Self::HindexedBlock,
        Self::Struct,
        Self::Subarray,
        Self::Darray,
        Self::F90Real,
        Self::F90Complex,
        Self::F90Integer,
        Self::Resized,
    ];

    /// The constructor with that value in the standard ABI.
    pub fn from_standard(value: i32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|combiner| *combiner as i32 == value)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Dup => "dup",
            Self::Contiguous => "contiguous",
            Self::Vector => "vector",
            Self::Hvector => "hvector",
            Self::Indexed => "indexed",
            Self::Hindexed => "hindexed",
            Self::IndexedBlock => "indexed_block",
            Self::HindexedBlock => "hindexed_block",
            Self::Struct => "struct",
            Self::Subarray => "subarray",
            Self::Darray => "darray",
            Self::F90Real => "f90_real",
            Self::F90Complex => "f90_complex",
            Self::F90Integer => "f90_integer",
            Self::Resized => "resized",
        }
    }
}

/// A constructor's arguments.
#[derive(Debug)]
pub struct Recipe {
    pub combiner: Combiner,
    /// Counts, block lengths, ... in the standard's order, orders and distributions as the application
    /// gave them.
    pub integers: Vec<i32>,
    /// Displacements, strides and extents in bytes.
    pub addresses: Vec<isize>,
    /// The datatypes that it is made of; the recipe holds them.
    pub datatypes: Vec<*mut Object>,
}

/// The number of elements of an array argument; the lower half refuses a negative count.
pub fn length(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

impl Recipe {
    /// A recipe without datatypes.
    pub fn new(combiner: Combiner, integers: Vec<i32>, addresses: Vec<isize>) -> Self {
        Self {
            combiner,
            integers,
            addresses,
            datatypes: Vec::new(),
        }
    }

    /// The same with its datatypes.
    pub fn of(mut self, datatypes: &[*mut Object]) -> Self {
        self.datatypes = datatypes.to_vec();
        self
    }

    /// The integer at a place.
    pub fn integer(&self, place: usize) -> i32 {
        self.integers.get(place).copied().unwrap_or(0)
    }

    /// The address at a place.
    pub fn address(&self, place: usize) -> isize {
        self.addresses.get(place).copied().unwrap_or(0)
    }

    /// `count` integers from a place on, as an array to pass (as many as there are, if fewer).
    pub fn array(&self, place: usize, count: usize) -> *const i32 {
        match self.integers.get(place..place + count) {
            Some(array) => array.as_ptr(),
            None => std::ptr::null(),
        }
    }

    /// The numbers of integers, addresses and datatypes that `MPI_Type_get_envelope` tells.
    pub fn envelope(&self) -> (usize, usize, usize) {
        (
            self.integers.len(),
            self.addresses.len(),
            self.datatypes.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_found_behind_the_scalars() {
        let recipe = Recipe::new(Combiner::Indexed, vec![2, 3, 4, 10, 20], vec![]);
        assert_eq!(recipe.envelope(), (5, 0, 0));
        // SAFETY: the recipe has two integers there.
        let lengths = unsafe { std::slice::from_raw_parts(recipe.array(1, 2), 2) };
        assert_eq!(lengths, [3, 4]);
        assert!(recipe.array(4, 2).is_null());
        assert_eq!(recipe.integer(3), 10);
        assert_eq!(recipe.integer(9), 0);
        assert_eq!(length(-1), 0);
    }
}
