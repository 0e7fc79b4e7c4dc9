//! The driver's results, with their names and meanings.

/// A result as functions return it.
pub type Code = u32;

macro_rules! codes {
    ($($short:ident $name:literal $number:literal $text:literal)* ; $($other:literal $others:literal $means:literal)*) => {
        $(pub const $short: Code = $number;)*

        /// Number, name with its zero, and meaning with its zero.
        pub const ALL: &[(Code, &std::ffi::CStr, &std::ffi::CStr)] =
            &[$(($number, $name, $text),)* $(($others, $other, $means)),*];
    };
}

// The results that this library returns have a name here; the others come only from the device, or never.
codes! {
    SUCCESS c"CUDA_SUCCESS" 0 c"no error"
    INVALID_VALUE c"CUDA_ERROR_INVALID_VALUE" 1 c"invalid argument"
    OUT_OF_MEMORY c"CUDA_ERROR_OUT_OF_MEMORY" 2 c"out of memory"
    NOT_INITIALIZED c"CUDA_ERROR_NOT_INITIALIZED" 3 c"initialization error"
    DEVICE_UNAVAILABLE c"CUDA_ERROR_DEVICE_UNAVAILABLE" 46 c"device is busy or unavailable"
    NO_DEVICE c"CUDA_ERROR_NO_DEVICE" 100 c"no device is there"
    INVALID_DEVICE c"CUDA_ERROR_INVALID_DEVICE" 101 c"invalid device ordinal"
    INVALID_IMAGE c"CUDA_ERROR_INVALID_IMAGE" 200 c"not a kernel image"
    INVALID_CONTEXT c"CUDA_ERROR_INVALID_CONTEXT" 201 c"invalid device context"
    NO_BINARY_FOR_GPU c"CUDA_ERROR_NO_BINARY_FOR_GPU" 209 c"no kernel image for this device"
    PEER_ACCESS_UNSUPPORTED c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED" 217 c"no peer access between these devices"
    INVALID_PTX c"CUDA_ERROR_INVALID_PTX" 218 c"invalid PTX"
    FILE_NOT_FOUND c"CUDA_ERROR_FILE_NOT_FOUND" 301 c"file not found"
    OPERATING_SYSTEM c"CUDA_ERROR_OPERATING_SYSTEM" 304 c"a call of the operating system failed"
    INVALID_HANDLE c"CUDA_ERROR_INVALID_HANDLE" 400 c"invalid resource handle"
    ILLEGAL_STATE c"CUDA_ERROR_ILLEGAL_STATE" 401 c"not in this state"
    NOT_FOUND c"CUDA_ERROR_NOT_FOUND" 500 c"named symbol not found"
    NOT_READY c"CUDA_ERROR_NOT_READY" 600 c"device not ready"
    PEER_ACCESS_ALREADY_ENABLED c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED" 704 c"peer access is enabled already"
    PEER_ACCESS_NOT_ENABLED c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED" 705 c"peer access is not enabled"
    CONTEXT_IS_DESTROYED c"CUDA_ERROR_CONTEXT_IS_DESTROYED" 709 c"the context is destroyed"
    HOST_MEMORY_ALREADY_REGISTERED c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" 712 c"host memory is registered already"
    HOST_MEMORY_NOT_REGISTERED c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED" 713 c"host memory is not registered"
    NOT_SUPPORTED c"CUDA_ERROR_NOT_SUPPORTED" 801 c"not supported"
    SYSTEM_DRIVER_MISMATCH c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" 803 c"another driver version"
    COMPAT_NOT_SUPPORTED_ON_DEVICE c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" 804 c"not supported on this device"
    STREAM_CAPTURE_UNSUPPORTED c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" 900 c"not while a stream is captured"
    UNKNOWN c"CUDA_ERROR_UNKNOWN" 999 c"unknown error"
    ;
    c"CUDA_ERROR_ECC_UNCORRECTABLE" 214 c"uncorrectable memory error"
    c"CUDA_ERROR_ILLEGAL_ADDRESS" 700 c"illegal memory access"
    c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE" 708 c"the primary context is active"
    c"CUDA_ERROR_LAUNCH_FAILED" 719 c"launch failure"
    c"CUDA_ERROR_NOT_PERMITTED" 800 c"not permitted"
    c"CUDA_ERROR_SYSTEM_NOT_READY" 802 c"the system is not ready"
}

/// Converts a result for the program.
pub fn of(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(SUCCESS)
}
