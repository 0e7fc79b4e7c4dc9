//! Who else has something open.

/// A process other than this one that has one of these pipes or sockets open (`links`: what its descriptors lead to), as far as
/// this user may see.
pub fn other_holder(links: &[&str]) -> Option<u32> {
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").ok()?;
    let mut pids =
        processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        *pid != own
            && std::fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|mut entries| {
                entries.any(|entry| {
                    entry.is_ok_and(|entry| {
                        std::fs::read_link(entry.path())
                            .is_ok_and(|found| links.iter().any(|link| found.as_os_str() == *link))
                    })
                })
            })
    })
}
