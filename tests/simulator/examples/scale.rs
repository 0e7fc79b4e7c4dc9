//! The simulations behind `docs/research/scale.md`: prints their tables, and draws their figures into a directory.
//!
//! `cargo run --release -p stillpoint-simulator --example scale -- docs/figures [most ranks]`

use std::path::PathBuf;
use std::time::Instant;

use stillpoint_multilevel::chart::{Axis, Chart, Mark, Series};
use stillpoint_simulator::scale::{Kind, StillPointCost, Times, checkpoint};

const RANKS: [u32; 6] = [316, 1_000, 3_162, 10_000, 31_623, 100_000];

/// A figure: its file, the label of its ordinate, and what it shows.
type Figure = (&'static str, &'static str, fn(&StillPointCost) -> f64);

const FIGURES: [Figure; 4] = [
    ("messages", "messages a rank", |o| {
        (o.up + o.down) as f64 / f64::from(o.ranks)
    }),
    ("bytes", "bytes a rank", |o| {
        (o.up_bytes + o.down_bytes) as f64 / f64::from(o.ranks)
    }),
    ("orders", "orders and polls", |o| {
        (o.orders + o.polls) as f64
    }),
    (
        "seconds",
        "seconds from the request to the still point",
        |o| o.seconds,
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("give a directory for the figures")?);
    let most: u32 = arguments.next().map_or(Ok(100_000), |n| n.parse())?;
    std::fs::create_dir_all(&directory)?;
    println!(
        "| structure | ranks | communicators | clocks told | orders | polls | let on | messages | a rank | MB | MB with whole tables | seconds | coordinator busy | its decisions, measured | simulated in |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut outcomes = vec![];
    for kind in Kind::ALL {
        let mut of_kind = vec![];
        for ranks in RANKS.into_iter().filter(|ranks| *ranks <= most) {
            let begun = Instant::now();
            let outcome = checkpoint(kind, ranks, Times::default(), 1);
            row(kind, &outcome, begun.elapsed().as_secs_f64());
            of_kind.push(outcome);
        }
        outcomes.push((kind, of_kind));
    }
    for (name, label, value) in FIGURES {
        let series = outcomes.iter().map(|(kind, outcomes)| {
            let points = outcomes.iter().map(|o| (f64::from(o.ranks), value(o)));
            Series::of(kind.name(), Mark::Line, points.collect())
        });
        let y = match name {
            // Values that are the same for every rank start at zero.
            "messages" | "bytes" => Axis::linear(label).within(0.0, 0.0),
            _ => Axis::logarithmic(label),
        };
        let title = format!("From the request to the still point: {name}");
        let chart = Chart::of(title, Axis::logarithmic("ranks"), y, series);
        std::fs::write(directory.join(format!("scale-{name}.svg")), chart.to_svg())?;
    }
    Ok(())
}

fn row(kind: Kind, o: &StillPointCost, took: f64) {
    let messages = o.up + o.down;
    let bytes = o.up_bytes + o.down_bytes;
    println!(
        "| {} | {} | {} | {} | {} | {} | {} | {messages} | {:.1} | {:.2} | {:.1} | {:.3} | {:.3} s | {:.3} s | {took:.1} s |",
        kind.name(),
        o.ranks,
        o.groups,
        o.clocks,
        o.orders,
        o.polls,
        o.advances,
        messages as f64 / f64::from(o.ranks),
        bytes as f64 / 1e6,
        o.whole_tables as f64 / 1e6,
        o.seconds,
        o.busy_seconds,
        o.machine_seconds,
    );
}
