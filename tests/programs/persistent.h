/* Persistent collective operations by the names that Open MPI 4 has for them, where they have those that the standard gave them: in Open MPI 5 too. Built with
 * `NAMES_OF_OPEN_MPI_5` a program calls them so although Open MPI 4 has not these names: what was built for 5 does, and does not run natively then. */
#ifndef TRIAL_PERSISTENT_H
#define TRIAL_PERSISTENT_H

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#ifdef NAMES_OF_OPEN_MPI_5
__typeof__(MPIX_Allgather_init) MPI_Allgather_init __attribute__((weak));
__typeof__(MPIX_Allgatherv_init) MPI_Allgatherv_init __attribute__((weak));
__typeof__(MPIX_Allreduce_init) MPI_Allreduce_init __attribute__((weak));
__typeof__(MPIX_Alltoall_init) MPI_Alltoall_init __attribute__((weak));
__typeof__(MPIX_Alltoallv_init) MPI_Alltoallv_init __attribute__((weak));
__typeof__(MPIX_Alltoallw_init) MPI_Alltoallw_init __attribute__((weak));
__typeof__(MPIX_Barrier_init) MPI_Barrier_init __attribute__((weak));
__typeof__(MPIX_Bcast_init) MPI_Bcast_init __attribute__((weak));
__typeof__(MPIX_Exscan_init) MPI_Exscan_init __attribute__((weak));
__typeof__(MPIX_Gather_init) MPI_Gather_init __attribute__((weak));
__typeof__(MPIX_Gatherv_init) MPI_Gatherv_init __attribute__((weak));
__typeof__(MPIX_Neighbor_allgather_init) MPI_Neighbor_allgather_init __attribute__((weak));
__typeof__(MPIX_Neighbor_allgatherv_init) MPI_Neighbor_allgatherv_init __attribute__((weak));
__typeof__(MPIX_Neighbor_alltoall_init) MPI_Neighbor_alltoall_init __attribute__((weak));
__typeof__(MPIX_Neighbor_alltoallv_init) MPI_Neighbor_alltoallv_init __attribute__((weak));
__typeof__(MPIX_Neighbor_alltoallw_init) MPI_Neighbor_alltoallw_init __attribute__((weak));
__typeof__(MPIX_Reduce_init) MPI_Reduce_init __attribute__((weak));
__typeof__(MPIX_Reduce_scatter_block_init) MPI_Reduce_scatter_block_init __attribute__((weak));
__typeof__(MPIX_Reduce_scatter_init) MPI_Reduce_scatter_init __attribute__((weak));
__typeof__(MPIX_Scan_init) MPI_Scan_init __attribute__((weak));
__typeof__(MPIX_Scatter_init) MPI_Scatter_init __attribute__((weak));
__typeof__(MPIX_Scatterv_init) MPI_Scatterv_init __attribute__((weak));
#endif
#endif

#if !defined OPEN_MPI || OMPI_MAJOR_VERSION >= 5 || defined NAMES_OF_OPEN_MPI_5
#define MPIX_Allgather_init MPI_Allgather_init
#define MPIX_Allgatherv_init MPI_Allgatherv_init
#define MPIX_Allreduce_init MPI_Allreduce_init
#define MPIX_Alltoall_init MPI_Alltoall_init
#define MPIX_Alltoallv_init MPI_Alltoallv_init
#define MPIX_Alltoallw_init MPI_Alltoallw_init
#define MPIX_Barrier_init MPI_Barrier_init
#define MPIX_Bcast_init MPI_Bcast_init
#define MPIX_Exscan_init MPI_Exscan_init
#define MPIX_Gather_init MPI_Gather_init
#define MPIX_Gatherv_init MPI_Gatherv_init
#define MPIX_Neighbor_allgather_init MPI_Neighbor_allgather_init
#define MPIX_Neighbor_allgatherv_init MPI_Neighbor_allgatherv_init
#define MPIX_Neighbor_alltoall_init MPI_Neighbor_alltoall_init
#define MPIX_Neighbor_alltoallv_init MPI_Neighbor_alltoallv_init
#define MPIX_Neighbor_alltoallw_init MPI_Neighbor_alltoallw_init
#define MPIX_Reduce_init MPI_Reduce_init
#define MPIX_Reduce_scatter_block_init MPI_Reduce_scatter_block_init
#define MPIX_Reduce_scatter_init MPI_Reduce_scatter_init
#define MPIX_Scan_init MPI_Scan_init
#define MPIX_Scatter_init MPI_Scatter_init
#define MPIX_Scatterv_init MPI_Scatterv_init
#endif

#endif
