//! Results as Markdown tables.

use std::fmt::Write;

use crate::applications::Rate;
use crate::row::{Row, Spread};
use crate::settings::{Group, Unit};
use crate::way::Way;

/// Returns a group's table, or nothing if none of it was measured.
pub fn table(group: Group, rows: &[Row], ways: &[Way]) -> Option<String> {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.setting.group == group && row.value(Way::Native).is_some())
        .collect();
    if rows.is_empty() {
        return None;
    }
    let others: Vec<Way> = ways
        .iter()
        .copied()
        .filter(|way| *way != Way::Native && group.concerns(*way))
        .collect();
    let mut text = String::from("| | native |");
    let mut ruler = String::from("|---|--:|");
    for way in &others {
        if *way != Way::Again {
            let _ = write!(text, " {} |", way.name());
            ruler.push_str("--:|");
        }
        let _ = write!(text, " {} over native |", way.name());
        ruler.push_str(":--|");
    }
    let _ = writeln!(text, " pairs (launches) |\n{ruler}--:|");
    for row in rows {
        let unit = row.setting.unit;
        let _ = write!(text, "| {} |", row.setting.label);
        let _ = write!(text, " {} |", shown(row.value(Way::Native), unit));
        for way in &others {
            if *way != Way::Again {
                let _ = write!(text, " {} |", shown(row.value(*way), unit));
            }
            let _ = write!(text, " {} |", compared(row.overhead(*way), unit));
        }
        let _ = writeln!(text, " {} ({}) |", row.rounds(), row.launches());
    }
    Some(text)
}

/// Shows a median with its unit.
fn shown(spread: Option<Spread>, unit: Unit) -> String {
    spread.map_or("-".to_owned(), |spread| {
        format!("{} {}", digits(spread.median), unit.name())
    })
}

/// Shows three significant digits.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

/// Shows median, its interval, and quartiles: "+1.2 % [0.9, 1.5] (-0.4 to 3.1)".
fn compared(spread: Option<Spread>, unit: Unit) -> String {
    let name = match unit {
        Unit::Percent => "points",
        _ => "%",
    };
    spread.map_or("-".to_owned(), |spread| {
        format!(
            "{:+.1} {name} [{:.1}, {:.1}] ({:.1} to {:.1})",
            spread.median, spread.sure.0, spread.sure.1, spread.quartiles.0, spread.quartiles.1
        )
    })
}

/// Returns the table of the programs' calls, or nothing without programs.
pub fn rates(rates: &[Rate]) -> Option<String> {
    if rates.is_empty() {
        return None;
    }
    let mut text = String::from(
        "| program | collective calls a second | point-to-point calls a second |\n|---|--:|--:|\n",
    );
    for rate in rates {
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} |",
            rate.program, rate.collective, rate.between_two
        );
    }
    Some(text)
}
