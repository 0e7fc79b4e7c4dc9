//! What MPIs beside the machine's own and Debian's MPICH must show, which `ci/setup` does not get: `ci/other-mpis` gets them and runs this.

mod late_member;
mod waits;
