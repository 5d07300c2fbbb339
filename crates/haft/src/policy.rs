//! `Policy`: a profile, the user's rules, and guards that can only make a verdict stricter.

pub mod address;
mod budgets;
mod cause;
mod classes;
mod command;
mod command_lines;
mod dead;
mod denials;
mod explain;
mod folders;
mod guard;
mod instead;
mod judge;
mod judged_call;
mod linked_effects;
mod linked_names;
mod misplaced;
mod name_progress;
mod names;
mod network;
mod network_bundle;
mod own_commands;
mod own_program;
mod parts;
mod pattern;
mod phrase;
mod places;
mod plain_parts;
mod proposal;
mod protected;
mod remedy;
mod remembered;
mod removal;
mod restriction;
mod rule;
mod rules;
mod ruling;
mod run_history;
mod safeguards;
mod secret_files;
mod subject;
mod suggest;
mod untrusted;
#[cfg(test)]
mod tests;
mod view;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use haft_files::{glob, paths, texts};

use crate::arguments::Arguments;
use crate::budget::Budgets;
use crate::permission::Verdict;
use crate::policy::linked_effects::NameCache;
use crate::policy::secret_files::SecretRule;
use crate::spec::{ToolClass, ToolSpec};
use crate::workspace::Workspace;

pub use budgets::EffectBudgets;
pub use cause::{Cause, CauseKind};
pub use classes::Classes;
pub use command::command_risk;
pub use command_lines::CommandLines;
pub use dead::{DeadCause, DeadRule};
pub use denials::{Denials, NameProgress};
pub use explain::{
    CheckReport, EffectExplanation, Explanation, GuardView, LayerVerdict, PolicyView, RuleFailure,
    RuleView,
};
pub use guard::{
    CommandChanges, Guard, MinimumVerdict, OwnFiles, PrivateAddresses, ProtectedPaths,
    WorkspaceEdge,
};
pub use haft_command::{CommandUses, PathAccess, PathCertainty, PathUse};
pub use haft_files::secret_names::{SECRET_NAMES, SecretNameError, SecretNames};
pub use haft_shell::{join_words, plain_words, reads_alike};
pub use judge::EffectVerdict;
pub use judged_call::JudgedCall;
pub(crate) use linked_effects::AllNames;
pub use linked_effects::UnknownNames;
pub use linked_names::LinkedNames;
pub use names::UnknownName;
pub use network_bundle::NetworkBundle;
pub use own_commands::OwnCommands;
pub use own_program::OwnProgram;
pub use parts::{CommandLine, CommandPart, RedirectTarget, line_risk};
pub use places::PolicyContext;
pub use proposal::{PROPOSED_RULE, RuleProposals, refuse_proposal, rule_coverage};
pub use protected::{
    ProtectedName, is_git_setting, protected, protected_from_commands, protected_names,
};
pub use restriction::{OutsideEffect, Restriction};
pub use rule::RuleList;
pub use rules::{RuleFinding, RuleSet, RuleText, RulesError};
pub use ruling::{Label, Ruling};
pub use run_history::RunHistory;
pub use safeguards::{Safeguard, Safeguards};
pub use secret_files::SecretFiles;
pub use untrusted::UntrustedContent;

/// The verdict where no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Safe tools run; everything else is denied, and no rule changes that.
    ReadOnly,
    /// Safe tools run; everything else needs approval.
    #[default]
    Workspace,
    /// Writes in the workspace, jailed commands and the host's own tools run; network access, servers' tools and critical effects need
    /// approval.
    Trusted,
}

impl Profile {
    /// Returns the name used in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Workspace => "workspace",
            Self::Trusted => "trusted",
        }
    }

    /// Returns the text that a ruling shows when the profile decided.
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

/// When the profile `workspace` asks for approval of a command that no rule names (`policy.commands`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandPolicy {
    /// After the command ran on a copy of the workspace, about its changes; before it runs where it cannot have a copy.
    #[default]
    Copy,
    /// Before it runs.
    Ask,
}

/// Judges calls. Clones share all data.
///
/// The profile decides where no rule matches. Among matching rules, deny beats ask, and ask beats allow.
///
/// ```
/// use haft::policy::RuleText;
/// use haft::{Executor, Policy, Profile, Session, Status, ToolCall, ToolRegistry, tool};
///
/// /// Close an account.
/// #[tool(risk = "high")]
/// fn close(account: String) -> String {
///     format!("closed {account}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let root = RuleText {
///     reason: Some("the root account stays".to_owned()),
///     ..RuleText::new("close(account:root)")
/// };
/// let policy = Policy::builder(Profile::Workspace).allow("close").deny(root).build()?;
/// let executor = Executor::new(policy);
/// let session = Session::new(ToolRegistry::new().with(close)?);
/// let call = |account: &str| ToolCall::new("close", format!(r#"{{"account":"{account}"}}"#));
/// assert_eq!(executor.execute(&session, call("ann")).await.text(), "closed ann");
/// let denied = executor.execute(&session, call("root")).await;
/// assert_eq!(denied.status, Status::Denied);
/// assert!(denied.to_model().contains("the root account stays"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    profile: Profile,
    rules: Arc<rules::Rules>,
    written: Arc<RuleSet>,
    guards: Arc<[Arc<dyn Guard>]>,
    /// Guards that the host added to the standard ones.
    added: Vec<Arc<dyn Guard>>,
    places: Arc<PolicyContext>,
    own: Arc<OwnFiles>,
    hidden: Arc<[PathBuf]>,
    secrets: SecretRule,
    commands: CommandPolicy,
    budgets: Option<Arc<EffectBudgets>>,
    /// The workspace that calls work in, if it is opened here, and the further names of its files.
    workspace: Option<Workspace>,
    names: Arc<NameCache>,
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
    pub(crate) fn covers_saved_calls_of(&self, tool: &str) -> bool {
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
        let arguments = Arguments::new("{}".to_owned());
        let run = RunHistory::none();
        let call = JudgedCall::new(spec, &arguments, &[], &run);
        self.judge(&call).verdict
    }

    /// Whether a tool that walks folders may show this path (in the form of a `PathClaim`). False for haft's own files and for paths
    /// that a deny or ask rule on reading covers: only the folder itself was judged with the call.
    pub fn may_show(&self, tool: &str, path: &str) -> bool {
        let view = || paths::PathView::new(path, self.places.workspace.as_deref());
        !self.own.covers(path)
            && (self.rules.all().is_empty() || !self.rules.withholds(tool, &view()))
    }

    /// Whether the policy may withhold anything in a folder from a tool that walks it.
    pub(crate) fn withholds_from(&self, tool: &str) -> bool {
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

fn standard_guards(places: &PolicyContext) -> Vec<Arc<dyn Guard>> {
    vec![
        Arc::new(WorkspaceEdge),
        Arc::new(ProtectedPaths),
        Arc::new(CommandChanges),
        Arc::new(UnknownNames),
        Arc::new(PrivateAddresses),
        Arc::new(RuleProposals),
        Arc::new(CommandLines::new(places.clone())),
        Arc::new(OwnCommands),
    ]
}

/// What a [`PolicyBuilder`] has collected, for a host that adds places and rules of its own.
#[derive(Debug)]
#[non_exhaustive]
pub struct PolicyParts {
    /// The verdict where no rule matches.
    pub profile: Profile,
    /// The rules of all layers, as written.
    pub rules: RuleSet,
    /// The guards added to the standard ones.
    pub guards: Vec<Arc<dyn Guard>>,
    /// When the profile `workspace` asks for approval of commands.
    pub commands: CommandPolicy,
    /// The root of the workspace, if one was set.
    pub workspace: Option<String>,
}

/// Collects rules, guards and places for a [`Policy`].
#[derive(Debug)]
#[must_use]
pub struct PolicyBuilder {
    profile: Profile,
    rules: RuleSet,
    places: PolicyContext,
    hidden: Arc<[PathBuf]>,
    secrets: SecretRule,
    guards: Vec<Arc<dyn Guard>>,
    tools: Option<Vec<Arc<ToolSpec>>>,
    commands: CommandPolicy,
    workspace: Option<Workspace>,
}

impl PolicyBuilder {
    /// Adds rules after the existing ones. Layers are added in order of strength for readability only; their order does not affect
    /// the verdict.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Adds a rule that allows calls: `add`, `Read(docs/**)`.
    pub fn allow(mut self, rule: impl Into<RuleText>) -> Self {
        self.rules.allow.push(rule.into());
        self
    }

    /// Adds a rule that requires approval of calls.
    pub fn ask(mut self, rule: impl Into<RuleText>) -> Self {
        self.rules.ask.push(rule.into());
        self
    }

    /// Adds a rule that denies calls: `close(account:root)`. It beats any rule that allows them.
    pub fn deny(mut self, rule: impl Into<RuleText>) -> Self {
        self.rules.deny.push(rule.into());
        self
    }

    /// Sets the workspace that calls work in: its root, which relates absolute (`//`) rules and critical paths to relative ones, and its
    /// hidden paths. The executor runs no tool on a different workspace.
    pub fn workspace(mut self, workspace: &Workspace) -> Self {
        self.hidden = Arc::clone(workspace.hidden());
        self.secrets.names = workspace.secret_names().clone();
        self.workspace = Some(workspace.clone());
        self.workspace_root(workspace.root())
    }

    /// Sets only the root, for a policy over a folder that is not opened here, for example to explain calls. Tools on a
    /// [`Workspace`] with hidden paths do not run under such a policy.
    pub fn workspace_root(mut self, root: &Path) -> Self {
        self.places.workspace = Some(paths::clean(&root.to_string_lossy()));
        self
    }

    /// Sets the user's home folder, which `~/` means at the start of a rule. In a call, `~` is a literal character.
    pub fn home(mut self, home: &Path) -> Self {
        self.places.home = Some(paths::clean(&home.to_string_lossy()));
        self
    }

    /// Sets when the profile `workspace` asks for approval of commands.
    pub fn commands(mut self, commands: CommandPolicy) -> Self {
        self.commands = commands;
        self
    }

    /// Sets how calls on secret files are treated. The workspace determines which file names count as secret.
    pub fn secret_files(mut self, files: SecretFiles) -> Self {
        self.secrets.files = files;
        self
    }

    /// Adds a guard.
    pub fn guard(mut self, guard: impl Guard + 'static) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    /// Sets the classes of tools, for a policy built before the tools exist. Without it and without
    /// [`for_tools`](Self::for_tools), a deny or ask rule with a specifier for such a tool covers all its calls.
    pub fn classes<'a>(mut self, tools: impl IntoIterator<Item = (&'a str, ToolClass)>) -> Self {
        self.places.classes.extend(tools);
        self
    }

    /// Sets the tools that rules may name, and learns their classes from their specs. A rule that names none of them is an error,
    /// except one for `server.tool`, since servers come and go.
    pub fn for_tools(mut self, tools: impl IntoIterator<Item = Arc<ToolSpec>>) -> Self {
        let tools: Vec<_> = tools.into_iter().collect();
        self.places.classes.learn(&tools);
        self.tools = Some(tools);
        self
    }

    /// Returns what was collected, instead of building a policy.
    pub fn into_parts(self) -> PolicyParts {
        PolicyParts {
            profile: self.profile,
            rules: self.rules,
            guards: self.guards,
            commands: self.commands,
            workspace: self.places.workspace,
        }
    }

    /// Parses the rules and checks their examples.
    ///
    /// # Errors
    ///
    /// The first rule that cannot be parsed, contradicts its own example, or names no tool.
    pub fn build(self) -> Result<Policy, RulesError> {
        let rules = rules::Rules::new(&self.rules, &self.places)?;
        let mut guards = standard_guards(&self.places);
        let own = OwnFiles::new(self.hidden.iter().cloned());
        let own = Arc::new(match &self.places.workspace {
            Some(root) => own.in_workspace(Path::new(root)),
            None => own,
        });
        if !own.is_empty() {
            guards.push(Arc::clone(&own) as Arc<dyn Guard>);
        }
        guards.extend(self.guards.iter().cloned());
        let policy = Policy {
            profile: self.profile,
            rules: Arc::new(rules),
            written: Arc::new(self.rules),
            guards: guards.into(),
            added: self.guards,
            places: Arc::new(self.places),
            own,
            hidden: self.hidden,
            secrets: self.secrets,
            commands: self.commands,
            budgets: None,
            workspace: self.workspace,
            names: Arc::default(),
        };
        let unknown = self.tools.map(|tools| policy.unknown_names(&tools, &[]));
        let unknown = unknown.into_iter().flatten().find(|name| !name.of_server);
        match unknown {
            Some(unknown) => Err(RulesError::Unknown(Box::new(unknown))),
            None => Ok(policy),
        }
    }
}

impl From<Profile> for PolicyBuilder {
    fn from(profile: Profile) -> Self {
        Policy::builder(profile)
    }
}
