//! The node's devices.

use std::ffi::{CStr, c_char, c_int};

use cudarc::driver::sys::{CUdevice, CUuuid};

use crate::library::{Code, Driver, Error, Function};

const fn function(name: &'static CStr, since: c_int) -> Function {
    Function { name, since }
}

const VERSION: Function = function(c"cuDriverGetVersion", 2020);
const COUNT: Function = function(c"cuDeviceGetCount", 2000);
const GET: Function = function(c"cuDeviceGet", 2000);
const NAME: Function = function(c"cuDeviceGetName", 2000);
/// The form that distinguishes parts of a device.
const UUID: Function = function(c"cuDeviceGetUuid", 11040);
const TOTAL: Function = function(c"cuDeviceTotalMem", 3020);

/// The older form: for a part of a device it returns the whole device's uuid.
const UUID_OF_THE_WHOLE: Function = function(c"cuDeviceGetUuid", 9020);

/// One device, as the driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub uuid: [u8; 16],
    pub name: String,
    /// Bytes of its memory.
    pub bytes: u64,
    /// Whether it is a part of a device (MIG).
    pub is_part: bool,
}

/// Returns the driver's version of CUDA: 13040 is 13.4.
///
/// # Errors
/// The driver's.
pub fn version(driver: &Driver) -> Result<i32, Error> {
    type Version = unsafe extern "C" fn(*mut c_int) -> Code;
    // SAFETY: cuDriverGetVersion has the type `Version`; it writes one int to `place`, which `ask` provides.
    driver.ask::<Version, c_int>(VERSION, 0, |call, place| unsafe { call(place) })
}

/// Returns every device, in the driver's order.
///
/// # Errors
/// The driver's.
pub fn all(driver: &Driver) -> Result<Vec<Device>, Error> {
    type Count = unsafe extern "C" fn(*mut c_int) -> Code;
    // SAFETY: cuDeviceGetCount has the type `Count`; it writes one int to `place`, which `ask` provides.
    let count = driver.ask::<Count, c_int>(COUNT, 0, |call, place| unsafe { call(place) })?;
    (0..count).map(|number| describe(driver, number)).collect()
}

fn describe(driver: &Driver, number: c_int) -> Result<Device, Error> {
    type Get = unsafe extern "C" fn(*mut CUdevice, c_int) -> Code;
    type Uuid = unsafe extern "C" fn(*mut CUuuid, CUdevice) -> Code;
    type Total = unsafe extern "C" fn(*mut usize, CUdevice) -> Code;
    type Name = unsafe extern "C" fn(*mut c_char, c_int, CUdevice) -> Code;
    const NAME_BYTES: usize = 256;
    // SAFETY: cuDeviceGet has the type `Get`; it writes one device to `place`, which `ask` provides.
    let device =
        driver.ask::<Get, CUdevice>(GET, 0, |call, place| unsafe { call(place, number) })?;
    let uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: cuDeviceGetUuid has the type `Uuid`; it writes 16 bytes to `place`, which `ask` provides, and `device` is the driver's.
    let uuid =
        driver.ask::<Uuid, CUuuid>(UUID, uuid, |call, place| unsafe { call(place, device) })?;
    // SAFETY: the older cuDeviceGetUuid has the type `Uuid` too; it writes 16 bytes to `place`, which `ask` provides, and `device` is the driver's.
    let whole = driver.ask::<Uuid, CUuuid>(UUID_OF_THE_WHOLE, uuid, |call, place| unsafe {
        call(place, device)
    });
    // SAFETY: cuDeviceTotalMem has the type `Total`; it writes one number to `place`, which `ask` provides, and `device` is the driver's.
    let bytes =
        driver.ask::<Total, usize>(TOTAL, 0, |call, place| unsafe { call(place, device) })?;
    let name = [0; NAME_BYTES];
    let name = driver.ask::<Name, [c_char; NAME_BYTES]>(NAME, name, |call, place| {
        // SAFETY: cuDeviceGetName has the type `Name`; it writes at most NAME_BYTES bytes to `place`, which `ask` provides with that length.
        unsafe { call(place.cast(), NAME_BYTES as c_int, device) }
    })?;
    let name = name.iter().take_while(|letter| **letter != 0);
    let name: Vec<u8> = name.map(|letter| *letter as u8).collect();
    Ok(Device {
        uuid: uuid.bytes.map(|byte| byte as u8),
        name: String::from_utf8_lossy(&name).into_owned(),
        bytes: bytes as u64,
        // A driver without the older form cannot show this.
        is_part: whole.is_ok_and(|whole| whole.bytes != uuid.bytes),
    })
}
