//! What the interval models say, as tables.

use super::streamed::{Model, Sample, fit};
use super::tables::{CHECKPOINT, RESTART, STREAMS, recomputing, samples};
use crate::units::show_seconds;
use std::fmt::Write;

/// The model fitted to the paper's tables, in Markdown: constants, errors, and where streams start to pay.
pub fn model_tables() -> String {
    let mut text = String::from(
        "| what | fixed | each stream | visible, 2^24 | hidden, 2^24 | typical error | largest |\n|---|---|---|---|---|---|---|\n",
    );
    let fitted = [
        ("checkpoint (Table I)", samples(&CHECKPOINT)),
        ("restart (Table II)", samples(&RESTART)),
    ];
    for (what, samples) in fitted
        .iter()
        .chain([&("computing again (III - I - II)", recomputing())])
    {
        if let Ok(model) = fit(samples) {
            model_row(&mut text, what, &model, samples);
        }
    }
    text += "\n| what | streams | pays from, model | pays from, tables |\n|---|---|---|---|\n";
    for (what, samples) in &fitted {
        for streams in STREAMS.into_iter().filter(|&streams| streams > 1) {
            let Some(size) = fit(samples).ok().and_then(|model| model.pays_from(streams)) else {
                continue;
            };
            let measured = measured_from(samples, streams)
                .map_or("never".to_owned(), |size| format!("2^{:.0}", size.log2()));
            writeln!(
                text,
                "| {what} | {streams} | 2^{:.1} | {measured} |",
                size.log2()
            )
            .expect("a string");
        }
    }
    text
}

fn model_row(text: &mut String, what: &str, model: &Model, samples: &[Sample]) {
    const LARGEST: f64 = 16_777_216.0;
    let (typical, largest) = model.errors(samples);
    let times = [
        model.fixed,
        model.per_stream,
        LARGEST * model.visible,
        LARGEST * model.hidden,
    ]
    .map(show_seconds);
    let (typical, largest) = (100.0 * typical, 100.0 * largest);
    writeln!(
        text,
        "| {what} | {} | {typical:.1} % | {largest:.0} % |",
        times.join(" | ")
    )
    .expect("a string");
}

/// The smallest size from which on the samples themselves are faster with streams.
fn measured_from(samples: &[Sample], streams: u32) -> Option<f64> {
    let time = |size: f64, streams: u32| {
        samples
            .iter()
            .find(|sample| sample.size == size && sample.streams == streams)
            .map(|sample| sample.seconds)
    };
    let sizes = samples
        .iter()
        .filter(|sample| sample.streams == streams)
        .map(|sample| sample.size);
    let mut from = None;
    for size in sizes {
        let faster = time(size, streams)? < time(size, 1)?;
        from = if faster { from.or(Some(size)) } else { None };
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_say_where_streaming_starts_to_pay() {
        let samples = samples(&CHECKPOINT);
        assert_eq!(measured_from(&samples, 4), Some(524_288.0));
        assert_eq!(measured_from(&samples, 8), Some(1_048_576.0));
        let text = model_tables();
        assert_eq!(
            text.lines().filter(|line| line.starts_with("| ")).count(),
            2 + 3 + 4
        );
    }
}
