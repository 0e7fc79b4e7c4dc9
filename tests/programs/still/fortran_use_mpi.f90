! Fortran with `use mpi`: a grid with persistent halo exchange, allocatable arrays, attributes with their functions.
! trial: ranks=2,4
program fortran_use_mpi
  use trial
  use mpi
  implicit none
  integer :: error, grid, below, above, requests(4), step, i, coordinate(1), key, statuses(MPI_STATUS_SIZE, 4)
  integer :: provided, info, length
  double precision, allocatable :: field(:), expected(:), all(:)
  integer(MPI_ADDRESS_KIND) :: value, extra
  logical :: there
  character(32) :: text

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, error)
  call check(provided >= MPI_THREAD_FUNNELED, "thread level")
  call MPI_Comm_rank(MPI_COMM_WORLD, trial_rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, trial_size, error)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [trial_size], [.true.], .false., grid, error)
  call MPI_Cart_shift(grid, 0, 1, below, above, error)
  extra = 99
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, extra, error)
  value = 4242
  call MPI_Comm_set_attr(grid, key, value, error)
  call MPI_Info_create(info, error)
  call MPI_Info_set(info, "direction", "upwards", error)
  allocate (field(0:101), expected(0:trial_size*100 - 1), all(trial_size*100))
  do i = 1, 100
    field(i) = trial_rank*100 + i - 1
  end do
  call MPI_Send_init(field(1), 1, MPI_DOUBLE_PRECISION, below, 1, grid, requests(1), error)
  call MPI_Send_init(field(100), 1, MPI_DOUBLE_PRECISION, above, 2, grid, requests(2), error)
  call MPI_Recv_init(field(101), 1, MPI_DOUBLE_PRECISION, above, 1, grid, requests(3), error)
  call MPI_Recv_init(field(0), 1, MPI_DOUBLE_PRECISION, below, 2, grid, requests(4), error)
  do step = 1, 60
    call MPI_Startall(4, requests, error)
    if (step == 30) call hold()
    call MPI_Waitall(4, requests, statuses, error)
    field(1:100) = 0.5d0*field(1:100) + 0.25d0*(field(0:99) + field(2:101))
  end do
  call MPI_Gather(field(1), 100, MPI_DOUBLE_PRECISION, all, 100, MPI_DOUBLE_PRECISION, 0, grid, error)
  if (trial_rank == 0) then
    expected = [(dble(i), i=0, trial_size*100 - 1)]
    do step = 1, 60
      expected = 0.5d0*expected + 0.25d0*(cshift(expected, -1) + cshift(expected, 1))
    end do
    call check(maxval(abs(expected - all)) == 0d0, "the field differs from the one computed by one process")
  end if
  value = 0
  call MPI_Comm_get_attr(grid, key, value, there, error)
  call check(there .and. value == 4242, "attribute")
  call MPI_Cart_coords(grid, trial_rank, 1, coordinate, error)
  call check(coordinate(1) == trial_rank, "coordinate")
  call MPI_Info_get(info, "direction", 32, text, there, error)
  call check(there .and. text == "upwards", "info")
  call MPI_Info_get_valuelen(info, "direction", length, there, error)
  call check(there .and. length == 7, "length of an info value")
  do i = 1, 4
    call MPI_Request_free(requests(i), error)
  end do
  call MPI_Info_free(info, error)
  call MPI_Comm_free_keyval(key, error)
  call MPI_Comm_free(grid, error)
  call MPI_Finalize(error)
  call finish()
end program
