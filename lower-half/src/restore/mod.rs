//! Restores an image in a fresh process, phase by phase; between the phases the agent waits for the job's other ranks.
//!
//! 1. [`Restore::open`] - checks the image against the manifest, the processor, the kernel and the rank count, the files that it refers to, and every byte of
//!    it. If this fails, only this process's own memory has been changed.
//! 2. [`Restore::reserve_descriptors`] - before MPI (or anything else) can take a number that the image needs
//! 3. (MPI is started by the caller, at [`Restore::thread_level`])
//! 4. [`Restore::map`] - memory at its old addresses, except for what the first step has already read there
//! 5. [`Restore::files`] - descriptors and shared file mappings; the first phase that changes files
//!
//! Everything else is restored by the parts (`crate::parts`), from payloads.

mod arrival;
pub mod attributes;
pub mod back;
pub mod content_source;
pub mod credentials;
pub mod descriptors;
mod fetched;
mod files;
pub mod ipc;
pub mod job;
mod loader;
mod mapped_files;
mod memory;
pub mod mpi_files;
mod objects;
mod pages;
mod region;
pub mod rehearsal;
mod reserved_addresses;
pub mod scheduling;
mod shared;
pub mod threads;
pub mod upper;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use stillpoint_faults::{Point, strike};
use stillpoint_ids::Rank;
use stillpoint_image::descriptors::DescriptorKind;
use stillpoint_image::{Environment, ImageError, Manifest, Reader, Thread, rank_of};

use stillpoint_part::{Kind, Saved};
use stillpoint_protocol::job_file::host_name;
use stillpoint_protocol::launch;
use stillpoint_refusals::{Code, Refusal, refusal};

use crate::capture::environment;
use crate::ground::{input, say};
use arrival::Door;
use fetched::Fetched;
use mapped_files::InFiles;
use objects::Objects;
use pages::Loaded;

/// The reasons why a rank cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{0}")]
    Refused(Refusal),
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

impl From<RestoreError> for Refusal {
    fn from(error: RestoreError) -> Refusal {
        match error {
            RestoreError::Image(error) => Refusal::new(error.code_of_reading(), error.to_string()),
            RestoreError::Refused(reason) => reason,
            RestoreError::System { ref source, .. } => {
                Refusal::new(Code::of(source, Code::NotRestored), error.to_string())
            }
        }
    }
}

impl RestoreError {
    /// Whether the fault lies in another rank's image, which has blocks that this rank needs too.
    pub fn is_about_another(&self, rank: Rank) -> bool {
        let error = match self {
            RestoreError::Image(ImageError::Sibling { .. }) => return false,
            RestoreError::Image(error) => error,
            _ => return false,
        };
        let name = error.file().file_name().unwrap_or_default();
        rank_of(&name.to_string_lossy()).is_some_and(|whose| whose != rank)
    }

    fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> RestoreError {
        let what = what.into();
        move |source| RestoreError::System { what, source }
    }
}

/// An image that is being restored.
pub struct Restore {
    path: PathBuf,
    /// Blocks that were fetched from other hosts.
    fetched: Fetched,
    reader: Arc<Reader>,
    /// The parts of regions that the image leaves to files.
    in_files: InFiles,
    objects: Objects,
    /// The chunks that are already in place.
    loaded: Loaded,
    workers: usize,
}

impl Restore {
    /// Opens the image of `rank` in the epoch that is `wanted`. Checks everything that can be checked without changing anything: manifest, rank count,
    /// environment, the parts' own checks, every byte. Afterwards private memory is in place.
    ///
    /// # Safety
    /// The upper half's addresses must be free: no application runs in this process.
    pub unsafe fn open(
        wanted: &launch::Restart,
        rank: Rank,
        size: u32,
        workers: usize,
        parts: impl FnOnce(&Reader) -> Vec<Refusal>,
    ) -> Result<Restore, RestoreError> {
        let directory = wanted.directory.as_path();
        let fetched = Fetched::take(wanted);
        let manifest = Manifest::read(directory)?;
        if manifest.ranks.len() != size as usize {
            return Err(RestoreError::Refused(refusal!(
                OtherSize,
                "{}: the epoch has {} ranks, but this launch has {size}: start it with mpirun -n {}",
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
        let mut restore = Restore::check(reader, &environment::here(), workers, parts)?;
        restore.fetched = fetched;
        if restore.needs_launchers_input() {
            // As at a fresh start: if the input cannot be fed, a checkpoint names the reason. No thread has been started yet.
            input::start().unwrap_or_default();
        }
        let late = match (wanted.lazy, Door::open()) {
            (false, _) => None,
            (true, Ok(_)) => Some(arrival::plan(&restore.reader)),
            (true, Err(error)) => {
                if rank == Rank::FIRST {
                    say::line(format_args!(
                        "the restart reads all memory first: --lazy needs userfaultfd, for the kernel's own accesses \
                         too (set sysctl vm.unprivileged_userfaultfd=1, or let this user open /dev/userfaultfd): \
                         {error}"
                    ));
                }
                None
            }
        };
        // SAFETY: the caller says that the upper half's addresses are free.
        restore.loaded = unsafe { memory::read(&restore.reader, late, workers)? };
        Ok(restore)
    }

    /// Checks everything except pages.
    fn check(
        reader: Reader,
        here: &Environment,
        workers: usize,
        parts: impl FnOnce(&Reader) -> Vec<Refusal>,
    ) -> Result<Restore, RestoreError> {
        let path = reader.path().to_owned();
        // First of all, since this process may execute itself again: a part may have begun to read the launch's input.
        reserved_addresses::keep(reader.regions())?;
        let mut reasons = environment::forbids(reader.environment(), here);
        reasons.extend(parts(&reader));
        reasons.extend(descriptors::missing(reader.descriptors()));
        reasons.extend(shared::missing(reader.regions()));
        reasons.extend(reserved_addresses::unseen(reader.regions()));
        let refused = |why: Refusal| {
            RestoreError::Refused(why.reworded(|why| format!("{}: {why}", path.display())))
        };
        if !reasons.is_empty() {
            return Err(refused(Refusal::together(reasons)));
        }
        let in_files = InFiles::hold(&reader).map_err(refused)?;
        Ok(Restore {
            path,
            fetched: Fetched::default(),
            reader: Arc::new(reader),
            in_files,
            objects: Objects::default(),
            loaded: Loaded::default(),
            workers,
        })
    }

    /// Occupies every descriptor number that the image needs, so that later descriptors get other numbers. To be called before MPI, the agent or anything else
    /// opens a descriptor.
    pub fn reserve_descriptors(self) -> Result<Restore, RestoreError> {
        let Restore {
            path,
            fetched,
            reader,
            in_files,
            objects,
            loaded,
            workers,
        } = self;
        let table = reader.descriptors().clone();
        let fetched = fetched.out_of_the_way_of(&table);
        let digest = reader.digest();
        // The reader's own descriptor may have a number that must be reserved.
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
            reader: Arc::new(reader),
            in_files,
            objects,
            loaded,
            workers,
        })
    }

    /// Returns the thread level that MPI must be started with (standard-ABI value); -1: MPI was not started.
    pub fn thread_level(&self) -> i32 {
        self.reader.environment().mpi_thread_level
    }

    /// Maps the rest of the upper half's memory at its old addresses and fills it. Memory that comes late is on its way then; `lost` ends the process if it
    /// cannot be read.
    ///
    /// # Safety
    /// The upper half's addresses must be free: no application runs in this process.
    pub unsafe fn map(&mut self, lost: fn(String) -> !) -> Result<(), RestoreError> {
        // SAFETY: the caller says that no application runs, so the upper half's addresses are free, except for what `open` has mapped there.
        unsafe {
            memory::map(
                &self.reader,
                &mut self.in_files,
                &mut self.objects,
                &self.loaded,
                self.workers,
            )?;
        }
        self.loaded.forget();
        if let Some(late) = self.loaded.late() {
            arrival::begin(&self.reader, late, self.workers, lost)?;
        }
        loader::make_room(&self.reader)
    }

    /// Opens descriptors again, cuts files to their length at the checkpoint, and maps shared files. This changes files: every rank of the job must have opened
    /// and checked its image before.
    ///
    /// # Safety
    /// As [`Restore::map`], which must have been called.
    pub unsafe fn files(&mut self) -> Result<(), RestoreError> {
        let at = |point| strike(point).map_err(RestoreError::system("cannot restore its files"));
        at(Point::RestartFiles)?;
        descriptors::cut_files(self.reader.descriptors())?;
        at(Point::RestartShared)?;
        // SAFETY: the caller has called `map`, and no application runs that could use these addresses.
        unsafe { shared::map_files(&self.reader)? };
        at(Point::RestartDescriptors)?;
        let input = self.input().map_err(RestoreError::Refused)?;
        let fed = input.as_ref().map(|saved| saved.pipe);
        let writer = descriptors::open_all(&self.reader, &mut self.objects, fed)?;
        self.objects.forget();
        if let (Some(saved), Some(writer)) = (&input, &writer) {
            input::carry_on(saved, writer).map_err(RestoreError::Refused)?;
        }
        at(Point::RestartLocks)?;
        descriptors::lock_all(self.reader.descriptors())
    }

    /// Whether the program continues with this launch's standard input, whatever that is.
    fn needs_launchers_input(&self) -> bool {
        let mut descriptions = self.reader.descriptors().descriptions.iter();
        descriptions.any(|one| matches!(one.kind, DescriptorKind::Inherited { stream: 0 }))
    }

    /// Returns what the image holds of standard input besides its pipe.
    fn input(&self) -> Result<Option<input::Saved>, Refusal> {
        let bytes = self.payload(&input::KIND);
        bytes.map(input::Saved::from_bytes).transpose()
    }

    /// Restores what needs the threads to exist: descriptors that name threads, and streams that the application had closed.
    pub fn finish_descriptors(&self) -> Result<(), RestoreError> {
        descriptors::finish(self.reader.descriptors())
    }

    /// Returns the threads to make again, the main one first.
    pub fn threads(&self) -> &[Thread] {
        self.reader.threads()
    }

    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

/// An image's payloads, as parts read them.
pub struct Image<'a>(pub &'a Reader);

impl Saved for Image<'_> {
    fn payload(&self, kind: &Kind) -> Option<&[u8]> {
        payload_of(self.0, kind)
    }
}

impl Saved for Restore {
    fn payload(&self, kind: &Kind) -> Option<&[u8]> {
        payload_of(&self.reader, kind)
    }
}

fn payload_of<'a>(reader: &'a Reader, kind: &Kind) -> Option<&'a [u8]> {
    let blob = reader.blob(kind.name);
    let blob = blob.filter(|blob| blob.version == kind.version);
    blob.map(|blob| blob.bytes.as_slice())
}

/// Returns a payload that was written as JSON, or `None` if the image does not have it.
pub fn read_if_there<T: DeserializeOwned>(
    saved: &(impl Saved + ?Sized),
    kind: &Kind,
) -> Result<Option<T>, Refusal> {
    let bytes = saved.payload(kind);
    bytes
        .map(serde_json::from_slice)
        .transpose()
        .map_err(|error| refusal!(BrokenImage, "'{}' in its image: {error}", kind.name))
}

/// Returns a payload that every image must have.
pub fn read<T: DeserializeOwned>(saved: &(impl Saved + ?Sized), kind: &Kind) -> Result<T, Refusal> {
    read_if_there(saved, kind)?.ok_or_else(|| {
        refusal!(
            BrokenImage,
            "it holds no '{}': use another epoch",
            kind.name
        )
    })
}

#[cfg(test)]
mod tests;
