//! Metrics of this process, plus what is pending and running now, in the Prometheus format.

use std::fmt::Write as _;

use haft::approval::inbox::RequestStatus;

use crate::app::App;
use crate::metrics::head;
use crate::problem::Problem;
use crate::requests;

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the metrics of an application, plus what is pending and running now.
///
/// # Errors
/// A [`Problem`] if the inbox cannot be read.
pub async fn text(app: &App) -> Result<String, Problem> {
    app.flush().await?;
    let mut pending = 0_u64;
    let filter = requests::with_status(RequestStatus::Pending);
    requests::visit(app, filter, |_| pending += 1).await?;
    let mut out = String::new();
    head(
        &mut out,
        "haft_build_info",
        "gauge",
        "The version that runs.",
    );
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(out, "haft_build_info{{version=\"{version}\"}} 1");
    head(
        &mut out,
        "haft_uptime_seconds",
        "gauge",
        "Time since the application was assembled.",
    );
    let _ = writeln!(out, "haft_uptime_seconds {}", app.uptime().as_secs());
    head(
        &mut out,
        "haft_runs_open",
        "gauge",
        "Runs that this process has open.",
    );
    let _ = writeln!(out, "haft_runs_open {}", app.0.runs.running());
    head(
        &mut out,
        "haft_approvals_pending",
        "gauge",
        "Approval requests that wait for a decision.",
    );
    let _ = writeln!(out, "haft_approvals_pending {pending}");
    app.0.kept.tally.metrics().write(&mut out);
    Ok(out)
}
