//! Handles of 32 bits for an upper half with words: the library reads and writes our copies.

use stillpoint_wrappers::neutral::Word;

use super::ffi;

fn wide(handle: i32) -> Word {
    handle.cast_unsigned().into()
}

/// A place for one handle.
pub struct HandleSlot {
    word: *mut Word,
    own: i32,
}

impl HandleSlot {
    /// # Safety
    /// `word` must be null or readable, and writable where [`Self::give`] is called.
    pub unsafe fn at(word: *mut Word) -> Self {
        // SAFETY: the caller gives null or a word that can be read; the reference ends with this call.
        let own = unsafe { word.as_ref() }.map_or(0, |word| *word as i32);
        Self { word, own }
    }

    pub fn place(&mut self) -> *mut i32 {
        match self.word.is_null() {
            true => core::ptr::null_mut(),
            false => &raw mut self.own,
        }
    }

    /// # Safety
    /// As [`Self::at`] says.
    pub unsafe fn give(&self) {
        if !self.word.is_null() {
            // SAFETY: the caller of `at` gave a word that can be written to, and it is not null.
            unsafe { *self.word = wide(self.own) };
        }
    }
}

/// The number of handles that need no heap memory.
const FEW: usize = 16;

/// An array of handles.
pub struct List {
    words: *mut Word,
    count: usize,
    few: [i32; FEW],
    many: Vec<i32>,
}

impl List {
    /// # Safety
    /// `words` must be null or have `count` readable elements, writable where [`Self::give`] is called.
    pub unsafe fn at(words: *mut Word, count: i32) -> Self {
        let count = match words.is_null() {
            true => 0,
            false => usize::try_from(count).unwrap_or(0),
        };
        let mut list = Self {
            words,
            count,
            few: [0; FEW],
            many: vec![0; if count > FEW { count } else { 0 }],
        };
        for index in 0..count {
            // SAFETY: the caller gives `count` words that can be read, and `count` is 0 if there are none.
            list.own()[index] = unsafe { *words.add(index) } as i32;
        }
        list
    }

    fn own(&mut self) -> &mut [i32] {
        match self.count > FEW {
            true => &mut self.many,
            false => &mut self.few,
        }
    }

    pub fn place(&mut self) -> *mut i32 {
        match self.words.is_null() {
            true => core::ptr::null_mut(),
            false => self.own().as_mut_ptr(),
        }
    }

    /// # Safety
    /// As [`Self::at`] says.
    pub unsafe fn give(&mut self) {
        for index in 0..self.count {
            let word = wide(self.own()[index]);
            // SAFETY: the caller of `at` gave `count` words that can be written to, and `count` is 0 if there are none.
            unsafe { *self.words.add(index) = word };
        }
    }
}

/// Returns how many datatypes a collective operation with all members has for each direction.
///
/// # Safety
/// MPI must be running.
pub unsafe fn peers(comm: Word) -> i32 {
    let (mut inter, mut size) = (0, 0);
    // SAFETY: the caller says that MPI runs; the places live on this stack.
    unsafe {
        ffi::MPI_Comm_test_inter(comm, &raw mut inter);
        match inter != 0 {
            true => ffi::MPI_Comm_remote_size(comm, &raw mut size),
            false => ffi::MPI_Comm_size(comm, &raw mut size),
        };
    }
    size
}

/// Returns how many neighbours a process receives from, and sends to.
///
/// # Safety
/// MPI must be running.
pub unsafe fn neighbours(comm: Word) -> (i32, i32) {
    use stillpoint_wrappers::mpich as abi;
    let (mut topology, mut one, mut other, mut weighted) = (0, 0, 0, 0);
    // SAFETY: the caller says that MPI runs; the places live on this stack.
    unsafe {
        ffi::MPI_Topo_test(comm, &raw mut topology);
        match topology {
            abi::CART => {
                ffi::MPI_Cartdim_get(comm, &raw mut one);
                (2 * one, 2 * one)
            }
            abi::GRAPH => {
                ffi::MPI_Comm_rank(comm, &raw mut other);
                ffi::MPI_Graph_neighbors_count(comm, other, &raw mut one);
                (one, one)
            }
            abi::DIST_GRAPH => {
                ffi::MPI_Dist_graph_neighbors_count(
                    comm,
                    &raw mut one,
                    &raw mut other,
                    &raw mut weighted,
                );
                (one, other)
            }
            _ => (0, 0),
        }
    }
}
