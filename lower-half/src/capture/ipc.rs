//! The System V semaphore sets and message queues that the application uses (`gate::ipc`), as an image holds them.

use std::io;
use std::mem::MaybeUninit;
use stillpoint_part::Kind;
use stillpoint_refusals::{Refusal, refusal};

use serde::{Deserialize, Serialize};

use crate::gate::ipc::{self, Object};
use crate::gate::semaphores;

/// The payload of an image with these objects: JSON, [`Saved`]. An image has it only if the application uses any.
pub const KIND: Kind = Kind {
    name: "system v ipc",
    version: 1,
    always: false,
};

/// An object's id and key, with its owner and mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    pub id: i32,
    pub key: i32,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
}

/// A set of semaphores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semaphores {
    pub named: Named,
    pub values: Vec<u16>,
}

/// A message queue. It is empty, since a checkpoint refuses others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    pub named: Named,
    /// The most bytes that it may hold.
    pub room: u64,
}

/// All sets and queues of the application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub semaphores: Vec<Semaphores>,
    pub queues: Vec<Queue>,
}

impl Named {
    fn of(id: i32, permissions: &libc::ipc_perm) -> Named {
        Named {
            id,
            key: permissions.__key,
            mode: u32::from(permissions.mode) & 0o777,
            user: permissions.uid,
            group: permissions.gid,
        }
    }
}

/// Reads an existing set with its values.
pub fn semaphores(id: i32) -> io::Result<Semaphores> {
    let mut status = MaybeUninit::<libc::semid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure, for which zeros are valid too.
    let status = unsafe {
        if libc::semctl(id, 0, libc::IPC_STAT, status.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        status.assume_init()
    };
    let mut values = vec![0u16; status.sem_nsems as usize];
    // SAFETY: the vector has room for as many values as the kernel says that the set has, and a set never gets more or fewer.
    if unsafe { libc::semctl(id, 0, libc::GETALL, values.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Semaphores {
        named: Named::of(id, &status.sem_perm),
        values,
    })
}

/// Reads an existing queue; also returns how many messages it holds.
pub fn queue(id: i32) -> io::Result<(Queue, u64)> {
    let mut status = MaybeUninit::<libc::msqid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure, for which zeros are valid too.
    let status = unsafe {
        if libc::msgctl(id, libc::IPC_STAT, status.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        status.assume_init()
    };
    let queue = Queue {
        named: Named::of(id, &status.msg_perm),
        room: status.msg_qbytes,
    };
    Ok((queue, status.msg_qnum))
}

/// Returns the semaphore operations that the kernel would take back at the end of the process, and so at a suspend.
pub fn undo() -> Vec<Refusal> {
    let mut reasons: Vec<Refusal> = semaphores::to_take_back()
        .iter()
        .map(|set| {
            refusal!(SemaphoreUndo, "the System V semaphore set {set} has operations with SEM_UNDO that the kernel would take back: give back what it holds"
            )
        })
        .collect();
    if semaphores::lost_count() {
        reasons.push(refusal!(
            SemaphoreUndo,
            "it has used SEM_UNDO on more semaphores than can be kept account of"
        ));
    }
    reasons
}

/// Returns whether the error means that an object has been removed.
fn gone(error: &io::Error) -> bool {
    [Some(libc::EINVAL), Some(libc::EIDRM)].contains(&error.raw_os_error())
}

/// Returns the objects to save, and the reasons against that in words for people.
pub fn survey() -> (Saved, Vec<Refusal>) {
    let (mut saved, mut reasons, mut forgotten) = (Saved::default(), Vec::new(), Vec::new());
    for (object, id) in ipc::noted() {
        let (what, error) = match object {
            Object::Semaphores => match semaphores(id) {
                Ok(found) => {
                    saved.semaphores.push(found);
                    continue;
                }
                Err(error) => ("semaphore set", error),
            },
            Object::Queue => match queue(id) {
                Ok((found, 0)) => {
                    saved.queues.push(found);
                    continue;
                }
                Ok((_, messages)) => {
                    reasons.push(refusal!(FullMessageQueue, "the System V message queue {id} holds {messages} message(s), which cannot be carried: receive them before \
                         a checkpoint"
                    ));
                    continue;
                }
                Err(error) => ("message queue", error),
            },
        };
        if gone(&error) {
            forgotten.push((object, id));
        } else {
            reasons.push(refusal!(
                UnclearIpc,
                "the System V {what} {id} cannot be read: {error}"
            ));
        }
    }
    ipc::forget(&forgotten);
    if ipc::lost_count() {
        reasons.push(
            refusal!(UnclearIpc, "it has used more System V semaphore sets and message queues than can be kept account of"),
        );
    }
    (saved, reasons)
}
