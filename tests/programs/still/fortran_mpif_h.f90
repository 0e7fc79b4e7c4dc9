! Fortran with mpif.h: messages in flight, requests, types, operators, in-place and ignored arguments.
! trial: ranks=2,4
module operators
  implicit none
contains
  subroutine larger(in, inout, length, type)
    integer :: length, type, i
    integer :: in(length), inout(length)
    do i = 1, length
      if (abs(in(i)) > abs(inout(i))) inout(i) = in(i)
    end do
  end subroutine
end module

program fortran_mpif_h
  use trial
  use operators
  implicit none
  include 'mpif.h'
  integer :: error, peer, request(3), statuses(MPI_STATUS_SIZE, 3), status(MPI_STATUS_SIZE), count, column, op, comm
  integer :: matrix(10, 8), row(8), got(4), sum, i, blocks(2), group
  integer(MPI_ADDRESS_KIND) :: places(2), lower, extent
  double precision :: large(50000), incoming(50000), started
  logical :: there
  character(MPI_MAX_OBJECT_NAME) :: name
  integer :: bottom_type

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, trial_rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, trial_size, error)
  peer = ieor(trial_rank, 1)
  started = MPI_Wtime()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, error)
  call MPI_Comm_set_name(comm, "from Fortran", error)
  call MPI_Type_vector(8, 1, 10, MPI_INTEGER, column, error)
  call MPI_Type_commit(column, error)
  call MPI_Op_create(larger, .true., op, error)
  do i = 1, 80
    matrix(mod(i - 1, 10) + 1, (i - 1)/10 + 1) = i + 100*trial_rank
  end do
  large = [(dble(i) + trial_rank, i=1, 50000)]
  got = -1
  incoming = -1
  call MPI_Irecv(incoming, 50000, MPI_DOUBLE_PRECISION, peer, 1, comm, request(1), error)
  call MPI_Isend(large, 50000, MPI_DOUBLE_PRECISION, peer, 1, comm, request(2), error)
  call MPI_Isend(matrix(3, 1), 1, column, peer, 2, comm, request(3), error)
  call hold()
  call MPI_Probe(MPI_ANY_SOURCE, 2, comm, status, error)
  call check(status(MPI_SOURCE) == peer .and. status(MPI_TAG) == 2, "status of the probe")
  call MPI_Get_count(status, MPI_INTEGER, count, error)
  call check(count == 8, "count")
  call MPI_Recv(row, 8, MPI_INTEGER, peer, 2, comm, MPI_STATUS_IGNORE, error)
  call check(all(row == [(3 + 10*(i - 1) + 100*peer, i=1, 8)]), "row")
  call MPI_Waitall(3, request, statuses, error)
  call check(all(incoming == [(dble(i) + peer, i=1, 50000)]), "large message")
  call check(all(request == MPI_REQUEST_NULL), "requests are not null")
  call check(statuses(MPI_TAG, 1) == 1, "status of the receive")
  call MPI_Waitall(3, request, MPI_STATUSES_IGNORE, error)

  sum = trial_rank
  call MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM, comm, error)
  call check(sum == trial_size*(trial_size - 1)/2, "in place")
  got(1:2) = [trial_rank + 1, -(trial_rank + 1)]
  call MPI_Allreduce(got(1), got(3), 2, MPI_INTEGER, op, comm, error)
  call check(got(3) == trial_size .and. got(4) == -trial_size, "operator of our own")

  ! Addresses from MPI_BOTTOM.
  call MPI_Get_address(matrix(1, 1), places(1), error)
  call MPI_Get_address(row(1), places(2), error)
  blocks = [2, 3]
  call MPI_Type_create_hindexed(2, blocks, places, MPI_INTEGER, bottom_type, error)
  call MPI_Type_commit(bottom_type, error)
  call MPI_Sendrecv(MPI_BOTTOM, 1, bottom_type, peer, 5, got, 4, MPI_INTEGER, MPI_PROC_NULL, 5, comm, MPI_STATUS_IGNORE, error)
  call MPI_Sendrecv(row, 5, MPI_INTEGER, MPI_PROC_NULL, 6, large, 10, MPI_INTEGER, peer, 5, comm, status, error)
  call MPI_Get_count(status, MPI_INTEGER, count, error)
  call check(count == 5, "elements from MPI_BOTTOM")
  call MPI_Type_get_extent(column, lower, extent, error)
  call check(lower == 0 .and. extent == 4*71, "extent")
  call MPI_Comm_get_name(comm, name, count, error)
  call check(name == "from Fortran" .and. count == 12, "name")
  call MPI_Comm_group(comm, group, error)
  call MPI_Group_size(group, count, error)
  call check(count == trial_size, "group")
  call MPI_Group_free(group, error)
  call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, there, status, error)
  call check(.not. there, "a message too many")
  call check(MPI_Wtime() >= started, "clock")
  call MPI_Op_free(op, error)
  call MPI_Type_free(column, error)
  call MPI_Type_free(bottom_type, error)
  call MPI_Comm_free(comm, error)
  call check(comm == MPI_COMM_NULL, "freed, not null")
  call MPI_Finalize(error)
  call finish()
end program
