//! Tests with other MPIs than the machine's own and Debian's MPICH. `ci/setup` does not get these; `ci/other-mpis` gets them and runs this.

mod late_member;
mod own_place;
mod waits;
