//! The section table.

use stillpoint_image::format::SectionKind;

use super::{sample, says};

#[test]
fn too_many_sections() {
    let text =
        sample().changed(|patch| patch.change_header(|header| header.section_count = u32::MAX));
    says(&text, &["section count", "4294967295"]);
}

#[test]
fn a_section_table_somewhere_else() {
    for offset in [0, u64::MAX, u64::MAX - 100] {
        let text =
            sample().changed(|patch| patch.change_header(|header| header.table_offset = offset));
        says(&text, &["section table offset"]);
    }
}

#[test]
fn an_absurd_length_in_the_header() {
    let text = sample().changed(|patch| {
        patch.change_header(|header| {
            let more = 1 << 60;
            header.file_bytes += more;
            header.table_offset += more;
        })
    });
    says(&text, &["truncated", "file length"]);
}

#[test]
fn sections_that_leave_gaps_or_overlap() {
    let text = sample().changed(|patch| patch.table_record(2, |record| record.offset += 8));
    says(&text, &["section offset"]);
    let text = sample().changed(|patch| patch.table_record(2, |record| record.offset -= 8));
    says(&text, &["section offset"]);
}

#[test]
fn a_section_longer_than_the_file() {
    for bytes in [u64::MAX, 1 << 62, 1 << 30] {
        let text = sample().changed(|patch| patch.table_record(1, |record| record.bytes = bytes));
        says(&text, &["section length"]);
    }
}

#[test]
fn a_section_of_an_unknown_kind_or_twice() {
    let text = sample().changed(|patch| patch.table_record(1, |record| record.kind = 99));
    says(&text, &["section kind", "99"]);
    let text = sample()
        .changed(|patch| patch.table_record(1, |record| record.kind = SectionKind::Runs as u32));
    says(&text, &["section kind", "runs occurs twice"]);
}

#[test]
fn a_section_that_is_missing() {
    for kind in [
        SectionKind::Identity,
        SectionKind::Regions,
        SectionKind::Chunks,
        SectionKind::Strings,
    ] {
        // The section becomes a blob, of which an image may have any number.
        let text = sample().changed(|patch| {
            let (index, _) = patch.section(kind);
            patch.table_record(index, |record| record.kind = SectionKind::Blob as u32);
        });
        says(&text, &[kind.name(), "there is no such section"]);
    }
}

#[test]
fn a_blob_without_a_proper_name() {
    let names: [&[u8]; 2] = [b"\xff\xfe", b"a\0b"];
    for name in names {
        let text = sample().changed(|patch| {
            let (index, _) = patch.section(SectionKind::Blob);
            patch.table_record(index, |record| {
                record.name = [0; 32];
                record.name[..name.len()].copy_from_slice(name);
            });
        });
        says(&text, &["blob", "is not a name"]);
    }
}
