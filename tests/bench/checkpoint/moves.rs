//! The waits of an application: its first instruction after a restart, and the break between its last one here and its first one there.

use stillpoint_tests::{Failed, ensure};

use crate::options::Options;
use crate::programs;
use crate::running::{Medium, RANKS, Running, now, pause};
use crate::table::Table;

/// Megabytes of each rank.
const MEMORY: &str = "1024";

fn where_from(medium: Medium) -> &'static str {
    match medium {
        Medium::Disk => "disk, not in the page cache",
        Medium::Memory => "tmpfs",
    }
}

/// Measures restarts that read all memory first, in turn with those that do not.
pub fn lazy(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let columns = [
        ("seconds to the first instruction", 2),
        ("% of a whole restart", 0),
    ];
    let mut table = Table::new("lazy", "2 ranks, 1 GiB each", &columns);
    for medium in Medium::BOTH {
        let how = ["--copy", "off", "--keep", "1", "--compress", "none"];
        let mut running = Running::start(medium, &how, &program, &[MEMORY, "hold"])?;
        let name = where_from(medium);
        for _ in 0..options.times(3, 9) {
            running.suspend()?;
            running.forget()?;
            let whole = running.restart(&[])?.as_secs_f64();
            table.add(&format!("{name}: `restart`"), &[whole]);
            running.suspend()?;
            running.forget()?;
            let first = running.restart(&["--lazy"])?.as_secs_f64();
            let figures = [first, 100.0 * first / whole];
            table.add(&format!("{name}: `restart --lazy`"), &figures);
        }
        running.end()?;
    }
    let mut small = Running::start(Medium::Memory, &[], &program, &["0", "hold"])?;
    for _ in 0..options.times(3, 9) {
        small.suspend()?;
        let took = small.restart(&[])?.as_secs_f64();
        table.add("a restart of a job without memory", &[took]);
    }
    small.end()?;
    Ok(vec![table])
}

/// A way to move a job.
struct Way {
    name: &'static str,
    run: &'static [&'static str],
    restart: &'static [&'static str],
}

const WAYS: [Way; 2] = [
    Way {
        name: "`suspend`, `restart`",
        run: &["--compress", "none"],
        restart: &[],
    },
    Way {
        name: "`--incremental --precopy on`, an epoch before; `suspend`, `restart --lazy`",
        run: &["--compress", "none", "--incremental", "--precopy", "on"],
        restart: &["--lazy"],
    },
];

/// Measures the break of jobs that move, as far as one machine shows it.
pub fn moves(options: &Options) -> Result<Vec<Table>, Failed> {
    let program = programs::memory()?;
    let columns = [
        ("seconds of the break", 2),
        ("of that before `suspend` returns", 2),
        ("% of the first way's break", 0),
    ];
    let head = "2 ranks, 1 GiB each, a twentieth of the pages written each second";
    let mut table = Table::new("move", head, &columns);
    for medium in Medium::BOTH {
        for _ in 0..options.times(2, 5) {
            let mut first = None;
            for way in &WAYS {
                let (took, before) = broken_for(medium, way, &program)?;
                let of_first = 100.0 * took / *first.get_or_insert(took);
                let row = format!("{}: {}", where_from(medium), way.name);
                table.add(&row, &[took, before, of_first]);
            }
        }
    }
    Ok(vec![table])
}

/// Returns the seconds from the last instruction here to the first there, of the rank that waits longest, without this driver's own work in between.
/// Also returns how much of them has passed when the job is suspended.
fn broken_for(medium: Medium, way: &Way, program: &std::path::Path) -> Result<(f64, f64), Failed> {
    let mut running = Running::start(medium, way.run, program, &[MEMORY, "touch"])?;
    pause(0.5);
    running.checkpoint()?;
    pause(1.0);
    running.suspend()?;
    let here = now();
    running.forget()?;
    let between = now() - here;
    running.restart(way.restart)?;
    pause(0.2);
    let mut longest = (0.0, 0.0);
    for rank in 0..RANKS {
        let ends: Vec<f64> = running.laps_of(rank).iter().map(|lap| lap.0).collect();
        let last = ends.iter().copied().rfind(|end| *end < here);
        let next = ends.iter().copied().find(|end| *end >= here);
        let (Some(last), Some(next)) = (last, next) else {
            return Err(format!("rank {rank} has no laps before and after"));
        };
        ensure!(next > last, "its clock went back");
        if next - last - between > longest.0 {
            longest = (next - last - between, here - last);
        }
    }
    running.end()?;
    Ok(longest)
}
