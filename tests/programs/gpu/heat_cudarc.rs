//! trial: ranks=4
//! Heat on a plate, on GPUs, with cudarc's safe driver: `heat_cudarc ROWS COLUMNS STEPS`. The plate is the same as in `heat.c`,
//! and so is the digest: cudarc's additional calls (memory in a stream's order, events for every slice) do not change it.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, LaunchConfig, PinnedHostSlice,
    PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use mpi::point_to_point::send_receive_into;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use trial::{Trial, check, wait_for_go};

const KERNELS: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
    .visible .entry heat_rows(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .f64 e)\n{\n    ret;\n}\n\
    .visible .entry heat_swap(.param .u64 a)\n{\n    ret;\n}\n";

/// Steps after the rank has been let go.
const LAST: usize = 10;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Ranks have rows in proportion to 2, 3, 4, ...
fn first_row(rows: i64, rank: i64, size: i64) -> i64 {
    let parts = |ranks: i64| (0..ranks).map(|rank| rank + 2).sum::<i64>();
    rows * parts(rank) / parts(size)
}

fn start_value(row: i64, column: i64) -> f64 {
    let place = (row as u64)
        .wrapping_mul(1_000_003)
        .wrapping_add(column as u64);
    (mix(place) % 1000) as f64 * 0.1
}

/// A row for each direction, in pinned memory: rows sent up and down, and rows received from above and below.
struct Halo {
    up: PinnedHostSlice<f64>,
    down: PinnedHostSlice<f64>,
    from_above: PinnedHostSlice<f64>,
    from_below: PinnedHostSlice<f64>,
}

impl Halo {
    fn new(context: &Arc<CudaContext>, columns: usize) -> Result<Halo> {
        let row = || -> Result<PinnedHostSlice<f64>> {
            // SAFETY: zeroed before the first read.
            let mut row = unsafe { context.alloc_pinned_with_flags::<f64>(columns, 0) }?;
            row.as_mut_slice()?.fill(0.0);
            Ok(row)
        };
        Ok(Halo {
            up: row()?,
            down: row()?,
            from_above: row()?,
            from_below: row()?,
        })
    }

    /// Sends the rows to the neighbours, and receives theirs.
    fn exchange(
        &mut self,
        world: &SimpleCommunicator,
        above: Option<i32>,
        below: Option<i32>,
    ) -> Result<()> {
        pass(
            world,
            self.up.as_slice()?,
            above,
            self.from_below.as_mut_slice()?,
            below,
        );
        pass(
            world,
            self.down.as_slice()?,
            below,
            self.from_above.as_mut_slice()?,
            above,
        );
        Ok(())
    }
}

/// Sends a row to one neighbour and receives one from the other, if they exist.
fn pass(
    world: &SimpleCommunicator,
    row: &[f64],
    to: Option<i32>,
    into: &mut [f64],
    from: Option<i32>,
) {
    match (to, from) {
        (Some(to), Some(from)) => {
            let (to, from) = (world.process_at_rank(to), world.process_at_rank(from));
            send_receive_into(row, &to, into, &from);
        }
        (Some(to), None) => world.process_at_rank(to).send(row),
        (None, Some(from)) => {
            world.process_at_rank(from).receive_into(into);
        }
        (None, None) => {}
    }
}

struct Plate {
    table: CudaSlice<u64>,
    columns: u64,
    compute: CudaFunction,
    swap: CudaFunction,
}

impl Plate {
    fn step(&self, first: u64, end: u64, stream: &CudaStream) -> Result<()> {
        if first >= end {
            return Ok(());
        }
        let share = 0.1f64;
        let mut launch = stream.launch_builder(&self.compute);
        launch.arg(&self.table).arg(&self.columns);
        launch.arg(&first).arg(&end).arg(&share);
        let grid = LaunchConfig {
            grid_dim: ((end - first) as u32, 1, 1),
            block_dim: (128, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernel's parameters, and rows that are there.
        unsafe { launch.launch(grid) }?;
        Ok(())
    }

    fn swap(&mut self, stream: &CudaStream) -> Result<()> {
        let mut launch = stream.launch_builder(&self.swap);
        launch.arg(&mut self.table);
        // SAFETY: the kernel's parameter.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }?;
        Ok(())
    }
}

/// Runs all steps, and returns the rank's rows.
fn run(trial: &Trial, all: i64, columns: usize, steps: usize) -> Result<Vec<f64>> {
    let (rank, size) = (i64::from(trial.rank), i64::from(trial.size));
    let first = first_row(all, rank, size);
    let rows = (first_row(all, rank + 1, size) - first) as usize;
    let context = CudaContext::new(trial.rank as usize % CudaContext::device_count()? as usize)?;
    let module = context.load_module(Ptx::from_src(KERNELS))?;
    let (edges, inside) = (context.new_stream()?, context.new_stream()?);

    let start = (0..(rows + 2) * columns).map(|place| {
        let (row, column) = ((place / columns) as i64, (place % columns) as i64);
        start_value(first + row - 1, column)
    });
    let start: Vec<f64> = start.collect();
    let mut fields = [edges.clone_htod(&start)?, edges.clone_htod(&start)?];
    let addresses = fields.each_ref().map(|field| field.device_ptr(&edges).0);
    let mut plate = Plate {
        table: edges.clone_htod(&addresses)?,
        columns: columns as u64,
        compute: module.load_function("heat_rows")?,
        swap: module.load_function("heat_swap")?,
    };
    let mut halo = Halo::new(&context, columns)?;
    edges.synchronize()?;

    let neighbour = |rank: i32| (0..trial.size).contains(&rank).then_some(rank);
    let (above, below) = (neighbour(trial.rank - 1), neighbour(trial.rank + 1));
    let world = trial.world();
    for step in 0..steps {
        if step + LAST == steps {
            wait_for_go();
        }
        let to = &mut fields[(step + 1) % 2];
        plate.step(1, 2, &edges)?;
        plate.step(rows as u64, rows as u64 + 1, &edges)?;
        plate.step(2, rows as u64, &inside)?;
        let computed = inside.record_event(None)?;
        edges.memcpy_dtoh(&to.slice(columns..2 * columns), &mut halo.up)?;
        edges.memcpy_dtoh(
            &to.slice(rows * columns..(rows + 1) * columns),
            &mut halo.down,
        )?;
        halo.exchange(&world, above, below)?;
        if above.is_some() {
            edges.memcpy_htod(&halo.from_above, &mut to.slice_mut(..columns))?;
        }
        if below.is_some() {
            edges.memcpy_htod(&halo.from_below, &mut to.slice_mut((rows + 1) * columns..))?;
        }
        edges.wait(&computed)?;
        plate.swap(&edges)?;
        inside.wait(&edges.record_event(None)?)?;
        if step == 5 {
            trial.ready();
        }
    }
    context.synchronize()?;
    let now = edges.clone_dtoh(&plate.table)?;
    check!(
        trial,
        now == [addresses[steps % 2], addresses[(steps + 1) % 2]],
        "the table leads to {now:x?}"
    );
    let field = edges.clone_dtoh(&fields[steps % 2])?;
    edges.synchronize()?;
    Ok(field[columns..(rows + 1) * columns].to_vec())
}

/// Computes the digest of all rows, from rank to rank. The first rank prints it.
fn digest(trial: &Trial, rows: &[f64]) {
    let world = trial.world();
    let mut digest = 14_695_981_039_346_656_037u64;
    if trial.rank > 0 {
        world
            .process_at_rank(trial.rank - 1)
            .receive_into(&mut digest);
    }
    for number in rows {
        digest = (digest ^ number.to_bits()).wrapping_mul(1_099_511_628_211);
    }
    if trial.size > 1 {
        let next = world.process_at_rank((trial.rank + 1) % trial.size);
        next.send(&digest);
        if trial.rank == 0 {
            world
                .process_at_rank(trial.size - 1)
                .receive_into(&mut digest);
        }
    }
    if trial.rank == 0 {
        println!("digest {digest:016x}");
    }
}

fn main() -> ExitCode {
    let trial = Trial::start();
    let number = |place: usize, otherwise: i64| {
        let given = env::args().nth(place).and_then(|text| text.parse().ok());
        given.unwrap_or(otherwise)
    };
    let (rows, columns, steps) = (number(1, 200), number(2, 150), number(3, 100));
    match run(&trial, rows, columns as usize, steps as usize) {
        Ok(rows) => digest(&trial, &rows),
        Err(error) => {
            eprintln!("WRONG rank {}: {error}", trial.rank);
            trial.world().abort(1);
        }
    }
    trial.finish()
}
