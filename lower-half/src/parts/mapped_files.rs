//! Files that are mapped privately and hold bytes in the image's place. A restart opens and compares them before anything is mapped, and
//! then maps the very files that it has compared (`restore::mapped_files`).

use stillpoint_part::{Done, Kind, Part, Payload};

use super::put;
use crate::capture::mapped_files::{self, KIND};
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct MappedFiles;

impl Part<Still<'_>, Back> for MappedFiles {
    fn name(&self) -> &'static str {
        "mapped files"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        match still.mapped_files()? {
            none if none.files.is_empty() && none.kept.is_empty() => Ok(()),
            files => put(payloads, KIND, files),
        }
    }

    fn resume(&self, back: &mut Back) -> Done {
        let files = restore::read_if_there(&back.restore, &KIND)?;
        if let Some(files) = files {
            mapped_files::carry_on(&files);
        }
        Ok(())
    }
}
