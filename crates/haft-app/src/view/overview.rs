//! The overview: failures, calls by hour, how long clients waited for users, connected clients. All of it is read from the index, whose
//! sums grow with hours and not with runs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use haft::audit::index::{CallCount, EXIT, FAILED, HourCount, RunFilter, RunState};
use haft::audit::runs::{self as archive, Holder};
use haft::call::RunId;
use haft::clock;
use haft::result::Status;
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;
use crate::view::runs::{self, RunListItem};

/// Nanoseconds per hour.
const NANOS_PER_HOUR: i128 = 3_600_000_000_000;
/// Number of hours in the chart.
const CHART_HOURS: i128 = 24;
/// Maximum number of failed runs that are listed.
const MAX_FAILED_RUNS: usize = 8;
/// Maximum number of runs among which they are searched.
const MAX_SEARCHED: u32 = 64;
/// Maximum number of open runs that are checked for connected clients.
const MAX_OPEN_RUNS: u32 = 200;

/// The data of the console's first page.
#[derive(Debug, Serialize)]
pub struct Overview {
    /// The hours of the chart, oldest first; the last one is the current hour.
    pub hours: Vec<Hour>,
    /// The calls since the requested time.
    pub today: Totals,
    /// The newest runs since then with a call that failed, timed out or was denied. A program's exit code alone does not count.
    pub failed: Vec<RunListItem>,
    /// Clients whose runs are open now.
    pub clients: Vec<ConnectedClient>,
}

/// The calls of one hour.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hour {
    /// The start of the hour: RFC 3339, UTC.
    pub start: String,
    /// Calls that ended.
    pub calls: u64,
    /// Calls that failed or timed out, without those in `exits`.
    pub failed: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Calls whose program ended by itself with an exit code other than 0, as failing tests do.
    pub exits: u64,
}

/// The calls of a period.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The start of the period: RFC 3339, UTC; a whole hour.
    pub since: String,
    /// Calls that ended.
    pub calls: u64,
    /// Calls that failed or timed out, without those in `exits`.
    pub failed: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Calls whose program ended by itself with an exit code other than 0, as failing tests do.
    pub exits: u64,
    /// Calls about which a user decided.
    pub decided: u64,
    /// How long these waited on average, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_wait_ms: Option<u64>,
}

/// A client whose run is open.
#[derive(Debug, Serialize)]
pub struct ConnectedClient {
    /// Its run.
    pub run: String,
    /// Its own name, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The entry point.
    pub door: String,
    /// When it started: RFC 3339, UTC.
    pub since: String,
    /// The folder that it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Returns the overview, with `since` (nanoseconds since 1970) as the start of today.
///
/// # Errors
/// A [`Problem`] if the index cannot be read.
pub async fn overview(app: &App, since: i128) -> Result<Overview, Problem> {
    app.flush().await?;
    let unread = |e| Problem::failed(format!("cannot read the overview: {e}"));
    let now = clock::now().div_euclid(NANOS_PER_HOUR);
    let first = now - CHART_HOURS + 1;
    let today = since
        .div_euclid(NANOS_PER_HOUR)
        .clamp(now - 2 * CHART_HOURS, now);
    let from = i64::try_from(first.min(today)).unwrap_or(i64::MAX);
    let activity = app.index().activity(from).await.map_err(unread)?;
    let (hours, totals) = sum_hours(activity, first..=now, today);
    let filter = RunFilter {
        failed: true,
        since: Some(today * NANOS_PER_HOUR),
        ..RunFilter::newest(MAX_SEARCHED)
    };
    let mut failed = runs::page(app, filter).await?;
    failed.retain(RunListItem::has_failed);
    failed.truncate(MAX_FAILED_RUNS);
    Ok(Overview {
        hours,
        today: totals,
        failed,
        clients: clients(app).await?,
    })
}

/// Returns the hours of the chart, and the totals since `today`.
fn sum_hours(
    activity: Vec<HourCount>,
    chart: RangeInclusive<i128>,
    today: i128,
) -> (Vec<Hour>, Totals) {
    let empty = |hour: i128| Hour {
        start: clock::rfc3339(hour * NANOS_PER_HOUR),
        ..Hour::default()
    };
    let mut hours: BTreeMap<i128, Hour> = chart.map(|hour| (hour, empty(hour))).collect();
    let mut totals = Totals {
        since: clock::rfc3339(today * NANOS_PER_HOUR),
        ..Totals::default()
    };
    let mut count = CallCount::default();
    for row in activity {
        let (calls, at) = (row.count.calls, i128::from(row.hour));
        let is_denied = row.status == Status::Denied.as_str();
        let is_failed = !is_denied && FAILED.iter().any(|status| status.as_str() == row.status);
        let (failed, denied) = (u64::from(is_failed) * calls, u64::from(is_denied) * calls);
        let exits = u64::from(row.status == EXIT) * calls;
        if let Some(hour) = hours.get_mut(&at) {
            hour.calls += calls;
            hour.failed += failed;
            hour.denied += denied;
            hour.exits += exits;
        }
        if at >= today {
            totals.calls += calls;
            totals.failed += failed;
            totals.denied += denied;
            totals.exits += exits;
            count.add(row.count);
        }
    }
    totals.decided = count.decided;
    totals.mean_wait_ms = count.waited_ms.checked_div(count.decided);
    (hours.into_values().collect(), totals)
}

/// Returns the clients whose runs a process holds now, newest first.
///
/// # Errors
/// A [`Problem`] if the index cannot be read.
pub async fn clients(app: &App) -> Result<Vec<ConnectedClient>, Problem> {
    let filter = RunFilter {
        state: Some(RunState::Open),
        ..RunFilter::newest(MAX_OPEN_RUNS)
    };
    let open = app.index().list(&filter).await;
    let open = open.map_err(|e| Problem::failed(format!("cannot list the open runs: {e}")))?;
    let home = app.home().to_owned();
    let held = move || {
        let mut open = open;
        // A run without a holder was interrupted.
        open.retain(|entry| is_held(&home, &entry.run));
        open
    };
    let held = tokio::task::spawn_blocking(held).await;
    let held = held.map_err(|e| Problem::failed(format!("cannot list the open runs: {e}")))?;
    let clients = held.into_iter().map(|entry| ConnectedClient {
        run: entry.run.to_string(),
        client: entry.notes.and_then(|notes| notes.client),
        door: entry.start.entry_point,
        since: entry.started,
        workspace: entry.start.workspace,
    });
    Ok(clients.collect())
}

fn is_held(home: &Path, run: &RunId) -> bool {
    matches!(
        archive::holder(home, run.as_str()),
        Ok(Holder::Owner | Holder::Resumer)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_summed_by_what_became_of_the_calls() {
        let row = |hour, status: &str, calls| HourCount {
            hour,
            tool: "t".into(),
            status: status.into(),
            count: CallCount {
                calls,
                decided: calls,
                waited_ms: calls * 100,
                ..CallCount::default()
            },
        };
        let activity = vec![
            row(7, "ok", 5),
            row(9, "ok", 1),
            row(10, "ok", 4),
            row(10, "denied", 2),
            row(10, "timeout", 1),
            row(10, "error", 1),
            row(10, "exit", 2),
            row(10, "cancelled", 1),
        ];
        let (hours, totals) = sum_hours(activity, 9..=10, 10);
        let [before, now] = hours.as_slice() else {
            panic!("{hours:?}")
        };
        assert_eq!((before.calls, before.failed, before.denied), (1, 0, 0));
        assert_eq!((now.calls, now.failed, now.denied), (11, 2, 2));
        assert_eq!((now.exits, totals.exits), (2, 2));
        assert_eq!(now.start, "1970-01-01T10:00:00.000Z");
        assert_eq!((totals.calls, totals.failed, totals.denied), (11, 2, 2));
        assert_eq!((totals.decided, totals.mean_wait_ms), (11, Some(100)));
        let (_, none) = sum_hours(Vec::new(), 9..=10, 10);
        assert_eq!(none.mean_wait_ms, None);
    }
}
