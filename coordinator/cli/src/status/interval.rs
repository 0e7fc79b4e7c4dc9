//! The interval that `--interval auto` has chosen, as `status` shows it.

use serde::Serialize;
use stillpoint_protocol::job_file::ChosenInterval;

/// Times in seconds.
#[derive(Debug, Serialize)]
pub(super) struct ShownInterval {
    seconds: f64,
    mttf: f64,
    /// The costs of an epoch that were measured, and of a restart as expected.
    stopped: f64,
    durable: f64,
    restart: f64,
    /// The part of the time that is expected to be lost; null before the first epoch.
    lost: Option<f64>,
}

impl From<ChosenInterval> for ShownInterval {
    fn from(chosen: ChosenInterval) -> ShownInterval {
        let seconds = |milliseconds: u64| milliseconds as f64 / 1e3;
        ShownInterval {
            seconds: seconds(chosen.every),
            mttf: seconds(chosen.mttf),
            stopped: seconds(chosen.stopped),
            durable: seconds(chosen.durable),
            restart: seconds(chosen.restart),
            lost: chosen.lost_per_million.map(|lost| lost as f64 / 1e6),
        }
    }
}

impl ShownInterval {
    pub(super) fn in_words(&self) -> String {
        let time = stillpoint_multilevel::units::show_seconds;
        let every = format!("{} of computing", time(self.seconds));
        let mttf = time(self.mttf);
        match self.lost {
            None => format!("{every}, for the first epoch, which measures; failures every {mttf}"),
            Some(lost) => format!(
                "{every}: an epoch stops the job for {} and is durable after {}, failures every {mttf}, restarts of {}; \
                 {:.2} % of the time is expected to be lost",
                time(self.stopped),
                time(self.durable),
                time(self.restart),
                100.0 * lost,
            ),
        }
    }
}
