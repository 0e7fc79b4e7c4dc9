//! What the node's driver and devices are.

use stillpoint_gpu_driver::{Driver, OpenError, checkpoint, devices};
use stillpoint_gpu_messages::{Device, Facts, Uuid};

/// Where the kernel tells the version of the driver's module.
const MODULE: &str = "/sys/module/nvidia/version";

/// A rank may be told to see some devices only, and this process serves all ranks: it sees every one. To be called while there is one thread.
pub fn see_every_device() {
    // SAFETY: no other thread runs yet.
    unsafe { std::env::remove_var("CUDA_VISIBLE_DEVICES") };
}

/// Begins with the driver.
///
/// # Errors
/// In words for people.
pub fn open() -> Result<Driver, String> {
    Driver::open().map_err(|error| match error {
        OpenError::NoLibrary(_) => format!("{error}: install NVIDIA's driver on this node"),
        OpenError::TooOld => format!("{error}: install a newer one"),
        OpenError::Call(_) => format!(
            "the CUDA driver cannot be begun with: {error}: does nvidia-smi see the devices?"
        ),
    })
}

/// What is said where the driver tells parts of GPUs as devices. Processes see one such part each, and this one, which serves them all, would see
/// another's.
fn part(devices: &[devices::Device]) -> Option<String> {
    let part = devices.iter().find(|device| device.is_part)?;
    Some(format!(
        "{} is a part of a GPU (MIG), and parts of GPUs are not carried: run the job on whole GPUs (nvidia-smi -mig 0)",
        part.name
    ))
}

/// What there is.
///
/// # Errors
/// The driver's, in words for people.
pub fn of(driver: &Driver) -> Result<Facts, String> {
    let told = |error: stillpoint_gpu_driver::Error| error.to_string();
    let cuda = devices::version(driver).map_err(told)?;
    let devices = devices::all(driver).map_err(told)?;
    let no_host_mode = match checkpoint::missing(driver).as_slice() {
        [] => part(&devices),
        missing => Some(format!(
            "the driver has no {}: a driver for CUDA 12.8 or later is needed",
            missing.join(", ")
        )),
    };
    let no_custom_storage = match &no_host_mode {
        Some(reason) => Some(reason.clone()),
        None if cuda < checkpoint::CUSTOM_STORAGE_SINCE => {
            Some("a driver for CUDA 13.4 or later is needed".to_owned())
        }
        None => None,
    };
    Ok(Facts {
        cuda,
        driver: std::fs::read_to_string(MODULE)
            .ok()
            .map(|text| text.trim().to_owned()),
        devices: devices
            .into_iter()
            .map(|device| Device {
                uuid: Uuid(device.uuid),
                name: device.name,
                bytes: device.bytes,
            })
            .collect(),
        no_host_mode,
        no_custom_storage,
    })
}
