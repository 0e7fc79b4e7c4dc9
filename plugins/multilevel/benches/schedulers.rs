//! The time to make a plan, from the sizes to the transfers. `cargo bench -p stillpoint-multilevel`.
//!
//! The limits for the scheduler on two cores: 8 GPUs 50 us; 128 GPUs 1 ms with pairwise links and 0.5 ms with switch
//! ports; 1,024 with switch ports 5 ms.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use stillpoint_multilevel::trace::Trace;
use stillpoint_multilevel::{Exact, Greedy, LocalOnly, MinTime, Problem, Scheduler, Topology};

/// The free space with which the synthetic checkpoints need peers most.
const FREE: u64 = 80_000_000;

fn plans(criterion: &mut Criterion) {
    let machines = [
        ("8-dgx1", Topology::dgx1()),
        ("128-pairwise", Topology::all_to_all(128)),
        ("128-ports", Topology::nvswitch(128)),
        ("1024-ports", Topology::nvswitch(1024)),
        ("1024-pairwise", Topology::all_to_all(1024)),
    ];
    for (name, machine) in machines {
        let machine = machine.with_free(FREE);
        let trace = Trace::synthetic(machine.processes().len(), 8, 1);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(if machine.links().len() > 100_000 {
            10
        } else {
            50
        });
        let mut schedulers: Vec<&dyn Scheduler> = vec![&LocalOnly, &Greedy, &Exact { chunk: 1 }];
        if machine.links().len() < 20_000 && machine.processes().len() <= 128 {
            schedulers.extend([
                &Exact { chunk: 1_000_000 } as &dyn Scheduler,
                &MinTime { chunk: 1_000_000 },
            ]);
        }
        for (at, scheduler) in schedulers.into_iter().enumerate() {
            let chunked = if at == 3 { "-1MB" } else { "" };
            group.bench_function(format!("{}{chunked}", scheduler.name()), |bencher| {
                let mut snapshots = trace.snapshots().iter().cycle();
                bencher.iter(|| {
                    let sizes = snapshots.next().expect("a cycle has no end");
                    let problem = Problem::new(&machine, sizes).expect("sizes for all");
                    black_box(scheduler.schedule(&problem).expect("host memory has room"))
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, plans);
criterion_main!(benches);
