//! The rows about GPUs. The helper queries the driver (`stillpoint-gpu --facts`), so that this command does not have to load it.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_gpu_messages::{Device, Facts};

use stillpoint_protocol::installed::beside;

use super::{Row, row};

const HELPER: &str = "stillpoint-gpu";
/// The time after which a driver counts as broken. A working one takes seconds to start.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
/// Every NVIDIA driver has this file.
const CONTROL: &str = "/dev/nvidiactl";

const GPU: &str = "NVIDIA GPU";

pub fn rows() -> Vec<Row> {
    match facts() {
        Ok(facts) => of(&facts),
        Err(_) if !Path::new(CONTROL).exists() => vec![row(GPU, false, false, CONTROL)],
        Err(reason) => vec![row(GPU, false, false, reason)],
    }
}

fn of(facts: &Facts) -> Vec<Row> {
    let names: Vec<String> = facts.devices.iter().map(name).collect();
    let mode = |what, lacks: &Option<String>, offers: &str| {
        let found = lacks.as_deref().unwrap_or(offers);
        row(what, false, lacks.is_none(), found)
    };
    vec![
        row(GPU, false, !names.is_empty(), names.join(", ")),
        row("GPU driver", false, true, facts.version()),
        mode(
            "GPU memory in images (native, host mode)",
            &facts.no_host_mode,
            "through the rank's own memory",
        ),
        mode(
            "GPU memory with custom storage",
            &facts.no_custom_storage,
            "the driver offers it",
        ),
    ]
}

fn name(device: &Device) -> String {
    format!("{} ({} MiB)", device.name, device.bytes >> 20)
}

fn facts() -> Result<Facts, String> {
    let path = beside(HELPER).map_err(|missing| format!("{HELPER} is {missing}"))?;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut child = Command::new(&path)
        .arg("--facts")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let end = Instant::now() + PATIENCE;
    let status = loop {
        // The helper's output fits into a pipe, so it does not block.
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() < end => thread::sleep(LOOK),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                let seconds = PATIENCE.as_secs();
                return Err(format!("the driver did not answer within {seconds} s"));
            }
        }
    };
    let text = |from: Option<&mut dyn Read>| {
        let mut text = String::new();
        // Incomplete output is as good as none.
        let _ = from.map(|from| from.read_to_string(&mut text));
        text.trim().to_owned()
    };
    if !status.success() {
        return Err(text(child.stderr.as_mut().map(|it| it as &mut dyn Read)));
    }
    let said = text(child.stdout.as_mut().map(|it| it as &mut dyn Read));
    serde_json::from_str(&said).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use stillpoint_gpu_messages::Uuid;

    use super::*;

    #[test]
    fn a_mode_that_is_missing_is_told_with_its_reason() {
        let facts = Facts {
            cuda: 12080,
            driver: None,
            devices: vec![Device {
                uuid: Uuid([1; 16]),
                name: "A GPU".to_owned(),
                bytes: 3 << 30,
            }],
            no_host_mode: None,
            no_custom_storage: Some("a newer driver is needed".to_owned()),
        };
        let rows = of(&facts);
        let found: Vec<(bool, &str)> = rows
            .iter()
            .map(|row| (row.ok, row.found.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (true, "A GPU (3072 MiB)"),
                (true, "CUDA 12.8"),
                (true, "through the rank's own memory"),
                (false, "a newer driver is needed"),
            ]
        );
        assert!(rows.iter().all(|row| !row.needed));
    }
}
