//! The lookup of functions by name and version, for programs.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use super::{
    checkpoint::*, context::*, copy::*, device::*, error::*, event::*, graph::*, managed::*,
    mapping::*, memory::*, module::*, multicast::*, pointer::*, settings::*, sharing::*, stream::*,
};
use crate::code::{self, Code};
use crate::driver::look;

/// A function: the name that programs ask for, the version that introduced it, and its symbol.
struct Entry {
    base: &'static str,
    since: c_int,
    #[cfg(test)]
    symbol: &'static str,
    function: *const (),
}

// SAFETY: the addresses of functions, for reading.
unsafe impl Sync for Entry {}

macro_rules! entries {
    ($($base:literal $since:literal $symbol:ident)*) => {
        &[$(Entry {
            base: $base,
            since: $since,
            #[cfg(test)]
            symbol: stringify!($symbol),
            function: $symbol as *const (),
        }),*]
    };
}

/// Every function. Of two with the same base, the later version comes second.
static ENTRIES: &[Entry] = entries! {
    "cuCheckpointOperationComplete" 13040 cuCheckpointOperationComplete
    "cuCheckpointProcessCheckpoint" 12080 cuCheckpointProcessCheckpoint
    "cuCheckpointProcessGetRestoreThreadId" 12080 cuCheckpointProcessGetRestoreThreadId
    "cuCheckpointProcessGetState" 12080 cuCheckpointProcessGetState
    "cuCheckpointProcessLock" 12080 cuCheckpointProcessLock
    "cuCheckpointProcessRestore" 12080 cuCheckpointProcessRestore
    "cuCheckpointProcessUnlock" 12080 cuCheckpointProcessUnlock
    "cuCtxCreate" 3020 cuCtxCreate_v2
    "cuCtxCreate" 12050 cuCtxCreate_v4
    "cuCtxDestroy" 4000 cuCtxDestroy_v2
    "cuCtxDisablePeerAccess" 4000 cuCtxDisablePeerAccess
    "cuCtxEnablePeerAccess" 4000 cuCtxEnablePeerAccess
    "cuCtxGetApiVersion" 2000 cuCtxGetApiVersion
    "cuCtxGetCacheConfig" 3020 cuCtxGetCacheConfig
    "cuCtxGetCurrent" 4000 cuCtxGetCurrent
    "cuCtxGetDevice" 2000 cuCtxGetDevice
    "cuCtxGetFlags" 7000 cuCtxGetFlags
    "cuCtxGetLimit" 3010 cuCtxGetLimit
    "cuCtxGetStreamPriorityRange" 5050 cuCtxGetStreamPriorityRange
    "cuCtxPopCurrent" 4000 cuCtxPopCurrent_v2
    "cuCtxPushCurrent" 4000 cuCtxPushCurrent_v2
    "cuCtxSetCacheConfig" 3020 cuCtxSetCacheConfig
    "cuCtxSetCurrent" 4000 cuCtxSetCurrent
    "cuCtxSetFlags" 12010 cuCtxSetFlags
    "cuCtxSetLimit" 3010 cuCtxSetLimit
    "cuCtxSynchronize" 2000 cuCtxSynchronize
    "cuDeviceCanAccessPeer" 4000 cuDeviceCanAccessPeer
    "cuDeviceComputeCapability" 2000 cuDeviceComputeCapability
    "cuDeviceGet" 2000 cuDeviceGet
    "cuDeviceGetAttribute" 2000 cuDeviceGetAttribute
    "cuDeviceGetByPCIBusId" 4010 cuDeviceGetByPCIBusId
    "cuDeviceGetCount" 2000 cuDeviceGetCount
    "cuDeviceGetDefaultMemPool" 11020 cuDeviceGetDefaultMemPool
    "cuDeviceGetMemPool" 11020 cuDeviceGetMemPool
    "cuDeviceGetName" 2000 cuDeviceGetName
    "cuDeviceGetP2PAttribute" 8000 cuDeviceGetP2PAttribute
    "cuDeviceGetPCIBusId" 4010 cuDeviceGetPCIBusId
    "cuDeviceGetUuid" 9020 cuDeviceGetUuid
    "cuDeviceGetUuid" 11040 cuDeviceGetUuid_v2
    "cuDevicePrimaryCtxGetState" 7000 cuDevicePrimaryCtxGetState
    "cuDevicePrimaryCtxRelease" 11000 cuDevicePrimaryCtxRelease_v2
    "cuDevicePrimaryCtxReset" 11000 cuDevicePrimaryCtxReset_v2
    "cuDevicePrimaryCtxRetain" 7000 cuDevicePrimaryCtxRetain
    "cuDevicePrimaryCtxSetFlags" 11000 cuDevicePrimaryCtxSetFlags_v2
    "cuDeviceSetMemPool" 11020 cuDeviceSetMemPool
    "cuDeviceTotalMem" 3020 cuDeviceTotalMem_v2
    "cuDriverGetVersion" 2000 cuDriverGetVersion
    "cuEventCreate" 2000 cuEventCreate
    "cuEventDestroy" 4000 cuEventDestroy_v2
    "cuEventElapsedTime" 2000 cuEventElapsedTime
    "cuEventElapsedTime" 12080 cuEventElapsedTime_v2
    "cuEventQuery" 2000 cuEventQuery
    "cuEventRecord" 2000 cuEventRecord
    "cuEventRecordWithFlags" 11010 cuEventRecordWithFlags
    "cuEventSynchronize" 2000 cuEventSynchronize
    "cuFuncGetAttribute" 2000 cuFuncGetAttribute
    "cuFuncSetAttribute" 9000 cuFuncSetAttribute
    "cuFuncSetCacheConfig" 3000 cuFuncSetCacheConfig
    "cuGetErrorName" 6000 cuGetErrorName
    "cuGetErrorString" 6000 cuGetErrorString
    "cuGetProcAddress" 11030 cuGetProcAddress
    "cuGetProcAddress" 12000 cuGetProcAddress_v2
    "cuGraphDestroy" 10000 cuGraphDestroy
    "cuGraphExecDestroy" 10000 cuGraphExecDestroy
    "cuGraphInstantiateWithFlags" 11040 cuGraphInstantiateWithFlags
    "cuGraphLaunch" 10000 cuGraphLaunch
    "cuInit" 2000 cuInit
    "cuIpcCloseMemHandle" 4010 cuIpcCloseMemHandle
    "cuIpcGetMemHandle" 4010 cuIpcGetMemHandle
    "cuIpcOpenMemHandle" 11000 cuIpcOpenMemHandle_v2
    "cuLaunchCooperativeKernel" 9000 cuLaunchCooperativeKernel
    "cuLaunchHostFunc" 10000 cuLaunchHostFunc
    "cuLaunchKernel" 4000 cuLaunchKernel
    "cuMemAddressFree" 10020 cuMemAddressFree
    "cuMemAddressReserve" 10020 cuMemAddressReserve
    "cuMemAdvise" 12020 cuMemAdvise_v2
    "cuMemAlloc" 3020 cuMemAlloc_v2
    "cuMemAllocAsync" 11020 cuMemAllocAsync
    "cuMemAllocFromPoolAsync" 11020 cuMemAllocFromPoolAsync
    "cuMemAllocHost" 3020 cuMemAllocHost_v2
    "cuMemAllocManaged" 6000 cuMemAllocManaged
    "cuMemAllocPitch" 3020 cuMemAllocPitch_v2
    "cuMemCreate" 10020 cuMemCreate
    "cuMemExportToShareableHandle" 10020 cuMemExportToShareableHandle
    "cuMemFree" 3020 cuMemFree_v2
    "cuMemFreeAsync" 11020 cuMemFreeAsync
    "cuMemFreeHost" 2000 cuMemFreeHost
    "cuMemGetAddressRange" 3020 cuMemGetAddressRange_v2
    "cuMemGetAllocationGranularity" 10020 cuMemGetAllocationGranularity
    "cuMemGetInfo" 3020 cuMemGetInfo_v2
    "cuMemHostAlloc" 2000 cuMemHostAlloc
    "cuMemHostGetDevicePointer" 3020 cuMemHostGetDevicePointer_v2
    "cuMemHostGetFlags" 2000 cuMemHostGetFlags
    "cuMemHostRegister" 6050 cuMemHostRegister_v2
    "cuMemHostUnregister" 4000 cuMemHostUnregister
    "cuMemImportFromShareableHandle" 10020 cuMemImportFromShareableHandle
    "cuMemMap" 10020 cuMemMap
    "cuMemPoolSetAttribute" 11020 cuMemPoolSetAttribute
    "cuMemPoolTrimTo" 11020 cuMemPoolTrimTo
    "cuMemPrefetchAsync" 12020 cuMemPrefetchAsync_v2
    "cuMemRelease" 10020 cuMemRelease
    "cuMemRetainAllocationHandle" 11000 cuMemRetainAllocationHandle
    "cuMemSetAccess" 10020 cuMemSetAccess
    "cuMemUnmap" 10020 cuMemUnmap
    "cuMemcpy" 4000 cuMemcpy
    "cuMemcpyAsync" 4000 cuMemcpyAsync
    "cuMemcpyDtoD" 3020 cuMemcpyDtoD_v2
    "cuMemcpyDtoDAsync" 3020 cuMemcpyDtoDAsync_v2
    "cuMemcpyDtoH" 3020 cuMemcpyDtoH_v2
    "cuMemcpyDtoHAsync" 3020 cuMemcpyDtoHAsync_v2
    "cuMemcpyHtoD" 3020 cuMemcpyHtoD_v2
    "cuMemcpyHtoDAsync" 3020 cuMemcpyHtoDAsync_v2
    "cuMemcpyPeer" 4000 cuMemcpyPeer
    "cuMemcpyPeerAsync" 4000 cuMemcpyPeerAsync
    "cuMemsetD16" 3020 cuMemsetD16_v2
    "cuMemsetD16Async" 2000 cuMemsetD16Async
    "cuMemsetD32" 3020 cuMemsetD32_v2
    "cuMemsetD32Async" 2000 cuMemsetD32Async
    "cuMemsetD8" 3020 cuMemsetD8_v2
    "cuMemsetD8Async" 2000 cuMemsetD8Async
    "cuModuleGetFunction" 2000 cuModuleGetFunction
    "cuModuleGetGlobal" 3020 cuModuleGetGlobal_v2
    "cuModuleLoad" 2000 cuModuleLoad
    "cuModuleLoadData" 2000 cuModuleLoadData
    "cuModuleLoadDataEx" 2000 cuModuleLoadDataEx
    "cuModuleUnload" 2000 cuModuleUnload
    "cuOccupancyMaxActiveBlocksPerMultiprocessor" 6050 cuOccupancyMaxActiveBlocksPerMultiprocessor
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 7000 cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    "cuMulticastAddDevice" 12010 cuMulticastAddDevice
    "cuMulticastBindMem" 12010 cuMulticastBindMem
    "cuMulticastCreate" 12010 cuMulticastCreate
    "cuMulticastGetGranularity" 12010 cuMulticastGetGranularity
    "cuMulticastUnbind" 12010 cuMulticastUnbind
    "cuPointerGetAttribute" 4000 cuPointerGetAttribute
    "cuPointerGetAttributes" 7000 cuPointerGetAttributes
    "cuPointerSetAttribute" 6000 cuPointerSetAttribute
    "cuProfilerStart" 4000 cuProfilerStart
    "cuProfilerStop" 4000 cuProfilerStop
    "cuStreamAttachMemAsync" 6000 cuStreamAttachMemAsync
    "cuStreamBeginCapture" 10010 cuStreamBeginCapture_v2
    "cuStreamCreate" 2000 cuStreamCreate
    "cuStreamCreateWithPriority" 5050 cuStreamCreateWithPriority
    "cuStreamDestroy" 4000 cuStreamDestroy_v2
    "cuStreamEndCapture" 10000 cuStreamEndCapture
    "cuStreamGetCtx" 9020 cuStreamGetCtx
    "cuStreamGetFlags" 5050 cuStreamGetFlags
    "cuStreamGetPriority" 5050 cuStreamGetPriority
    "cuStreamIsCapturing" 10000 cuStreamIsCapturing
    "cuStreamQuery" 2000 cuStreamQuery
    "cuStreamSynchronize" 2000 cuStreamSynchronize
    "cuStreamWaitEvent" 2000 cuStreamWaitEvent
};

/// Results of a search.
const FOUND: c_uint = 0;
const UNKNOWN: c_uint = 1;
const TOO_NEW: c_uint = 2;

/// The flag for functions whose default stream is the thread's own. There are none here.
const PER_THREAD: u64 = 2;

/// Finds the function with a name for a version of CUDA, and returns the result of the search.
fn find(name: &str, version: c_int, newest: c_int) -> (*const (), c_uint) {
    let named = || {
        ENTRIES
            .iter()
            .filter(|entry| entry.base == name && entry.since <= newest)
    };
    match named().rfind(|entry| entry.since <= version) {
        Some(entry) => (entry.function, FOUND),
        None if named().next().is_some() => (ptr::null(), TOO_NEW),
        None => (ptr::null(), UNKNOWN),
    }
}

/// Programs may call this before `cuInit`, when the driver's version is not known yet. Every function is then found.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    place: *mut *const c_void,
    version: c_int,
    flags: u64,
    status: *mut c_uint,
) -> Code {
    if symbol.is_null() || place.is_null() {
        return code::INVALID_VALUE;
    }
    let mut newest = c_int::MAX;
    look(|driver| {
        newest = driver.node.cuda;
        Ok(())
    });
    if flags & !3 != 0 || (newest != c_int::MAX && version > newest) {
        return code::INVALID_VALUE;
    }
    if flags & PER_THREAD != 0 {
        return code::NOT_SUPPORTED;
    }
    // SAFETY: a name of the program.
    let name = unsafe { CStr::from_ptr(symbol) }.to_string_lossy();
    let (function, found) = find(&name, version, newest);
    // SAFETY: the program's places for a pointer and a number.
    unsafe {
        place.write(function.cast());
        if !status.is_null() {
            status.write(found);
        }
    }
    code::SUCCESS
}

/// The form without a status reports a failed search by its result.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    place: *mut *const c_void,
    version: c_int,
    flags: u64,
) -> Code {
    let mut status = FOUND;
    match cuGetProcAddress_v2(symbol, place, version, flags, &mut status) {
        code::SUCCESS if status != FOUND => code::NOT_FOUND,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_given_what_it_knows() {
        assert_eq!(find("cuMemAlloc", 12000, 13040).1, FOUND);
        assert_eq!(find("cuMemAlloc", 3000, 13040).1, TOO_NEW);
        assert_eq!(find("cuMemAlloc_v2", 12000, 13040).1, UNKNOWN);
        assert_eq!(find("cuTexObjectCreate", 12000, 13040).1, UNKNOWN);
        let complete = "cuCheckpointOperationComplete";
        assert_eq!(find(complete, 13040, 13040).1, FOUND);
        assert_eq!(find(complete, 12080, 13040).1, TOO_NEW);
        assert_eq!(find(complete, 13030, 13030).1, UNKNOWN);
        let both = [11030, 12000].map(|version| find("cuGetProcAddress", version, 13040).0);
        assert_ne!(both[0], both[1]);
    }

    #[test]
    fn every_function_is_in_the_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/calls");
        let mut exported = vec![];
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let mark = concat!("pub extern ", "\"C\" fn ");
            let names = text.split(mark).skip(1);
            exported.extend(names.map(|rest| rest.split('(').next().unwrap().to_owned()));
        }
        let mut listed: Vec<_> = ENTRIES
            .iter()
            .map(|entry| entry.symbol.to_owned())
            .collect();
        exported.sort();
        listed.sort();
        assert_eq!(exported, listed);
    }
}
