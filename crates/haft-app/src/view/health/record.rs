//! Whether the log of finished runs can be written, and whether its anchor has its last checkpoint.

use haft::plural::counted;

use crate::app::App;
use crate::record_log::LogStatus;
use crate::view::health::{HealthCheck, check};

/// Checks the log; a temporary state folder has none.
pub(super) async fn checks(app: &App) -> Vec<HealthCheck> {
    let Ok(log) = app.record_log().cloned() else {
        return Vec::new();
    };
    match tokio::task::spawn_blocking(move || log.status()).await {
        Ok(status) => lines(&status),
        Err(error) => {
            let advice = "report this as a bug";
            vec![check(
                "record",
                false,
                format!("cannot look at the log: {error}"),
                advice,
            )]
        }
    }
}

fn lines(status: &LogStatus) -> Vec<HealthCheck> {
    let runs = counted(usize::try_from(status.size).unwrap_or(usize::MAX), "run");
    let mut detail = format!("{runs} in the signed log");
    if status.pending > 0 {
        detail = format!("{detail}, {} to come", status.pending);
    }
    let mut lines = vec![match &status.fault {
        Some((fault, advice)) => check("record", false, format!("{fault}; {detail}"), advice),
        None => check("record", true, detail, ""),
    }];
    lines.extend(status.anchor.as_ref().map(|(place, fault)| match fault {
        Some(fault) => check(
            "record anchor",
            false,
            format!("{place} lacks the last checkpoint: {fault}"),
            "make it reachable, or correct `record.anchor`; haft tries again by itself",
        ),
        None => check(
            "record anchor",
            true,
            format!("checkpoints are written to {place}"),
            "",
        ),
    }));
    lines
}
