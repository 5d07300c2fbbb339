//! The rules saved with approvals in this workspace: lists, edits and removes them.

use haft::policy::{RuleSet, RuleText};
use haft::text::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use toml::Value;

use crate::config::layer::SettingsLayer;
use crate::problem::Problem;
use crate::rules::RuleCheck;
use crate::rules::file::RuleFile;

/// A rule that was saved with an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SavedRule {
    /// Its id, derived from its content.
    pub id: String,
    /// The rule's text, as it would stand in `policy.allow`.
    pub rule: String,
    /// The only tool that it covers, in calls with the same remaining arguments as the approved one; `None` if it covers everything that
    /// its text says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Who saved it, when, and for which request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it does not load, so that it covers nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A change of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleChange<'a> {
    /// It is removed.
    Remove,
    /// Its text is replaced.
    Edit {
        /// The new text.
        rule: &'a str,
        /// Whether it now covers everything that its text says, not only calls like the approved one.
        any_call: bool,
    },
}

impl SavedRule {
    fn of(entry: &Value, check: &RuleCheck) -> Self {
        let read: Result<RuleText, _> = entry.clone().try_into();
        let (text, fault) = match read {
            Ok(text) => {
                let fault = check.refuse(&text);
                (text, fault)
            }
            Err(error) => {
                let error: toml::de::Error = error;
                (
                    RuleText::new(entry.to_string()),
                    Some(error.message().to_owned()),
                )
            }
        };
        Self {
            id: id(entry),
            rule: text.rule,
            tool: text.tool,
            reason: text.reason,
            fault,
        }
    }
}

fn id(entry: &Value) -> String {
    let mut digest = Sha256::new();
    let read: Result<RuleText, _> = entry.clone().try_into();
    match read {
        Ok(text) => {
            let parts = [
                Some(&text.rule),
                text.tool.as_ref(),
                text.arguments.as_ref(),
            ];
            for part in parts {
                digest.update(part.map_or("", String::as_str));
                digest.update([0]);
            }
        }
        Err(_) => digest.update(entry.to_string()),
    }
    let digest = digest.finalize();
    format!("r-{}", hex(digest.get(..4).unwrap_or_default()))
}

/// Returns the rules that were saved with approvals in a workspace, oldest first.
///
/// # Errors
/// Their file cannot be read.
pub(crate) fn list(file: &RuleFile, check: &RuleCheck) -> Result<Vec<SavedRule>, Problem> {
    let entries = file.entries()?;
    let rule = |entry| SavedRule::of(entry, check);
    Ok(entries.iter().map(rule).collect())
}

/// Returns a saved rule's text.
///
/// # Errors
/// No rule has the id (any unique prefix is accepted), the entry is not a rule, or the file cannot be read.
pub(crate) fn text_of(file: &RuleFile, id: &str) -> Result<RuleText, Problem> {
    let entry = find(&file.entries()?, id)?.clone();
    let read: Result<RuleText, _> = entry.try_into();
    read.map_err(|_| Problem::usage(format!("the entry {id} is not a rule, and covers nothing")))
}

/// Edits or removes a rule in its file. Returns its previous content, also as the text of a rule if it is one.
///
/// # Errors
/// No rule has the id (any unique prefix is accepted), the new text is not a rule or names a tool that does not exist, or the file
/// cannot be written.
pub(crate) fn change(
    file: &RuleFile,
    check: &RuleCheck,
    id: &str,
    change: RuleChange<'_>,
) -> Result<(SavedRule, Option<RuleText>), Problem> {
    let old = file.change(check, |entries| change_entries(entries, id, change))?;
    let saved = SavedRule::of(&old, check);
    Ok((saved, old.try_into().ok()))
}

/// Returns rules in which a saved one is changed.
pub(crate) fn with_change(rules: &RuleSet, old: &RuleText, change: RuleChange<'_>) -> RuleSet {
    let mut rules = rules.clone();
    let is_old = |rule: &RuleText| {
        rule.layer == SettingsLayer::Always.as_str()
            && (&rule.rule, &rule.tool, &rule.arguments) == (&old.rule, &old.tool, &old.arguments)
    };
    match change {
        RuleChange::Remove => rules.allow.retain(|rule| !is_old(rule)),
        RuleChange::Edit { rule, any_call } => {
            rules.allow.retain(|rule| !is_old(rule));
            // A rule that did not load is not among them.
            let mut new = RuleText {
                layer: SettingsLayer::Always.as_str().to_owned(),
                ..old.clone()
            };
            edit(&mut new, rule, any_call);
            rules.allow.push(new);
        }
    }
    rules
}

fn edit(text: &mut RuleText, rule: &str, any_call: bool) {
    rule.clone_into(&mut text.rule);
    if any_call {
        (text.tool, text.arguments) = (None, None);
    }
}

/// Changes every entry with the same content; returns the previous content.
fn change_entries(
    entries: &mut Vec<Value>,
    id: &str,
    change: RuleChange<'_>,
) -> Result<Value, Problem> {
    let old = find(entries, id)?.clone();
    let same = |entry: &Value| self::id(entry) == self::id(&old);
    match change {
        RuleChange::Remove => entries.retain(|entry| !same(entry)),
        RuleChange::Edit { rule, any_call } => {
            for entry in entries.iter_mut().filter(|entry| same(entry)) {
                let read: Result<RuleText, _> = entry.clone().try_into();
                let mut text = read.map_err(|_| {
                    Problem::usage("the entry with this id is not a rule")
                        .advise("remove it, and save the rule again")
                })?;
                edit(&mut text, rule, any_call);
                let new = Value::try_from(&text);
                *entry = new.map_err(|e| Problem::failed(e.to_string()))?;
            }
        }
    }
    Ok(old)
}

/// Returns the entry with this id, or with the only id that starts with it.
fn find<'r>(entries: &'r [Value], id: &str) -> Result<&'r Value, Problem> {
    let fits = |entry: &&Value| !id.is_empty() && self::id(entry).starts_with(id);
    let mut found = entries.iter().filter(fits);
    let first = found.next().ok_or_else(|| {
        Problem::usage(format!("no rule {id:?} was saved in this workspace"))
            .advise("`haft policy rules` lists them with their ids")
    })?;
    if found.any(|other| self::id(other) != self::id(first)) {
        return Err(Problem::usage(format!("{id:?} matches several ids"))
            .advise("give more of its characters"));
    }
    Ok(first)
}
