//! Files that are open through MPI, as a restart must find them. The real MPI opens them again (`objects`).

use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::put;
use crate::capture::mpi_files::{self, KIND, MpiFile};
use crate::capture::stopped_process::Still;
use crate::gate::descriptors;
use crate::restore;
use crate::restore::back::Back;

pub struct MpiFiles;

impl Part<Still<'_>, Back> for MpiFiles {
    fn name(&self) -> &'static str {
        "MPI files"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(mpi_files::hinder(&mpi_files::open(), &descriptors::upper()));
        Ok(())
    }

    fn seal(&self, still: &Still<'_>) -> Done {
        let inside = still.enter()?;
        let open = mpi_files::open();
        drop(inside);
        Ok(mpi_files::sync(&open)?)
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let inside = still.enter()?;
        let open = mpi_files::open();
        drop(inside);
        match mpi_files::survey(&open)? {
            none if none.is_empty() => Ok(()),
            files => put(payloads, KIND, &files),
        }
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        match restore::read_if_there::<Vec<MpiFile>>(saved, &KIND) {
            Ok(files) => {
                reasons.extend(restore::mpi_files::missing(&files.unwrap_or_default()));
            }
            Err(reason) => reasons.push(reason),
        }
    }

    fn open(&self, back: &mut Back) -> Done {
        let files: Option<Vec<MpiFile>> = restore::read_if_there(&back.restore, &KIND)?;
        Ok(restore::mpi_files::cut(&files.unwrap_or_default())?)
    }
}
