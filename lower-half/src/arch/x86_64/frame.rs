//! The signal frame that the kernel builds on the interrupted thread's stack, and that `rt_sigreturn` restores.
//!
//! ```text
//!   low   frame       return address (the restorer)          <- stack pointer at the handler's entry
//!         frame + 8   struct ucontext (304 bytes: flags, link, stack, registers, mask)
//!                     struct siginfo (128 bytes)
//!   high  fpregs      vector state (xsave layout, 64-byte aligned), below the 128-byte red zone
//! ```

use core::arch::asm;

/// Bytes of the kernel's `struct ucontext` (the libc's is longer: its mask has 1024 bits).
const UCONTEXT: usize = 304;
const SIGINFO: usize = 128;
const HEAD: usize = 8 + UCONTEXT + SIGINFO;
const MASK_AT: usize = 296;
/// `struct _fpx_sw_bytes` inside the legacy area: magic and size of everything.
const SW_MAGIC_AT: usize = 464;
const SW_MAGIC: u32 = 0x4650_5853;
const LEGACY_BYTES: usize = 512;
/// Additional bytes that a frame may need for alignment, the red zone included.
const ALIGNMENT: usize = 64 + 16 + 128;

/// The interrupted thread, as a handler's third argument shows it.
#[derive(Clone, Copy)]
pub struct Frame(*mut libc::ucontext_t);

/// The next instruction's address.
pub const PC: i32 = libc::REG_RIP;
pub const SP: i32 = libc::REG_RSP;
/// A system call's number before the call, its result afterwards.
pub const RESULT: i32 = libc::REG_RAX;
/// A system call's arguments.
pub const ARGUMENTS: [i32; 6] = [
    libc::REG_RDI,
    libc::REG_RSI,
    libc::REG_RDX,
    libc::REG_R10,
    libc::REG_R8,
    libc::REG_R9,
];
/// The register that receives the address behind a system call's instruction.
pub const BEHIND: i32 = libc::REG_RCX;
/// A register that a system call destroys; it carries the word for a piece of the springboard.
pub const WORD: i32 = libc::REG_R11;

impl Frame {
    /// # Safety
    /// `context` must be the third argument of a signal handler that has not yet returned.
    pub unsafe fn new(context: *mut libc::ucontext_t) -> Frame {
        Frame(context)
    }

    /// Makes a frame of a system call's registers, which the caller sets, and a mask: no vector state, no alternate stack, and no return through it.
    ///
    /// # Safety
    /// As [`Frame::new`]; registers that have not been set must not be read.
    pub unsafe fn of_call(context: *mut libc::ucontext_t) -> Frame {
        // SAFETY: the caller gives a structure as for `Frame::new`; both fields lie in it, and are written without being read.
        unsafe {
            (&raw mut (*context).uc_mcontext.fpregs).write(core::ptr::null_mut());
            (&raw mut (*context).uc_stack).write(libc::stack_t {
                ss_sp: core::ptr::null_mut(),
                ss_flags: libc::SS_DISABLE,
                ss_size: 0,
            });
        }
        Frame(context)
    }

    /// The frame that starts at `address` (see the module's drawing).
    ///
    /// # Safety
    /// A whole signal frame must lie there.
    pub unsafe fn at(address: usize) -> Frame {
        Frame((address + 8) as *mut libc::ucontext_t)
    }

    /// Returns the frame's start address.
    pub fn address(self) -> usize {
        (self.0 as usize).wrapping_sub(8)
    }

    pub fn register(self, index: i32) -> usize {
        // SAFETY: the context is alive (constructors); indexes are the REG_ constants, below 23.
        unsafe {
            *(&raw const (*self.0).uc_mcontext.gregs)
                .cast::<usize>()
                .add(index as usize)
        }
    }

    pub fn set_register(self, index: i32, value: usize) {
        // SAFETY: the context is alive (constructors); indexes are the REG_ constants, below 23.
        unsafe {
            *(&raw mut (*self.0).uc_mcontext.gregs)
                .cast::<usize>()
                .add(index as usize) = value
        };
    }

    /// Returns the mask that the return from the handler restores; bit 0 is signal 1.
    pub fn mask(self) -> u64 {
        // SAFETY: the mask's 8 bytes are part of the kernel's ucontext, which is alive (constructors).
        unsafe { *self.0.cast::<u8>().add(MASK_AT).cast::<u64>() }
    }

    pub fn set_mask(self, mask: u64) {
        // SAFETY: the mask's 8 bytes are part of the kernel's ucontext, which is alive (constructors).
        unsafe { *self.0.cast::<u8>().add(MASK_AT).cast::<u64>() = mask };
    }

    /// Returns the alternate signal stack at the time of the interruption; an empty range if there is none.
    pub fn alternate_stack(self) -> core::ops::Range<usize> {
        // SAFETY: the context is alive (constructors).
        let stack = unsafe { (*self.0).uc_stack };
        let start = stack.ss_sp as usize;
        let bytes = if stack.ss_flags & libc::SS_DISABLE == 0 {
            stack.ss_size
        } else {
            0
        };
        start..start.wrapping_add(bytes)
    }

    fn vector_state(self) -> usize {
        // SAFETY: the context is alive (constructors).
        unsafe { (*self.0).uc_mcontext.fpregs as usize }
    }

    fn vector_bytes(self) -> usize {
        let state = self.vector_state();
        if state == 0 {
            return 0;
        }
        // SAFETY: if the pointer is not null, the kernel put at least the 512-byte legacy area there, which holds both words.
        unsafe {
            let software = (state + SW_MAGIC_AT) as *const u32;
            if software.read_unaligned() == SW_MAGIC {
                software.add(1).read_unaligned() as usize
            } else {
                LEGACY_BYTES
            }
        }
    }

    /// Returns the stack space that such a frame takes.
    pub fn bytes(self) -> usize {
        HEAD + self.vector_bytes() + ALIGNMENT
    }

    /// Copies the frame to below `top` (of any alignment), so that `rt_sigreturn` on the copy works; the copy has no alternate signal stack.
    ///
    /// # Safety
    /// The memory below `top` must be free, as much as the frame takes.
    pub unsafe fn copy_below(self, top: usize) -> Frame {
        let bytes = self.vector_bytes();
        let state = top.wrapping_sub(bytes) & !63;
        let start = (state.wrapping_sub(HEAD) & !15).wrapping_sub(8);
        // SAFETY: the frame is alive (constructors); the caller says that the memory below `top` is free, so it does not overlap the frame.
        unsafe {
            core::ptr::copy_nonoverlapping(self.address() as *const u8, start as *mut u8, HEAD);
            core::ptr::copy_nonoverlapping(
                self.vector_state() as *const u8,
                state as *mut u8,
                bytes,
            );
            let copy = Frame::at(start);
            if bytes != 0 {
                (*copy.0).uc_mcontext.fpregs = state as *mut _;
            }
            (*copy.0).uc_stack.ss_sp = core::ptr::null_mut();
            (*copy.0).uc_stack.ss_flags = libc::SS_DISABLE;
            (*copy.0).uc_stack.ss_size = 0;
            copy
        }
    }
}

/// Returns through the frame at `address`, which sets every register, the mask and the vector state.
///
/// # Safety
/// A whole signal frame must lie there, and FS and GS must be those of the code that it leads to.
pub unsafe fn sigreturn(address: usize) -> ! {
    // SAFETY: the caller says that a whole frame lies at `frame`; the kernel expects it 8 bytes below the stack pointer, which is set to that here.
    unsafe {
        asm!(
            "lea rsp, [{frame} + 8]",
            "mov eax, 15",
            "syscall",
            "ud2",
            frame = in(reg) address,
            options(noreturn),
        )
    }
}
