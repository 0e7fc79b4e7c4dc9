//! Small libraries: names, symbols and dependencies, and no code.

/// Bytes of the header of a file and of a section.
const HEADER: u64 = 64;
/// The strings of a library.
const STRINGS: &[u8] =
    b"\0PMPI_Init\0ompi_mpi_comm_world\0stillpoint_contract\0libabsent.so\0$ORIGIN/x:$LIB\0PMPI_Comm_rank\0PMPI_Type_size\0";
/// Offsets of names in these strings.
const PMPI_INIT: u32 = 1;
const OPEN_MPI: u32 = 11;
const CONTRACT: u32 = 31;
const ABSENT: u64 = 51;
const ORIGIN: u64 = 64;
const COMM_RANK: u32 = 79;
const TYPE_SIZE: u32 = 94;

/// Returns an Open MPI, an MPICH, and a program with missing dependencies.
pub fn programs() -> Vec<Vec<u8>> {
    let path = |tag: u64| [(1, ABSENT), (tag, ORIGIN), (0, 0)];
    vec![
        library(&[PMPI_INIT, COMM_RANK, TYPE_SIZE, OPEN_MPI], &[(0, 0)]),
        library(&[PMPI_INIT, COMM_RANK, TYPE_SIZE, CONTRACT], &[(0, 0)]),
        library(&[CONTRACT], &path(15)),
        library(&[], &path(29)),
        b"#!/bin/sh\n".to_vec(),
    ]
}

/// Returns a program that needs a library with a long name many times over.
pub fn greedy(times: usize, length: usize) -> Vec<u8> {
    let name = vec![b'x'; length];
    let needs = vec![(1, 1); times];
    built(&[], &needs, &[b"\0", &name[..], b"\0"].concat())
}

fn library(symbols: &[u32], dynamic: &[(u64, u64)]) -> Vec<u8> {
    built(symbols, dynamic, STRINGS)
}

/// Builds the sections: none, strings, symbols, dependencies, data.
fn built(symbols: &[u32], dynamic: &[(u64, u64)], strings: &[u8]) -> Vec<u8> {
    let mut table = vec![0; 24];
    for name in symbols {
        table.extend(name.to_le_bytes());
        // A global object, in the last section.
        table.extend([0x11, 0, 4, 0]);
        table.extend([HEADER, 4].map(u64::to_le_bytes).concat());
    }
    let entries: Vec<u8> = dynamic
        .iter()
        .flat_map(|(tag, value)| [*tag, *value].map(u64::to_le_bytes).concat())
        .collect();
    let data = 7_u32.to_le_bytes();
    let contents = [&[][..], strings, &table, &entries, &data];
    // Kind, flags, linked section, bytes of an entry.
    let kinds: [(u32, u64, u32, u64); 5] = [
        (0, 0, 0, 0),
        (3, 0, 0, 0),
        (11, 0, 1, 24),
        (6, 0, 1, 16),
        (1, 3, 0, 0),
    ];
    let (mut body, mut headers) = (vec![], vec![]);
    for ((kind, flags, link, entry), bytes) in kinds.into_iter().zip(contents) {
        let at = HEADER + body.len() as u64;
        body.extend_from_slice(bytes);
        body.resize(body.len().next_multiple_of(8), 0);
        let address = if kind == 1 { HEADER } else { 0 };
        headers.extend([0, kind].map(u32::to_le_bytes).concat());
        headers.extend(
            [flags, address, at, bytes.len() as u64]
                .map(u64::to_le_bytes)
                .concat(),
        );
        headers.extend([link, 0].map(u32::to_le_bytes).concat());
        headers.extend([8, entry].map(u64::to_le_bytes).concat());
    }
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([3_u16, 62].map(u16::to_le_bytes).concat());
    file.extend(1_u32.to_le_bytes());
    file.extend(
        [0, 0, HEADER + body.len() as u64]
            .map(u64::to_le_bytes)
            .concat(),
    );
    file.extend(0_u32.to_le_bytes());
    file.extend([64_u16, 56, 0, 64, 5, 1].map(u16::to_le_bytes).concat());
    [file, body, headers].concat()
}
