//! What a change of settings or rules lets through: `haft policy diff`, before a rule is saved, and when settings are reloaded.

use std::path::Path;

use haft::policy::{Policy, RuleDifference};
use serde::Serialize;

use crate::app::App;
use crate::config::Settings;
use crate::problem::Problem;
use crate::wiring::policy;

mod order;
mod orders;
mod recorded;

pub use order::{SettingDifference, SettingShift};
pub use recorded::{CallGroup, ChangedCall, RecordedCalls};

/// Maximum number of lines that a reload writes into the log.
const MAX_LOGGED: usize = 32;

/// What a change of the policy lets through, and what it stops.
#[derive(Debug, Serialize)]
pub struct PolicyDiff {
    /// Whether anything is newly allowed, no longer denied, loosened, or may be.
    pub looser: bool,
    /// What rules judge differently, the looser first.
    pub rules: Vec<RuleDifference>,
    /// Other settings that differ, the looser first.
    pub settings: Vec<SettingDifference>,
    /// The recorded calls that are judged differently.
    pub calls: RecordedCalls,
}

impl PolicyDiff {
    async fn of(app: &App, policies: [&Policy; 2], settings: Vec<SettingDifference>) -> Self {
        let [old, new] = policies;
        let rules = old.rule_differences(new);
        let calls = recorded::judge(app, old, new).await;
        let looser = rules.iter().any(|one| one.change.is_looser())
            || settings
                .iter()
                .any(|one| one.shift != SettingShift::Tightened)
            || calls.groups.iter().any(CallGroup::is_looser);
        Self {
            looser,
            rules,
            settings,
            calls,
        }
    }

    /// Returns it line by line.
    pub fn to_lines(&self) -> Vec<String> {
        let rules = self.rules.iter().map(RuleDifference::to_line);
        let settings = self.settings.iter().map(SettingDifference::to_line);
        let calls = self.calls.groups.iter().flat_map(CallGroup::to_lines);
        let mut lines: Vec<String> = rules.chain(settings).chain(calls).collect();
        if lines.is_empty() {
            lines.push("nothing is judged differently".to_owned());
        }
        lines.push(self.calls.summary());
        lines
    }
}

/// Compares two settings files, each of them alone over the built-in values.
///
/// # Errors
/// A file cannot be read, a setting in it is wrong, or one of its rules is.
pub async fn of_files(app: &App, old: &Path, new: &Path) -> Result<PolicyDiff, Problem> {
    let at = app.site();
    let read = |file: &Path| -> Result<(Settings, _), Problem> {
        let settings = Settings::of_file(&at.environment, &at.workspace, file)?;
        let policy = policy_of(app, &settings)?;
        Ok((settings, policy))
    };
    let (old, new) = (read(old)?, read(new)?);
    let settings = order::differences(&old.0, &new.0);
    Ok(PolicyDiff::of(app, [&old.1, &new.1], settings).await)
}

fn policy_of(app: &App, settings: &Settings) -> Result<std::sync::Arc<Policy>, Problem> {
    let parts = &app.0;
    policy::again(
        app.site(),
        settings,
        &parts.offered.guards,
        &parts.kept.files,
    )
}

/// Compares the policy in force with the same without a rule that was saved with an approval.
///
/// # Errors
/// No rule has the id (any unique prefix is accepted), or its file cannot be read.
pub async fn of_kept_rule(app: &App, id: &str) -> Result<PolicyDiff, Problem> {
    let new = app.executor().policy();
    let old = app.policy_without(id)?;
    Ok(PolicyDiff::of(app, [&old, &new], Vec::new()).await)
}

/// Returns the lines for the log when a policy and settings replace others: what is looser.
pub(crate) fn of_reload(
    policies: [&Policy; 2],
    settings: [&Settings; 2],
    is_live: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let rules = policies[0].looser_rules(policies[1]);
    let rules = rules.iter().map(RuleDifference::to_line);
    let settings = order::differences(settings[0], settings[1]);
    let live = |one: &&SettingDifference| {
        let path: Vec<String> = one.key.split('.').map(str::to_owned).collect();
        one.shift != SettingShift::Tightened && is_live(&path)
    };
    let settings = settings.iter().filter(live).map(SettingDifference::to_line);
    let mut lines: Vec<String> = rules.chain(settings).collect();
    let more = lines.len().saturating_sub(MAX_LOGGED);
    if more > 0 {
        lines.truncate(MAX_LOGGED);
        lines.push(format!(
            "and {more} more differences (`haft policy diff` lists them)"
        ));
    }
    lines
}
