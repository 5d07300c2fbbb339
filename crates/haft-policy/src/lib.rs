//! Who may do what: a profile, the user's rules, and guards that can only make a verdict stricter.
//!
//! ```text
//! JudgedCall { spec, arguments, permissions, history } ──► Policy ──► Ruling { verdict, what decided, why }
//!     rules/     what the user wrote: parsed, matched, narrowed by a skill
//!     guards/    what no rule overrides: own files and commands, private addresses, budgets, untrusted content
//!     commands/  the parts of a command line; what a command does says `haft-command`
//!     paths/     protected and denied files, and the further names by which links reach them
//!     diff/      what a change of rules lets through, decided from the rules
//!     explain/   why, what would let a call run, which rules can be offered
//! ```
//!
//! It judges a call that somebody else has parsed, and runs nothing. What it counts ([`budget`]) and what a run has read from strangers
//! ([`untrusted`]) is kept by the run's session in `haft`, which re-exports this crate as `haft::policy`.

pub mod address;
pub mod budget;
pub mod untrusted;

mod builder;
mod commands;
mod destination;
mod diff;
mod explain;
mod guards;
mod judge;
mod judged_call;
mod named_ports;
mod network_bundle;
mod paths;
mod restriction;
mod safeguards;
mod cause;
mod protected;
mod profile;
mod classes;
mod places;
mod rule_of_two;
mod rules;
mod ruling;
mod run_history;
mod run_properties;
mod secret_files;
mod sign_purpose;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use haft_files::paths::PathView;
use haft_files::workspace::Workspace;
use haft_types::permission::Verdict;
use haft_types::spec::ToolSpec;

use crate::budget::Budgets;
use crate::builder::standard_guards;
use crate::paths::linked_effects::NameCache;
use crate::secret_files::SecretRule;

pub use crate::cause::{Cause, CauseKind};
pub use crate::classes::Classes;
pub use crate::commands::fetching_lines::content_of_fetch;
pub use crate::commands::parts::{CommandLine, CommandPart, RedirectTarget, line_risk};
pub use crate::commands::risk::command_risk;
pub use crate::diff::{RuleDifference, VerdictChange};
pub use crate::explain::dead::{DeadCause, DeadRule};
pub use crate::explain::proposal::{PROPOSED_RULE, RuleProposals, refuse_proposal, rule_coverage};
pub use crate::explain::{
    CheckReport, EffectExplanation, Explanation, GuardView, LayerVerdict, PolicyView, RuleFailure,
    RuleView,
};
pub use crate::guards::agent_instructions::AgentInstructions;
pub use crate::guards::command_lines::CommandLines;
pub use crate::guards::effect_budgets::EffectBudgets;
pub use crate::guards::own_commands::OwnCommands;
pub use crate::guards::own_program::OwnProgram;
pub use crate::guards::rule_of_two::RuleOfTwo;
pub use crate::guards::untrusted_content::UntrustedContent;
pub use crate::guards::{
    CommandChanges, Guard, MinimumVerdict, OwnFiles, PrivateAddresses, ProtectedPaths,
    WorkspaceEdge,
};
pub use crate::judge::EffectVerdict;
pub use crate::judged_call::JudgedCall;
pub use crate::network_bundle::NetworkBundle;
pub use crate::paths::denials::{Denials, NameProgress};
pub use crate::paths::linked_effects::AllNames;
pub use crate::paths::linked_effects::UnknownNames;
pub use crate::paths::linked_names::LinkedNames;
pub use crate::paths::misplaced::WorkspaceMismatch;
pub use crate::places::PolicyContext;
pub use crate::protected::{
    ProtectedName, agent_instructions, instruction_names, is_git_setting, protected,
    protected_from_commands, protected_names,
};
pub use crate::restriction::{OutsideEffect, Restriction};
pub use crate::rule_of_two::RuleOfTwoState;
pub use crate::rules::names::UnknownName;
pub use crate::rules::request_pattern::target::{RequestTarget, UnclearTarget};
pub use crate::rules::rule::RuleList;
pub use crate::rules::{RuleFinding, RuleSet, RuleText, RulesError};
pub use crate::ruling::{Label, Ruling};
pub use crate::run_history::RunHistory;
pub use crate::run_properties::RunProperties;
pub use crate::safeguards::{Safeguard, Safeguards};
pub use crate::secret_files::SecretFiles;
pub use haft_command::{CommandUses, PathAccess, PathCertainty, PathUse};
pub use haft_files::secret_names::{SECRET_NAMES, SecretNameError, SecretNames};
pub use haft_shell::{join_words, plain_words, reads_alike, runs_at_start};

pub use crate::builder::{PolicyBuilder, PolicyParts};
pub use crate::profile::{CommandPolicy, Profile};

/// Judges calls. Clones share all data.
///
/// The profile decides where no rule matches. Among matching rules, deny beats ask, and ask beats allow.
///
/// ```
/// use haft_policy::{JudgedCall, Policy, Profile, RuleText, RunHistory};
/// use haft_types::permission::Verdict;
/// use haft_types::spec::{Risk, ToolName, ToolSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = serde_json::json!({"type": "object"});
/// let mut close = ToolSpec::new(ToolName::new("close")?, "Close an account.", schema);
/// close.risk = Risk::High;
///
/// let root = RuleText {
///     reason: Some("the root account stays".to_owned()),
///     ..RuleText::new("close(account:root)")
/// };
/// let policy = Policy::builder(Profile::Workspace).allow("close").deny(root).build()?;
/// let run = RunHistory::none();
/// let judge = |arguments| policy.judge(&JudgedCall::new(&close, arguments, &[], &run));
/// assert_eq!(judge(r#"{"account":"ann"}"#).verdict, Verdict::Allow);
/// let denied = judge(r#"{"account":"root"}"#);
/// assert_eq!(denied.verdict, Verdict::Deny);
/// assert!(denied.reason.to_string().contains("the root account stays"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) profile: Profile,
    pub(crate) rules: Arc<rules::Rules>,
    pub(crate) written: Arc<RuleSet>,
    pub(crate) guards: Arc<[Arc<dyn Guard>]>,
    /// Guards that the host added to the standard ones.
    pub(crate) added: Vec<Arc<dyn Guard>>,
    pub(crate) places: Arc<PolicyContext>,
    pub(crate) own: Arc<OwnFiles>,
    pub(crate) hidden: Arc<[PathBuf]>,
    pub(crate) secrets: SecretRule,
    pub(crate) commands: CommandPolicy,
    pub(crate) budgets: Option<Arc<EffectBudgets>>,
    /// The workspace that calls work in, if it is opened here, and the further names of its files.
    pub(crate) workspace: Option<Workspace>,
    pub(crate) names: Arc<NameCache>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

impl Policy {
    /// Creates a policy with this profile, the standard guards and no rules.
    pub fn new(profile: Profile) -> Self {
        let places = PolicyContext::default();
        Self {
            profile,
            rules: Arc::default(),
            written: Arc::default(),
            guards: standard_guards(&places).into(),
            added: Vec::new(),
            places: Arc::new(places),
            own: Arc::default(),
            hidden: Arc::default(),
            secrets: SecretRule::default(),
            commands: CommandPolicy::default(),
            budgets: None,
            workspace: None,
            names: Arc::default(),
        }
    }

    /// Creates a policy where safe tools run and everything else is denied.
    pub fn read_only() -> Self {
        Self::new(Profile::ReadOnly)
    }

    /// Creates a policy where safe tools run and everything else needs approval.
    pub fn workspace() -> Self {
        Self::new(Profile::Workspace)
    }

    /// Creates a policy where writes in the workspace and jailed commands run; network access and critical effects need approval.
    pub fn trusted() -> Self {
        Self::new(Profile::Trusted)
    }

    /// Returns a builder for a policy with this profile.
    pub fn builder(profile: Profile) -> PolicyBuilder {
        PolicyBuilder {
            profile,
            rules: RuleSet::default(),
            places: PolicyContext::default(),
            hidden: Arc::default(),
            secrets: SecretRule::default(),
            guards: Vec::new(),
            tools: None,
            commands: CommandPolicy::default(),
            workspace: None,
        }
    }

    /// Replaces the rules of this policy.
    ///
    /// # Errors
    /// [`RulesError`] if a rule cannot be parsed, names an unknown tool or contradicts its examples.
    pub fn with_rules(mut self, rules: RuleSet) -> Result<Self, RulesError> {
        self.rules = Arc::new(rules::Rules::new(&rules, &self.places)?);
        self.written = Arc::new(rules);
        self.names = Arc::default();
        Ok(self)
    }

    /// Returns a copy of this policy with more allow rules, after the existing ones.
    ///
    /// # Errors
    /// [`RulesError`] if a rule cannot be parsed, names an unknown tool or contradicts its examples.
    pub fn allowing(&self, more: impl IntoIterator<Item = RuleText>) -> Result<Self, RulesError> {
        let mut rules = RuleSet::clone(&self.written);
        rules.allow.extend(more);
        self.clone().with_rules(rules)
    }

    /// Returns the rules as written, each with its layer.
    pub fn rule_set(&self) -> &RuleSet {
        &self.written
    }

    /// Whether a rule covers a single approved call of this tool: only then does the digest of the unstated arguments matter.
    pub fn covers_saved_calls_of(&self, tool: &str) -> bool {
        self.rules.covers_saved_calls_of(tool)
    }

    /// Binds this policy to a workspace: takes over its root and its hidden paths.
    ///
    /// # Errors
    /// [`RulesError`] if a rule contradicts its own example there.
    pub fn with_workspace(self, workspace: &Workspace) -> Result<Self, RulesError> {
        let builder = PolicyBuilder {
            profile: self.profile,
            rules: RuleSet::clone(&self.written),
            places: PolicyContext::clone(&self.places),
            hidden: Arc::default(),
            secrets: self.secrets,
            guards: self.added,
            tools: None,
            commands: self.commands,
            workspace: None,
        };
        let policy = builder.workspace(workspace).build()?;
        Ok(match &self.budgets {
            Some(guard) => policy.with_budgets(guard.budgets().clone()),
            None => policy,
        })
    }

    /// Returns the root of the workspace that this policy judges, if any.
    pub fn workspace_root(&self) -> Option<&str> {
        self.places.workspace.as_deref()
    }

    /// Adds a guard.
    pub fn with_guard(mut self, guard: impl Guard + 'static) -> Self {
        let one: Arc<dyn Guard> = Arc::new(guard);
        self.guards = self
            .guards
            .iter()
            .cloned()
            .chain([Arc::clone(&one)])
            .collect();
        self.added.push(one);
        self
    }

    /// Replaces the budgets. A call that would exceed one needs approval, whatever the rules allow.
    pub fn with_budgets(mut self, budgets: Budgets) -> Self {
        let place = |guard: &Arc<dyn Guard>| Arc::as_ptr(guard).cast::<()>();
        let before = self.budgets.take();
        let before = before.map(|guard| Arc::as_ptr(&guard).cast::<()>());
        let others = self.guards.iter().cloned();
        let mut guards: Vec<Arc<dyn Guard>> = others
            .filter(|guard| Some(place(guard)) != before)
            .collect();
        if !budgets.is_none() {
            let guard = Arc::new(EffectBudgets::new(budgets));
            guards.push(Arc::clone(&guard) as _);
            self.budgets = Some(guard);
        }
        self.guards = guards.into();
        self
    }

    /// Returns the budgets, if any.
    pub fn budgets(&self) -> Option<&Budgets> {
        self.budgets.as_ref().map(|guard| guard.budgets())
    }

    /// Returns the profile, which decides where no rule matches.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the verdict on a call of this tool that states no effects: what a caller can usually expect.
    pub fn usual(&self, spec: &ToolSpec) -> Verdict {
        let run = RunHistory::none();
        let call = JudgedCall::new(spec, "{}", &[], &run);
        self.judge(&call).verdict
    }

    /// Whether the files of the workspace count as untrusted content.
    pub fn distrusts_workspace(&self) -> bool {
        self.places.distrusts_workspace
    }

    /// Returns what a call adds to the properties of its run, and what the run holds.
    pub fn rule_of_two(&self, call: &JudgedCall<'_>) -> RuleOfTwoState {
        RuleOfTwoState::of(call, self.places.commands_reach_out)
    }

    /// Whether a tool that walks folders may show this path (in the form of a `PathClaim`). False for haft's own files and for paths
    /// that a deny or ask rule on reading covers: only the folder itself was judged with the call.
    pub fn may_show(&self, tool: &str, path: &str) -> bool {
        let view = || PathView::new(path, self.places.workspace.as_deref());
        !self.own.covers(path)
            && (self.rules.all().is_empty() || !self.rules.withholds(tool, &view()))
    }

    /// Whether the policy may withhold anything in a folder from a tool that walks it.
    pub fn withholds_from(&self, tool: &str) -> bool {
        self.rules.withholds_from(tool)
    }

    /// Returns the deny rule without specifier that removes this tool from every list, if any.
    pub fn removes(&self, tool: &str) -> Option<&str> {
        self.rules
            .removal(tool, &self.places)
            .map(|rule| &*rule.text)
    }

    /// Returns the rules that can never match, each with a form that works, for reporting when settings are loaded.
    pub fn findings(&self) -> Vec<RuleFinding> {
        self.rules.findings()
    }
}
