//! Memory of GPUs that was staged, in words.

use serde_json::Value;
use stillpoint_ids::Rank;
use stillpoint_image::Description;

use crate::units::bytes;

/// A line for each rank whose image has memory of GPUs in a section of its own: its size, the places where it was staged, and the time for which all stood
/// still.
pub fn in_words(images: &[Description]) -> String {
    let lines = images
        .iter()
        .filter(|image| !image.devices.is_empty())
        .map(|image| {
            let all: u64 = image.devices.iter().map(|device| device.bytes).sum();
            line(image.identity.rank, all, &image.gpu["staged"])
        });
    lines.collect()
}

fn line(rank: Rank, all: u64, staged: &Value) -> String {
    let place = |name: &str| bytes(staged[name].as_u64().unwrap_or(0));
    let milliseconds = |name: &str| staged[name].as_f64().unwrap_or(0.0) * 1e3;
    format!(
        "rank {rank}: {} of GPUs, staged on their own {}, on others {}, in host memory {}, in {:.2} ms ({:.2} expected)\n",
        bytes(all),
        place("own_bytes"),
        place("peer_bytes"),
        place("host_bytes"),
        milliseconds("seconds"),
        milliseconds("predicted"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_times_are_told() {
        let staged = serde_json::json!({
            "own_bytes": 4096, "peer_bytes": 0, "host_bytes": 1024, "seconds": 0.0125, "predicted": 0.01
        });
        let text = line(Rank(3), 5120, &staged);
        assert!(text.starts_with("rank 3: "), "{text}");
        assert!(text.ends_with("in 12.50 ms (10.00 expected)\n"), "{text}");
    }
}
