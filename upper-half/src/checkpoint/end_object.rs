//! The end of an object whose last holder lets go of it.

use stillpoint_wrappers::gate::HandleKind;

use crate::communicators;
use crate::ground::object::Object;
use crate::objects::{attribute, datatype, errhandler, file, group, info, operator};
use crate::operations::messages::drain;
use crate::windows;

/// Ends what the lower half holds for an object and drops its own part.
///
/// # Safety
/// `object` must be a live object that has no holder any more; the thread must be inside a stub.
pub unsafe fn end(object: *mut Object) {
    const COMMUNICATOR: u16 = HandleKind::Communicator as u16;
    const GROUP: u16 = HandleKind::Group as u16;
    const DATATYPE: u16 = HandleKind::Datatype as u16;
    const OPERATOR: u16 = HandleKind::Operator as u16;
    const ERRHANDLER: u16 = HandleKind::Errhandler as u16;
    const INFO: u16 = HandleKind::Info as u16;
    const FILE: u16 = HandleKind::File as u16;
    const WINDOW: u16 = HandleKind::Window as u16;
    // SAFETY: the object is alive without a holder, by the caller's promise; each `end` gets an object of its own kind.
    unsafe {
        match (*object).kind {
            COMMUNICATOR => {
                drain::forget(object);
                communicators::end(object);
            }
            GROUP => group::end(object),
            DATATYPE => datatype::end(object),
            OPERATOR => operator::end(object),
            ERRHANDLER => errhandler::end(object),
            INFO => info::end(object),
            FILE => {
                errhandler::forget(object);
                file::end(object);
            }
            WINDOW => windows::end(object),
            _ => {
                attribute::forget(object);
                errhandler::forget(object);
            }
        }
    }
}
