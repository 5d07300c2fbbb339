//! `Policy`: a profile, the rules a user writes, and guards that only raise the verdict.

mod ruling;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::permission::{Permission, Verdict};
use crate::spec::{Risk, ToolSpec};

pub use ruling::{Label, Ruling};

/// The verdict where no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Safe tools run; all else is denied, and no rule lifts that.
    ReadOnly,
    /// Safe tools run, the rest is asked about.
    #[default]
    Workspace,
    /// Writes in the workspace and jailed commands run; network and critical are asked about.
    Trusted,
}

impl Profile {
    /// The word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Workspace => "workspace",
            Self::Trusted => "trusted",
        }
    }

    /// How a ruling names the profile as what decided.
    fn as_rule(self) -> &'static str {
        match self {
            Self::ReadOnly => "profile read-only",
            Self::Workspace => "profile workspace",
            Self::Trusted => "profile trusted",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCall<'a> {
    /// The tool.
    pub spec: &'a ToolSpec,
    /// The effective arguments, for rules on parameters.
    pub arguments: &'a Arguments,
    /// What the call wants to do, without `Effect::Call`, which every call has.
    pub permissions: &'a [Permission],
}

/// Who rules on calls.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    profile: Profile,
}

impl Policy {
    /// No rules, this profile.
    pub fn new(profile: Profile) -> Self {
        Self { profile }
    }

    /// Safe tools run; all else is denied.
    pub fn read_only() -> Self {
        Self::new(Profile::ReadOnly)
    }

    /// Safe tools run; the rest is asked about.
    pub fn workspace() -> Self {
        Self::new(Profile::Workspace)
    }

    /// Writes in the workspace and jailed commands run; network and critical are asked about.
    pub fn trusted() -> Self {
        Self::new(Profile::Trusted)
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Rules on a call.
    pub fn judge(&self, call: &JudgedCall<'_>) -> Ruling {
        let risk = call
            .permissions
            .iter()
            .map(|p| p.risk)
            .fold(call.spec.risk, Risk::max);
        let verdict = match (self.profile, risk) {
            (_, Risk::Safe) | (Profile::Trusted, Risk::High) => Verdict::Allow,
            (Profile::ReadOnly, _) => Verdict::Deny,
            (Profile::Workspace | Profile::Trusted, _) => Verdict::Ask,
        };
        Ruling {
            verdict,
            risk,
            rule: Label::Static(self.profile.as_rule()),
            layer: Label::Static("profile"),
            reason: Label::EMPTY,
            advice: Label::EMPTY,
        }
    }
}
