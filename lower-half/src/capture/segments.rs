//! System V memory segments, as the kernel tells of them.

/// A segment.
pub struct Segment {
    id: libc::c_int,
    pub key: libc::key_t,
    pub bytes: usize,
    /// It is marked for removal: it goes with its last attachment.
    pub goes: bool,
    /// The kernel counts mappings: an attachment may consist of several.
    mappings: u64,
}

impl Segment {
    /// Returns `None` if there is no such segment, or this user may not look at it.
    pub fn of(id: libc::c_int) -> Option<Segment> {
        const SHM_DEST: u32 = 0o1000;
        let mut status = std::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
        // SAFETY: IPC_STAT fills the structure, for which zeros are valid too.
        let status = unsafe {
            if libc::shmctl(id, libc::IPC_STAT, status.as_mut_ptr()) != 0 {
                return None;
            }
            status.assume_init()
        };
        Some(Segment {
            id,
            key: status.shm_perm.__key,
            bytes: status.shm_segsz,
            goes: u32::from(status.shm_perm.mode) & SHM_DEST != 0,
            mappings: status.shm_nattch,
        })
    }

    /// Whether another process has attached it.
    pub fn is_attached_elsewhere(&self) -> bool {
        let Ok(all) = std::fs::read_to_string("/proc/self/maps") else {
            return false;
        };
        let word = format!(" {} ", self.id);
        let is_here = |line: &&str| line.contains("/SYSV") && line.contains(&word);
        self.mappings > all.lines().filter(is_here).count() as u64
    }
}
