//! The rules that were kept with approvals in this workspace: listed, edited, removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::policy::{Policy, RuleSet, RuleText};
use haft::text::hex;
use rustix::fs::FlockOperation;
use serde::Serialize;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::app::App;
use crate::config::layer::Layer;
use crate::plain_file;
use crate::problem::{Place, Problem};
use crate::rules::{LARGEST, file, head, problem};

/// A rule that was kept with an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptRule {
    /// Its id, made of what it says.
    pub id: String,
    /// The rule.
    pub rule: String,
    /// The tool whose calls alone it covers, with the same remaining arguments as the call that was approved; none where it
    /// covers all that it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Who kept it, when, and about which request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a rule becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// It is no more.
    Remove,
    /// It says something else.
    Edit {
        /// The new rule.
        rule: &'a str,
        /// Whether it covers all that it says from now on, not only calls like the one that was approved.
        any_call: bool,
    },
}

impl KeptRule {
    fn of(text: &RuleText) -> Self {
        Self {
            id: id(text),
            rule: text.rule.clone(),
            tool: text.tool.clone(),
            reason: text.reason.clone(),
        }
    }
}

fn id(text: &RuleText) -> String {
    let mut digest = Sha256::new();
    for part in [
        Some(&text.rule),
        text.tool.as_ref(),
        text.arguments.as_ref(),
    ] {
        digest.update(part.map_or("", String::as_str));
        digest.update([0]);
    }
    let digest = digest.finalize();
    format!("r-{}", hex(digest.get(..4).unwrap_or_default()))
}

impl App {
    /// The rules that were kept with approvals in this workspace, oldest first.
    ///
    /// # Errors
    /// Their file cannot be read.
    pub fn kept_rules(&self) -> Result<Vec<KeptRule>, Problem> {
        let file = RuleFile::of(self);
        Ok(file.rules()?.iter().map(KeptRule::of).collect())
    }

    /// Edits or removes one of them; what it said before is returned. It is in force at once here, and in other processes as
    /// soon as they look at the file.
    ///
    /// # Errors
    /// No rule has the id (any prefix that is unique will do), the new text is no rule, or the file cannot be written.
    pub fn change_rule(&self, id: &str, change: Change<'_>) -> Result<KeptRule, Problem> {
        if let Change::Edit { rule, .. } = change
            && let Some(wrong) = problem(rule)
        {
            return Err(Problem::usage(wrong).advise("the rule stays as it was"));
        }
        let file = RuleFile::of(self);
        let old = file.change(id, change)?;
        self.put_in_force(&old, change)?;
        Ok(KeptRule::of(&old))
    }

    fn put_in_force(&self, old: &RuleText, change: Change<'_>) -> Result<(), Problem> {
        let policy = self.executor().policy();
        let mut rules = RuleSet::clone(policy.rule_set());
        let is_old = |rule: &RuleText| {
            rule.layer == Layer::Always.as_str()
                && (&rule.rule, &rule.tool, &rule.arguments)
                    == (&old.rule, &old.tool, &old.arguments)
        };
        match change {
            Change::Remove => rules.allow.retain(|rule| !is_old(rule)),
            Change::Edit { rule, any_call } => {
                for found in rules.allow.iter_mut().filter(|rule| is_old(rule)) {
                    edit(found, rule, any_call);
                }
            }
        }
        let policy = Policy::clone(&policy).with_rules(rules);
        let policy = Arc::new(policy.map_err(|error| Problem::settings(error.to_string()))?);
        self.0.rules.policy.replace(Arc::clone(&policy));
        self.executor().replace_policy(policy);
        Ok(())
    }
}

fn edit(text: &mut RuleText, rule: &str, any_call: bool) {
    rule.clone_into(&mut text.rule);
    if any_call {
        (text.tool, text.arguments) = (None, None);
    }
}

/// The file of a workspace's rules.
struct RuleFile {
    path: PathBuf,
    workspace: String,
}

impl RuleFile {
    fn of(app: &App) -> Self {
        Self {
            path: file(app.home(), app.workspace()),
            workspace: app.workspace().to_owned(),
        }
    }

    fn rules(&self) -> Result<Vec<RuleText>, Problem> {
        rules_in(&self.read()?).map_err(|what| self.problem("read", what))
    }

    fn read(&self) -> Result<Table, Problem> {
        match plain_file::read(&self.path, LARGEST) {
            Ok(text) => text.parse().map_err(|e| self.problem("read", e)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Table::new()),
            Err(e) => Err(self.problem("read", e)),
        }
    }

    /// Changes every entry that says the same, one process at a time.
    fn change(&self, id: &str, change: Change<'_>) -> Result<RuleText, Problem> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        plain_file::private_folder(folder).map_err(|e| self.problem("write", e))?;
        let lock = fs::File::open(folder).map_err(|e| self.problem("write", e))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)
            .map_err(|e| self.problem("write", e))?;
        let mut table = self.read()?;
        let rules = rules_in(&table).map_err(|what| self.problem("read", what))?;
        let old = find(&rules, id)?.clone();
        let mut kept = Vec::new();
        for rule in rules {
            let mut rule = rule;
            if self::id(&rule) == self::id(&old) {
                match change {
                    Change::Remove => continue,
                    Change::Edit {
                        rule: text,
                        any_call,
                    } => edit(&mut rule, text, any_call),
                }
            }
            kept.push(Value::try_from(&rule).map_err(|e| self.problem("write", e))?);
        }
        let policy = table
            .entry("policy")
            .or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(policy) = policy {
            policy.insert("allow".to_owned(), Value::Array(kept));
        }
        let text = toml::to_string(&table).map_err(|e| self.problem("write", e))?;
        let text = format!("{}\n{text}", head(&self.workspace));
        plain_file::write_private(&self.path, &text).map_err(|e| self.problem("write", e))?;
        Ok(old)
    }

    fn problem(&self, verb: &str, what: impl std::fmt::Display) -> Problem {
        Problem::failed(format!("{verb} the rules kept with approvals: {what}"))
            .at(Place::file(&self.path))
    }
}

fn rules_in(table: &Table) -> Result<Vec<RuleText>, toml::de::Error> {
    let allow = table.get("policy").and_then(|policy| policy.get("allow"));
    let rules = allow.and_then(Value::as_array).into_iter().flatten();
    rules.map(|rule| rule.clone().try_into()).collect()
}

/// The rule with this id, or with the one id that begins so.
fn find<'r>(rules: &'r [RuleText], id: &str) -> Result<&'r RuleText, Problem> {
    let fits = |rule: &&RuleText| !id.is_empty() && self::id(rule).starts_with(id);
    let mut found = rules.iter().filter(fits);
    let first = found.next().ok_or_else(|| {
        Problem::usage(format!("no rule {id:?} was kept in this workspace"))
            .advise("`haft policy rules` lists them with their ids")
    })?;
    if found.any(|other| self::id(other) != self::id(first)) {
        return Err(Problem::usage(format!("{id:?} begins several ids")).advise("write more of it"));
    }
    Ok(first)
}
