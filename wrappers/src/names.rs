//! Names by which one half knows what the other has made.

/// How the path of a file begins that the members of a window share (`MPI_Win_allocate_shared`). What follows is the world rank of the member whose image holds its
/// bytes, a full stop, and a number that nobody else has.
pub const WINDOW_MEMORY: &str = "/dev/shm/stillpoint-window.";

/// The world rank of the member whose image holds the bytes of such a file; `None` for any other path.
pub fn holder_of_window_memory(path: &str) -> Option<i32> {
    let (holder, _) = path.strip_prefix(WINDOW_MEMORY)?.split_once('.')?;
    holder.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_stands_in_the_path() {
        let path = std::format!("{WINDOW_MEMORY}12.00ff");
        assert_eq!(holder_of_window_memory(&path), Some(12));
        assert_eq!(holder_of_window_memory("/dev/shm/other.12.0"), None);
        assert_eq!(holder_of_window_memory(WINDOW_MEMORY), None);
    }
}
