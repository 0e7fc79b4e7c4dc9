//! A function that the library imports, and one of ours that is called in its place.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::mpi::library::found::own;
use crate::mpi::library::imports::Import;

pub struct Led {
    name: &'static CStr,
    import: OnceLock<Option<Import>>,
    /// What the library's import led to when it was found.
    own: AtomicUsize,
    /// What is called as long as a checkpoint is pending; 0: nothing of ours ever is.
    ours: AtomicUsize,
}

impl Led {
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            import: OnceLock::new(),
            own: AtomicUsize::new(0),
            ours: AtomicUsize::new(0),
        }
    }

    /// How the library calls it, if it does.
    fn import(&self) -> Option<&Import> {
        let import = self.import.get_or_init(|| {
            let import = own(c"MPI_Iprobe").and_then(|it| Import::find(it.cast(), self.name));
            if let Some(import) = &import {
                self.own.store(import.leads_to(), Ordering::SeqCst);
            }
            import
        });
        import.as_ref()
    }

    /// Whether the library imports it.
    pub fn is_there(&self) -> bool {
        self.import().is_some()
    }

    /// The function of that name.
    #[inline(always)]
    pub fn own(&self) -> *const () {
        self.own.load(Ordering::Relaxed) as *const ()
    }

    /// Which function is called; 0: the library does not import it.
    pub fn leads_to(&self) -> usize {
        self.import().map_or(0, Import::leads_to)
    }

    /// Has this function called instead.
    ///
    /// # Safety
    /// It must be one of that type.
    pub unsafe fn lead_to(&self, function: usize) {
        if let Some(import) = self.import() {
            // SAFETY: the caller's.
            unsafe { import.lead_to(function) };
        }
    }

    /// Has the function of that name called again.
    pub fn lead_back(&self) {
        // SAFETY: what the library was linked with.
        unsafe { self.lead_to(self.own().addr()) };
    }

    /// Has this function called from now on as long as a checkpoint is pending.
    ///
    /// # Safety
    /// It must be one of that type.
    pub unsafe fn choose(&self, function: usize) {
        self.ours.store(function, Ordering::SeqCst);
    }

    /// Has the library's import lead where that wants it.
    pub fn follow(&self, pending: bool) {
        match self.ours.load(Ordering::SeqCst) {
            0 => (),
            // SAFETY: a function of that type, as it was said.
            ours if pending => unsafe { self.lead_to(ours) },
            _ => self.lead_back(),
        }
    }
}
