//! `stillpoint plan incremental`.

mod recorded;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use stillpoint_incremental::blocks::{BlockSize, HASH};
use stillpoint_incremental::viability::{Cost, Estimate, Hasher, Load, Method, Rates};
use stillpoint_multilevel::chart::{Axis, Chart, Mark, Series};
use stillpoint_multilevel::units::{parse_bytes, show_bandwidth, show_bytes, show_seconds};

use super::{rate, seconds, share, size, write};
use crate::{CommandResult, Failure, print, print_json};
use recorded::Recorded;

/// Tell whether hashing pays in incremental checkpoints
///
/// Compares three ways: writing all memory, the pages that were written to, or only the blocks of those pages whose hash has
/// changed. Takes rates and shares from options, or each epoch of a recorded run, beside its outcome. With --json: {"beta_ckpt",
/// "beta_hash", "memory", "c", "alpha", "t_dirty", "ratio", "least_alpha", "pays", "costs", "fastest", "block", "table_bytes", "hashers", "hasher"}; with DIR
/// {"epochs", "measured", "model", "gpu"}; docs/research/incremental.md explains them.
#[derive(Debug, Args)]
pub struct Incremental {
    /// Checkpoint directory of a run: shows forecast and outcome of its epochs, and the model with the measured rates
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Rate at which one process writes a checkpoint: 500MB/s
    #[arg(long, env = "STILLPOINT_BETA_CKPT", value_parser = rate, allow_hyphen_values = true, value_name = "RATE", required_unless_present = "directory", conflicts_with = "directory")]
    beta_ckpt: Option<u64>,

    /// Rate at which one process hashes its memory: 10GB/s
    #[arg(long, env = "STILLPOINT_BETA_HASH", value_parser = rate, allow_hyphen_values = true, value_name = "RATE", required_unless_present = "directory", conflicts_with = "directory")]
    beta_hash: Option<u64>,

    /// Rate at which a GPU hashes memory of one process, including the way to the GPU: 20GB/s
    #[arg(long, env = "STILLPOINT_BETA_GPU", value_parser = rate, allow_hyphen_values = true, value_name = "RATE", conflicts_with = "directory")]
    beta_gpu: Option<u64>,

    /// Memory of one process
    #[arg(long, env = "STILLPOINT_MEMORY", value_parser = size, allow_hyphen_values = true, value_name = "SIZE", default_value = "1GiB", conflicts_with = "directory")]
    memory: u64,

    /// Share of the memory in pages that were written to since the last epoch: 0.4, 40%
    #[arg(long, env = "STILLPOINT_DIRTY", value_parser = share, allow_hyphen_values = true, value_name = "SHARE", default_value = "100%", conflicts_with = "directory")]
    dirty: f64,

    /// Share of these pages in blocks that have changed, 1 - alpha
    #[arg(long, env = "STILLPOINT_CHANGED", value_parser = share, allow_hyphen_values = true, value_name = "SHARE", required_unless_present = "directory", conflicts_with = "directory")]
    changed: Option<f64>,

    /// Time that marking dirty pages has cost the application since the last epoch, T_dirty
    #[arg(long, env = "STILLPOINT_DIRTY_TIME", value_parser = seconds, allow_hyphen_values = true, value_name = "TIME", default_value = "0", conflicts_with = "directory")]
    dirty_time: f64,

    /// Size of a hash block, which determines the size of the table of hashes: a power of two from 64 to 64KiB
    #[arg(long, env = "STILLPOINT_BLOCK", value_parser = block, allow_hyphen_values = true, value_name = "SIZE", default_value = "4KiB")]
    block: BlockSize,

    /// Draw the least alpha for which hashing pays, over the ratio of the rates, into a file
    #[arg(long, env = "STILLPOINT_CHART", value_name = "FILE")]
    chart: Option<PathBuf>,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    estimate: Estimate,
    block: u64,
    table_bytes: u64,
    /// The possible hashers with their rates, and the chosen one, if hashing pays.
    hashers: Vec<(Hasher, f64)>,
    hasher: Option<Hasher>,
}

fn block(text: &str) -> Result<BlockSize, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    BlockSize::new(bytes).map_err(|error| error.to_string())
}

impl Incremental {
    pub fn execute(self) -> CommandResult {
        let (Some(beta_ckpt), Some(beta_hash), Some(changed)) =
            (self.beta_ckpt, self.beta_hash, self.changed)
        else {
            return self.recorded();
        };
        let failed = |error: stillpoint_incremental::viability::ModelError| {
            Failure::failed(error.to_string())
        };
        let load = Load::new(self.memory, self.dirty, self.dirty_time).map_err(failed)?;
        let processor = (Hasher::Processor, beta_hash as f64);
        let gpu = self.beta_gpu.map(|rate| (Hasher::Gpu, rate as f64));
        let hashers: Vec<_> = [Some(processor), gpu].into_iter().flatten().collect();
        let found = Estimate::with_fastest(beta_ckpt as f64, &hashers, load, changed);
        let (estimate, hasher) = found.map_err(failed)?;
        let rates = estimate.rates;
        if let Some(file) = &self.chart {
            let machine = ("this machine", vec![(estimate.ratio, estimate.alpha)]);
            write(file, &chart(rates, &load, machine).to_svg())?;
        }
        let shown = self.shown(estimate, hashers, hasher);
        match self.json {
            true => print_json(&shown),
            false => print(&shown.in_words()),
        }
    }

    /// Shows the epochs of a directory. The command line has one if it has no rates and shares.
    fn recorded(&self) -> CommandResult {
        let directory = self.directory.as_ref();
        let directory = directory.ok_or_else(|| Failure::failed("give a checkpoint directory"))?;
        let recorded = Recorded::read(directory)?;
        if let Some(file) = &self.chart {
            let points = recorded.points();
            let rates = recorded.model.as_ref().map(|model| model.rates);
            // The border does not depend on the rates themselves if marking takes no time.
            let rates = rates.unwrap_or(Rates {
                beta_ckpt: 1e9,
                beta_hash: 1e9,
            });
            let all = Load {
                memory: 1.0,
                page_dirty: 1.0,
                t_dirty: 0.0,
            };
            write(file, &chart(rates, &all, ("epochs", points)).to_svg())?;
        }
        if self.json {
            return print_json(&recorded);
        }
        let model = match recorded.chosen() {
            Some((estimate, hashers, hasher)) => self.shown(estimate, hashers, hasher).in_words(),
            None => {
                "the model has no data: these epochs were written without hashing and comparing \
                 (--incremental=blocks does both)\n"
                    .to_owned()
            }
        };
        print(&(recorded.in_words() + &model))
    }

    fn shown(
        &self,
        estimate: Estimate,
        hashers: Vec<(Hasher, f64)>,
        hasher: Option<Hasher>,
    ) -> Shown {
        let memory = estimate.memory as u64;
        Shown {
            estimate,
            block: self.block.bytes(),
            table_bytes: HASH * self.block.count(&(0..memory)),
            hashers,
            hasher,
        }
    }
}

fn percent(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} %")
}

fn bytes(number: f64) -> String {
    show_bytes(number.round() as u64)
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Full => "full",
        Method::Page => "page-based",
        Method::Hash => "hash-based",
    }
}

impl Shown {
    fn in_words(&self) -> String {
        let Estimate {
            rates,
            memory,
            c,
            alpha,
            ..
        } = &self.estimate;
        let rate = |rate: f64| show_bandwidth(rate as u64);
        let mut text = format!(
            "checkpoints at {}, hashes at {}: {}\n\
             {} of memory, {} in dirty pages, {} of that in changed blocks: alpha is {}\n\
             {:<10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
            rate(rates.beta_ckpt),
            rate(rates.beta_hash),
            self.threshold(),
            bytes(*memory),
            bytes(*c),
            percent(1.0 - alpha),
            percent(*alpha),
            "METHOD",
            "TO MARK",
            "TO HASH",
            "TO WRITE",
            "TOTAL",
            "WRITTEN",
        );
        for cost in &self.estimate.costs {
            text.push_str(&row(cost));
        }
        text + &self.verdict()
            + &self.who()
            + &format!(
                "table of hashes: {}, for blocks of {} B\n",
                show_bytes(self.table_bytes),
                self.block
            )
    }

    /// Names the chosen hasher, if there is a choice.
    fn who(&self) -> String {
        let name = |hasher: &Hasher| match hasher {
            Hasher::Processor => "the processor",
            Hasher::Gpu => "a GPU",
        };
        let offer = |(hasher, rate): &(Hasher, f64)| {
            format!("{} at {}", name(hasher), show_bandwidth(*rate as u64))
        };
        match self.hashers.as_slice() {
            [] | [_] => String::new(),
            several => {
                let offers: Vec<String> = several.iter().map(offer).collect();
                let who = self.hasher.as_ref().map_or("nobody", name);
                format!("hashed by: {who}; could: {}\n", offers.join(", "))
            }
        }
    }

    fn threshold(&self) -> String {
        match self.estimate.least_alpha {
            Some(least) if least < 1.0 => {
                format!("hashing pays where alpha is above {}", percent(least))
            }
            Some(least) => format!(
                "hashing never pays, since alpha would have to be above {}",
                percent(least)
            ),
            None => "hashing never pays, since there is nothing to leave out".to_owned(),
        }
    }

    /// The fastest method, and its gain over the others.
    fn verdict(&self) -> String {
        let Estimate { costs, fastest, .. } = &self.estimate;
        let of = |method| costs.iter().find(|cost| cost.method == method);
        let best = of(*fastest).map_or(0.0, |cost| cost.seconds);
        let others = costs.iter().filter(|cost| cost.method != *fastest);
        let others = others.map(|other| {
            let other_name = name(other.method);
            match best > 0.0 {
                true => format!(
                    "{other_name} takes {:.2} times as long",
                    other.seconds / best
                ),
                false => format!("{other_name} takes {}", show_seconds(other.seconds)),
            }
        });
        let others = others.collect::<Vec<_>>().join(", ");
        format!("fastest: {}; {others}\n", name(*fastest))
    }
}

fn row(cost: &Cost) -> String {
    format!(
        "{:<10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        name(cost.method),
        show_seconds(cost.t_dirty),
        show_seconds(cost.t_hash),
        show_seconds(cost.t_write),
        show_seconds(cost.seconds),
        bytes(cost.written),
    )
}

/// Draws the least alpha over the ratio of the rates, and the points that were shown. The axis begins at a thousandth, or at a third of the least ratio
/// shown.
fn chart(rates: Rates, load: &Load, shown: (&str, Vec<(f64, f64)>)) -> Chart {
    let (name, points) = shown;
    let ratios_shown = points.iter().map(|(ratio, _)| *ratio);
    let lowest = ratios_shown
        .clone()
        .fold(0.001, |low: f64, ratio| low.min(ratio / 3.0));
    let highest = ratios_shown.fold(1.0, |high, ratio| f64::max(high, ratio * 3.0));
    let decades = (highest / lowest).log10();
    let ratios = |steps: u32| {
        (0..=steps)
            .map(move |step| lowest * 10f64.powf(decades * f64::from(step) / f64::from(steps)))
    };
    let least = |ratio: f64| {
        let rates = Rates {
            beta_hash: rates.beta_ckpt / ratio,
            ..rates
        };
        load.least_alpha(&rates).filter(|least| *least <= 1.0)
    };
    let border = ratios(300).filter_map(|ratio| Some((ratio, least(ratio)?)));
    let grid =
        ratios(40).flat_map(|ratio| (0..=20).map(move |step| (ratio, f64::from(step) / 20.0)));
    let region = grid.filter(|&(ratio, alpha)| least(ratio).is_some_and(|least| alpha > least));
    Chart::of(
        "Where hashing pays",
        Axis::logarithmic("beta_ckpt / beta_hash").within(lowest, highest),
        Axis::linear("alpha").within(0.0, 1.0),
        [
            Series::of("least alpha", Mark::Line, border.collect()),
            Series::of(name, Mark::Dots, points),
            Series::of("hashing pays", Mark::Dots, region.collect()),
        ],
    )
}
