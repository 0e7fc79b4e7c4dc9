//! Windows for one-sided communication, and how they come through a checkpoint.
//!
//! The real MPI never has an epoch of the application's. A window of the application is two windows there: one for the data, which is in
//! `MPI_Win_lock_all` (with `MPI_MODE_NOCHECK`) from its first moment to its last, and one without memory, for `MPI_Win_lock` and its
//! like. A fence is a flush and a barrier; post, start, complete and wait are empty messages. So the rank that has begun an operation can complete it at any
//! moment, without the others: `MPI_Win_flush_all`. The list of open epochs is in memory that the image
//! holds. After a restart only locks have to be taken again, and no other rank holds any of these.
//!
//! [`memory`] describes the memory that MPI gives for a window. Windows that cannot be carried, of one process or with processes of other worlds, have no
//! [`Body`] and are the real MPI's alone; a checkpoint is refused as long as one lives.

mod active;
mod allocation;
mod body;
mod groups;
mod make;
mod memory;
mod open;
mod passive;
mod queries;
mod regions;
mod still;
mod uncarried;

pub use active::{win_complete, win_fence, win_post, win_start, win_test, win_wait};
pub use body::{Body, body};
pub use make::{win_allocate, win_allocate_shared, win_create, win_create_dynamic, win_free};
pub use passive::{
    access, win_flush, win_flush_all, win_flush_local, win_flush_local_all, win_lock, win_lock_all,
    win_unlock, win_unlock_all,
};
pub use queries::{
    win_get_group, win_get_info, win_get_name, win_set_info, win_set_name, win_shared_query,
};
pub use regions::{win_attach, win_detach};
pub use still::{end, pull, rebuild, rehearse, settle};
