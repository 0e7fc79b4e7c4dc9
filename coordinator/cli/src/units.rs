//! Times and sizes in the form for people.

use std::time::Duration;

use stillpoint_protocol::Span;

/// Parses "90", "90s", "30m", "2h", "1d", "1h30m".
pub fn parse_duration(text: &str) -> Result<Span, String> {
    let wrong = || format!("'{text}' is not a time: write 90s, 30m, 2h or 1d");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let (unit, after) = match rest[digits..].chars().next() {
            Some('s') => (1, &rest[digits + 1..]),
            Some('m') => (60, &rest[digits + 1..]),
            Some('h') => (3600, &rest[digits + 1..]),
            Some('d') => (86_400, &rest[digits + 1..]),
            None if digits == text.len() => (1, ""),
            _ => return Err(wrong()),
        };
        let seconds = number.checked_mul(unit).ok_or_else(wrong)?;
        total = total
            .checked_add(Duration::from_secs(seconds))
            .ok_or_else(wrong)?;
        rest = after;
    }
    if total.is_zero() {
        return Err(wrong());
    }
    Ok(total.into())
}

/// Shows 1234567 as "1.2 MB".
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    // 999.95 would be shown as 1000.0.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Shows a span of time, rounded.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let seconds = |text| parse_duration(text).map(|span| span.time().as_secs());
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("30m"), Ok(1800));
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert_eq!(seconds("1d"), Ok(86_400));
        for wrong in [
            "",
            "0",
            "m",
            "-1",
            "1.5h",
            "1h30",
            "5 m",
            "99999999999999999999",
            "1w",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_234_567), "1.2 MB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(span(3_700), "1 h 1 min");
    }
}
