//! Memory that comes to dynamic windows and goes again. Displacements there are addresses, which stay the same.

use std::ffi::{c_int, c_void};

use super::body::usable;
use super::uncarried::below;
use crate::ground::abi::Aint;
use crate::ground::object::Win;
use crate::objects::errhandler::run;
use crate::operations::devices;

/// `MPI_Win_attach`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_attach(window: Win, base: *mut c_void, size: Aint) -> c_int {
    // SAFETY: `usable` looks at the window; MPI demands that the memory has `size` bytes until it is detached.
    unsafe {
        if devices::present()
            && let Some(code) = devices::refuses(window, c"MPI_Win_attach", &[base])
        {
            return code;
        }
        run(window, c"MPI_Win_attach", || {
            let (window, body) = usable(window)?;
            below(window, |d, word| (d.win_attach)(word, base, size))?;
            if let Some(body) = body {
                let region = (base.expose_provenance(), size);
                body.notes.lock().attached.push(region);
            }
            Ok(())
        })
    }
}

/// `MPI_Win_detach`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_detach(window: Win, base: *const c_void) -> c_int {
    // SAFETY: `usable` looks at the window; the address is only compared.
    unsafe {
        run(window, c"MPI_Win_detach", || {
            let (window, body) = usable(window)?;
            below(window, |d, word| (d.win_detach)(word, base))?;
            if let Some(body) = body {
                let mut notes = body.notes.lock();
                let found = (notes.attached.iter()).position(|(at, _)| *at == base.addr());
                found.map(|place| notes.attached.remove(place));
            }
            Ok(())
        })
    }
}
