//! Rules that people chose "always" for: kept in haft's state folder, one file a workspace, a layer of the settings.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use haft::approval::{ApprovalRequest, KeptRules, RuleStore};
use haft::clock;
use haft::policy::{Policy, Profile, RuleSet, RuleText};
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};

use crate::plain_file;
use crate::wiring::in_force::PolicyInForce;
use haft::text::hex;

mod edit;

pub use edit::{Change, KeptRule};

/// The folder below haft's state folder.
const FOLDER: &str = "rules";
/// The longest rule.
const LONGEST: usize = 4096;
/// The largest file of rules, in bytes.
const LARGEST: u64 = 1 << 20;

/// The file of a workspace's rules.
pub fn file(home: &Path, workspace: &str) -> PathBuf {
    let digest = Sha256::digest(workspace.as_bytes());
    let name = hex(digest.get(..8).unwrap_or_default());
    home.join(FOLDER).join(format!("{name}.toml"))
}

/// What says whether a rule may be kept with an approval.
#[derive(Debug, Clone)]
pub struct RuleCheck {
    /// The policy in force.
    pub(crate) policy: PolicyInForce,
    /// Every tool there is, on or off.
    pub(crate) tools: Arc<ToolRegistry>,
    /// The host's own, which no caller sees.
    pub(crate) internal: Arc<dyn Toolset>,
}

impl RuleCheck {
    /// Why an approval of the request for good cannot keep this rule, or the suggested ones where none is written; none where
    /// it can: the rule is one, and under it the same call would run unasked.
    pub fn problem(&self, request: &ApprovalRequest, rule: Option<&str>) -> Option<String> {
        if request.is_decided_each_time() {
            return Some("a critical call is approved each time: no rule is kept".to_owned());
        }
        if let Some(problem) = rule.and_then(problem) {
            return Some(problem);
        }
        let rules = request.kept_rules(rule);
        if rules.is_empty() {
            return Some(
                "no rule would allow just this call: approve it once or for the session".to_owned(),
            );
        }
        let (tools, internal) = (self.tools.snapshot(), self.internal.snapshot());
        let name = request.tool.as_str();
        let Some(tool) = tools.entry(name).or_else(|| internal.entry(name)) else {
            return Some(format!("there is no tool {} here", request.tool));
        };
        let named: Vec<String> = rules.iter().map(|rule| rule.rule.clone()).collect();
        match request.is_allowed_with(&self.policy.now(), tool.spec(), rules) {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "the rule {} does not cover this call: it would be asked about again",
                named.join(" and ")
            )),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Why a text is no rule.
pub fn problem(rule: &str) -> Option<String> {
    if rule.len() > LONGEST || rule.contains(['\n', '\r']) {
        return Some("a rule is one line of at most 4,096 bytes".to_owned());
    }
    let rules = RuleSet {
        allow: vec![RuleText::new(rule)],
        ..RuleSet::default()
    };
    let policy = Policy::builder(Profile::Workspace).classes(haft_builtins::classes());
    let read = policy.rules(rules).build();
    read.err().map(|error| error.to_string())
}

/// The files of all workspaces' rules, below haft's state folder.
#[derive(Debug)]
pub struct RuleFiles {
    /// haft's state folder.
    pub home: PathBuf,
}

impl RuleStore for RuleFiles {
    fn keep(&self, kept: &KeptRules<'_>) -> Result<(), String> {
        let path = file(&self.home, kept.workspace);
        append(&path, kept).map_err(|e| format!("write {}: {e}", path.display()))
    }
}

/// Adds rules to a file, one process at a time.
fn append(path: &Path, kept: &KeptRules<'_>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    plain_file::private_folder(folder)?;
    let lock = fs::File::open(folder)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    let mut text = match plain_file::read(path, LARGEST) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => head(kept.workspace),
        Err(e) => return Err(e),
    };
    let since = clock::rfc3339(clock::now());
    let reason = format!(
        "always, said {} on {since} about {}",
        kept.by, kept.approval
    );
    for rule in &kept.rules {
        text.push_str("\n[[policy.allow]]\n");
        let values = [
            ("rule", Some(&rule.rule)),
            ("tool", rule.tool.as_ref()),
            ("arguments", rule.arguments.as_ref()),
            ("reason", Some(&reason)),
        ];
        for (name, value) in values {
            if let Some(value) = value {
                let quoted = toml::Value::from(value.as_str());
                // Writing to a string does not fail.
                let _ = writeln!(text, "{name} = {quoted}");
            }
        }
    }
    // Whole or not at all: a rule cut in half could allow more.
    plain_file::write_private(path, &text)
}

fn head(workspace: &str) -> String {
    let workspace = workspace.replace(char::is_control, " ");
    format!(
        "# Rules that were approved with \"always\" in {workspace}.\n\
         # haft adds to this file; `haft policy rules` lists, edits and removes what it holds. With `tool` and `arguments` a rule holds for calls\n\
         # of that tool with the same remaining arguments alone; taking both lines out makes it hold for all it says.\n"
    )
}
