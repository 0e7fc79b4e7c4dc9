//! Who else has something open.

use std::collections::HashMap;

/// The pipes and sockets that processes other than this one have open, as far as this user may see: what their descriptors lead to, and one process each.
pub fn elsewhere() -> HashMap<String, u32> {
    let own = std::process::id();
    let mut found = HashMap::new();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return found;
    };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids.filter(|pid| *pid != own) {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let links = links.filter_map(|link| link.into_os_string().into_string().ok());
        let theirs = links.filter(|link| link.starts_with("pipe:") || link.starts_with("socket:"));
        for link in theirs {
            found.entry(link).or_insert(pid);
        }
    }
    found
}
