//! Tests of images as files: what is written is read, changes between epochs are carried, and what is broken is named.

mod broken;
mod common;
mod devices;
mod devices_carried;
mod epochs;
mod manifest;
mod round_trip;
mod shared;
