! Fortran units open for formatted and direct writing go on where they were, without a line twice or missing. A data representation can be asked for.
! trial: ranks=2
module representation
contains
  subroutine extent(datatype, bytes, state, failed)
    use mpi
    integer :: datatype, failed
    integer(MPI_ADDRESS_KIND) :: bytes, state
    bytes = 4
    failed = MPI_SUCCESS
  end subroutine
end module

program fortran_files
  use trial
  use representation
  use mpi
  implicit none
  integer :: error, unit, direct, i, line, value, ios
  character(1024) :: directory
  character(16) :: digits
  character(80) :: text
  integer(MPI_ADDRESS_KIND) :: extra = 1
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, trial_rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, trial_size, error)
  call get_environment_variable("TRIAL_DIR", directory, i)
  if (i == 0) directory = "."
  write (digits, '(i0)') trial_rank
  open (newunit=unit, file=trim(directory)//"/lines."//trim(digits), status="replace", action="readwrite")
  open (newunit=direct, file=trim(directory)//"/records."//trim(digits), access="direct", recl=8, status="replace")
  do i = 1, 1000
    write (unit, '(a,i6)') "line", i
    write (direct, rec=1001 - i) i
    if (i == 500) call hold()
  end do
  rewind (unit)
  line = 0
  do
    read (unit, '(a)', iostat=ios) text
    if (ios /= 0) exit
    line = line + 1
    read (text(5:), *) value
    call check(value == line, "a line is missing or twice")
    if (value /= line) exit
  end do
  call check(line == 1000, "number of lines")
  do i = 1, 1000
    read (direct, rec=i) value
    call check(value == 1001 - i, "record")
  end do
  close (unit)
  close (direct)
  ! Open MPI's layer keeps it in a list of its library's. Libraries may decline.
  call MPI_Register_datarep("of this test", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, extra, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
  call finish()
end program
