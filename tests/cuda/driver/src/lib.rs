//! An emulated CUDA driver: `libcuda.so.1` for machines without a GPU. What it shares with the device, which is a process of its
//! own, is in the protocol's crate.
//!
//! It imitates what a checkpoint has to do with. In the process of a client
//! - the device window is reserved, with a hint and at fixed addresses; device pointers lie in it, and nobody can touch them;
//! - files of the devices are open and mapped while there is a connection;
//! - a service thread, `cuda-EvtHandlr`, waits for what other processes' drivers ask by `cuCheckpointProcess*`: it finds the
//!   client's device memory a place in host memory, closes and unmaps everything of the devices, and makes all of that again;
//! - calls of a process that is locked wait, and so does the lock for calls and for work that is under way.
//!
//! After a restart in a fresh process everything has to be found by what memory and descriptors hold: nothing is kept of
//! process and thread ids, and the folder of the devices comes with the command to restore.
//!
//! A function that is not here is answered as the real driver answers for one that it does not have: `dlsym` does not find it, and
//! `cuGetProcAddress` says so. What differs from the real driver: PTX is looked at for kernels' names and parameters only,
//! and other images are refused; variables in modules, textures and multicast objects
//! of several processes are not there; and the `_ptds` variants are not.

mod addresses;
mod allocation;
mod callbacks;
mod calls;
mod checkpoint;
mod code;
mod connection;
mod contexts;
mod driver;
mod gate;
mod graphs;
mod heap;
mod lending;
mod mapping;
mod multicast;
mod objects;
mod ptx;
mod remote;
mod service;
mod window;
