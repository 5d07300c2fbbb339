//! Rules that people chose "always" for: kept in haft's state folder, one file a workspace, a layer of the settings.

use std::fs;
use std::path::{Path, PathBuf};

use haft::approval::ApprovalRequest;
use haft::approval::inbox::Entry;
use haft::clock;
use haft::policy::{Policy, RuleSet, RuleText};
use haft::toolset::Toolset;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::approvals::hex;
use crate::assemble::House;
use crate::commands::runs;
use crate::plain_file;

/// The folder below haft's state folder.
const FOLDER: &str = "rules";
/// The longest rule.
const LONGEST: usize = 4096;
/// How many recent calls a rule is tried on.
const TRIED: usize = 500;
/// How many of those it matched are shown.
const SHOWN: usize = 50;

/// The file of a workspace's rules.
pub(crate) fn file(home: &Path, workspace: &str) -> PathBuf {
    let digest = Sha256::digest(workspace.as_bytes());
    let name = hex(digest.get(..8).unwrap_or_default());
    home.join(FOLDER).join(format!("{name}.toml"))
}

/// Why a text is no rule.
pub(crate) fn problem(rule: &str) -> Option<String> {
    if rule.len() > LONGEST || rule.contains(['\n', '\r']) {
        return Some("a rule is one line of at most 4,096 bytes".to_owned());
    }
    let rules = RuleSet {
        allow: vec![RuleText::new(rule)],
        ..RuleSet::default()
    };
    let read = Policy::workspace().with_rules(rules);
    read.err().map(|error| error.to_string())
}

/// Keeps a rule for the request's workspace.
pub(crate) fn keep(
    home: &Path,
    request: &ApprovalRequest,
    rule: &str,
    by: &str,
) -> Result<(), String> {
    if let Some(problem) = problem(rule) {
        return Err(problem);
    }
    let path = file(home, &request.workspace);
    let told = |e: std::io::Error| format!("keep the rule in {}: {e}", path.display());
    if let Some(folder) = path.parent() {
        plain_file::private_folder(folder).map_err(told)?;
    }
    let mut text = match plain_file::read(&path, 1 << 20) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => head(&request.workspace),
        Err(e) => return Err(told(e)),
    };
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let since = clock::rfc3339(clock::now());
    let reason = format!("always, said {by} on {since} about {}", request.id);
    let line = format!(
        "\n[[policy.allow]]\nrule = {}\nreason = {}\n",
        quoted(rule),
        quoted(&reason)
    );
    text.push_str(&line);
    // Whole or not at all: a rule cut in half could allow more.
    let draft = path.with_extension("new");
    plain_file::write_private(&draft, &text).map_err(told)?;
    fs::rename(&draft, &path).map_err(told)
}

fn head(workspace: &str) -> String {
    let workspace = workspace.replace(char::is_control, " ");
    format!(
        "# What people chose \"always\" for in {workspace}.\n\
         # haft adds to this file; take out what shall not hold any more.\n"
    )
}

/// What a rule would have allowed among recent calls.
#[derive(Debug, Serialize)]
pub(crate) struct Tried {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    covers: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    matched: Vec<Matched>,
    looked_at: usize,
}

/// A call that a rule would have matched.
#[derive(Debug, Serialize)]
struct Matched {
    run: String,
    call: String,
    tool: String,
    text: String,
    at: String,
}

/// Tries a rule on the request itself and on recent calls.
pub(crate) async fn tried(house: &House, entry: &Entry, rule: &str) -> Tried {
    let mut tried = Tried {
        ok: true,
        error: None,
        covers: None,
        matched: Vec::new(),
        looked_at: 0,
    };
    if let Some(problem) = problem(rule) {
        tried.ok = false;
        tried.error = Some(problem);
        return tried;
    }
    let request = &entry.request;
    tried.covers = Some(speaks(
        house,
        request.tool.as_str(),
        &request.arguments,
        rule,
    ));
    let Ok(recent) = runs::recent_calls(house, TRIED).await else {
        return tried;
    };
    tried.looked_at = recent.len();
    for line in &recent {
        let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        let matches = speaks(house, text("tool"), text("arguments"), rule);
        if matches && tried.matched.len() < SHOWN {
            tried.matched.push(Matched {
                run: text("run").to_owned(),
                call: text("call").to_owned(),
                tool: text("tool").to_owned(),
                text: text("arguments").chars().take(200).collect(),
                at: text("ts").to_owned(),
            });
        }
    }
    tried
}

/// Whether a rule speaks of a call.
fn speaks(house: &House, tool: &str, arguments: &str, rule: &str) -> bool {
    let tools = house.all().snapshot();
    let Some(entry) = tools.entry(tool) else {
        return false;
    };
    let rules = [rule.to_owned()];
    !house
        .executor()
        .asked_for(entry, arguments, &rules)
        .is_empty()
}
