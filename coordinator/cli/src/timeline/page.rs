//! A page with a picture of an epoch: a row for each rank, its work in each phase, and its waits for others.

use std::fmt::Write;

use stillpoint_ids::Rank;

use super::recorded::RecordedEpoch;
use super::{host, in_words, waited_for};

/// The most ranks in the picture. Of more, those that others waited for come first.
const ROWS: usize = 96;
const WIDTH: f64 = 1000.0;
const ROW: f64 = 18.0;
/// The left margin, for the names of ranks.
const LEFT: f64 = 190.0;
const TOP: f64 = 26.0;

/// Colours of phases that can be told apart, also by most of those who see few colours.
const COLOURS: [(&str, &str); 11] = [
    ("flag", "#999999"),
    ("reach", "#e69f00"),
    ("check", "#56b4e9"),
    ("drain", "#009e73"),
    ("seal", "#cc79a7"),
    ("plan", "#0072b2"),
    ("copy", "#f0e442"),
    ("write", "#d55e00"),
    ("commit", "#882255"),
    ("release", "#44aa99"),
    ("end", "#555555"),
];

fn colour(phase: &str) -> &'static str {
    let known = COLOURS.iter().find(|(name, _)| *name == phase);
    known.map_or("#000000", |(_, colour)| colour)
}

/// A text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The ranks that are shown, in order.
fn rows(epoch: &RecordedEpoch) -> Vec<Rank> {
    let mut ranks: Vec<Rank> = Rank::all(epoch.hosts.len() as u32).collect();
    if ranks.len() > ROWS {
        let waited: Vec<Rank> = epoch
            .phases
            .iter()
            .filter_map(|phase| waited_for(epoch, phase).map(|(rank, _)| rank))
            .collect();
        ranks.sort_by_key(|rank| (!waited.contains(rank), *rank));
        ranks.truncate(ROWS);
        ranks.sort_unstable();
    }
    ranks
}

/// The picture, as SVG.
fn picture(epoch: &RecordedEpoch) -> String {
    let rows = rows(epoch);
    let height = TOP + ROW * (rows.len() as f64 + 1.0) + 10.0;
    let scale = (WIDTH - LEFT - 10.0) / epoch.seconds.max(1e-9);
    let x = |moment: f64| LEFT + moment * scale;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let mut bar = |row: f64, from: f64, to: f64, fill: &str, opacity: f64, title: &str| {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{fill}\" fill-opacity=\"{opacity}\"><title>{}</title></rect>",
            x(from),
            TOP + row * ROW + 1.0,
            ((to - from) * scale).max(0.3),
            ROW - 2.0,
            escaped(title)
        );
    };
    if let Some(stop) = &epoch.stop {
        let title = format!("the application stood still for {:.3} s", stop.seconds);
        bar(
            0.0,
            stop.began,
            stop.began + stop.seconds,
            "#bbbbbb",
            1.0,
            &title,
        );
    }
    for phase in &epoch.phases {
        let seconds = phase.ended - phase.began;
        let last = waited_for(epoch, phase);
        for (row, rank) in rows.iter().enumerate() {
            let Some(at) = phase.ranks.get(rank.index()).copied().flatten() else {
                continue;
            };
            let row = row as f64 + 1.0;
            let title = format!(
                "rank {rank}, {}: {:.3} s of {seconds:.3} s",
                phase.name,
                at - phase.began
            );
            bar(row, phase.began, at, colour(&phase.name), 1.0, &title);
            if let Some((last, _)) = last.filter(|(last, _)| last != rank) {
                let title = format!(
                    "rank {rank} waits for rank {last}: {:.3} s",
                    phase.ended - at
                );
                bar(row, at, phase.ended, colour(&phase.name), 0.2, &title);
            }
        }
    }
    let mut text = |at: f64, row: f64, anchor: &str, words: &str| {
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            TOP + row * ROW + 13.0,
            escaped(words)
        );
    };
    text(LEFT - 6.0, 0.0, "end", "application stands still");
    for (row, rank) in rows.iter().enumerate() {
        let words = format!("rank {rank} on {}", host(epoch, *rank));
        let words: String = words.chars().take(32).collect();
        text(LEFT - 6.0, row as f64 + 1.0, "end", &words);
    }
    for tick in 0..=5 {
        let moment = epoch.seconds * f64::from(tick) / 5.0;
        text(x(moment), -1.0, "middle", &format!("{moment:.2} s"));
    }
    // The picture names the rank that a long wait was for.
    for phase in &epoch.phases {
        if let Some((rank, more)) = waited_for(epoch, phase)
            && more * scale > 150.0
            && let Some(row) = rows.iter().position(|row| *row == rank)
        {
            text(
                x(phase.ended) - 4.0,
                row as f64 + 1.0,
                "end",
                &format!("{}: all wait for rank {rank}", phase.name),
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The whole page. It needs no other file.
pub fn page(epoch: &RecordedEpoch) -> String {
    let legend = epoch.phases.iter().map(|phase| {
        format!(
            "<span style=\"background:{};padding:0 .6em\">&nbsp;</span> {}&ensp;",
            colour(&phase.name),
            escaped(&phase.name)
        )
    });
    let legend: String = legend.collect();
    let words = escaped(&in_words(epoch));
    let title = format!("Epoch {}", epoch.epoch);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body style=\"font-family:sans-serif;max-width:75em;margin:2em auto\">\n<h1>{title}</h1>\n<p>{legend} pale: the rank waits for the \
         one that is named</p>\n{}<pre>{words}</pre>\n</body></html>\n",
        picture(epoch)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::recorded::tests::epoch;

    #[test]
    fn the_picture_shows_who_waits_for_whom_and_takes_no_markup_from_names() {
        let page = page(&epoch());
        assert!(page.contains("rank 0 waits for rank 1: 1.500 s"), "{page}");
        assert!(page.contains("write: all wait for rank 1"), "{page}");
        assert!(
            page.contains("b&lt;i&gt;") && !page.contains("<i>"),
            "{page}"
        );
        for colour in ["#d55e00", "#999999"] {
            assert!(page.contains(colour), "{page}");
        }
    }

    #[test]
    fn of_many_ranks_those_that_others_waited_for_are_shown() {
        let mut many = epoch();
        many.hosts = vec!["h".into(); 1000];
        for phase in &mut many.phases {
            phase.ranks = (0..1000)
                .map(|rank| Some(phase.began + if rank == 700 { 1.0 } else { 0.01 }))
                .collect();
        }
        let rows = rows(&many);
        assert_eq!(rows.len(), ROWS);
        assert!(rows.contains(&Rank(700)) && rows.is_sorted());
    }
}
