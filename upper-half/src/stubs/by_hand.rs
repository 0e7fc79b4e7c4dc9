//! The functions of MPI that are written by hand, by their names: the generated stubs of the form `written`
//! call them. The compiler makes sure that each exists, with the parameters from the table.

pub use crate::communicators::topology::{
    cart_create, cart_sub, dist_graph_create, dist_graph_create_adjacent, graph_create,
};
pub use crate::communicators::{
    comm_compare, comm_create, comm_create_group, comm_disconnect, comm_dup, comm_dup_with_info,
    comm_free, comm_get_info, comm_get_name, comm_group, comm_idup, comm_rank, comm_remote_group,
    comm_remote_size, comm_set_info, comm_set_name, comm_size, comm_split, comm_split_type,
    comm_test_inter, intercomm_create, intercomm_merge,
};
pub use crate::objects::attribute::{
    attr_delete, attr_get, attr_put, comm_create_keyval, comm_delete_attr, comm_free_keyval,
    comm_get_attr, comm_set_attr, keyval_create, keyval_free, type_create_keyval, type_delete_attr,
    type_free_keyval, type_get_attr, type_set_attr, win_create_keyval, win_delete_attr,
    win_free_keyval, win_get_attr, win_set_attr,
};
pub use crate::objects::datatype::{
    type_commit, type_contiguous, type_create_darray, type_create_f90_complex,
    type_create_f90_integer, type_create_f90_real, type_create_hindexed,
    type_create_hindexed_block, type_create_hvector, type_create_indexed_block,
    type_create_resized, type_create_struct, type_create_subarray, type_dup, type_free,
    type_get_contents, type_get_envelope, type_get_name, type_hindexed, type_hvector, type_indexed,
    type_set_name, type_struct, type_vector,
};
pub use crate::objects::errhandler::{
    comm_call_errhandler, comm_create_errhandler, comm_get_errhandler, comm_set_errhandler,
    errhandler_create, errhandler_free, errhandler_get, errhandler_set, file_call_errhandler,
    file_create_errhandler, file_get_errhandler, file_set_errhandler, win_call_errhandler,
    win_create_errhandler, win_get_errhandler, win_set_errhandler,
};
pub use crate::objects::error_codes::{
    add_error_class, add_error_code, add_error_string, error_class, error_string,
};
pub use crate::objects::group::{
    group_compare, group_difference, group_excl, group_free, group_incl, group_intersection,
    group_range_excl, group_range_incl, group_rank, group_size, group_translate_ranks, group_union,
};
pub use crate::objects::info::{
    info_create, info_delete, info_dup, info_free, info_get, info_get_nkeys, info_get_nthkey,
    info_get_string, info_get_valuelen, info_set,
};
pub use crate::objects::memory::{alloc_mem, free_mem};
pub use crate::objects::operator::{op_create, op_free};
pub use crate::operations::completion::{
    request_get_status, test, testall, testany, testsome, wait, waitall, waitany, waitsome,
};
pub use crate::operations::grequest::{grequest_complete, grequest_start};
#[cfg(application = "openmpi")]
pub use crate::operations::p2p::{bsend, buffer_attach, buffer_detach, ibsend};
pub use crate::operations::p2p::{
    irecv, irsend, isend, recv, rsend, send, sendrecv, sendrecv_replace,
};
pub use crate::operations::persistent::{
    bsend_init, cancel, recv_init, request_free, rsend_init, send_init, ssend_init, start, startall,
};
pub use crate::operations::probe::{improbe, imrecv, iprobe, mprobe, mrecv, probe};
pub use crate::operations::synchronous::{issend, ssend};
pub use crate::stubs::conversion::{
    comm_c2f, comm_f2c, errhandler_c2f, errhandler_f2c, file_c2f, file_f2c, group_c2f, group_f2c,
    info_c2f, info_f2c, message_c2f, message_f2c, op_c2f, op_f2c, request_c2f, request_f2c,
    status_c2f, status_f2c, type_c2f, type_f2c, win_c2f, win_f2c,
};
// Functions that other ABIs have beside that, or in its place: the same numbers.
#[cfg(not(application = "openmpi"))]
pub use crate::objects::errhandler::{
    session_call_errhandler, session_create_errhandler, session_get_errhandler,
    session_set_errhandler,
};
#[cfg(not(application = "openmpi"))]
pub use crate::objects::error_codes::{remove_error_class, remove_error_code, remove_error_string};
#[cfg(not(application = "openmpi"))]
pub use crate::operations::buffered::{
    bsend, buffer_attach, buffer_detach, buffer_flush, buffer_iflush, comm_attach_buffer,
    comm_detach_buffer, comm_flush_buffer, comm_iflush_buffer, ibsend, session_attach_buffer,
    session_detach_buffer, session_flush_buffer, session_iflush_buffer,
};
#[cfg(not(application = "openmpi"))]
pub use crate::operations::completion::{
    request_get_status_all, request_get_status_any, request_get_status_some,
};
pub use crate::stubs::conversion::{
    comm_c2f as comm_toint, comm_f2c as comm_fromint, errhandler_c2f as errhandler_toint,
    errhandler_f2c as errhandler_fromint, file_c2f as file_toint, file_f2c as file_fromint,
    group_c2f as group_toint, group_f2c as group_fromint, info_c2f as info_toint,
    info_f2c as info_fromint, message_c2f as message_toint, message_f2c as message_fromint,
    op_c2f as op_toint, op_f2c as op_fromint, request_c2f as request_toint,
    request_f2c as request_fromint, type_c2f as type_toint, type_f2c as type_fromint,
    win_c2f as win_toint, win_f2c as win_fromint,
};
#[cfg(not(application = "openmpi"))]
pub use crate::stubs::conversion::{session_fromint, session_toint};
pub use crate::stubs::counted::get_count;
#[cfg(not(application = "openmpi"))]
pub use crate::stubs::events::{
    t_category_get_events, t_category_get_num_events, t_event_get_index, t_event_get_num,
    t_source_get_num,
};
pub use crate::stubs::files::{
    file_close, file_get_amode, file_get_view, file_open, file_set_info, file_set_view,
    register_datarep,
};
pub use crate::stubs::init::{
    abort, finalize, finalized, init, init_thread, initialized, is_thread_main, query_thread,
};
pub use crate::stubs::isendrecv::{isendrecv, isendrecv_replace};
pub use crate::stubs::later_standards::{
    abi_get_version, aint_add, aint_diff, status_get_error, status_get_source, status_get_tag,
    status_set_error, status_set_source, status_set_tag,
};
#[cfg(not(application = "openmpi"))]
pub use crate::stubs::library_facts::{
    abi_get_fortran_info, abi_get_info, get_hw_resource_info, type_get_value_index,
};
pub use crate::stubs::local::{address, get_address, get_version, pcontrol, wtick, wtime};
pub use crate::stubs::mpi4_missing_in_openmpi::{comm_idup_with_info, info_create_env};
#[cfg(not(application = "openmpi"))]
pub use crate::stubs::partitioned::{
    parrived, pready, pready_list, pready_range, precv_init, psend_init,
};
#[cfg(not(application = "openmpi"))]
pub use crate::stubs::session::{
    comm_create_from_group, group_from_session_pset, intercomm_create_from_groups,
    session_finalize, session_get_info, session_get_nth_pset, session_get_num_psets,
    session_get_pset_info, session_init,
};
pub use crate::stubs::uncarried::{comm_spawn, comm_spawn_multiple};
pub use crate::windows::{
    win_allocate, win_allocate_shared, win_attach, win_complete, win_create, win_create_dynamic,
    win_detach, win_fence, win_flush, win_flush_all, win_flush_local, win_flush_local_all,
    win_free, win_get_group, win_get_info, win_get_name, win_lock, win_lock_all, win_post,
    win_set_info, win_set_name, win_shared_query, win_start, win_test, win_unlock, win_unlock_all,
    win_wait,
};
