//! Sizes, bandwidths and durations as people write them, and back.
//!
//! Inside the crate there are only bytes, bytes per second and seconds.

/// The reason why a quantity could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnitError {
    /// `many` is not a number.
    #[error("'{0}' is not a number with a unit")]
    NotANumber(String),
    /// Nothing.
    #[error("a number is missing")]
    Missing,
    /// A negative quantity.
    #[error("'{0}' is negative")]
    Negative(String),
    /// The unit is not known.
    #[error("'{text}' has the unknown unit '{unit}'; known are {known}")]
    UnknownUnit {
        text: String,
        unit: String,
        known: &'static str,
    },
    /// More than 2^62.
    #[error("'{0}' is too large")]
    TooLarge(String),
}

/// Quantities stay below this, so that no sum of a scheduler can overflow.
pub const LARGEST: u64 = 1 << 62;

/// Reads `4096`, `480M`, `480 MB`, `1.5GiB`: decimal prefixes are powers of 1000, those with an `i` of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    let unit = unit.strip_suffix('B').unwrap_or(unit);
    let factor = prefix(unit)
        .ok_or_else(|| unknown(text, unit, "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB"))?;
    scaled(text, number, factor)
}

/// Reads `12GB/s`, `12e9`, `10 Gbit/s`, `1GiB/s`.
pub fn parse_bandwidth(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    let known = "B/s, kB/s, MB/s, GB/s, GiB/s, Mbit/s, Gbit/s";
    let stem = unit.strip_suffix("/s").unwrap_or(unit);
    if let Some(stem) = stem.strip_suffix("bit") {
        let factor = prefix(stem).ok_or_else(|| unknown(text, unit, known))?;
        return scaled(text, number / 8.0, factor);
    }
    let stem = stem.strip_suffix('B').unwrap_or(stem);
    let factor = prefix(stem).ok_or_else(|| unknown(text, unit, known))?;
    scaled(text, number, factor)
}

/// Reads `90`, `40s`, `5.5ms`, `30m`, `12h`, `7d` as seconds.
pub fn parse_seconds(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return Err(unknown(text, unit, "us, ms, s, min (m), h, d, w")),
    };
    let seconds = number * factor;
    if seconds.is_finite() {
        Ok(seconds)
    } else {
        Err(UnitError::TooLarge(text.trim().to_owned()))
    }
}

fn split(text: &str) -> Result<(f64, &str), UnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitError::Missing);
    }
    let end = text
        .char_indices()
        .find(|&(at, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[at + 1..]
                    .starts_with(|next: char| next.is_ascii_digit() || matches!(next, '-' | '+'));
            !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+') || exponent)
        })
        .map_or(text.len(), |(at, _)| at);
    let number: f64 = text[..end]
        .replace('_', "")
        .parse()
        .map_err(|_| UnitError::NotANumber(text.to_owned()))?;
    if number < 0.0 {
        return Err(UnitError::Negative(text.to_owned()));
    }
    Ok((number, text[end..].trim()))
}

fn prefix(unit: &str) -> Option<f64> {
    Some(match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        "Pi" => 1_125_899_906_842_624.0,
        _ => return None,
    })
}

fn unknown(text: &str, unit: &str, known: &'static str) -> UnitError {
    UnitError::UnknownUnit {
        text: text.trim().to_owned(),
        unit: unit.to_owned(),
        known,
    }
}

fn scaled(text: &str, number: f64, factor: f64) -> Result<u64, UnitError> {
    let value = (number * factor).round();
    if value < LARGEST as f64 {
        Ok(value as u64)
    } else {
        Err(UnitError::TooLarge(text.trim().to_owned()))
    }
}

/// `480 MB`, `1.5 GB`: three significant digits at most, decimal prefixes.
pub fn show_bytes(bytes: u64) -> String {
    show(
        bytes as f64,
        &[
            (1e15, "PB"),
            (1e12, "TB"),
            (1e9, "GB"),
            (1e6, "MB"),
            (1e3, "kB"),
            (1.0, "B"),
        ],
    )
}

/// `12 GB/s`.
pub fn show_bandwidth(bandwidth: u64) -> String {
    show_bytes(bandwidth) + "/s"
}

/// `6.67 ms`, `40 s`, `1.5 h`.
pub fn show_seconds(seconds: f64) -> String {
    if seconds == 0.0 {
        return "0 s".to_owned();
    }
    let units = [
        (86_400.0, "d"),
        (3600.0, "h"),
        (60.0, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
        (1e-6, "us"),
        (1e-9, "ns"),
    ];
    show(seconds, &units)
}

fn show(value: f64, units: &[(f64, &str)]) -> String {
    let last = units[units.len() - 1];
    // Half a unit in the last digit shown still counts as the larger unit: 999.9 kB is 1 MB.
    let &(factor, unit) = units
        .iter()
        .find(|(factor, _)| value >= factor * 0.9995)
        .unwrap_or(&last);
    let scaled = value / factor;
    let decimals = if scaled >= 99.95 {
        0
    } else if scaled >= 9.995 {
        1
    } else {
        2
    };
    let digits = format!("{scaled:.decimals$}");
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    format!("{digits} {unit}")
}

/// `1 size`, `2 sizes`, `2 processes`.
pub fn counted(count: usize, what: &str) -> String {
    let plural = match (count, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {what}{plural}")
}

/// The first few names of many, and how many more there are.
pub fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 4;
    let mut names = names;
    let mut shown: Vec<String> = names.by_ref().take(SHOWN).map(str::to_owned).collect();
    let others = names.count();
    if others > 0 {
        shown.push(counted(others, "other"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_bandwidths_and_durations_are_read_as_people_write_them() {
        assert_eq!(parse_bytes("480M"), Ok(480_000_000));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes("4_096"), Ok(4096));
        assert_eq!(parse_bandwidth("12e9"), Ok(12_000_000_000));
        assert_eq!(parse_bandwidth("10 Gbit/s"), Ok(1_250_000_000));
        assert_eq!(parse_bandwidth("24GB/s"), Ok(24_000_000_000));
        assert_eq!(parse_seconds("12h"), Ok(43_200.0));
        assert_eq!(parse_seconds("5.5ms"), Ok(0.0055));
    }

    #[test]
    fn one_is_one_and_many_are_many() {
        let sizes = [1, 0, 2].map(|count| counted(count, "size"));
        assert_eq!(sizes, ["1 size", "0 sizes", "2 sizes"]);
        let processes = [1, 2].map(|count| counted(count, "process"));
        assert_eq!(processes, ["1 process", "2 processes"]);
        let names = |count: usize| some_of(["a", "b", "c", "d", "e", "f"].into_iter().take(count));
        assert_eq!([names(0), names(1), names(4)], ["", "a", "a, b, c, d"]);
        assert_eq!(
            [names(5), names(6)],
            ["a, b, c, d, 1 other", "a, b, c, d, 2 others"]
        );
    }

    #[test]
    fn nonsense_is_refused_with_its_own_words() {
        assert_eq!(parse_bytes("-5M"), Err(UnitError::Negative("-5M".into())));
        assert!(matches!(
            parse_bytes("12 parsecs"),
            Err(UnitError::UnknownUnit { .. })
        ));
        assert_eq!(
            parse_bytes("many"),
            Err(UnitError::NotANumber("many".into()))
        );
        assert_eq!(parse_bytes(" "), Err(UnitError::Missing));
        assert_eq!(parse_bytes("9e99"), Err(UnitError::TooLarge("9e99".into())));
        assert!(parse_seconds("nan").is_err() && parse_seconds("inf").is_err());
        let endless = "1e308w";
        assert_eq!(
            parse_seconds(endless),
            Err(UnitError::TooLarge(endless.into()))
        );
    }

    #[test]
    fn quantities_are_shown_with_three_digits() {
        assert_eq!(show_bytes(480_000_000), "480 MB");
        assert_eq!(show_bytes(999_900), "1 MB");
        assert_eq!(show_bytes(7), "7 B");
        assert_eq!(show_bandwidth(12_000_000_000), "12 GB/s");
        assert_eq!(show_seconds(0.02 / 3.0), "6.67 ms");
        assert_eq!(show_seconds(0.0), "0 s");
        assert_eq!(show_seconds(43_200.0), "12 h");
    }
}
