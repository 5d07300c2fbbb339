//! `Retry`: when a request is sent again, and after which pause.

use std::time::Duration;

use haft::clock;
use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::Timestamp;

use crate::model::{ModelError, Wait};

/// How often a request is retried, and the pauses before: each is twice the previous one, with a random part, unless the provider
/// specifies one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of attempts; 1 means no retry.
    pub attempts: u32,
    /// The longest that the pause after the first attempt may be: the random part shortens a pause by up to half.
    pub first: Duration,
    /// The longest pause. If the provider asks for a longer one, the request is not retried.
    pub longest: Duration,
}

impl Default for Retry {
    /// Five attempts, pauses from half a second to a minute.
    fn default() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(60),
        }
    }
}

impl Retry {
    /// Returns the pause after `tried` failed attempts, the last with this error; `None` if another attempt is pointless.
    pub(super) fn pause(&self, error: &ModelError, tried: u32) -> Option<Duration> {
        if tried >= self.attempts {
            return None;
        }
        match error {
            ModelError::Status {
                status,
                message,
                retry_after,
                ..
            } => {
                if !may_pass(*status, message) {
                    return None;
                }
                match retry_after {
                    Some(wanted) => (*wanted <= self.longest).then_some(*wanted),
                    None => Some(self.own(tried)),
                }
            }
            // An answer that broke off, or stopped coming, is asked for again, however much of it has come.
            ModelError::Unreachable { .. }
            | ModelError::Timeout {
                wait: Wait::Connect | Wait::NextByte,
                ..
            }
            | ModelError::Wire(haft_wire::WireError::Cut(_)) => Some(self.own(tried)),
            ModelError::Wire(haft_wire::WireError::Provider { kind, .. }) if passes(kind) => {
                Some(self.own(tried))
            }
            _ => None,
        }
    }

    /// Returns a pause between half of the nominal one and all of it.
    fn own(&self, tried: u32) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << tried.saturating_sub(1).min(16));
        let pause = doubled.min(self.longest);
        let mut random = [0; 2];
        // Without a random source all clients wait equally long.
        let _ = getrandom::fill(&mut random);
        let part = f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX);
        pause.mul_f64(0.5 + part / 2.0)
    }
}

/// Returns whether a refusal may be temporary.
fn may_pass(status: u16, message: &str) -> bool {
    match status {
        // An account without credit gets the same status as one that asks too often.
        429 => !message.contains("insufficient_quota"),
        408 | 409 | 500..=599 => true,
        _ => false,
    }
}

/// Returns whether an error inside a stream may be temporary.
fn passes(kind: &str) -> bool {
    matches!(
        kind,
        "overloaded_error"
            | "api_error"
            | "server_error"
            | "rate_limit_error"
            | "rate_limit_exceeded"
            | "timeout_error"
    )
}

/// Returns how long a provider wants the client to wait, according to its headers.
pub(super) fn wanted(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.trim().parse().ok()) {
        return seconds(millis).map(|wait| wait / 1000);
    }
    if let Some(after) = text(RETRY_AFTER.as_str()) {
        return match after.trim().parse() {
            Ok(number) => seconds(number),
            Err(_) => jiff::fmt::rfc2822::parse(after.trim())
                .ok()
                .map(|date| until(date.timestamp())),
        };
    }
    // The headers do not tell which limit was reached: it is one with nothing left.
    let resets = [
        (
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
        ),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        (
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ),
        (
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
        ),
    ];
    let spent = resets.iter().filter(|(left, _)| text(left) == Some("0"));
    spent.filter_map(|(_, reset)| reset_of(text(reset)?)).max()
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// Parses `6m0s`, `1.5s`, `250ms`, or a timestamp.
fn reset_of(text: &str) -> Option<Duration> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(until(time));
    }
    let mut all = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit = &rest[end..];
        let (factor, length) = match unit {
            unit if unit.starts_with("ms") => (0.001, 2),
            unit if unit.starts_with('h') => (3600.0, 1),
            unit if unit.starts_with('m') => (60.0, 1),
            unit if unit.starts_with('s') => (1.0, 1),
            _ => return None,
        };
        all += seconds(number * factor)?;
        rest = &unit[length..];
    }
    Some(all)
}

/// Returns the time left until a timestamp; zero if it has passed.
fn until(time: Timestamp) -> Duration {
    let nanoseconds = time.as_nanosecond() - clock::now();
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, message: &str, retry_after: Option<u64>) -> ModelError {
        ModelError::Status {
            place: "x".to_owned(),
            status,
            message: message.to_owned(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn timeout(wait: Wait) -> ModelError {
        ModelError::Timeout {
            place: "x".to_owned(),
            wait,
            limit: Duration::from_secs(1),
        }
    }

    #[test]
    fn what_may_pass_is_tried_again_as_long_as_it_is_of_use() {
        let retry = Retry::default();
        let range = |low, high| Some((Duration::from_millis(low), Duration::from_millis(high)));
        for (error, tried, expect) in [
            (status(429, "", None), 1, range(250, 500)),
            (status(429, "", None), 4, range(2000, 4000)),
            (status(429, "", None), 5, None),
            (status(429, "", Some(7)), 1, range(7000, 7000)),
            (status(429, "", Some(61)), 1, None),
            (status(429, "insufficient_quota", Some(1)), 1, None),
            (status(529, "", None), 1, range(250, 500)),
            (status(500, "", None), 1, range(250, 500)),
            (status(408, "", None), 1, range(250, 500)),
            (status(409, "", None), 1, range(250, 500)),
            (status(400, "", Some(1)), 1, None),
            (status(401, "", None), 1, None),
            (
                ModelError::Wire(haft_wire::WireError::Cut(7)),
                1,
                range(250, 500),
            ),
            (timeout(Wait::Connect), 1, range(250, 500)),
            (timeout(Wait::NextByte), 1, range(250, 500)),
            (timeout(Wait::FirstByte), 1, None),
            (timeout(Wait::Whole), 1, None),
            (ModelError::Other("x".to_owned()), 1, None),
        ] {
            let pause = retry.pause(&error, tried);
            let fits = match (pause, expect) {
                (Some(pause), Some((low, high))) => low <= pause && pause <= high,
                (pause, expect) => pause.is_none() && expect.is_none(),
            };
            assert!(fits, "{error} after {tried}: {pause:?}");
        }
    }

    #[test]
    fn the_pause_that_a_provider_wants_is_read_of_its_headers() {
        type Row<'a> = (&'a [(&'a str, &'a str)], Option<u64>);
        let rows: [Row<'_>; 9] = [
            (&[("retry-after", "3")], Some(3000)),
            (&[("retry-after", "0.5")], Some(500)),
            (
                &[("retry-after-ms", "1500"), ("retry-after", "9")],
                Some(1500),
            ),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], Some(0)),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "-1")], None),
            (
                &[
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "1m2.5s"),
                ],
                Some(62_500),
            ),
            (
                &[
                    ("x-ratelimit-remaining-tokens", "5"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                ],
                None,
            ),
            (
                &[
                    ("anthropic-ratelimit-requests-remaining", "0"),
                    ("anthropic-ratelimit-requests-reset", "2020-01-01T00:00:00Z"),
                ],
                Some(0),
            ),
        ];
        for (list, expect) in rows {
            let mut headers = HeaderMap::new();
            for (name, value) in list {
                headers.insert(
                    http::HeaderName::try_from(*name).unwrap(),
                    http::HeaderValue::from_static(value),
                );
            }
            assert_eq!(
                wanted(&headers),
                expect.map(Duration::from_millis),
                "{list:?}"
            );
        }
    }
}
