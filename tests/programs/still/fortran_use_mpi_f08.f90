! Fortran 2008 bindings: typed handles, nonblocking collectives, operators, comparison, status fields.
! trial: ranks=2,4
module operators
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine multiply(in, inout, length, type)
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: type
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [length])
    call c_f_pointer(inout, b, [length])
    b = a*b
  end subroutine
end module

program fortran_use_mpi_f08
  use trial
  use operators
  use mpi_f08
  implicit none
  type(MPI_Comm) :: half, copy
  type(MPI_Request) :: requests(4)
  type(MPI_Status) :: status, statuses(4)
  type(MPI_Op) :: product_op
  type(MPI_Datatype) :: pairs
  type(MPI_Group) :: group
  type(MPI_Message) :: message
  integer :: peer, value, sums(3), values(3), one, all, i, result, expected, count
  integer :: left(6), right(6)
  logical :: late

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, trial_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, trial_size)
  peer = ieor(trial_rank, 1)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(trial_rank, 2), trial_rank, half)
  call MPI_Comm_dup(half, copy)
  call MPI_Op_create(multiply, .true., product_op)
  call MPI_Type_vector(3, 1, 2, MPI_INTEGER, pairs)
  call MPI_Type_commit(pairs)
  left = [(100*trial_rank + i, i=1, 6)]
  right = -1
  value = 10 + trial_rank
  call MPI_Isend(left, 1, pairs, peer, 3, MPI_COMM_WORLD, requests(1))
  call MPI_Irecv(right, 1, pairs, peer, 3, MPI_COMM_WORLD, requests(2))
  call MPI_Isend(value, 1, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, requests(3))
  call MPI_Mprobe(peer, 4, MPI_COMM_WORLD, message, status)
  late = trial_rank == 0
  values = [trial_rank, 2*trial_rank, 1]
  one = trial_rank + 1
  if (.not. late) call MPI_Iallreduce(values, sums, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(4))
  call ready()
  if (late) call pause_a_little()
  if (late) call MPI_Iallreduce(values, sums, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(4))
  call wait_for_go()
  call MPI_Mrecv(result, 1, MPI_INTEGER, message, status)
  call check(result == 10 + peer, "matched message")
  call check(message == MPI_MESSAGE_NULL, "message is not null")
  call check(status%MPI_SOURCE == peer .and. status%MPI_TAG == 4, "status")
  call MPI_Waitall(4, requests, statuses)
  call check(all_null(requests), "requests are not null")
  call check(statuses(2)%MPI_TAG == 3, "status of the receive")
  call MPI_Get_count(statuses(2), MPI_INTEGER, count)
  call check(count == 3, "count")
  do i = 1, 6
    call check(right(i) == merge(100*peer + i, -1, mod(i, 2) == 1), "element")
  end do
  call check(sums(3) == trial_size .and. sums(1) == trial_size*(trial_size - 1)/2 .and. sums(2) == 2*sums(1), "sums")
  call MPI_Allreduce(one, all, 1, MPI_INTEGER, product_op, MPI_COMM_WORLD)
  expected = 1
  do i = 1, trial_size
    expected = expected*i
  end do
  call check(all == expected, "product")
  call MPI_Comm_compare(half, copy, result)
  call check(result == MPI_CONGRUENT, "compare")
  call check(half /= copy .and. half == half, "handles compare")
  call MPI_Comm_group(copy, group)
  call MPI_Group_size(group, count)
  call check(count == (trial_size + 1 - mod(trial_rank, 2))/2, "group")
  call MPI_Reduce(MPI_IN_PLACE, sums, 3, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_SELF)
  call MPI_Group_free(group)
  call MPI_Type_free(pairs)
  call MPI_Op_free(product_op)
  call MPI_Comm_free(copy)
  call MPI_Comm_free(half)
  call MPI_Finalize()
  call finish()
contains
  logical function all_null(list)
    type(MPI_Request), intent(in) :: list(:)
    integer :: k
    all_null = .true.
    do k = 1, size(list)
      all_null = all_null .and. list(k) == MPI_REQUEST_NULL
    end do
  end function
end program
