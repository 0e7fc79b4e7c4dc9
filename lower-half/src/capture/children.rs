//! Child processes of the application.

use crate::ground::{starters, told};

/// Child processes that are alive (or not yet waited for).
pub fn alive(lower: &[u32]) -> Vec<String> {
    if !has_children() {
        return Vec::new();
    }
    let found = children_of_tasks().unwrap_or_else(children_by_parent);
    let reasons = found.into_iter().filter(|pid| !lower.contains(pid));
    reasons
        .map(|pid| {
            let name = told::by(&format!("/proc/{pid}/comm")).unwrap_or_default();
            format!(
                "it has a child process, {pid} ({}): wait until it has ended",
                name.trim_end()
            )
        })
        .collect()
}

/// Whether any thread of this process has a child: the kernel says so to who asks for the end of one, without taking it.
fn has_children() -> bool {
    // SAFETY: integers only, for which zeros are valid.
    let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let ways = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the kernel fills the structure.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut information, ways) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

/// As the kernel lists them for each thread; `None` where it does not (CONFIG_PROC_CHILDREN).
fn children_of_tasks() -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(children) => found.extend(numbers(&children)),
            // A thread that has ended meanwhile has given its children to another.
            Err(_) if !task.path().exists() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

fn numbers(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split_whitespace().filter_map(|word| word.parse().ok())
}

/// Every process that says that this one is its parent.
fn children_by_parent() -> Vec<u32> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| starters::parent(*pid) == Some(own))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_with_and_without_the_kernels_list() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(has_children());
        assert!(children_by_parent().contains(&child.id()));
        if let Some(listed) = children_of_tasks() {
            assert!(listed.contains(&child.id()));
        }
        assert!(alive(&[]).iter().any(|reason| reason.contains("(sleep)")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_by_parent().contains(&child.id()));
    }
}
