//! The application's alternate signal stacks.
//!
//! Rules of this place: runs in the trap's handler.

use crate::arch::frame::SP;
use crate::arch::syscall::failed;
use crate::gate::call::Call;
use crate::gate::user;
use crate::threads::handler_stack;

/// The stack that a handler of our own needs below its frame before it switches to its own stack.
const MORE: usize = 512;

/// The kernel's `stack_t`: address, flags (with four bytes behind them), length.
type Stack = [usize; 3];

/// Answers a `sigaltstack` that sets a stack. A stack that is too small for a signal frame of this processor is switched off again: the trap's frame would be
/// put there at the next call, where natively no frame can be.
pub fn on_alternate_stack(call: &mut Call) -> isize {
    let frame = call.frame();
    let too_small = user::read::<Stack>(call.argument(0)).is_ok_and(|[_, flags, bytes]| {
        flags as i32 & libc::SS_DISABLE == 0 && bytes < frame.bytes() + MORE
    });
    if !too_small || frame.alternate_stack().contains(&frame.register(SP)) {
        // The kernel checks whether the stack pointer lies there.
        return call.redirect_plain();
    }
    let result = call.make();
    if !failed(result) {
        handler_stack::switch_alternate_off();
    }
    result
}
