//! State of other modules in an image.

use crate::error::ImageError;
use crate::format::SectionKind;
use crate::sections::Sections;

/// State of another module, as it gave it to [`crate::Writer::blob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub name: String,
    pub version: u32,
    pub bytes: Vec<u8>,
}

pub(super) fn read(sections: &Sections<'_>) -> Result<Vec<Blob>, ImageError> {
    let mut blobs: Vec<Blob> = Vec::new();
    let records = sections.table.iter();
    for record in records.filter(|record| record.kind == SectionKind::Blob as u32) {
        let Some(name) = blob_name(&record.name) else {
            let problem = format!("'{}' is not a name", record.name.escape_ascii());
            return Err(sections.malformed(SectionKind::Blob, problem));
        };
        if blobs.iter().any(|blob| blob.name == name) {
            return Err(sections.malformed(
                SectionKind::Blob,
                format!("there are two blobs named '{name}'"),
            ));
        }
        blobs.push(Blob {
            name,
            version: record.version,
            bytes: sections.bytes(record)?,
        });
    }
    Ok(blobs)
}

/// Returns the name without the zeros that fill it up.
fn blob_name(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0);
    let (name, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    let filled = rest.iter().all(|byte| *byte == 0);
    String::from_utf8(name.to_vec()).ok().filter(|_| filled)
}
