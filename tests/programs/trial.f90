! What the self-checking Fortran programs share: the same protocol as common.h.
module trial
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: trial_rank = -1, trial_size = -1, trial_failures = 0
  interface
    integer(c_int) function c_usleep(microseconds) bind(c, name="usleep")
      import :: c_int
      integer(c_int), value :: microseconds
    end function
  end interface
contains
  subroutine check(condition, text)
    logical, intent(in) :: condition
    character(*), intent(in) :: text
    if (condition) return
    trial_failures = trial_failures + 1
    write (0, '(a,i0,2a)') "WRONG rank ", trial_rank, ": ", text
  end subroutine

  subroutine ready()
    character(1024) :: directory
    character(16) :: digits
    integer :: unit, length
    call get_environment_variable("TRIAL_DIR", directory, length)
    if (length == 0) return
    write (digits, '(i0)') trial_rank
    open (newunit=unit, file=trim(directory)//"/ready."//trim(digits), status="replace")
    close (unit)
  end subroutine

  logical function may_go()
    character(1024) :: directory
    integer :: length
    call get_environment_variable("TRIAL_DIR", directory, length)
    may_go = .true.
    if (length > 0) inquire (file=trim(directory)//"/go", exist=may_go)
  end function

  subroutine pause_a_little()
    integer(c_int) :: ignored
    ignored = c_usleep(700000_c_int)
  end subroutine

  subroutine hold()
    call ready()
    call wait_for_go()
  end subroutine

  subroutine wait_for_go()
    integer(c_int) :: ignored
    do while (.not. may_go())
      ignored = c_usleep(2000_c_int)
    end do
  end subroutine

  ! Called after MPI_Finalize.
  subroutine finish()
    if (trial_failures > 0) stop 1
    write (*, '(a,i0)') "OK ", trial_rank
  end subroutine
end module
