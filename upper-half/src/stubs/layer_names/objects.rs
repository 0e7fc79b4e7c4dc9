//! The library's state, and the classes and lists of its object system, as far as the layers use them.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use super::Shared;

/// The library's own state, as the layers read it: it is initialised, no internal errors are known, threads need no locks of the layers'.
macro_rules! facts {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(#[allow(non_upper_case_globals)] // The library's name.
        #[unsafe(no_mangle)]
        static $name: $kind = $value;)*
    };
}

facts! {
    // `OMPI_MPI_STATE_INIT_COMPLETED`.
    ompi_mpi_state: i32 = 2;
    ompi_errcode_intern_lastused: c_int = 0;
    ompi_errcodes_intern: [u8; 0x78] = [0; 0x78];
    opal_uses_threads: bool = false;
    opal_class_init_epoch: c_int = 1;
}

type Action = unsafe extern "C" fn(*mut c_void);

/// `opal_class_t`.
#[repr(C)]
struct Class {
    name: *const c_char,
    parent: *mut Class,
    construct: Option<Action>,
    destruct: Option<Action>,
    initialized: c_int,
    depth: c_int,
    constructors: *mut Option<Action>,
    destructors: *mut Option<Action>,
    bytes: usize,
}

/// `opal_list_item_t`.
#[repr(C)]
struct Item {
    class: *mut c_void,
    references: i32,
    next: *mut Item,
    previous: *mut Item,
    free: i32,
}

/// `opal_list_t`.
#[repr(C)]
struct List {
    class: *mut c_void,
    references: i32,
    sentinel: Item,
    length: usize,
}

/// The empty list of Fortran's data representations; its layer appends to it.
#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static ompi_registered_datareps: Shared<List> = Shared(UnsafeCell::new(List {
    class: ptr::null_mut(),
    references: 1,
    sentinel: Item {
        class: ptr::null_mut(),
        references: 1,
        next: FIRST,
        previous: FIRST,
        free: 1,
    },
    length: 0,
}));

const FIRST: *mut Item = (&raw const ompi_registered_datareps)
    .cast_mut()
    .cast::<u8>()
    .wrapping_add(core::mem::offset_of!(List, sentinel))
    .cast();

unsafe extern "C" fn make_item(item: *mut c_void) {
    let item: *mut Item = item.cast();
    // SAFETY: the layer gives memory for an item.
    unsafe {
        (*item).next = ptr::null_mut();
        (*item).previous = ptr::null_mut();
        (*item).free = 1;
    }
}

/// The class of list items, the parent of the layer's own.
#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static opal_list_item_t_class: Shared<Class> = Shared(UnsafeCell::new(Class {
    name: c"opal_list_item_t".as_ptr(),
    parent: ptr::null_mut(),
    construct: Some(make_item),
    destruct: None,
    initialized: 0,
    depth: 0,
    constructors: ptr::null_mut(),
    destructors: ptr::null_mut(),
    bytes: size_of::<Item>(),
}));

/// Makes a class ready: lists what constructs its objects, from the farthest ancestor on, and what destructs them.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn opal_class_initialize(class: *mut Class) {
    static ONE_AT_A_TIME: crate::ground::lock::SpinLock<()> =
        crate::ground::lock::SpinLock::new(());
    let _one = ONE_AT_A_TIME.lock();
    // SAFETY: the layer gives a class, which like its ancestors lives as long as the process; the array has room for all functions and two nulls.
    unsafe {
        if (*class).initialized == opal_class_init_epoch {
            return;
        }
        let (mut depth, mut at) = (0, class);
        while let Some(ancestor) = at.as_ref() {
            depth += 1;
            at = ancestor.parent;
        }
        let bytes = 2 * (depth + 1) * size_of::<Option<Action>>();
        let all: *mut Option<Action> = libc::calloc(1, bytes).cast();
        if all.is_null() {
            libc::exit(-1);
        }
        let destructors = all.add(depth + 1);
        let (mut above, mut destructed, mut at) = (0, 0, class);
        while let Some(ancestor) = at.as_ref() {
            if let Some(construct) = ancestor.construct {
                // The nearest one comes last.
                ptr::copy(all, all.add(1), above);
                *all = Some(construct);
                above += 1;
            }
            if let Some(destruct) = ancestor.destruct {
                *destructors.add(destructed) = Some(destruct);
                destructed += 1;
            }
            at = ancestor.parent;
        }
        (*class).depth = depth as c_int;
        (*class).constructors = all;
        (*class).destructors = destructors;
        (*class).initialized = opal_class_init_epoch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_librarys() {
        assert_eq!(size_of::<Class>(), 0x40);
        assert_eq!(size_of::<Item>(), 0x28);
        assert_eq!(size_of::<List>(), 0x40);
    }

    #[test]
    fn constructors_run_from_the_farthest_ancestor_on() {
        unsafe extern "C" fn own(_: *mut c_void) {}
        let parent = opal_list_item_t_class.0.get();
        let mut class = Class {
            name: c"own".as_ptr(),
            parent,
            construct: Some(own),
            destruct: Some(own),
            initialized: 0,
            depth: 0,
            constructors: ptr::null_mut(),
            destructors: ptr::null_mut(),
            bytes: 80,
        };
        // SAFETY: the class lives until the test is over; its lists end with a null.
        unsafe {
            opal_class_initialize(&raw mut class);
            let is = |at: usize, wanted: Action| {
                (*class.constructors.add(at)).is_some_and(|it| core::ptr::fn_addr_eq(it, wanted))
            };
            assert!(is(0, make_item) && is(1, own));
            assert!((*class.constructors.add(2)).is_none());
            assert!((*class.destructors).is_some() && (*class.destructors.add(1)).is_none());
            assert_eq!(class.depth, 2);
        }
    }
}
