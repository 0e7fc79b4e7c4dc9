//! A process that stands still, as the parts of a checkpoint see it.

use std::cell::OnceCell;

use stillpoint_image::mapped_files::MappedFiles;
use stillpoint_part::Failure;

use super::access::{Access, Inside, Revoked};
use super::maps::{Mapping, Seen};
use super::records;
use super::signals::{self, Waiting};
use super::{CaptureError, mapped_files};
use crate::ground::page::Page;
use crate::threads::{self, Thread};

impl From<Revoked> for Failure {
    fn from(_: Revoked) -> Failure {
        Failure::GivenUp
    }
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Failure {
        match error {
            CaptureError::Revoked(_) => Failure::GivenUp,
            CaptureError::Hindered(reason) => Failure::Hindered(vec![reason]),
            other => Failure::Refused(other.into()),
        }
    }
}

/// A process whose threads all stand, as long as its [`Access`] lasts.
pub struct Still<'a> {
    access: &'a Access,
    page: Page,
    seen: &'a Seen,
    waiting: OnceCell<Waiting>,
    mappings: OnceCell<Vec<Mapping>>,
    mapped_files: OnceCell<MappedFiles>,
}

impl<'a> Still<'a> {
    /// # Safety
    /// Every thread of the upper half must be stopped in its signal frame as long as `access` is not revoked, and since `seen` was made.
    pub unsafe fn new(access: &'a Access, page: Page, seen: &'a Seen) -> Still<'a> {
        Still {
            access,
            page,
            seen,
            waiting: OnceCell::new(),
            mappings: OnceCell::new(),
            mapped_files: OnceCell::new(),
        }
    }

    /// Goes inside the upper half; the caller stays there for one step at most.
    ///
    /// # Errors
    /// The checkpoint has been given up.
    pub fn enter(&self) -> Result<Inside<'a>, Revoked> {
        self.access.enter()
    }

    pub fn access(&self) -> &'a Access {
        self.access
    }

    /// Returns the gate page, through which the upper half takes commands and answers.
    pub fn page(&self) -> Page {
        self.page
    }

    /// Returns the upper half's mappings. They are read once, and must not change any more: the driver holds.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn mappings(&self) -> Result<&[Mapping], CaptureError> {
        if let Some(known) = self.mappings.get() {
            return Ok(known);
        }
        let found = self.mappings_by_now()?;
        Ok(self.mappings.get_or_init(|| found))
    }

    /// Returns the mappings as [`Still::mappings`] does, while the driver may still change them.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn mappings_by_now(&self) -> Result<Vec<Mapping>, CaptureError> {
        let found = self.seen.upper();
        found.map_err(CaptureError::process("memory map"))
    }

    /// Returns the upper half's threads. The caller is inside.
    pub fn threads(&self) -> Vec<Thread> {
        threads::list()
    }

    /// Returns the threads as [`Still::threads`] does, the main one first, which must be there.
    ///
    /// # Errors
    /// The main thread has ended.
    pub fn main_first(&self) -> Result<Vec<Thread>, CaptureError> {
        records::main_first()
    }

    /// Returns the pending signals. They are read once, at the first call: after the timers that send some of them. So a timer that expires
    /// in between is found in both, and counts as expired. The caller is inside.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn waiting(&self) -> Result<&Waiting, CaptureError> {
        if let Some(waiting) = self.waiting.get() {
            return Ok(waiting);
        }
        // SAFETY: the caller of `new` keeps the threads stopped as long as the access is not revoked.
        let found = unsafe { signals::survey(&self.main_first()?)? };
        Ok(self.waiting.get_or_init(|| found))
    }

    /// Returns the files that the image is to refer to. They are examined once, when the driver holds. The caller must not be inside, since
    /// files may not answer.
    ///
    /// # Errors
    /// See [`mapped_files::survey`].
    pub fn mapped_files(&self) -> Result<&MappedFiles, CaptureError> {
        if let Some(known) = self.mapped_files.get() {
            return Ok(known);
        }
        let found = mapped_files::survey(self.access, self.page, self.mappings()?)?;
        Ok(self.mapped_files.get_or_init(|| found))
    }
}
