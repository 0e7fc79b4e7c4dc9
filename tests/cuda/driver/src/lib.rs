//! An emulated CUDA driver: `libcuda.so.1` for machines without a GPU. The protocol's crate has the parts that it shares with the
//! device, which is a process of its own.
//!
//! It imitates the behaviour that matters for a checkpoint. In the process of a client
//! - the device window is reserved, with a hint and at fixed addresses; device pointers lie in it, and are not accessible;
//! - files of the devices are open and mapped while there is a connection;
//! - a service thread, whose name begins with `cuda0`, waits for requests that other processes' drivers make by `cuCheckpointProcess*`. It moves
//!   the client's device memory to host memory, closes and unmaps everything of the devices, and makes all of that again;
//! - calls of a locked process wait, and the lock waits for calls and for work under way.
//!
//! After a restart in a new process, the driver finds everything by its memory and descriptors. It remembers no process or thread
//! ids, and the folder of the devices comes with the command to restore.
//!
//! A missing function is answered as by the real driver: `dlsym` does not find it, and `cuGetProcAddress` says so. Differences
//! from the real driver: PTX is read only for kernels' names and parameters, and other images are refused; there are no variables
//! in modules, no textures, no multicast objects of several processes, and no `_ptds` variants.

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
