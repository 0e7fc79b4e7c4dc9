//! System V semaphore sets and message queues in a restart. An object that still exists under its id and key is used again; semaphores get their values back.
//! An object that is gone (another node, a reboot, removed) is made again under its id, which takes privileges. Without them, the restart is refused before
//! anything is changed.
//!
//! Ranks of one node may share an object: each rank comes here, and finds what another has just made.

use stillpoint_refusals::{Refusal, refusal};

use super::RestoreError;
use crate::capture::ipc::{self, Named, Saved};
use crate::gate::ipc::{Object, note};

/// The files that set the id of the next object of a kind.
const NEXT_SEMAPHORES: &str = "/proc/sys/kernel/sem_next_id";
const NEXT_QUEUE: &str = "/proc/sys/kernel/msg_next_id";

/// Returns, for people, the objects that cannot be restored here. Changes nothing.
pub fn missing(saved: &Saved) -> Vec<Refusal> {
    let semaphores = saved.semaphores.iter().filter_map(|set| {
        let there = is_there(set);
        (!there).then(|| lost("semaphore set", &set.named, NEXT_SEMAPHORES))?
    });
    let queues = saved.queues.iter().filter_map(|queue| {
        match ipc::queue(queue.named.id) {
            Ok((found, 0)) if found.named.key == queue.named.key => None,
            Ok((found, messages)) if found.named.key == queue.named.key => Some(refusal!(
                IpcObject,
                "its System V message queue {} holds {messages} message(s), but was empty at the checkpoint: receive \
                 them, or remove the queue (ipcrm -q)",
                queue.named.id
            )),
            Ok(_) | Err(_) => lost("message queue", &queue.named, NEXT_QUEUE),
        }
    });
    semaphores.chain(queues).collect()
}

fn is_there(set: &ipc::Semaphores) -> bool {
    ipc::semaphores(set.named.id).is_ok_and(|found| {
        found.named.key == set.named.key && found.values.len() == set.values.len()
    })
}

/// Returns the reason that an object is missing, unless it can be made again.
fn lost(what: &str, named: &Named, next: &str) -> Option<Refusal> {
    let may = std::fs::OpenOptions::new().write(true).open(next).is_ok();
    (!may).then(|| {
        refusal!(
            IpcObject,
            "its System V {what} {} (key {:#x}) is not on this host: restart it on the host where it ran, or as a \
             user who may write {next}",
            named.id, named.key
        )
    })
}

/// Restores all objects.
pub fn give(saved: &Saved) -> Result<(), RestoreError> {
    let refused = |what: &str, named: &Named| {
        let error = std::io::Error::last_os_error();
        RestoreError::Refused(refusal!(
            IpcObject,
            "cannot restore its System V {what} {} (key {:#x}): {error}",
            named.id,
            named.key
        ))
    };
    for set in &saved.semaphores {
        let named = &set.named;
        let there = is_there(set) || make_semaphores(set) || is_there(set);
        let mut values = set.values.clone();
        // SAFETY: the set is there with as many semaphores as there are values (`is_there`), or was just made with as many.
        if !there || unsafe { libc::semctl(named.id, 0, libc::SETALL, values.as_mut_ptr()) } != 0 {
            return Err(refused("semaphore set", named));
        }
        note(Object::Semaphores, named.id);
    }
    for queue in &saved.queues {
        let named = &queue.named;
        let is_there = || ipc::queue(named.id).is_ok_and(|(found, _)| found.named.key == named.key);
        if !is_there() && !make_queue(queue) && !is_there() {
            return Err(refused("message queue", named));
        }
        note(Object::Queue, named.id);
    }
    Ok(())
}

fn flags(named: &Named) -> libc::c_int {
    libc::IPC_CREAT | libc::IPC_EXCL | named.mode as libc::c_int
}

fn make_semaphores(set: &ipc::Semaphores) -> bool {
    let named = &set.named;
    if std::fs::write(NEXT_SEMAPHORES, named.id.to_string()).is_err() {
        return false;
    }
    // SAFETY: these calls take numbers, but for the last, which reads a structure that lives on this stack; zeros are valid for it.
    unsafe {
        let made = libc::semget(named.key, set.values.len() as libc::c_int, flags(named));
        if made >= 0 && made != named.id {
            libc::semctl(made, 0, libc::IPC_RMID);
        }
        if made != named.id {
            return false;
        }
        let mut status = std::mem::zeroed::<libc::semid_ds>();
        status.sem_perm.uid = named.user;
        status.sem_perm.gid = named.group;
        status.sem_perm.mode = named.mode as _;
        libc::semctl(made, 0, libc::IPC_SET, &raw mut status) == 0
    }
}

fn make_queue(queue: &ipc::Queue) -> bool {
    let named = &queue.named;
    if std::fs::write(NEXT_QUEUE, named.id.to_string()).is_err() {
        return false;
    }
    // SAFETY: these calls take numbers, but for the last, which reads a structure that lives on this stack; zeros are valid for it.
    unsafe {
        let made = libc::msgget(named.key, flags(named));
        if made >= 0 && made != named.id {
            libc::msgctl(made, libc::IPC_RMID, std::ptr::null_mut());
        }
        if made != named.id {
            return false;
        }
        let mut status = std::mem::zeroed::<libc::msqid_ds>();
        status.msg_perm.uid = named.user;
        status.msg_perm.gid = named.group;
        status.msg_perm.mode = named.mode as _;
        status.msg_qbytes = queue.room;
        libc::msgctl(made, libc::IPC_SET, &raw mut status) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the user that runs the tests may choose ids.
    fn may(next: &str) -> bool {
        std::fs::OpenOptions::new().write(true).open(next).is_ok()
    }

    #[test]
    fn semaphores_get_their_values_and_are_made_again_or_refused() {
        // SAFETY: the call takes numbers and makes a set, which is this test's own.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 3, libc::IPC_CREAT | 0o640) };
        assert!(id >= 0);
        let mut values = [5u16, 0, 70];
        // SAFETY: the set has three semaphores, and SETALL reads as many values.
        let set = unsafe { libc::semctl(id, 0, libc::SETALL, values.as_mut_ptr()) };
        assert_eq!(set, 0);
        let saved = Saved {
            semaphores: vec![ipc::semaphores(id).unwrap()],
            queues: Vec::new(),
        };
        assert_eq!(saved.semaphores.first().unwrap().values, values);
        // SAFETY: the set is this test's own; SETVAL takes a number.
        assert_eq!(unsafe { libc::semctl(id, 1, libc::SETVAL, 9) }, 0);
        assert_eq!(missing(&saved), [] as [Refusal; 0]);
        give(&saved).unwrap();
        assert_eq!(ipc::semaphores(id).unwrap().values, values);
        // SAFETY: the set is this test's own; IPC_RMID takes no argument.
        assert_eq!(unsafe { libc::semctl(id, 0, libc::IPC_RMID) }, 0);
        if may(NEXT_SEMAPHORES) {
            assert_eq!(missing(&saved), [] as [Refusal; 0]);
            give(&saved).unwrap();
            assert_eq!(ipc::semaphores(id).unwrap(), saved.semaphores[0]);
            // SAFETY: the set is this test's own, made again; IPC_RMID takes no argument.
            unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
        } else {
            let reasons = missing(&saved);
            assert!(
                reasons
                    .iter()
                    .all(|reason| reason.details().contains("is not on this host"))
                    && reasons.len() == 1
            );
        }
    }

    #[test]
    fn a_queue_is_made_again_and_one_with_messages_is_refused() {
        // SAFETY: the call takes numbers and makes a queue, which is this test's own.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0);
        let (queue, messages) = ipc::queue(id).unwrap();
        assert_eq!(messages, 0);
        let saved = Saved {
            semaphores: Vec::new(),
            queues: vec![queue],
        };
        let message = [1u64, 2];
        // SAFETY: the kernel reads a type of eight bytes and a text of eight, which the message has.
        let sent = unsafe { libc::msgsnd(id, message.as_ptr().cast(), 8, 0) };
        assert_eq!(sent, 0);
        let reasons = missing(&saved);
        assert!(
            reasons
                .iter()
                .any(|reason| reason.details().contains("holds 1 message")),
            "{reasons:?}"
        );
        // SAFETY: the queue is this test's own; IPC_RMID ignores the pointer.
        let removed = unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        assert_eq!(removed, 0);
        if may(NEXT_QUEUE) {
            give(&saved).unwrap();
            assert_eq!(ipc::queue(id).unwrap(), (saved.queues[0].clone(), 0));
            // SAFETY: the queue is this test's own, made again; IPC_RMID ignores the pointer.
            unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        } else {
            assert_eq!(missing(&saved).len(), 1);
        }
    }
}
