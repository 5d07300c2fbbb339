//! A run's record as events of the Open Cybersecurity Schema Framework (OCSF), as collectors of security events read them.
//!
//! A run's start and end are Application Lifecycle events, each call is an API Activity event. What the schema has no place for stands
//! under `unmapped`, by its name in the record.

use std::collections::BTreeMap;

use haft::audit::runs as archive;
use haft::spec::ToolClass;
use haft::toolset::Toolset as _;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::problem::Problem;

/// The version of the schema: <https://schema.ocsf.io/1.8.0>.
pub const VERSION: &str = "1.8.0";
/// The category Application Activity.
const CATEGORY: u64 = 6;
/// The class Application Lifecycle.
const LIFECYCLE: EventClass = EventClass(6002, "Application Lifecycle");
/// The class API Activity.
const API_ACTIVITY: EventClass = EventClass(6003, "API Activity");
/// Maximum number of calls without an end that are kept; the executor bounds what runs at a time far below.
const MOST_RUNNING: usize = 10_000;
/// The members of a call's line that the schema has no place for.
const UNMAPPED: [&str; 13] = [
    "args_digest",
    "origin",
    "parent",
    "coerced",
    "verdict",
    "decided_by",
    "approval",
    "review",
    "untrusted",
    "uses",
    "artifacts",
    "strength",
    "prev",
];

/// The number and name of an event class.
#[derive(Debug, Clone, Copy)]
struct EventClass(u64, &'static str);

/// What an event says was done: `activity_id` and `activity_name`.
#[derive(Debug, Clone, Copy)]
struct Activity(u64, &'static str);

/// Exports a run, one JSON text for each event, in the order of the record; calls without a recorded end come last.
///
/// # Errors
/// There is no such run, or its record cannot be read.
pub fn export(
    app: &App,
    run: &str,
) -> Result<impl Iterator<Item = Result<String, Problem>>, Problem> {
    let tools = app.all().snapshot();
    let class = move |tool: &str| tools.entry(tool).and_then(|entry| entry.spec().class);
    let mut lines = archive::events(app.home(), run)?;
    let mut exporter = OcsfExporter::new(class);
    let mut rest = None;
    Ok(std::iter::from_fn(move || {
        for line in lines.by_ref() {
            let line = match line {
                Ok(line) => line,
                Err(error) => return Some(Err(Problem::from(error))),
            };
            if let Some(event) = exporter.event(&serde_json::from_str(&line).unwrap_or_default()) {
                return Some(Ok(event.to_string()));
            }
        }
        let rest = rest.get_or_insert_with(|| exporter.in_doubt().into_iter());
        rest.next().map(|event| Ok(event.to_string()))
    }))
}

/// Turns the lines of one record into events.
struct OcsfExporter<F> {
    /// Finds the class of a tool.
    class: F,
    /// The run's first line, whose facts hold for all.
    start: Value,
    /// Calls that have no end yet.
    running: BTreeMap<String, Value>,
}

impl<F: Fn(&str) -> Option<ToolClass>> OcsfExporter<F> {
    fn new(class: F) -> Self {
        Self {
            class,
            start: Value::Null,
            running: BTreeMap::new(),
        }
    }

    /// Returns the event of a line; `None` for one that begins what a later line ends.
    fn event(&mut self, line: &Value) -> Option<Value> {
        match text(line, "type") {
            "run_started" => {
                self.start = line.clone();
                Some(self.lifecycle(line, Activity(3, "Start")))
            }
            "run_resumed" => Some(self.lifecycle(line, Activity(5, "Restart"))),
            "closed" => Some(self.lifecycle(line, Activity(4, "Stop"))),
            "call_started" => {
                if self.running.len() < MOST_RUNNING {
                    self.running
                        .insert(text(line, "call").to_owned(), line.clone());
                }
                None
            }
            "call_ended" => {
                self.running.remove(text(line, "call"));
                Some(self.call(line))
            }
            _ => None,
        }
    }

    /// Returns the events of calls that started and may have run.
    fn in_doubt(&mut self) -> Vec<Value> {
        let running = std::mem::take(&mut self.running);
        running.values().map(|line| self.call(line)).collect()
    }

    fn lifecycle(&self, line: &Value, activity: Activity) -> Value {
        let mut event = self.base(line, LIFECYCLE, activity);
        event.insert("severity_id".into(), 1.into());
        event.insert("status_id".into(), 1.into());
        event.insert("status".into(), "Success".into());
        event.insert("app".into(), product(&self.start));
        let mut rest = Map::new();
        for name in ["workspace", "profile", "calls", "count", "head", "prev"] {
            copy(line, name, &mut rest);
        }
        event.insert("unmapped".into(), rest.into());
        event.into()
    }

    fn call(&self, line: &Value) -> Value {
        let tool = text(line, "tool");
        let mut event = self.base(line, API_ACTIVITY, activity(tool, (self.class)(tool)));
        let status = text(line, "status");
        let (status_id, caption, severity) = match status {
            "ok" => (1, "Success", 1),
            "" => (0, "Unknown", 2),
            "suspended" => (99, status, 1),
            "denied" => (2, "Failure", 3),
            _ => (2, "Failure", 2),
        };
        event.insert("status_id".into(), status_id.into());
        event.insert("status".into(), caption.into());
        event.insert("severity_id".into(), severity.into());
        if !status.is_empty() {
            event.insert("status_code".into(), status.into());
        }
        let error = line.get("error").cloned().unwrap_or_default();
        let detail = [text(&error, "message"), text(line, "summary")];
        if let Some(detail) = detail.into_iter().find(|detail| !detail.is_empty()) {
            event.insert("status_detail".into(), detail.into());
            event.insert("message".into(), format!("{tool}: {detail}").into());
        }
        event.insert(
            "src_endpoint".into(),
            json!({"name": text(&self.start, "door")}),
        );
        event.insert("api".into(), api(line, &error));
        span(line, &mut event);
        control(line, &mut event);
        let mut rest = Map::new();
        for name in UNMAPPED {
            copy(line, name, &mut rest);
        }
        event.insert("unmapped".into(), rest.into());
        event.into()
    }

    /// Returns what all events have.
    fn base(&self, line: &Value, class: EventClass, activity: Activity) -> Map<String, Value> {
        let (EventClass(uid, class), Activity(id, activity)) = (class, activity);
        let principal = match text(line, "principal") {
            "" => text(&self.start, "principal"),
            principal => principal,
        };
        let (tenant, subject) = principal.split_once('/').unwrap_or(("", principal));
        let run = text(line, "run");
        let mut metadata = json!({
            "version": VERSION,
            "product": product(&self.start),
            "profiles": ["security_control"],
            "uid": format!("{run}/{}", line.get("seq").unwrap_or(&Value::Null)),
            "correlation_uid": run,
            "sequence": line.get("seq"),
            "log_name": "events.jsonl",
            "log_format": "JSON",
            "log_version": line.get("v").map(ToString::to_string),
            "event_code": text(line, "type"),
            "original_time": text(line, "ts"),
        });
        if !tenant.is_empty() {
            metadata["tenant_uid"] = tenant.into();
        }
        let event = json!({
            "activity_id": id,
            "activity_name": activity,
            "category_uid": CATEGORY,
            "category_name": "Application Activity",
            "class_uid": uid,
            "class_name": class,
            "type_uid": uid * 100 + id,
            "type_name": format!("{class}: {activity}"),
            "time": milliseconds(line),
            "metadata": metadata,
            "actor": {
                "user": {"name": subject, "uid": principal},
                "session": {"uid": run},
                "app_name": text(&self.start, "door"),
            },
        });
        match event {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// Returns what a tool's call does, as far as the tool's class says.
fn activity(tool: &str, class: Option<ToolClass>) -> Activity {
    match (tool, class) {
        ("delete_file", _) => Activity(4, "Delete"),
        (_, Some(ToolClass::Read | ToolClass::WebFetch)) => Activity(2, "Read"),
        (_, Some(ToolClass::Edit)) => Activity(3, "Update"),
        (_, Some(ToolClass::Bash)) => Activity(99, "Command"),
        (_, Some(ToolClass::Network | ToolClass::Sign) | None) => Activity(99, "Call"),
    }
}

fn api(line: &Value, error: &Value) -> Value {
    let mut request = json!({"uid": text(line, "call")});
    // The record holds the beginning of long arguments, which need not be JSON.
    let arguments = text(line, "arguments");
    if !arguments.is_empty() {
        request["data"] = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
    }
    let mut response = Map::new();
    for (name, value) in [
        ("error", text(error, "kind")),
        ("error_message", text(error, "message")),
        ("message", text(line, "summary")),
        ("data", text(line, "result")),
    ] {
        if !value.is_empty() {
            response.insert(name.into(), value.into());
        }
    }
    json!({"operation": text(line, "tool"), "request": request, "response": response})
}

/// Adds when the call began and how long it took.
fn span(line: &Value, event: &mut Map<String, Value>) {
    let Some(duration) = line.get("duration_ms").and_then(Value::as_f64) else {
        return;
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole milliseconds, as the schema has them"
    )]
    let duration = duration.max(0.0) as i64;
    let end = milliseconds(line);
    event.insert("start_time".into(), end.saturating_sub(duration).into());
    event.insert("end_time".into(), end.into());
    event.insert("duration".into(), duration.into());
}

/// Adds what the policy decided: the profile `security_control`.
fn control(line: &Value, event: &mut Map<String, Value>) {
    let is_denied = text(line, "status") == "denied";
    let (action, caption) = match text(line, "verdict") {
        _ if is_denied => (2, "Denied"),
        "" => (0, "Unknown"),
        "deny" => (2, "Denied"),
        // What is asked about and ran was approved; what is still asked about is neither.
        "ask" if text(line, "status") == "suspended" => (99, "Pending"),
        _ => (1, "Allowed"),
    };
    event.insert("action_id".into(), action.into());
    event.insert("action".into(), caption.into());
    if let Some(rule) = line.get("rule") {
        event.insert("policy".into(), json!({"name": rule}));
    }
}

fn product(start: &Value) -> Value {
    json!({"name": "haft", "vendor_name": "haft", "version": text(start, "haft")})
}

/// Returns the line's time in milliseconds since 1970.
fn milliseconds(line: &Value) -> i64 {
    let time = text(line, "ts").parse::<Timestamp>();
    time.map_or(0, Timestamp::as_millisecond)
}

fn copy(line: &Value, name: &str, to: &mut Map<String, Value>) {
    if let Some(value) = line.get(name) {
        to.insert(name.to_owned(), value.clone());
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
