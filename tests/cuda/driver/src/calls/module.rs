//! Modules and their kernels.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;

use stillpoint_emulated_gpu_protocol::message::{Launch, Work};

use super::give;
use crate::code::{self, Code};
use crate::driver::{Driver, call, look};
use crate::objects::Function;
use crate::ptx::{self, Entry};

/// The first bytes of a module's image that is made for a device and is not text.
const BINARIES: [&[u8]; 2] = [b"\x7fELF", b"\x50\xed\x55\xba"];

fn load(place: *mut u64, image: &[u8]) -> Code {
    call(|driver| {
        let of = driver.context()?.1.device as usize;
        if BINARIES.iter().any(|magic| image.starts_with(magic)) {
            return Err(code::NO_BINARY_FOR_GPU);
        }
        let text = std::str::from_utf8(image).map_err(|_| code::INVALID_IMAGE)?;
        let entries = ptx::entries(text).ok_or(code::INVALID_PTX)?;
        let target = ptx::target(text).ok_or(code::INVALID_PTX)?;
        let device = driver.node.devices.get(of);
        if device.is_some_and(|device| device.capability < target) {
            return Err(code::NO_BINARY_FOR_GPU);
        }
        let module = driver.modules.add(entries);
        // SAFETY: the program's place for a handle.
        unsafe { give(place, module) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleLoadData(place: *mut u64, image: *const c_void) -> Code {
    if image.is_null() {
        return code::INVALID_VALUE;
    }
    // SAFETY: an image of the program is a text with a zero at its end, or binary with a zero somewhere behind its magic.
    load(place, unsafe { CStr::from_ptr(image.cast()) }.to_bytes())
}

/// The options concern code generation, so they have no effect here.
#[unsafe(no_mangle)]
pub extern "C" fn cuModuleLoadDataEx(
    place: *mut u64,
    image: *const c_void,
    _count: c_uint,
    _options: *mut c_uint,
    _values: *mut *mut c_void,
) -> Code {
    cuModuleLoadData(place, image)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleLoad(place: *mut u64, path: *const c_char) -> Code {
    if path.is_null() {
        return code::INVALID_VALUE;
    }
    // SAFETY: a path of the program.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
    match fs::read(path.as_ref()) {
        Ok(image) => load(place, &image),
        Err(_) => code::FILE_NOT_FOUND,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: u64) -> Code {
    look(|driver| {
        driver.modules.remove(module).ok_or(code::INVALID_HANDLE)?;
        let of = driver.functions.iter();
        let of: Vec<u64> = of
            .filter(|(_, function)| function.module == module)
            .map(|(function, _)| function)
            .collect();
        for function in of {
            driver.functions.remove(function);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleGetFunction(place: *mut u64, module: u64, name: *const c_char) -> Code {
    look(|driver| {
        if name.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: a name of the program.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let entries = driver.modules.get(module).ok_or(code::INVALID_HANDLE)?;
        let entry = entries.iter().find(|entry| entry.name.as_bytes() == name);
        let entry = entry.ok_or(code::NOT_FOUND)?.clone();
        // The same kernel has the same handle.
        let known = driver
            .functions
            .iter()
            .find(|(_, function)| function.module == module && function.entry.name == entry.name);
        let handle = known.map(|(handle, _)| handle);
        let handle = handle.unwrap_or_else(|| driver.functions.add(Function { module, entry }));
        // SAFETY: the program's place for a handle.
        unsafe { give(place, handle) }
    })
}

/// Variables of modules are not supported.
#[unsafe(no_mangle)]
pub extern "C" fn cuModuleGetGlobal_v2(
    _address: *mut u64,
    _size: *mut usize,
    module: u64,
    _name: *const c_char,
) -> Code {
    look(|driver| match driver.modules.get(module) {
        Some(_) => Err(code::NOT_FOUND),
        None => Err(code::INVALID_HANDLE),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: u64) -> Code {
    look(|driver| {
        driver.functions.get(function).ok_or(code::INVALID_HANDLE)?;
        let answer = match attribute {
            0 => 1024,
            // Registers, and the versions that the code was made for.
            4 => 32,
            5 | 6 => 90,
            1..=15 => 0,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the program's place for a number.
        unsafe { give(value, answer) }
    })
}

/// The end mark of a list of `extra`, and the keys of its two entries.
const EXTRA: [usize; 3] = [0, 1, 2];

/// Reads the parameters of a kernel, in either of the two forms that programs may use.
///
/// # Safety
/// The parameters are those of the kernel's PTX.
unsafe fn parameters(
    entry: &Entry,
    single: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<Vec<Vec<u8>>, Code> {
    // SAFETY: a parameter of the program has as many bytes as the kernel's PTX says.
    let bytes =
        |start: *const u8, size: usize| unsafe { std::slice::from_raw_parts(start, size).to_vec() };
    if entry.parameters.is_empty() {
        return Ok(vec![]);
    }
    if !single.is_null() {
        let numbered = entry.parameters.iter().enumerate();
        let one = |(index, &(size, _)): (usize, &(usize, usize))| {
            // SAFETY: there is a pointer for each parameter.
            let start = unsafe { single.add(index).read() };
            bytes(start.cast(), size)
        };
        return Ok(numbered.map(one).collect());
    }
    if extra.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), 0);
    let mut at = 0;
    loop {
        // SAFETY: the list goes on until its end mark.
        let key = unsafe { extra.add(at).read() } as usize;
        if key == EXTRA[0] {
            break;
        }
        // SAFETY: a key has a value.
        let value = unsafe { extra.add(at + 1).read() };
        match key {
            key if key == EXTRA[1] => buffer = value.cast(),
            // SAFETY: the value points to a number.
            key if key == EXTRA[2] => size = unsafe { value.cast::<usize>().read() },
            _ => return Err(code::INVALID_VALUE),
        }
        at += 2;
    }
    let places = entry.places();
    if buffer.is_null() || places.iter().any(|(start, length)| start + length > size) {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: within the buffer, by the check above.
    let one = |(start, length): (usize, usize)| bytes(unsafe { buffer.add(start) }, length);
    Ok(places.into_iter().map(one).collect())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernel(
    function: u64,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared: c_uint,
    stream: u64,
    single: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Code {
    let launch = |driver: &mut Driver| {
        let kernel = driver.functions.get(function).ok_or(code::INVALID_HANDLE)?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let threads = block.iter().map(|side| u64::from(*side)).product::<u64>();
        if grid.contains(&0) || threads == 0 || threads > 1024 {
            return Err(code::INVALID_VALUE);
        }
        let launch = Launch {
            kernel: kernel.entry.name.clone(),
            grid,
            block,
            // SAFETY: the program passes the parameters of its kernel.
            parameters: unsafe { parameters(&kernel.entry, single, extra) }?,
        };
        driver
            .submit(stream, vec![], Work::Launch(launch))
            .map(drop)
    };
    call(launch)
}

/// Every kernel here runs all blocks at once, as cooperative kernels need.
#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchCooperativeKernel(
    function: u64,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: u64,
    single: *mut *mut c_void,
) -> Code {
    cuLaunchKernel(
        function,
        grid_x,
        grid_y,
        grid_z,
        block_x,
        block_y,
        block_z,
        shared,
        stream,
        single,
        std::ptr::null_mut(),
    )
}
