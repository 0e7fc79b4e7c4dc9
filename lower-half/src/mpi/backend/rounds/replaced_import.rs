//! A function that the library imports, and our function that is called in its place.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::mpi::library::found::own;
use crate::mpi::library::imports::Import;

pub struct ReplacedImport {
    name: &'static CStr,
    import: OnceLock<Option<Import>>,
    /// The function that the library's import led to when it was found.
    own: AtomicUsize,
    /// The function that is called while a checkpoint is pending; 0: always the library's own.
    ours: AtomicUsize,
}

impl ReplacedImport {
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            import: OnceLock::new(),
            own: AtomicUsize::new(0),
            ours: AtomicUsize::new(0),
        }
    }

    /// Returns the words through which the library calls it, if it does.
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

    /// Returns the original function.
    #[inline(always)]
    pub fn own(&self) -> *const () {
        self.own.load(Ordering::Relaxed) as *const ()
    }

    /// Returns the function that is called now; 0: the library does not import it.
    pub fn leads_to(&self) -> usize {
        self.import().map_or(0, Import::leads_to)
    }

    /// Has this function called in its place.
    ///
    /// # Safety
    /// It must have the same type.
    pub unsafe fn lead_to(&self, function: usize) {
        if let Some(import) = self.import() {
            // SAFETY: the caller gives a function of the type that the library calls through this import.
            unsafe { import.lead_to(function) };
        }
    }

    /// Has the original function called again.
    pub fn lead_back(&self) {
        // SAFETY: the library was linked with this function, so it has the import's type.
        unsafe { self.lead_to(self.own().addr()) };
    }

    /// From now on has this function called while a checkpoint is pending.
    ///
    /// # Safety
    /// It must have the same type.
    pub unsafe fn choose(&self, function: usize) {
        self.ours.store(function, Ordering::SeqCst);
    }

    /// Points the library's import to the function for this state.
    pub fn follow(&self, pending: bool) {
        match self.ours.load(Ordering::SeqCst) {
            0 => (),
            // SAFETY: the function has the import's type, as `choose` demands.
            ours if pending => unsafe { self.lead_to(ours) },
            _ => self.lead_back(),
        }
    }
}
