//! Runs the simulations behind `docs/research/scheduler.md` and `docs/research/intervals.md` and draws their figures into a directory.
//!
//! `cargo run --release -p stillpoint-multilevel --example figures -- docs/figures`

use std::path::PathBuf;
use std::time::Instant;
use stillpoint_multilevel::interval;
use stillpoint_multilevel::simulate::Figures;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os()
        .nth(1)
        .ok_or("give a directory for the figures")?;
    let directory = PathBuf::from(directory);
    std::fs::create_dir_all(&directory)?;
    let start = Instant::now();
    let figures = Figures::run(1, &|| start.elapsed().as_secs_f64(), &mut || {})?;
    for (name, svg) in figures.to_drawings() {
        std::fs::write(directory.join(format!("staging-{name}")), svg)?;
    }
    for figure in interval::figures(1, &mut || {}) {
        let name = format!("interval-figure-{}.svg", figure.number);
        std::fs::write(directory.join(name), figure.chart.to_svg())?;
    }
    println!("{}\n{}", figures.to_tables(), figures.to_claims());
    println!("{}", interval::models());
    Ok(())
}
