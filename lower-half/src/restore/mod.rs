//! Brings an image back to life in a fresh process, phase by phase; between the phases the agent waits
//! for the job's other ranks.
//!
//! 1. [`Restore::open`] - image against manifest, processor, kernel, rank count, every byte of it. Nothing has
//!    been changed when this fails.
//! 2. [`Restore::reserve_descriptors`] - before MPI (or anything else) can take a number that the image needs
//! 3. (MPI is started by the caller, at [`Restore::thread_level`])
//! 4. [`Restore::map`] - memory at its old addresses
//! 5. [`Restore::files`] - descriptors and shared file mappings; the first phase that changes files
//! 6. [`Restore::process`] - working directory, masks, limits
//!
//! Gate, identities, signal handlers and threads are brought back by their own modules, from
//! [`Restore::blob`] and [`Restore::threads`].

pub mod attributes;
pub mod credentials;
pub mod descriptors;
mod fetched;
mod files;
mod ipc;
mod memory;
mod objects;
mod place;
pub mod rehearsal;
mod scheduling;
pub mod sequence;
mod shared;
pub mod supply;

use std::io;
use std::path::PathBuf;

use stillpoint_faults::{Point, strike};
use stillpoint_image::{Blob, Environment, ImageError, Manifest, Reader, Thread};

use stillpoint_protocol::job_file::host_name;
use stillpoint_protocol::launch;

use crate::capture::environment;
use crate::capture::process::{self, ProcessState};
use fetched::Fetched;
use objects::Objects;

/// Why a rank cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{0}")]
    Refused(String),
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

impl RestoreError {
    fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> RestoreError {
        let what = what.into();
        move |source| RestoreError::System { what, source }
    }
}

/// An image on its way back to life.
pub struct Restore {
    path: PathBuf,
    /// Blocks that were fetched from other hosts.
    fetched: Fetched,
    reader: Reader,
    process: ProcessState,
    ipc: crate::capture::ipc::Saved,
    objects: Objects,
    workers: usize,
}

impl Restore {
    /// Opens the image of `rank` in the epoch that is `wanted` and checks everything that can be checked
    /// without changing anything: manifest, rank count, environment, every byte.
    pub fn open(
        wanted: &launch::Restart,
        rank: u32,
        size: u32,
        workers: usize,
    ) -> Result<Restore, RestoreError> {
        let directory = wanted.directory.as_path();
        let fetched = Fetched::take(wanted);
        let manifest = Manifest::read(directory)?;
        if manifest.ranks.len() != size as usize {
            return Err(RestoreError::Refused(format!(
                "{}: the epoch has {} ranks, this launch has {size}: start it with mpirun -n {}",
                directory.display(),
                manifest.ranks.len(),
                manifest.ranks.len()
            )));
        }
        let reader = manifest.open_nearest_image(
            directory,
            rank,
            &host_name(),
            fetched.path().as_deref(),
        )?;
        let mut restore = Restore::check(reader, &environment::here(), workers)?;
        restore.fetched = fetched;
        Ok(restore)
    }

    fn check(reader: Reader, here: &Environment, workers: usize) -> Result<Restore, RestoreError> {
        let path = reader.path().to_owned();
        let mut reasons = environment::forbids(reader.environment(), here);
        let process = match reader.blob(process::BLOB) {
            Some(blob) if blob.version == process::VERSION => ProcessState::from_bytes(&blob.bytes),
            Some(blob) => Err(format!(
                "process state of version {}: restart with the release that wrote it",
                blob.version
            )),
            None => Err("there is no process state in it: use another epoch".to_owned()),
        };
        let process = match process.and_then(|state| state.check().map(|()| state)) {
            Ok(process) => process,
            Err(reason) => {
                reasons.push(reason);
                ProcessState::default()
            }
        };
        let ipc = ipc::saved(reader.blob(crate::capture::ipc::BLOB)).unwrap_or_else(|reason| {
            reasons.push(reason);
            crate::capture::ipc::Saved::default()
        });
        reasons.extend(ipc::missing(&ipc));
        reasons.extend(descriptors::missing(reader.descriptors()));
        reasons.extend(shared::missing(reader.regions()));
        if !reasons.is_empty() {
            return Err(RestoreError::Refused(format!(
                "{}: {}",
                path.display(),
                reasons.join("; ")
            )));
        }
        place::keep(reader.regions())?;
        reader.check_pages(workers)?;
        Ok(Restore {
            path,
            fetched: Fetched::default(),
            reader,
            process,
            ipc,
            objects: Objects::default(),
            workers,
        })
    }

    /// Occupies every descriptor number that the image needs, so that what is opened from now on lands
    /// elsewhere. To be called before MPI, the agent or anything else opens a descriptor.
    pub fn reserve_descriptors(self) -> Result<Restore, RestoreError> {
        let Restore {
            path,
            fetched,
            reader,
            process,
            ipc,
            objects,
            workers,
        } = self;
        let table = reader.descriptors().clone();
        let fetched = fetched.out_of_the_way_of(&table);
        let digest = reader.digest();
        // The reader's own descriptor must get out of the way.
        drop(reader);
        descriptors::reserve(&table)?;
        let reader = Reader::open_nearest(&path, &host_name(), fetched.path().as_deref())?;
        if reader.digest() != digest {
            let (found, expected) = (reader.digest(), digest);
            return Err(ImageError::Digest {
                path,
                found,
                expected,
            }
            .into());
        }
        Ok(Restore {
            path,
            fetched,
            reader,
            process,
            ipc,
            objects,
            workers,
        })
    }

    /// What MPI must be started with (standard-ABI value); -1: it was not started.
    pub fn thread_level(&self) -> i32 {
        self.reader.environment().mpi_thread_level
    }

    /// Maps the upper half's memory at its old addresses and fills it.
    ///
    /// # Safety
    /// The upper half's addresses must be nobody's: no application runs in this process.
    pub unsafe fn map(&mut self) -> Result<(), RestoreError> {
        // SAFETY: the caller's.
        unsafe { memory::map(&self.reader, &mut self.objects, self.workers) }
    }

    /// Opens descriptors again and cuts files back; maps shared files. Changes files: every rank of the
    /// job must have opened and checked its image before.
    ///
    /// # Safety
    /// As [`Restore::map`], which must have been called.
    pub unsafe fn files(&mut self) -> Result<(), RestoreError> {
        let at = |point| strike(point).map_err(RestoreError::system("its files"));
        at(Point::RestartFiles)?;
        descriptors::cut_files(self.reader.descriptors())?;
        at(Point::RestartIpc)?;
        ipc::give(&self.ipc)?;
        at(Point::RestartShared)?;
        // SAFETY: the caller's.
        unsafe { shared::map_files(&self.reader)? };
        at(Point::RestartDescriptors)?;
        descriptors::open_all(&self.reader, &mut self.objects)?;
        self.objects.forget();
        at(Point::RestartLocks)?;
        descriptors::lock_all(self.reader.descriptors())
    }

    /// Working directory and masks.
    pub fn process(&self) -> Result<(), RestoreError> {
        self.process.restore().map_err(RestoreError::Refused)
    }

    /// Limits, which may keep the lower half from what it still has to do: last. What this launch does not allow, in words for
    /// people.
    pub fn limits(&self) -> Vec<String> {
        self.process.restore_limits()
    }

    /// What of descriptors names threads, and streams that the application had closed: when its threads are there.
    pub fn finish_descriptors(&self) -> Result<(), RestoreError> {
        descriptors::finish(self.reader.descriptors())
    }

    /// Interval timers and pending signals: when handlers are in place and threads are about to run.
    pub fn process_clocks(&self) {
        self.process.restore_clocks();
    }

    /// What another module gave for the image.
    pub fn blob(&self, name: &str) -> Option<&Blob> {
        self.reader.blob(name)
    }

    /// The threads to make again, the main one first.
    pub fn threads(&self) -> &[Thread] {
        self.reader.threads()
    }

    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

#[cfg(test)]
mod tests;
