//! The last recorded calls under two policies: how many would run that were asked about, and which.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use haft::budget::EffectCounts;
use haft::permission::Verdict;
use haft::plural::counted;
use haft::policy::untrusted::UntrustedSource;
use haft::policy::{Policy, RunHistory};
use haft::toolset::Toolset;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::argument;
use crate::view::runs;

/// Number of recent calls that are judged.
const MAX_JUDGED: usize = 1_000;
/// Maximum number of calls of a group that are shown.
const MAX_EXAMPLES: usize = 5;

/// The recorded calls that two policies judge differently.
#[derive(Debug, Default, Serialize)]
pub struct RecordedCalls {
    /// Number of calls that both judged.
    pub judged: usize,
    /// Number of calls that could not be judged: their tool is gone, or the record holds only the beginning of their arguments.
    pub not_judged: usize,
    /// The others by their verdicts, the looser first.
    pub groups: Vec<CallGroup>,
    /// Why no calls could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl RecordedCalls {
    /// Says how many calls were looked at.
    pub fn summary(&self) -> String {
        if let Some(fault) = &self.fault {
            return format!("recorded calls cannot be read: {fault}");
        }
        let changed: usize = self.groups.iter().map(|group| group.count).sum();
        let more = match self.not_judged {
            0 => String::new(),
            more => format!("; {more} could not be judged"),
        };
        let calls = counted(self.judged, "call");
        format!(
            "of the last {calls} that were judged again, {changed} would be judged differently{more}"
        )
    }
}

/// Calls with the same two verdicts.
#[derive(Debug, Serialize)]
pub struct CallGroup {
    /// The verdict of the old policy.
    pub before: Verdict,
    /// The verdict of the new one.
    pub after: Verdict,
    /// How many.
    pub count: usize,
    /// Some of them, the newest first.
    pub examples: Vec<ChangedCall>,
}

/// A call that is judged differently.
#[derive(Debug, Serialize)]
pub struct ChangedCall {
    /// Its run.
    pub run: String,
    /// Its id.
    pub call: String,
    /// Its tool.
    pub tool: String,
    /// Its most telling argument.
    pub text: String,
}

impl CallGroup {
    /// Whether the new verdict is the looser one.
    pub fn is_looser(&self) -> bool {
        self.after < self.before
    }

    /// Describes it, and each example.
    pub fn to_lines(&self) -> Vec<String> {
        let was = match self.before {
            Verdict::Allow => "ran",
            Verdict::Ask => "asked",
            Verdict::Deny => "was denied",
        };
        let now = match self.after {
            Verdict::Allow => "run",
            Verdict::Ask => "ask",
            Verdict::Deny => "be denied",
        };
        let calls = counted(self.count, "recorded call");
        let head = format!("{calls} that {was} would now {now}:");
        let examples = self.examples.iter();
        let examples = examples.map(|call| format!("  {} {}", call.tool, call.text));
        std::iter::once(head).chain(examples).collect()
    }
}

/// Judges the last recorded calls by both policies. Nothing runs, and nothing is recorded.
pub(super) async fn judge(app: &App, old: &Policy, new: &Policy) -> RecordedCalls {
    let mut found = RecordedCalls::default();
    let lines = match runs::recent_calls(app, MAX_JUDGED).await {
        Ok(lines) => lines,
        Err(problem) => {
            found.fault = Some(problem.to_string());
            return found;
        }
    };
    let histories = histories(&lines);
    let mut groups: BTreeMap<(Verdict, Verdict), CallGroup> = BTreeMap::new();
    for (line, run) in lines.iter().zip(histories) {
        let verdicts = [old, new].map(|policy| verdict(app, line, policy, &run));
        let [Some(before), Some(after)] = verdicts else {
            found.not_judged += 1;
            continue;
        };
        found.judged += 1;
        if before == after {
            continue;
        }
        let group = groups.entry((after, before)).or_insert_with(|| CallGroup {
            before,
            after,
            count: 0,
            examples: Vec::new(),
        });
        group.count += 1;
        if group.examples.len() < MAX_EXAMPLES {
            group.examples.push(example(app, line));
        }
    }
    found.groups = groups.into_values().collect();
    found.groups.sort_by_key(|group| !group.is_looser());
    found
}

fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn example(app: &App, line: &Value) -> ChangedCall {
    ChangedCall {
        run: text(line, "run").to_owned(),
        call: text(line, "call").to_owned(),
        tool: text(line, "tool").to_owned(),
        text: argument::of_text(text(line, "arguments"), app.redactor()).unwrap_or_default(),
    }
}

/// Returns what the run of each call had done before it, as far as the same lines say: the newest calls of a run come first.
fn histories(lines: &[Value]) -> Vec<RunHistory> {
    let mut read: HashMap<&str, Vec<UntrustedSource>> = HashMap::new();
    let mut histories: Vec<RunHistory> = lines
        .iter()
        .rev()
        .map(|line| {
            let sources = read.entry(text(line, "run")).or_default();
            let history = RunHistory {
                untrusted: Arc::from(sources.as_slice()),
                used: Some(EffectCounts::NONE),
                ..RunHistory::none()
            };
            let named = line.get("untrusted").and_then(Value::as_array);
            for source in named.into_iter().flatten().filter_map(Value::as_str) {
                let source = UntrustedSource::recorded(source);
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
            history
        })
        .collect();
    histories.reverse();
    histories
}

/// Returns a policy's verdict on a recorded call; `None` if the call cannot be judged any more.
fn verdict(app: &App, line: &Value, policy: &Policy, run: &RunHistory) -> Option<Verdict> {
    let tools = app.all().snapshot();
    let entry = tools.entry(text(line, "tool"))?;
    let judged = app
        .executor()
        .verdict_under(policy, entry, text(line, "arguments"), run);
    judged.ok()
}
