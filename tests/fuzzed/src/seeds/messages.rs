//! Messages, as they are sent over a connection.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::absent::{Behind, MemberAnswer, Missing, Operation};
use stillpoint_protocol::agent::{
    Begin, Dedup, Doing, FromAgent, Hello, Incremental, Order, Progress, State, ToAgent, Written,
};
use stillpoint_protocol::codec::{Encode, encode};
use stillpoint_protocol::command::{
    Ahead, CommittedEpoch, FromCommand, JobStatus, RankStatus, Requester, Staging, Tally,
    TierStatus, ToCommand,
};
use stillpoint_protocol::namespace::Namespace;
use stillpoint_protocol::peer::{Answer, Request};
use stillpoint_protocol::tier::{Announced, Assignment, Gathered, Moved, Rates, Sized};
use stillpoint_refusals::refusal;

/// Returns each message alone, and those of each direction in a stream.
pub fn messages() -> Vec<Vec<u8>> {
    let mut seeds = vec![];
    add(&mut seeds, 0, &from_agents());
    add(&mut seeds, 1, &to_agents());
    let checkpoint = FromCommand::Checkpoint {
        suspend: true,
        timeout: Some(std::time::Duration::from_secs(9).into()),
        waits: true,
        asked: Some(Requester {
            by: "root".into(),
            reason: Some("maintenance".into()),
        }),
    };
    add(&mut seeds, 2, &[FromCommand::Status, checkpoint]);
    add(&mut seeds, 3, &to_commands());
    let put = Request::Put {
        attempt: 1,
        epoch: Epoch(2),
        rank: Rank(3),
        offset: 4,
        bytes: 5,
        copy: true,
    };
    let get = Request::Get {
        rank: Rank(1),
        block: 300,
    };
    add(
        &mut seeds,
        4,
        &[put, Request::Probe { bytes: 70_000 }, Request::Close, get],
    );
    let failed = Answer::Failed {
        reason: "full".into(),
    };
    let answers = [
        Answer::Kept { bytes: 3 },
        failed,
        Answer::Block { bytes: 4 },
        Answer::Missing,
    ];
    add(&mut seeds, 5, &answers);
    // The length in this frame is larger than any limit.
    seeds.push([&[8, 1][..], &[255; 9]].concat());
    seeds
}

fn add<M: Encode>(seeds: &mut Vec<Vec<u8>>, kind: u8, messages: &[M]) {
    let frames: Vec<Vec<u8>> = messages
        .iter()
        .map(|message| encode(message).expect("a frame"))
        .collect();
    for frame in &frames {
        seeds.push([&[kind], &frame[4..]].concat());
    }
    seeds.push([&[kind | 8, 3][..], &frames.concat()].concat());
}

fn announced() -> Announced {
    Announced {
        host: "a".into(),
        directory: "/f".into(),
        capacity: 1 << 40,
        address: "1.2.3.4:5".into(),
        problem: None,
    }
}

fn operation() -> Operation {
    Operation {
        ggid: 1,
        number: 2,
        kind: 3,
        root: -1,
        teller: 5,
        count: 6,
        size: 7,
    }
}

fn from_agents() -> Vec<FromAgent> {
    let progress = |progress| FromAgent::Progress {
        attempt: 1 << 33,
        progress,
    };
    let written = Written {
        stored_bytes: 1,
        bytes: 2,
        digest: u128::MAX,
        seconds: 1.5,
        contract: 4,
        needs: vec![Epoch(1), Epoch(2)],
        increment: None,
    };
    let state = State {
        doing: Doing::Waiting,
        seen: 1,
        poll: 2,
        sent: 3,
        received: 4,
        begun: 5,
    };
    let behind = Behind {
        ggid: 1,
        begun: 2,
        target: 3,
        rank: 4,
        size: 5,
    };
    vec![
        FromAgent::Hello(Hello {
            rank: Rank(0),
            size: 2,
            pid: 70_000,
            host: "h".into(),
            namespace: Namespace::told_of(4_026_531_836, "boot", "machine"),
            launch: "l".into(),
            restarted_from: Some(Epoch(3)),
            returns: true,
            late: false,
        }),
        FromAgent::Exiting { status: -7 },
        FromAgent::BecomesUnsplit {
            program: "/a".into(),
        },
        FromAgent::Tier(announced()),
        FromAgent::Recovered {
            epoch: Epoch(1),
            gathered: Gathered::default(),
            problem: Some("x".into()),
        },
        progress(Progress::Clocks {
            clocks: vec![(1, 2), (u64::MAX, 300)],
        }),
        progress(Progress::State(state)),
        progress(Progress::CheckResult {
            refusals: vec![refusal!(MpiWindow, "a window")],
        }),
        progress(Progress::Staged(written.clone(), Moved::default())),
        progress(Progress::Sized(Sized {
            bytes: 1,
            fast_room: 2,
            slow_room: 3,
        })),
        progress(Progress::Asks {
            missing: vec![Missing {
                ggid: 1,
                first: 2,
                last: 3,
            }],
        }),
        progress(Progress::Told(MemberAnswer {
            behind: vec![behind],
            operations: vec![operation()],
        })),
        progress(Progress::Written(written)),
    ]
}

fn to_agents() -> Vec<ToAgent> {
    let order = |order| ToAgent::Checkpoint { attempt: 1, order };
    vec![
        ToAgent::Welcome,
        ToAgent::Rejected {
            reason: refusal!(NoJob, "no"),
        },
        ToAgent::Peers(vec![announced()]),
        ToAgent::Say {
            text: "suspended".into(),
        },
        ToAgent::CarryOn {
            epoch: Some(Epoch(1)),
            reason: "r".into(),
        },
        order(Order::Begin(Begin {
            epoch: Epoch(1),
            directory: "/d".into(),
            image: "i".into(),
            compress: "lz4".into(),
            incremental: Incremental::Pages,
            dedup: Dedup::Node { keeper: 77 },
        })),
        order(Order::Targets {
            version: 1,
            targets: vec![(1, 2)],
        }),
        order(Order::CarryOut {
            operations: vec![operation()],
        }),
        order(Order::Stage(Assignment {
            local: 1,
            peers: vec![(Rank(1), 2)],
            slow: 3,
            partners: vec![(Rank(4), Rank(5))],
        })),
    ]
}

fn to_commands() -> Vec<ToCommand> {
    let moved = Moved {
        local: 1,
        peers: 2,
        slow: 3,
        copies: 4,
    };
    let rank = RankStatus {
        rank: Rank(0),
        host: "h".into(),
        pid: 1,
        state: "s".into(),
        exit_status: Some(-1),
    };
    vec![
        ToCommand::Status(JobStatus {
            ranks: vec![rank],
            phase: Some("p".into()),
            waits_for: vec![refusal!(RankComputes, "w")],
            epoch: Some(Epoch(1)),
            committed: 2,
            aborted: 3,
            last_failure: None,
            staged: Some(Epoch(4)),
            tiers: vec![TierStatus {
                announced: announced(),
                rates: Rates::default(),
            }],
            seconds: 0.5,
            tally: Box::new(Tally {
                stored_bytes: 5,
                stopped_seconds: 0.5,
                phase_seconds: [("write".to_owned(), 0.25)].into(),
                refusals: [("open-socket".to_owned(), 2)].into(),
            }),
        }),
        ToCommand::Committed(CommittedEpoch {
            epoch: Epoch(1),
            directory: "/d".into(),
            bytes: 2,
            stored_bytes: 3,
            phases: vec![("p".into(), 0.25)],
            stopped: 1.0,
            suspended: false,
            ahead: Some(Ahead {
                epoch: Epoch(1),
                seconds: 2.0,
            }),
            staging: Some(Staging {
                blocking: 1.0,
                predicted: 2.0,
                moved,
            }),
        }),
        ToCommand::Refused {
            reasons: vec![refusal!(MpiWindow, "a window")],
        },
        ToCommand::Phase {
            epoch: Epoch(1),
            phase: "drain".into(),
        },
    ]
}
