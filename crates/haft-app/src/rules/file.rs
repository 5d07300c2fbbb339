//! The only writer of the rules saved with approvals: reads the whole file, changes it, and verifies the new text before it replaces the
//! old file.

use std::path::{Path, PathBuf};

use haft::policy::RuleText;
use toml::{Table, Value};

use crate::config::document::{self, MAX_BYTES};
use crate::config::kept;
use crate::home::rule_file;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::rules::{RuleCheck, head};

/// The file of a workspace's rules.
pub(crate) struct RuleFile {
    path: PathBuf,
    workspace: String,
}

impl RuleFile {
    /// Returns the file, in haft's state folder.
    pub(crate) fn of(home: &Path, workspace: &str) -> Self {
        Self {
            path: rule_file(home, workspace),
            workspace: workspace.to_owned(),
        }
    }

    /// Returns its entries, including those that are not rules.
    pub(crate) fn entries(&self) -> Result<Vec<Value>, Problem> {
        Ok(kept::entries(&kept::read(&self.path)?).to_vec())
    }

    /// Changes the entries, one process at a time. New entries must be rules that may be saved.
    pub(crate) fn change<T>(
        &self,
        check: &RuleCheck,
        edit: impl FnOnce(&mut Vec<Value>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        plain_file::private_folder(folder).map_err(|e| self.problem(e))?;
        let _lock = plain_file::lock_folder(folder).map_err(|e| self.problem(e))?;
        let mut table = kept::read(&self.path)?;
        let before = kept::entries(&table).to_vec();
        let mut after = before.clone();
        let done = edit(&mut after)?;
        for entry in after.iter().filter(|entry| !before.contains(entry)) {
            let rule: RuleText = entry.clone().try_into().map_err(|e| self.problem(e))?;
            if let Some(why) = check.refuse(&rule) {
                return Err(Problem::usage(why).advise("the saved rules are unchanged"));
            }
        }
        let text = self.render(&mut table, &after)?;
        // Completely or not at all: a truncated rule could allow more.
        plain_file::write_private(&self.path, &text).map_err(|e| self.problem(e))?;
        Ok(done)
    }

    /// Returns the whole file with these entries, verified by the code that reads it at the start.
    fn render(&self, table: &mut Table, entries: &[Value]) -> Result<String, Problem> {
        put(table, entries);
        let body = toml::to_string(table).map_err(|e| self.problem(e))?;
        let text = format!("{}\n{body}", head(&self.workspace));
        if text.len() as u64 > MAX_BYTES {
            let problem =
                Problem::usage(format!("the rules saved here are over {MAX_BYTES} bytes"));
            return Err(
                problem.advise("`haft policy rules remove ID` removes those that are not needed")
            );
        }
        let again: Table = text.parse().map_err(|e| self.problem(e))?;
        if kept::entries(&again) != entries {
            return Err(self.problem("it would read back differently"));
        }
        let wrong = entries.iter().any(|entry| {
            let rule: Result<RuleText, _> = entry.clone().try_into();
            rule.is_err()
        });
        if !wrong {
            document::parse(&self.path.display().to_string(), &text)?;
        }
        Ok(text)
    }

    fn problem(&self, what: impl std::fmt::Display) -> Problem {
        Problem::failed(format!(
            "cannot write the rules saved with approvals: {what}"
        ))
        .at(SourceLocation::file(&self.path))
    }
}

/// Sets the entries; an empty list leaves nothing behind.
fn put(table: &mut Table, entries: &[Value]) {
    let policy = table
        .entry("policy")
        .or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(policy) = policy {
        if entries.is_empty() {
            policy.remove("allow");
        } else {
            policy.insert("allow".to_owned(), Value::Array(entries.to_vec()));
        }
    }
    let empty = |policy: &Value| policy.as_table().is_some_and(Table::is_empty);
    if table.get("policy").is_some_and(empty) {
        table.remove("policy");
    }
}
