//! The timeline of a run's calls: when each started and ended, which call made it, how long the user took to decide.

use std::collections::HashMap;

use haft::approval::inbox::{RequestFilter, StoredApproval};
use haft::call::RunId;
use haft::result::RecordedEnd;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::problem::Problem;
use crate::view::runs;
use crate::{argument, requests};

/// The fields of a call's lines that its row copies.
const TAKEN: [&str; 16] = [
    "parent",
    "tool",
    "origin",
    "args_digest",
    "arguments",
    "verdict",
    "rule",
    "decided_by",
    "approval",
    "review",
    "status",
    "duration_ms",
    "artifacts",
    "summary",
    "result",
    "error",
];

/// Returns the calls of a run, in the order in which they were made.
///
/// # Errors
/// A [`Problem`] if there is no such run or its record cannot be read.
pub async fn calls(app: &App, run: &str) -> Result<Vec<Value>, Problem> {
    let waits = decision_times(app, run).await;
    let mut order: Vec<String> = Vec::new();
    let mut rows: HashMap<String, Map<String, Value>> = HashMap::new();
    for line in runs::events(app, run).await? {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let (Some(kind), Some(call)) = (text("type"), text("call")) else {
            continue;
        };
        if !rows.contains_key(call) {
            order.push(call.to_owned());
        }
        let row = rows.entry(call.to_owned()).or_default();
        row.insert("call".into(), json!(call));
        // Shown next to the tool's name.
        let arguments = text("arguments").unwrap_or_default();
        if let Some(argument) = argument::of_text(arguments, app.redactor()) {
            row.insert("argument".into(), json!(argument));
        }
        for name in TAKEN {
            if let Some(value) = line.get(name) {
                row.insert(name.into(), value.clone());
            }
        }
        let ts = line.get("ts").cloned().unwrap_or_default();
        if let Some(exit_code) = runs::exit_code(&line) {
            row.insert("exit_code".into(), json!(exit_code));
        }
        if kind == "call_ended" {
            let began = began(&line).unwrap_or_else(|| ts.clone());
            row.entry("started").or_insert(began);
            row.insert("ended".into(), ts);
            row.insert("rendered".into(), rendered(&line));
        } else {
            // A suspended call that is resumed is running again.
            for name in [
                "ended",
                "status",
                "duration_ms",
                "summary",
                "result",
                "error",
                "rendered",
                "exit_code",
            ] {
                row.remove(name);
            }
            row.entry("started").or_insert(ts);
        }
        if let Some(waited) = waits.get(call) {
            row.insert("waited_ms".into(), json!(waited));
        }
    }
    let rows = order.iter().filter_map(|call| rows.remove(call));
    Ok(rows.map(Value::Object).collect())
}

/// Returns what a reader gets of a call that ended, in marked parts, as far as the record holds it.
fn rendered(line: &Value) -> Value {
    let text = |of: &'_ Value, name: &str| {
        let text = of.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (status, summary, result) = (
        text(line, "status"),
        text(line, "summary"),
        text(line, "result"),
    );
    let error = line.get("error");
    let error = error.map(|error| (text(error, "kind"), text(error, "message")));
    let end = RecordedEnd {
        status: &status,
        summary: &summary,
        error: error
            .as_ref()
            .map(|(kind, message)| (kind.as_str(), message.as_str())),
        result: &result,
    };
    json!(end.render())
}

/// Returns the start of a call whose record has no start event: it was stopped before it ran.
fn began(line: &Value) -> Option<Value> {
    let ended: Timestamp = line.get("ts")?.as_str()?.parse().ok()?;
    let took = line.get("duration_ms")?.as_f64()?;
    let began = ended - jiff::SignedDuration::try_from_secs_f64(took / 1000.0).ok()?;
    Some(json!(format!("{began:.3}")))
}

/// Returns how long the user took to decide about each call, in milliseconds.
async fn decision_times(app: &App, run: &str) -> HashMap<String, f64> {
    let filter = RequestFilter {
        run: Some(RunId::new(run)),
        ..RequestFilter::default()
    };
    let waited = |entry: StoredApproval| {
        let decided = entry.decision?.at - entry.request.created;
        let nanoseconds = u64::try_from(decided).ok()?;
        let waited = std::time::Duration::from_nanos(nanoseconds);
        Some((
            entry.request.call.to_string(),
            haft::result::milliseconds(waited),
        ))
    };
    let mut waits = HashMap::new();
    // Without them the timeline is still useful.
    let _ = requests::visit(app, filter, |entry| waits.extend(waited(entry))).await;
    waits
}
