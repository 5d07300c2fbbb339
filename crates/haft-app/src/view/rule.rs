//! Tries a rule on a request and on recent calls before it is saved.

use haft::approval::inbox::StoredApproval;
use haft::plural::counted;
use haft::policy::RuleText;
use haft::toolset::Toolset;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::argument;
use crate::view::runs;

/// Number of recent calls that a rule is tried on.
const MAX_TRIED: usize = 500;
/// Maximum number of matching calls that are printed, one line each.
const MAX_PRINTED: usize = 5;
/// Maximum number of matching calls that are returned.
const MAX_SHOWN: usize = 50;

/// What a rule would have allowed among recent calls.
#[derive(Debug, Serialize)]
pub struct RuleTrial {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    covers: Option<bool>,
    /// What it would newly let through, decided from the rules: one line each, with an example.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    newly: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    matched: Vec<MatchedCall>,
    /// How many of the recent calls it would have covered.
    covered: usize,
    looked_at: usize,
}

/// A call that a rule would have matched.
#[derive(Debug, Serialize)]
struct MatchedCall {
    run: String,
    call: String,
    tool: String,
    text: String,
    at: String,
}

/// Returns lines about the recent calls that a proposed rule would have covered.
pub async fn past(app: &App, entry: &StoredApproval) -> Vec<String> {
    let Some(rule) = entry.request.proposal() else {
        return Vec::new();
    };
    let tried = try_rule(app, entry, rule).await;
    let head = format!(
        "would have covered {} of the last {}",
        tried.covered,
        counted(tried.looked_at, "call")
    );
    let newly = tried.newly.iter().cloned();
    let few = tried.matched.iter().take(MAX_PRINTED);
    let lines = few.map(|call| format!("  {} {} {}", call.at, call.tool, call.text));
    newly.chain([head]).chain(lines).collect()
}

/// Tries a rule on the request itself and on recent calls.
pub async fn try_rule(app: &App, entry: &StoredApproval, rule: &str) -> RuleTrial {
    let mut tried = RuleTrial {
        ok: true,
        error: None,
        covers: None,
        newly: Vec::new(),
        matched: Vec::new(),
        covered: 0,
        looked_at: 0,
    };
    if let Some(problem) = app.rule_check().refuse(&RuleText::new(rule)) {
        tried.ok = false;
        tried.error = Some(problem);
        return tried;
    }
    let check = app.rule_check();
    let kept = entry.request.kept_rules(Some(rule));
    // It may take a second if the rule is an absurd one.
    let compare = {
        let check = check.clone();
        move || check.newly_allowed(&kept)
    };
    let lines = tokio::task::spawn_blocking(compare).await;
    let lines = lines.unwrap_or_default().into_iter();
    tried.newly = lines
        .map(|line| app.redactor().redact(&line).into_owned())
        .collect();
    if entry.request.proposal().is_none() {
        tried.covers = Some(check.problem(&entry.request, Some(rule)).is_none());
    }
    let Ok(recent) = runs::recent_calls(app, MAX_TRIED).await else {
        return tried;
    };
    tried.looked_at = recent.len();
    for line in &recent {
        let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        let matches = rule_matches(app, text("tool"), text("arguments"), rule);
        tried.covered += usize::from(matches);
        if matches && tried.matched.len() < MAX_SHOWN {
            tried.matched.push(MatchedCall {
                run: text("run").to_owned(),
                call: text("call").to_owned(),
                tool: text("tool").to_owned(),
                text: argument::of_text(text("arguments"), app.redactor()).unwrap_or_default(),
                at: text("ts").to_owned(),
            });
        }
    }
    tried
}

/// Returns whether a rule matches a call.
fn rule_matches(app: &App, tool: &str, arguments: &str, rule: &str) -> bool {
    let tools = app.all().snapshot();
    let Some(entry) = tools.entry(tool) else {
        return false;
    };
    let rules = [rule.to_owned()];
    !app.executor()
        .asked_for(entry, arguments, &rules)
        .is_empty()
}
