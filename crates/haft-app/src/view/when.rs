//! Times and sizes for display: `3 min ago`, `2026-11-28 18:04 UTC`, `4.2 MiB`.

use haft::clock;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Formats how long ago an RFC 3339 time was; returns the text itself if it is not a time.
pub fn ago(rfc3339: &str) -> String {
    match rfc3339.parse::<jiff::Timestamp>() {
        Ok(time) => since(clock::now() - time.as_nanosecond()),
        Err(_) => rfc3339.to_owned(),
    }
}

/// Formats an RFC 3339 time as a date with hours and minutes; returns the text itself if it is not a time.
pub fn date(rfc3339: &str) -> String {
    match rfc3339.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => rfc3339.to_owned(),
    }
}

fn since(nanoseconds: i128) -> String {
    let seconds = nanoseconds / NANOS_PER_SECOND;
    match seconds {
        ..=4 => "just now".to_owned(),
        5..=59 => format!("{seconds} s ago"),
        60..=3599 => format!("{} min ago", seconds / 60),
        3600..=86_399 => format!("{} h ago", seconds / 3600),
        86_400..=172_799 => "1 day ago".to_owned(),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Formats how long it is until an RFC 3339 time; returns the text itself if it is not a time.
pub fn until(rfc3339: &str) -> String {
    match rfc3339.parse::<jiff::Timestamp>() {
        Ok(time) => left(time.as_nanosecond() - clock::now()),
        Err(_) => rfc3339.to_owned(),
    }
}

fn left(nanoseconds: i128) -> String {
    let seconds = nanoseconds / NANOS_PER_SECOND;
    match seconds {
        ..=0 => "now".to_owned(),
        1..=119 => format!("in {seconds} s"),
        120..=7199 => format!("in {} min", seconds / 60),
        7200..=172_799 => format!("in {} h", seconds / 3600),
        _ => format!("in {} days", seconds / 86_400),
    }
}

/// Formats a size in B, KiB, MiB, GiB or TiB.
pub fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{amount:.1} {unit}")
    }
}

/// Formats a duration in ms or s.
pub fn duration(milliseconds: f64) -> String {
    if milliseconds < 1000.0 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{:.1} s", milliseconds / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{NANOS_PER_SECOND, date, left, since, size};

    #[test]
    fn time_left_is_short_words() {
        for (seconds, expect) in [
            (-5, "now"),
            (50, "in 50 s"),
            (300, "in 5 min"),
            (7 * 86_400, "in 7 days"),
        ] {
            assert_eq!(left(seconds * NANOS_PER_SECOND), expect);
        }
    }

    #[test]
    fn times_and_sizes_are_short_words() {
        let rows = [
            (0, "just now"),
            (59, "59 s ago"),
            (200, "3 min ago"),
            (7200, "2 h ago"),
            (90_000, "1 day ago"),
            (1_000_000, "11 days ago"),
        ];
        for (seconds, words) in rows {
            assert_eq!(since(seconds * NANOS_PER_SECOND), words);
        }
        assert_eq!(
            date("2026-12-26T18:26:34.690671237Z"),
            "2026-12-26 18:26 UTC"
        );
        assert_eq!(date("soon"), "soon");
        for (bytes, words) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (5_242_880, "5.0 MiB"),
        ] {
            assert_eq!(size(bytes), words);
        }
    }
}
