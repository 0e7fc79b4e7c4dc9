//! Facts about the node's driver and devices.

use stillpoint_gpu_driver::{Driver, OpenError, checkpoint, devices};
use stillpoint_gpu_messages::{Device, Facts, Uuid};

/// The kernel's file with the version of the driver's module.
const MODULE: &str = "/sys/module/nvidia/version";

/// Makes every device visible. A rank may see only some devices, but this process serves all ranks. Call this while there is only one thread.
pub fn see_every_device() {
    // SAFETY: the caller says that there is one thread, so no other one looks at the environment.
    unsafe { std::env::remove_var("CUDA_VISIBLE_DEVICES") };
}

/// Opens the driver.
///
/// # Errors
/// The text is for people.
pub fn open() -> Result<Driver, String> {
    Driver::open().map_err(|error| match error {
        OpenError::NoLibrary(_) => format!("{error}: install NVIDIA's driver on this node"),
        OpenError::TooOld => format!("{error}: install a newer driver"),
        OpenError::Call(_) => format!(
            "cannot initialize the CUDA driver: {error}: check that nvidia-smi sees the devices"
        ),
    })
}

/// Explains why parts of GPUs (MIG) are not supported. Each process sees one such part, and this process, which serves them all, would see
/// another's.
fn part(devices: &[devices::Device]) -> Option<String> {
    let part = devices.iter().find(|device| device.is_part)?;
    Some(format!(
        "{} is a part of a GPU (MIG), and Stillpoint does not checkpoint parts of GPUs: run the job on whole GPUs \
         (nvidia-smi -mig 0)",
        part.name
    ))
}

/// Collects the facts.
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
            "the driver has no {}: install a driver for CUDA 12.8 or later",
            missing.join(", ")
        )),
    };
    let no_custom_storage = match &no_host_mode {
        Some(reason) => Some(reason.clone()),
        None if cuda < checkpoint::CUSTOM_STORAGE_SINCE => {
            Some("install a driver for CUDA 13.4 or later".to_owned())
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
