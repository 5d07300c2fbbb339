//! `Metrics`: counts of the calls of this process since it started, in the Prometheus text format (0.0.4).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use haft::result::Status;
use parking_lot::Mutex;

/// Upper bounds of the duration buckets, in seconds.
const DURATION_BUCKETS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];
/// Upper bounds of the wait buckets, in seconds.
const WAIT_BUCKETS: [f64; 8] = [1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0];
/// Maximum number of tools that are counted by name.
const MAX_TOOLS: usize = 500;
/// The name under which calls of further tools are counted.
const OTHER: &str = "(other)";

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<MetricCounts>);

#[derive(Debug, Default)]
struct MetricCounts {
    calls: BTreeMap<(String, &'static str), u64>,
    durations: BTreeMap<String, Histogram<10>>,
    waits: Histogram<8>,
}

/// Counts by upper bound; values above all bounds count only towards the total.
#[derive(Debug, Clone, Copy)]
struct Histogram<const N: usize> {
    buckets: [u64; N],
    count: u64,
    seconds: f64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            buckets: [0; N],
            count: 0,
            seconds: 0.0,
        }
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&mut self, bounds: &[f64; N], seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
        for (bucket, bound) in self.buckets.iter_mut().zip(bounds) {
            if seconds <= *bound {
                *bucket += 1;
            }
        }
    }

    fn write(&self, out: &mut String, name: &str, bounds: &[f64; N], label: &str) {
        let comma = if label.is_empty() { "" } else { "," };
        for (bucket, bound) in self.buckets.iter().zip(bounds) {
            let _ = writeln!(
                out,
                "{name}_bucket{{{label}{comma}le=\"{bound}\"}} {bucket}"
            );
        }
        let _ = writeln!(
            out,
            "{name}_bucket{{{label}{comma}le=\"+Inf\"}} {}",
            self.count
        );
        let braces = if label.is_empty() {
            String::new()
        } else {
            format!("{{{label}}}")
        };
        let _ = writeln!(out, "{name}_sum{braces} {}", self.seconds);
        let _ = writeln!(out, "{name}_count{braces} {}", self.count);
    }
}

impl Metrics {
    /// Counts a call that has ended.
    pub(crate) fn count_call(&self, tool: &str, status: Status, took: Duration) {
        let mut counts = self.0.lock();
        let is_known = counts.durations.contains_key(tool);
        let tool = if is_known || counts.durations.len() < MAX_TOOLS {
            tool
        } else {
            OTHER
        };
        *counts
            .calls
            .entry((tool.to_owned(), status.as_str()))
            .or_default() += 1;
        let durations = counts.durations.entry(tool.to_owned()).or_default();
        durations.add(&DURATION_BUCKETS, took.as_secs_f64());
    }

    /// Counts how long an approval request waited for its decision.
    pub(crate) fn count_wait(&self, waited: Duration) {
        self.0.lock().waits.add(&WAIT_BUCKETS, waited.as_secs_f64());
    }

    /// Writes all metrics.
    pub(crate) fn write(&self, out: &mut String) {
        let counts = self.0.lock();
        head(
            out,
            "haft_calls_total",
            "counter",
            "Calls that ended, by tool and status.",
        );
        for ((tool, status), count) in &counts.calls {
            let tool = escaped(tool);
            let _ = writeln!(
                out,
                "haft_calls_total{{tool=\"{tool}\",status=\"{status}\"}} {count}"
            );
        }
        head(
            out,
            "haft_denials_total",
            "counter",
            "Calls that were denied.",
        );
        let denied = counts.calls.iter();
        let denied = denied.filter(|((_, status), _)| *status == Status::Denied.as_str());
        let denied: u64 = denied.map(|(_, count)| count).sum();
        let _ = writeln!(out, "haft_denials_total {denied}");
        let name = "haft_call_duration_seconds";
        head(
            out,
            name,
            "histogram",
            "Time from the first check of a call to its end.",
        );
        for (tool, durations) in &counts.durations {
            let label = format!("tool=\"{}\"", escaped(tool));
            durations.write(out, name, &DURATION_BUCKETS, &label);
        }
        let name = "haft_approval_wait_seconds";
        head(
            out,
            name,
            "histogram",
            "Time from an approval request to its decision.",
        );
        counts.waits.write(out, name, &WAIT_BUCKETS, "");
    }
}

/// Writes the header lines of a metric.
pub(crate) fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        metrics.count_call("read_file", Status::Ok, Duration::from_millis(3));
        metrics.count_call("read_file", Status::Denied, Duration::from_secs(2));
        metrics.count_call("a\"b\\c\nd", Status::Error, Duration::from_secs(900));
        metrics.count_wait(Duration::from_secs(10));
        let mut out = String::new();
        metrics.write(&mut out);
        for line in [
            "# TYPE haft_calls_total counter",
            "haft_calls_total{tool=\"read_file\",status=\"ok\"} 1",
            "haft_calls_total{tool=\"a\\\"b\\\\c\\nd\",status=\"error\"} 1",
            "haft_denials_total 1",
            "haft_call_duration_seconds_bucket{tool=\"read_file\",le=\"0.005\"} 1",
            "haft_call_duration_seconds_bucket{tool=\"read_file\",le=\"5\"} 2",
            "haft_call_duration_seconds_bucket{tool=\"a\\\"b\\\\c\\nd\",le=\"600\"} 0",
            "haft_call_duration_seconds_count{tool=\"a\\\"b\\\\c\\nd\"} 1",
            "haft_approval_wait_seconds_bucket{le=\"15\"} 1",
            "haft_approval_wait_seconds_sum 10",
            "haft_approval_wait_seconds_count 1",
        ] {
            assert!(out.lines().any(|found| found == line), "{line}\n{out}");
        }
    }

    #[test]
    fn tools_that_strangers_name_do_not_grow_the_list_without_end() {
        let metrics = Metrics::default();
        for n in 0..MAX_TOOLS + 50 {
            metrics.count_call(&format!("t{n}"), Status::Ok, Duration::ZERO);
        }
        let counts = metrics.0.lock();
        assert_eq!(counts.durations.len(), MAX_TOOLS + 1);
        let other = counts.calls.get(&(OTHER.to_owned(), "ok"));
        assert_eq!(other, Some(&50));
    }
}
