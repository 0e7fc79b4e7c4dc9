//! Answers clients at the job's door ([`crate::door`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stillpoint_ids::Epoch;
use stillpoint_protocol::codec::Frames;
use stillpoint_protocol::command::{CommittedEpoch, FromCommand, Requester, ToCommand};
use stillpoint_refusals::{Code, Refusal, refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::{Event, ServerState, frame};
use crate::door::{self, Standing};
use crate::names::name_of;

/// The most visitors at once; others wait outside.
const MOST: usize = 64;
/// The time that a visitor may take to send a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time for root and the job's user: root knocks at many doors before it asks at the first.
const OWNERS_PATIENCE: Duration = Duration::from_secs(600);
/// The longest request.
const LONGEST: usize = 64 << 10;

/// Answers for ever. Members of `operators` may ask for a suspend.
pub(super) async fn answer(
    listener: UnixListener,
    operators: Option<String>,
    shared: Arc<ServerState>,
) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (shared, operators) = (Arc::clone(&shared), operators.clone());
                tokio::spawn(async move {
                    // `None`: turned away, or gone.
                    let _ = serve(stream, operators, shared).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn serve(
    stream: UnixStream,
    operators: Option<String>,
    shared: Arc<ServerState>,
) -> Option<()> {
    let peer = stream.peer_cred().ok()?;
    let (user, group) = (peer.uid(), peer.gid());
    // The system's tables may lie on the network.
    let looked_up = tokio::task::spawn_blocking(move || {
        let standing = door::standing(user, group, operators.as_deref());
        (standing, name_of(user))
    });
    let (standing, by) = looked_up.await.ok()?;
    if standing == Standing::Stranger {
        return None;
    }
    let (mut reader, mut writer) = stream.into_split();
    let patience = match standing {
        Standing::Owner => OWNERS_PATIENCE,
        _ => PATIENCE,
    };
    let message = timeout(patience, request(&mut reader)).await.ok()??;
    let Some(message) = allowed(message, standing, by) else {
        let reasons = vec![refusal!(
            OperatorsRight,
            "operators may only suspend a job of another user"
        )];
        let refused = frame(&ToCommand::Refused { reasons })?;
        return writer.write_all(&refused).await.ok();
    };
    let watcher = shared.watchers.fetch_add(1, Ordering::Relaxed);
    let (outbox, mut frames) = mpsc::unbounded_channel();
    shared.commands.insert(watcher, outbox);
    // When the job has ended, this fails, and the connection ends without an answer.
    let _ = shared.events.send(Event::Command { watcher, message });
    let gone = async {
        let mut bytes = [0; 64];
        while matches!(reader.read(&mut bytes).await, Ok(count) if count > 0) {}
    };
    let speak = async {
        while let Some(said) = frames.recv().await {
            let said = match standing {
                Standing::Owner => Some(said),
                _ => for_operators(&said),
            };
            if let Some(said) = said
                && writer.write_all(&said).await.is_err()
            {
                return;
            }
        }
        let _ = writer.shutdown().await;
    };
    tokio::select! {
        () = speak => {}
        () = gone => {}
    }
    shared.commands.remove(&watcher);
    Some(())
}

/// Reads the one request of a visit.
async fn request(reader: &mut OwnedReadHalf) -> Option<FromCommand> {
    let (mut frames, mut read) = (Frames::default(), 0);
    let mut bytes = [0; 4096];
    loop {
        if let Some(message) = frames.next_message().ok()? {
            return Some(message);
        }
        let count = reader.read(&mut bytes).await.ok()?;
        read += count;
        if count == 0 || read > LONGEST {
            return None;
        }
        frames.push(&bytes[..count]);
    }
}

/// Returns the request if it is allowed. The name in it is the kernel's, not the client's.
fn allowed(message: FromCommand, standing: Standing, by: String) -> Option<FromCommand> {
    match message {
        FromCommand::Checkpoint {
            suspend,
            timeout,
            waits,
            asked,
        } if suspend || standing == Standing::Owner => Some(FromCommand::Checkpoint {
            suspend,
            timeout,
            waits,
            asked: asked
                .or_else(|| {
                    (standing == Standing::Operator).then(|| Requester {
                        by: String::new(),
                        reason: None,
                    })
                })
                .map(|asked| Requester { by, ..asked }),
        }),
        FromCommand::Status if standing == Standing::Owner => Some(FromCommand::Status),
        _ => None,
    }
}

/// The messages for operators of a job that is not theirs. They show the result of the request and the codes of reasons, but no words of the job.
fn for_operators(said: &[u8]) -> Option<Arc<[u8]>> {
    let mut frames = Frames::default();
    frames.push(said);
    let withheld = |code: Code| Refusal::new(code, "only its user can read why");
    let codes = |reasons: Vec<Refusal>| {
        reasons
            .iter()
            .map(|reason| withheld(reason.code()))
            .collect()
    };
    let said = match frames.next_message().ok()?? {
        ToCommand::Phase { phase, .. } => ToCommand::Phase {
            epoch: Epoch(0),
            phase,
        },
        ToCommand::Hindered { reasons } => ToCommand::Hindered {
            reasons: codes(reasons),
        },
        ToCommand::Refused { reasons } => ToCommand::Refused {
            reasons: codes(reasons),
        },
        ToCommand::Aborted { reason, .. } => ToCommand::Aborted {
            reason: withheld(reason.code()),
            ahead: None,
        },
        ToCommand::Committed(outcome) => ToCommand::Committed(CommittedEpoch {
            directory: String::new(),
            ahead: None,
            staging: None,
            ..outcome
        }),
        ToCommand::Status(_) => return None,
    };
    frame(&said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(suspend: bool) -> FromCommand {
        FromCommand::Checkpoint {
            suspend,
            timeout: None,
            waits: false,
            asked: None,
        }
    }

    #[test]
    fn operators_may_suspend_and_nothing_else_and_are_named_by_the_kernel() {
        let heard = |message, standing| allowed(message, standing, "ann".into());
        assert_eq!(heard(FromCommand::Status, Standing::Operator), None);
        assert_eq!(heard(checkpoint(false), Standing::Operator), None);
        let forged = FromCommand::Checkpoint {
            suspend: true,
            timeout: None,
            waits: false,
            asked: Some(Requester {
                by: "root".into(),
                reason: Some("r".into()),
            }),
        };
        for message in [forged, checkpoint(true)] {
            match heard(message, Standing::Operator) {
                Some(FromCommand::Checkpoint {
                    asked: Some(asked), ..
                }) => assert_eq!(asked.by, "ann"),
                other => panic!("{other:?}"),
            }
        }
        assert!(heard(FromCommand::Status, Standing::Owner).is_some());
    }

    #[test]
    fn what_a_job_says_of_itself_is_withheld_from_operators() {
        let said = ToCommand::Refused {
            reasons: vec![refusal!(LostFile, "rank 0: /home/ann/secret is open")],
        };
        let heard = for_operators(&frame(&said).unwrap()).unwrap();
        let heard = String::from_utf8_lossy(&heard);
        assert!(
            !heard.contains("secret") && heard.contains("lost-file"),
            "{heard}"
        );
    }
}
