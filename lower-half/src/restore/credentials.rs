//! Restores the users, groups and capabilities of threads (`capture::credentials`), or says before anything is mapped why it cannot.
//!
//! Users and groups are always restored: the application has seen them, and its rights follow from them. Supplementary groups, capabilities and securebits
//! remain the launcher's choice if the application had left them as launched and runs here as the same users.
//!
//! A thread sets its credentials as its last step before it runs the application. Threads of the lower half keep the launch's credentials, and can read what
//! those permit.

use std::collections::BTreeSet;

use stillpoint_refusals::{Refusal, refusal};

use crate::arch::syscall::{failed, syscall3, syscall4};
use crate::capture::credentials::{Capabilities, Credentials, Saved};

const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;
const CAP_SETPCAP: u32 = 8;
const SECBIT_NO_SETUID_FIXUP: u32 = 4;

/// The credentials that a thread has to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    users: Option<[u32; 4]>,
    groups: Option<[u32; 4]>,
    supplementary: Option<Vec<u32>>,
    /// With the securebits.
    capabilities: Option<(Capabilities, u32)>,
    /// The securebits that the thread begins with.
    from: u32,
}

/// Returns the message for a thread whose credentials the kernel refused.
pub fn not_given(error: i32) -> Refusal {
    let error = std::io::Error::from_raw_os_error(error);
    refusal!(
        OtherUser,
        "cannot restore its users and capabilities: {error}"
    )
}

/// Returns the credentials that each thread has to change, by the thread id that the application knows.
///
/// # Errors
/// The credentials that this launch does not permit.
pub fn changes(saved: &Saved) -> Result<Vec<(u32, Change)>, Refusal> {
    let here = Credentials::here().ok_or_else(|| {
        refusal!(
            NoProc,
            "/proc does not show this process's users and capabilities: mount proc there"
        )
    })?;
    let threads = saved.threads.iter();
    let changes = threads.map(|(tid, credentials)| {
        let change = change(credentials, &saved.launched, &here)?;
        Ok(change.map(|change| (*tid, change)))
    });
    changes.filter_map(Result::transpose).collect()
}

fn change(
    saved: &Credentials,
    launched: &Credentials,
    here: &Credentials,
) -> Result<Option<Change>, Refusal> {
    let may = |capability: u32| here.capabilities.effective >> capability & 1 != 0;
    let users = (saved.users != here.users).then_some(saved.users);
    let groups = (saved.groups != here.groups).then_some(saved.groups);
    if users.is_some() && !may(CAP_SETUID) {
        return Err(refusal!(
            OtherUser,
            "it ran as user {}, but this launch runs as user {} and may not change to it: restart it as user {} or as root",
            in_words(saved.users),
            in_words(here.users),
            launched.users[0],
        ));
    }
    if groups.is_some() && !may(CAP_SETGID) {
        return Err(refusal!(
            OtherUser,
            "it ran in group {}, but this launch runs in {} and may not change to it: restart it with that group \
             (newgrp) or as root",
            in_words(saved.groups),
            in_words(here.groups),
        ));
    }
    // Supplementary groups and capabilities of another user must not be kept.
    let another = users.is_some() || groups.is_some();
    let own = |differs: bool| differs || another;
    let supplementary = own(saved.supplementary != launched.supplementary)
        && saved.supplementary != here.supplementary;
    if supplementary && !may(CAP_SETGID) {
        return Err(refusal!(
            OtherUser,
            "it had chosen the groups {:?}, but this launch may not choose groups: restart it as root",
            saved.supplementary
        ));
    }
    let mut wanted = saved.capabilities;
    if wanted.bounding == launched.capabilities.bounding {
        // The launcher's choice, and it can never be raised.
        wanted.bounding &= here.capabilities.bounding;
    }
    let differs =
        (saved.capabilities, saved.securebits) != (launched.capabilities, launched.securebits);
    let capabilities = (own(differs)
        && (wanted, saved.securebits) != (here.capabilities, here.securebits))
        .then_some((wanted, saved.securebits));
    if capabilities.is_some() {
        forbidden(&wanted, saved.securebits, here)?;
    }
    let change = Change {
        users,
        groups,
        supplementary: supplementary.then(|| saved.supplementary.iter().copied().collect()),
        capabilities,
        from: here.securebits,
    };
    let nothing = !another && !supplementary && change.capabilities.is_none();
    Ok((!nothing).then_some(change))
}

/// Returns an error if a process with the credentials `here` cannot get these.
fn forbidden(wanted: &Capabilities, securebits: u32, here: &Credentials) -> Result<(), Refusal> {
    let have = here.capabilities;
    let more = (wanted.permitted & !have.permitted) | (wanted.bounding & !have.bounding);
    if more != 0 {
        return Err(refusal!(
            OtherUser,
            "it had the capabilities {more:#x}, but this launch does not have them: restart it with them, or as root"
        ));
    }
    let needs = wanted.bounding != have.bounding
        || securebits != here.securebits
        || wanted.inheritable & !(have.inheritable | have.permitted) != 0;
    if needs && have.effective >> CAP_SETPCAP & 1 == 0 {
        return Err(refusal!(
            OtherUser,
            "it had chosen capabilities and securebits that this launch may not set (CAP_SETPCAP): restart it as root"
        ));
    }
    Ok(())
}

/// Formats real, effective, saved and file-system ids, only as many as differ.
fn in_words(ids: [u32; 4]) -> String {
    let different: BTreeSet<u32> = ids.into_iter().collect();
    match different.len() {
        1 => ids[0].to_string(),
        _ => format!("{} (effective {}, saved {})", ids[0], ids[1], ids[2]),
    }
}

fn checked(result: isize) -> Result<(), i32> {
    if failed(result) {
        Err(-result as i32)
    } else {
        Ok(())
    }
}

fn prctl(what: i32, first: usize, second: usize) -> Result<(), i32> {
    // SAFETY: every caller's request takes numbers only, and touches no memory.
    checked(unsafe { syscall4(libc::SYS_prctl, what as usize, first, second, 0) })
}

fn three(number: i64, ids: [u32; 4]) -> Result<(), i32> {
    // SAFETY: every caller's call takes three ids, and touches no memory.
    checked(unsafe { syscall3(number, ids[0] as usize, ids[1] as usize, ids[2] as usize) })
}

fn bits(set: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |bit| set >> bit & 1 != 0)
}

/// Calls `capset`, in the kernel's third version.
fn set_capabilities(permitted: u64, effective: u64, inheritable: u64) -> Result<(), i32> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let half = |shift: u32| [effective, permitted, inheritable].map(|set| (set >> shift) as u32);
    let data = [half(0), half(32)];
    // SAFETY: the kernel reads both structures, which live on this stack.
    checked(unsafe {
        syscall3(
            libc::SYS_capset,
            header.as_ptr() as usize,
            data.as_ptr() as usize,
            0,
        )
    })
}

impl Change {
    /// Makes the change for the calling thread. Makes its system calls directly and allocates nothing, because a thread with the upper FS calls this.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn make(&self) -> Result<(), i32> {
        if let Some(groups) = &self.supplementary {
            let list = groups.as_ptr() as usize;
            // SAFETY: the kernel reads `groups.len()` words of four bytes, which the list has.
            checked(unsafe { syscall3(libc::SYS_setgroups, groups.len(), list, 0) })?;
        }
        if let Some((wanted, _)) = &self.capabilities {
            for bit in bits(!wanted.bounding).filter(|bit| bounding_has(*bit)) {
                prctl(libc::PR_CAPBSET_DROP, bit, 0)?;
            }
            if self.users.is_some() {
                // Keeps the capabilities through the change of users; they are set below. A thread that may not set the securebits may still set
                // PR_SET_KEEPCAPS.
                let kept = (self.from | SECBIT_NO_SETUID_FIXUP) as usize;
                prctl(libc::PR_SET_SECUREBITS, kept, 0)
                    .or_else(|_| prctl(libc::PR_SET_KEEPCAPS, 1, 0))?;
            }
        }
        if let Some(groups) = self.groups {
            three(libc::SYS_setresgid, groups)?;
            // SAFETY: the call takes a number. It returns the previous id, not an error.
            unsafe { syscall3(libc::SYS_setfsgid, groups[3] as usize, 0, 0) };
        }
        if let Some(users) = self.users {
            three(libc::SYS_setresuid, users)?;
            // SAFETY: the call takes a number. It returns the previous id, not an error.
            unsafe { syscall3(libc::SYS_setfsuid, users[3] as usize, 0, 0) };
        }
        if let Some((wanted, securebits)) = &self.capabilities {
            self.make_capabilities(wanted, *securebits)?;
        }
        Ok(())
    }

    fn make_capabilities(&self, wanted: &Capabilities, securebits: u32) -> Result<(), i32> {
        if wanted.ambient != 0 {
            let all = wanted.permitted | 1 << CAP_SETPCAP;
            set_capabilities(all, all, wanted.inheritable)?;
            for bit in bits(wanted.ambient) {
                prctl(
                    libc::PR_CAP_AMBIENT,
                    libc::PR_CAP_AMBIENT_RAISE as usize,
                    bit,
                )?;
            }
        }
        if (securebits != self.from || self.users.is_some())
            && let Err(error) = prctl(libc::PR_SET_SECUREBITS, securebits as usize, 0)
        {
            if securebits != self.from {
                return Err(error);
            }
            prctl(libc::PR_SET_KEEPCAPS, 0, 0)?;
        }
        set_capabilities(wanted.permitted, wanted.effective, wanted.inheritable)
    }
}

fn bounding_has(bit: usize) -> bool {
    let read = libc::PR_CAPBSET_READ as usize;
    // SAFETY: the call takes numbers only, and touches no memory.
    unsafe { syscall3(libc::SYS_prctl, read, bit, 0) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: u32) -> Credentials {
        Credentials {
            users: [id; 4],
            groups: [id; 4],
            supplementary: BTreeSet::from([id]),
            capabilities: Capabilities {
                bounding: 0xff,
                ..Capabilities::default()
            },
            securebits: 0,
        }
    }

    fn root() -> Credentials {
        Credentials {
            capabilities: Capabilities {
                permitted: 0xfff,
                effective: 0xfff,
                bounding: 0xfff,
                ..Capabilities::default()
            },
            ..user(0)
        }
    }

    #[test]
    fn what_the_launcher_gave_is_the_launchers_again() {
        assert_eq!(change(&user(7), &user(7), &user(7)), Ok(None));
        let elsewhere = Credentials {
            supplementary: BTreeSet::from([7, 8]),
            capabilities: Capabilities::default(),
            ..user(7)
        };
        assert_eq!(change(&user(7), &user(7), &elsewhere), Ok(None));
    }

    #[test]
    fn who_had_dropped_root_is_not_root_again() {
        let change = change(&user(7), &root(), &root()).unwrap().unwrap();
        assert_eq!((change.users, change.groups), (Some([7; 4]), Some([7; 4])));
        assert_eq!(change.supplementary, Some(vec![7]));
        assert_eq!(change.capabilities, Some((user(7).capabilities, 0)));
    }

    #[test]
    fn another_user_cannot_carry_on() {
        let refused = change(&user(7), &user(7), &user(8)).unwrap_err();
        assert!(
            refused.details().contains("restart it as user 7"),
            "{refused}"
        );
        let dropped = change(&user(7), &root(), &user(7));
        // The same user, with the groups and capabilities that it has here.
        assert_eq!(dropped, Ok(None));
        let kept = Credentials {
            capabilities: Capabilities {
                permitted: 0x400,
                ..user(7).capabilities
            },
            ..user(7)
        };
        let refused = change(&kept, &root(), &user(7)).unwrap_err();
        assert!(refused.details().contains("0x400"), "{refused}");
    }

    #[test]
    fn root_that_carries_on_for_a_user_becomes_that_user() {
        let change = change(&user(7), &user(7), &root()).unwrap().unwrap();
        assert_eq!(change.users, Some([7; 4]));
        let (capabilities, _) = change.capabilities.unwrap();
        assert_eq!((capabilities.permitted, capabilities.bounding), (0, 0xff));
    }
}
