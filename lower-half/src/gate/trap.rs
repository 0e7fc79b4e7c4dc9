//! The trap's handler: what becomes of a system call that the filter has stopped.
//!
//! Rules of this place: runs on the application's stack, with the application's FS, all signals blocked; so
//! system calls by hand only, no thread-local storage, no allocation, no panics. Answers go into the signal frame.
//!
//! A call that cannot block is made here. One that may block, or that waits for a signal, is made by the
//! springboard after this handler has returned, so that signals find it as they would find the original.

use super::{
    descriptors, exec, futex, identity, memory, naming, paths, semaphores, signals, sleep, timers,
};
use crate::agent::starters;
use crate::arch::frame::{
    Frame, REG_R8, REG_R9, REG_R10, REG_R11, REG_RAX, REG_RCX, REG_RDI, REG_RDX, REG_RIP, REG_RSI,
};
use crate::arch::springboard::Piece;
use crate::arch::syscall::syscall6;
use crate::threads;

/// `siginfo.si_code` of a call stopped by a filter.
const SYS_SECCOMP: i32 = 1;

/// An error as system calls return it.
pub const fn errno(error: i32) -> isize {
    -(error as isize)
}

/// A trapped system call.
pub struct Call {
    frame: Frame,
    redirected: bool,
}

impl Call {
    pub fn frame(&self) -> Frame {
        self.frame
    }

    pub fn number(&self) -> i64 {
        self.frame.register(REG_RAX) as i64
    }

    pub fn arguments(&self) -> [usize; 6] {
        [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9]
            .map(|register| self.frame.register(register))
    }

    pub fn argument(&self, index: usize) -> usize {
        self.arguments().get(index).copied().unwrap_or(0)
    }

    /// Makes the call here, with the arguments that it was made with.
    pub fn make(&self) -> isize {
        self.make_with(self.arguments())
    }

    /// Makes the call here, with other arguments.
    pub fn make_with(&self, arguments: [usize; 6]) -> isize {
        // SAFETY: the application made this very call; what was changed in it was checked by whoever did.
        unsafe { syscall6(self.number(), arguments) }
    }

    /// Has the springboard make the call once this handler has returned; `word` is what the piece
    /// expects in r11.
    pub fn redirect(&mut self, piece: Piece, word: usize) -> isize {
        self.frame
            .set_register(REG_RCX, self.frame.register(REG_RIP));
        self.frame.set_register(REG_R11, word);
        self.frame.set_register(REG_RIP, piece.address());
        self.redirected = true;
        0
    }

    /// As [`Call::redirect`], the call being just what it was.
    pub fn redirect_plain(&mut self) -> isize {
        self.redirect(Piece::CallPlain, 0)
    }
}

/// The handler of SIGSYS.
///
/// # Safety
/// For the kernel to call.
pub unsafe extern "C" fn on_sigsys(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel's own arguments.
    let (frame, code) = unsafe { (Frame::new(context), (*info).si_code) };
    if code != SYS_SECCOMP {
        // SAFETY: the kernel's own argument.
        if !unsafe { threads::errand::run(info) || starters::ends(info) } {
            signals::deliver_here(signal, info, context);
        }
        return;
    }
    let mut call = Call {
        frame,
        redirected: false,
    };
    let result = answer(&mut call);
    if !call.redirected {
        frame.set_register(REG_RAX, result as usize);
    }
}

fn answer(call: &mut Call) -> isize {
    match call.number() {
        libc::SYS_mmap => memory::on_mmap(call),
        libc::SYS_mremap => memory::on_mremap(call),
        libc::SYS_brk => memory::on_brk(call),
        libc::SYS_shmat => memory::on_shmat(call),
        libc::SYS_munmap => memory::on_munmap(call),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => memory::on_mprotect(call),
        libc::SYS_shmdt => memory::on_shmdt(call),

        libc::SYS_rt_sigaction => signals::on_sigaction(call),
        libc::SYS_rt_sigprocmask => signals::on_sigprocmask(call),
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => {
            signals::on_mask_argument(call, 0, Piece::CallMaskRdi)
        }
        libc::SYS_ppoll => signals::on_mask_argument(call, 3, Piece::CallMaskR10),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            signals::on_mask_argument(call, 4, Piece::CallMaskR8)
        }
        libc::SYS_pselect6 => signals::on_pselect(call),
        libc::SYS_signalfd | libc::SYS_signalfd4 => {
            signals::on_mask_argument(call, 1, Piece::CallMaskRsiNoting)
        }

        libc::SYS_nanosleep => sleep::on_sleep(call, 1, false, Piece::CallRestRsi),
        libc::SYS_clock_nanosleep => {
            let until = call.argument(1) & libc::TIMER_ABSTIME as usize != 0;
            sleep::on_sleep(call, 3, until, Piece::CallRestR10)
        }

        libc::SYS_futex => futex::on_futex(call),
        libc::SYS_semop | libc::SYS_semtimedop => semaphores::on_operations(call),

        libc::SYS_clone => threads::clone::on_clone(call),
        libc::SYS_fork => threads::clone::on_fork(call, libc::SIGCHLD as usize),
        // The child of a vfork shares even its parent's stack: it gets memory of its own instead.
        libc::SYS_vfork => threads::clone::on_fork(call, libc::SIGCHLD as usize),
        libc::SYS_exit => threads::clone::on_exit(call),
        libc::SYS_exit_group => threads::exit::on_exit_group(call),
        libc::SYS_execve => exec::on_execve(call),
        libc::SYS_execveat => exec::on_execveat(call),
        // GS is ours.
        libc::SYS_arch_prctl => errno(libc::EPERM),

        libc::SYS_getpid => identity::on_getpid(),
        libc::SYS_getppid => identity::on_getppid(call),
        libc::SYS_gettid => identity::on_gettid(),
        libc::SYS_set_tid_address => identity::on_set_tid_address(call),
        libc::SYS_getpgrp | libc::SYS_setsid => naming::on_process_result(call),
        libc::SYS_getpgid | libc::SYS_getsid => naming::on_group_of(call),
        libc::SYS_setpgid => naming::on_setpgid(call),
        libc::SYS_kill | libc::SYS_rt_sigqueueinfo => naming::on_process_or_group(call),
        libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => naming::on_process_and_thread(call),
        libc::SYS_getpriority | libc::SYS_setpriority => naming::on_priority(call),
        libc::SYS_ioprio_get | libc::SYS_ioprio_set => naming::on_io_priority(call),
        libc::SYS_tkill
        | libc::SYS_sched_setaffinity
        | libc::SYS_sched_getaffinity
        | libc::SYS_sched_setscheduler
        | libc::SYS_sched_getscheduler
        | libc::SYS_sched_setparam
        | libc::SYS_sched_getparam
        | libc::SYS_sched_setattr
        | libc::SYS_sched_getattr
        | libc::SYS_sched_rr_get_interval
        | libc::SYS_prlimit64
        | libc::SYS_get_robust_list
        | libc::SYS_process_vm_readv
        | libc::SYS_process_vm_writev
        | libc::SYS_move_pages
        | libc::SYS_migrate_pages => naming::on_thread(call),
        libc::SYS_kcmp => naming::on_two_threads(call),
        libc::SYS_clock_gettime | libc::SYS_clock_getres => naming::on_clock(call),
        libc::SYS_pidfd_open => naming::on_pidfd_open(call),
        libc::SYS_perf_event_open => naming::on_perf_event_open(call),
        libc::SYS_readlink | libc::SYS_readlinkat => paths::on_readlink(call),

        libc::SYS_timer_create => timers::on_create(call),
        libc::SYS_timer_settime | libc::SYS_timer_gettime | libc::SYS_timer_getoverrun => {
            timers::on_use(call)
        }
        libc::SYS_timer_delete => timers::on_delete(call),

        libc::SYS_open | libc::SYS_creat => paths::on_open(call, 0, Piece::CallRdiNoting),
        libc::SYS_openat | libc::SYS_openat2 => paths::on_open(call, 1, Piece::CallRsiNoting),
        libc::SYS_pipe | libc::SYS_pipe2 => descriptors::on_pair(call, 0),
        libc::SYS_socketpair => descriptors::on_pair(call, 3),
        libc::SYS_fcntl if naming::is_about_owner(call) => naming::on_owner(call),
        libc::SYS_dup | libc::SYS_fcntl => descriptors::on_duplicate(call),
        libc::SYS_dup2 | libc::SYS_dup3 => descriptors::on_duplicate_onto(call),
        libc::SYS_close => descriptors::on_close(call),
        libc::SYS_close_range => descriptors::on_close_range(call),
        libc::SYS_recvmsg => call.redirect(Piece::CallRecvmsg, 0),

        // Everything else in the filter makes a descriptor.
        _ => call.redirect(Piece::CallNoting, 0),
    }
}
