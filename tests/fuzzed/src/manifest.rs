//! The manifest of an epoch.

use stillpoint_ids::Rank;
use stillpoint_image::Manifest;
use stillpoint_image::format::checksum;
use stillpoint_image::manifest::NAME;

use crate::input_directory::InputDirectory;
use crate::seeds;

/// The first byte selects the meaning of the others. Even: the file; odd: the text after its first line, which is made
/// to fit.
pub fn manifest(input: &[u8]) -> bool {
    let Some((form, rest)) = input.split_first() else {
        return false;
    };
    let place = InputDirectory::new();
    if form % 2 == 0 {
        place.file(NAME, rest);
    } else {
        let first = format!(
            "stillpoint-manifest 1 {:016x} {}\n",
            checksum(rest),
            rest.len()
        );
        place.file(NAME, &[first.as_bytes(), rest].concat());
    }
    let Ok(manifest) = Manifest::read(place.path()) else {
        return false;
    };
    place.file("image", seeds::image_file());
    for rank in Rank::all(manifest.ranks.len().min(4) as u32 + 1) {
        if let Ok(reader) = manifest.open_image(place.path(), rank) {
            let entry = &manifest.ranks[rank.index()];
            assert_eq!(
                (reader.digest(), reader.identity().rank),
                (entry.digest, rank)
            );
        }
    }
    manifest
        .write(place.path())
        .expect("what was read can be written");
    assert_eq!(
        Manifest::read(place.path()).expect("what was written can be read"),
        manifest
    );
    true
}
