//! `--interval auto` in simulations of failures, beside fixed intervals.

use stillpoint_multilevel::interval::{Automatic, Measured};

/// Splitmix64: draws that are the same for a seed everywhere.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// The share of the machine that writing takes while the application runs on.
const BESIDE: f64 = 0.1;

/// The real costs of a job's epochs, in seconds.
#[derive(Clone, Copy, Debug)]
struct Real {
    mttf: f64,
    stopped: f64,
    durable: f64,
    restart: f64,
    /// The relative deviation of each cost.
    spread: f64,
}

impl Real {
    fn drawn(&self, dice: &mut Dice) -> Measured {
        let factor = 1.0 + self.spread * (2.0 * dice.unit() - 1.0);
        Measured {
            stopped: self.stopped * factor,
            durable: self.durable * factor,
        }
    }
}

/// Either a fixed interval, or the choice of each moment.
#[derive(Clone, Copy)]
enum Choice {
    Fixed(f64),
    Auto,
}

/// Runs `work` seconds of computing with random failures, and returns the time from start to end.
///
/// While an epoch is written beside it, the application computes at a lower pace, and a failure falls back to the epoch before.
fn run(real: &Real, work: f64, choice: Choice, seed: u64) -> f64 {
    // Every choice meets the same failures.
    let (mut failures, mut costs) = (Dice(seed), Dice(seed ^ 0xabcd));
    let mut automatic = Automatic::new(real.mttf);
    let mut chosen = automatic.chosen().seconds;
    let (mut time, mut safe) = (0.0, 0.0);
    let mut next_failure = failures.exponential(real.mttf);
    loop {
        // The application computes on from the newest epoch.
        let (mut done, mut beside) = (safe, 0.0);
        let failed = loop {
            let interval = match choice {
                Choice::Fixed(seconds) => seconds,
                Choice::Auto => chosen,
            };
            let compute = (interval - beside).max(0.0).min(work - done);
            if time + compute >= next_failure {
                break true;
            }
            time += compute;
            done += compute;
            if done >= work {
                break false;
            }
            let cost = real.drawn(&mut costs);
            if time + cost.durable >= next_failure {
                break true;
            }
            let at = done;
            beside = (cost.durable - cost.stopped).min((work - done) / (1.0 - BESIDE));
            time += cost.stopped + beside;
            done += beside * (1.0 - BESIDE);
            safe = at;
            if matches!(choice, Choice::Auto) {
                automatic.measure(cost);
                chosen = automatic.chosen().seconds;
            }
            if done >= work {
                break false;
            }
        };
        if !failed {
            return time;
        }
        time = next_failure;
        // A restart that fails begins again.
        loop {
            next_failure = time + failures.exponential(real.mttf);
            if next_failure >= time + real.restart {
                time += real.restart;
                break;
            }
            time = next_failure;
        }
        // A launch knows what the launch before it has measured.
        automatic.started(real.restart);
        chosen = automatic.chosen().seconds;
    }
}

fn mean(real: &Real, work: f64, choice: Choice, runs: u64) -> f64 {
    let times = (0..runs).map(|seed| run(real, work, choice, seed + 1));
    times.sum::<f64>() / runs as f64
}

/// The time of the automatic choice, beside that of the best of all fixed intervals, which nobody knows beforehand.
fn more_than_the_best(real: &Real) -> f64 {
    let work = 30.0 * real.mttf;
    let auto = mean(real, work, Choice::Auto, 12);
    let least = real.durable - real.stopped;
    let cost = real.stopped + BESIDE * least;
    let young = (2.0 * cost * real.mttf).sqrt();
    let fixed = (-7..=7).map(|step| (young * 1.35f64.powi(step)).max(least));
    let best = fixed.map(|seconds| mean(real, work, Choice::Fixed(seconds), 12));
    auto / best.fold(f64::INFINITY, f64::min) - 1.0
}

#[test]
fn it_is_within_five_percent_of_the_best_fixed_interval_from_ten_minutes_to_a_week() {
    const WEEK: f64 = 7.0 * 86_400.0;
    let mut worst: f64 = 0.0;
    for mttf in [600.0, 1800.0, 7200.0, 43_200.0, WEEK] {
        for (stopped, durable) in [(0.5, 0.5), (0.2, 10.0), (8.0, 60.0), (40.0, 40.0)] {
            for spread in [0.0, 0.5] {
                let restart = durable + 5.0;
                let real = Real {
                    mttf,
                    stopped,
                    durable,
                    restart,
                    spread,
                };
                let more = more_than_the_best(&real);
                println!("{:6.2} % more: {real:?}", 100.0 * more);
                worst = worst.max(more);
            }
        }
    }
    assert!(worst < 0.05, "{:.2} % more", 100.0 * worst);
}

/// The part that is said to be lost is the part that is lost.
#[test]
fn the_expected_loss_is_the_simulated_one() {
    for (mttf, stopped, durable) in [
        (3600.0, 4.0, 4.0),
        (3600.0, 1.0, 30.0),
        (86_400.0, 20.0, 120.0),
    ] {
        let real = Real {
            mttf,
            stopped,
            durable,
            restart: durable,
            spread: 0.0,
        };
        let mut automatic = Automatic::new(mttf);
        automatic.measure(Measured { stopped, durable });
        automatic.started(durable);
        let chosen = automatic.chosen();
        let work = 60.0 * mttf;
        let time = mean(&real, work, Choice::Fixed(chosen.seconds), 60);
        let lost = 1.0 - work / time;
        let said = chosen.lost.unwrap();
        assert!(
            (said - lost).abs() < 0.12 * lost + 0.003,
            "{said} {lost} {real:?}"
        );
    }
}
