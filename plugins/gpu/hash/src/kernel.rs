//! The hash as a program in PTX, which the driver compiles for the GPU.
//!
//! The program is written by hand with few instructions. Its PTX version is one that every driver since CUDA 10 reads. Its target is the oldest
//! device generation of those drivers that can lend a process's memory. One thread block hashes one block; each of its threads is a lane.

use core::ffi::CStr;

use crate::{LANES, UNIT};

/// The kernel's name in the module.
pub const NAME: &CStr = c"stillpoint_hash";

/// The threads of each thread block. The grid has one thread block for each block.
pub const THREADS: u32 = LANES as u32;

/// The alignment of addresses and lengths.
pub const ALIGNMENT: u64 = UNIT as u64;

/// Bytes of a written hash: the lower half, then the higher.
pub const HASH_BYTES: u64 = 16;

/// Mixes the state in `%low` and `%high`.
macro_rules! mix {
    () => {
        "    mul.lo.u64 %low, %low, %factor0;
    shl.b64 %turned, %low, 32;
    shr.u64 %rest, %low, 32;
    or.b64 %turned, %turned, %rest;
    xor.b64 %high, %high, %turned;
    mul.lo.u64 %high, %high, %factor1;
    shl.b64 %turned, %high, 29;
    shr.u64 %rest, %high, 35;
    or.b64 %turned, %turned, %rest;
    xor.b64 %low, %low, %turned;
"
    };
}

/// Hashes `bytes` bytes at `memory` in blocks of `block` bytes, the last of which may be shorter; the hashes go to
/// `hashes`.
const TEXT: &str = concat!(
    ".version 6.3
.target sm_75
.address_size 64

.visible .entry stillpoint_hash(
    .param .u64 memory,
    .param .u64 bytes,
    .param .u64 block,
    .param .u64 hashes
)
.reqntid 128, 1, 1
{
    .reg .pred %is;
    .reg .b32 %thread, %number, %half;
    .reg .b64 %memory, %bytes, %block, %hashes, %lane, %first, %length, %at, %address;
    .reg .b64 %factor0, %factor1, %low, %high, %turned, %rest, %unit0, %unit1, %mine, %other;
    .shared .align 16 .b8 states[2048];

    mov.u32 %thread, %tid.x;
    mov.u32 %number, %ctaid.x;
    ld.param.u64 %memory, [memory];
    ld.param.u64 %bytes, [bytes];
    ld.param.u64 %block, [block];
    ld.param.u64 %hashes, [hashes];
    cvta.to.global.u64 %memory, %memory;
    cvta.to.global.u64 %hashes, %hashes;
    mov.u64 %factor0, 0x9e3779b97f4a7c15U;
    mov.u64 %factor1, 0xd6e8feb86659fd93U;

    // Where this block begins, and how long it is.
    cvt.u64.u32 %first, %number;
    mul.lo.u64 %first, %first, %block;
    sub.u64 %length, %bytes, %first;
    min.u64 %length, %length, %block;
    add.u64 %first, %memory, %first;

    // A lane that has taken nothing.
    cvt.u64.u32 %lane, %thread;
    add.u64 %rest, %lane, 1;
    mul.lo.u64 %low, %rest, %factor0;
    mul.lo.u64 %high, %rest, %factor1;
    shl.b64 %at, %lane, 4;
ROWS:
    setp.ge.u64 %is, %at, %length;
    @%is bra ROWS_END;
    add.u64 %address, %first, %at;
    ld.global.v2.u64 {%unit0, %unit1}, [%address];
    xor.b64 %low, %low, %unit0;
    xor.b64 %high, %high, %unit1;
",
    mix!(),
    "    add.u64 %at, %at, 2048;
    bra ROWS;
ROWS_END:
",
    mix!(),
    mix!(),
    mix!(),
    "
    // All lanes are added up: the upper half of them to the lower one, until there is one.
    mov.u64 %mine, states;
    shl.b64 %rest, %lane, 4;
    add.u64 %mine, %mine, %rest;
    st.shared.v2.u64 [%mine], {%low, %high};
    mov.u32 %half, 64;
ADD:
    bar.sync 0;
    setp.ge.u32 %is, %thread, %half;
    @%is bra ADDED;
    cvt.u64.u32 %other, %half;
    shl.b64 %other, %other, 4;
    add.u64 %other, %mine, %other;
    ld.shared.v2.u64 {%unit0, %unit1}, [%other];
    add.u64 %low, %low, %unit0;
    add.u64 %high, %high, %unit1;
    st.shared.v2.u64 [%mine], {%low, %high};
ADDED:
    shr.u32 %half, %half, 1;
    setp.ne.u32 %is, %half, 0;
    @%is bra ADD;

    // The first lane has the sum.
    setp.ne.u32 %is, %thread, 0;
    @%is bra DONE;
    xor.b64 %low, %low, %length;
",
    mix!(),
    mix!(),
    mix!(),
    "    cvt.u64.u32 %rest, %number;
    shl.b64 %rest, %rest, 4;
    add.u64 %address, %hashes, %rest;
    st.global.v2.u64 [%address], {%low, %high};
DONE:
    ret;
}
\0"
);

/// The module, as a driver takes it.
pub const PTX: &CStr = match CStr::from_bytes_with_nul(TEXT.as_bytes()) {
    Ok(text) => text,
    Err(_) => panic!("it ends with its only zero"),
};
