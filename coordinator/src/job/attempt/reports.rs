//! The reports of an attempt's ranks.

use std::collections::BTreeMap;
use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_protocol::agent::Written;
use stillpoint_refusals::Refusal;

use crate::job::rank_names::ranks_in_words;

/// The reports of one rank.
#[derive(Clone, Debug, Default)]
struct Report {
    /// It has done its part of the phase.
    done: bool,
    /// The time of its report on its part of the phase.
    heard: Option<Duration>,
    /// A description of its activity that takes long on its way to the still point; empty if there is none.
    late: String,
    refusals: Vec<Refusal>,
    /// Its image.
    written: Option<Written>,
}

/// The reports of all ranks. A rank that is not there is passed over.
#[derive(Debug)]
pub struct Reports(Vec<Report>);

impl Reports {
    pub fn new(ranks: usize) -> Reports {
        Reports(vec![Report::default(); ranks])
    }

    pub fn size(&self) -> usize {
        self.0.len()
    }

    fn of(&mut self, rank: Rank) -> Option<&mut Report> {
        self.0.get_mut(rank.index())
    }

    fn by_rank(&self) -> impl Iterator<Item = (Rank, &Report)> {
        Rank::of_each(&self.0)
    }

    /// Another phase begins. Returns the times of the reports on the phase before.
    pub fn enter(&mut self) -> Vec<Option<Duration>> {
        let reports = self.0.iter_mut();
        reports
            .map(|report| {
                report.done = false;
                report.heard.take()
            })
            .collect()
    }

    /// The times of the reports on the phase under way.
    pub fn heard(&self) -> Vec<Option<Duration>> {
        self.0.iter().map(|report| report.heard).collect()
    }

    pub fn set_heard(
        &mut self,
        rank: Rank,
        moment: impl FnOnce(Option<Duration>) -> Option<Duration>,
    ) {
        if let Some(report) = self.of(rank) {
            report.heard = moment(report.heard);
        }
    }

    /// Records that a rank has done its part of the phase. Returns whether all have.
    pub fn done(&mut self, rank: Rank) -> bool {
        if let Some(report) = self.of(rank) {
            report.done = true;
        }
        self.all_done()
    }

    pub fn all_done(&self) -> bool {
        self.0.iter().all(|report| report.done)
    }

    /// Whether the phase waits for this rank.
    pub fn is_missing(&self, rank: Rank) -> bool {
        let report = self.0.get(rank.index());
        report.is_some_and(|report| !report.done)
    }

    pub fn has_written(&mut self, rank: Rank, written: Written) {
        if let Some(report) = self.of(rank) {
            report.written = Some(written);
        }
    }

    pub fn all_written(&self) -> bool {
        self.0.iter().all(|report| report.written.is_some())
    }

    /// The image of each rank.
    pub fn written(&self) -> impl Iterator<Item = Option<&Written>> {
        self.0.iter().map(|report| report.written.as_ref())
    }

    /// All images, in the order of their ranks.
    pub fn images(&self) -> Vec<Written> {
        self.written().flatten().cloned().collect()
    }

    /// Counts the ranks with an image as done.
    pub fn written_is_done(&mut self) {
        for report in &mut self.0 {
            report.done |= report.written.is_some();
        }
    }

    pub fn refuse(&mut self, rank: Rank, reasons: Vec<Refusal>) {
        if let Some(report) = self.of(rank) {
            report.refusals.extend(reasons);
        }
    }

    /// Every reason once, with the ranks that gave it.
    pub fn refusals(&self) -> Vec<Refusal> {
        let reasons = self.by_rank().flat_map(|(rank, report)| {
            let reasons = report.refusals.iter();
            reasons.map(move |reason| (reason, rank))
        });
        self.together(reasons)
            .into_iter()
            .map(|(reason, ranks)| {
                let reason = Refusal::clone(reason);
                reason.reworded(|reason| format!("{ranks}: {reason}"))
            })
            .collect()
    }

    /// Records a rank's activity that takes long.
    pub fn waits(&mut self, rank: Rank, what: String) {
        if let Some(report) = self.of(rank) {
            report.late = what;
        }
    }

    pub fn nobody_waits(&mut self) {
        for report in &mut self.0 {
            report.late.clear();
        }
    }

    /// A rank's activity that takes long, if there is one.
    pub fn late_of(&self, rank: Rank) -> Option<&str> {
        let report = self.0.get(rank.index())?;
        Some(report.late.as_str()).filter(|late| !late.is_empty())
    }

    /// Every activity that takes long once, with its ranks.
    pub fn late(&self) -> Vec<(&str, String)> {
        let late = self
            .by_rank()
            .map(|(rank, report)| (report.late.as_str(), rank));
        self.together(late.filter(|(late, _)| !late.is_empty()))
    }

    /// Ranks that are not done, by their reported activities, or with the given words if they have reported none.
    pub fn missing(&self, otherwise: &str) -> String {
        let missing = self.by_rank().filter(|(_, report)| !report.done);
        let missing = missing.map(|(rank, report)| match report.late.as_str() {
            "" => (otherwise, rank),
            late => (late, rank),
        });
        self.in_words(missing)
    }

    /// Words about ranks, joined by the words.
    pub fn in_words<'a>(&self, about: impl Iterator<Item = (&'a str, Rank)>) -> String {
        let all = self.together(about).into_iter();
        let all = all.map(|(words, ranks)| format!("{ranks} {words}"));
        all.collect::<Vec<_>>().join("; ")
    }

    /// Every item once, with its ranks.
    fn together<'a, T: Ord + ?Sized + 'a>(
        &self,
        items: impl Iterator<Item = (&'a T, Rank)>,
    ) -> Vec<(&'a T, String)> {
        let mut ranks_of: BTreeMap<&T, Vec<Rank>> = BTreeMap::new();
        for (item, rank) in items {
            ranks_of.entry(item).or_default().push(rank);
        }
        let named = ranks_of.into_iter().map(|(item, mut ranks)| {
            ranks.dedup();
            (item, ranks_in_words(&ranks, self.size()))
        });
        named.collect()
    }
}
