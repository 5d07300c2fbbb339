//! `PolicyBuilder`: collects rules, guards and places for a policy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Policy;
use crate::explain::proposal::RuleProposals;
use crate::guards::agent_instructions::AgentInstructions;
use crate::guards::command_lines::CommandLines;
use crate::guards::own_commands::OwnCommands;
use crate::guards::{
    CommandChanges, Guard, OwnFiles, PrivateAddresses, ProtectedPaths, WorkspaceEdge,
};
use crate::paths::linked_effects::UnknownNames;
use crate::places::PolicyContext;
use crate::profile::{CommandPolicy, Profile};
use crate::rules;
use crate::rules::{RuleSet, RuleText, RulesError};
use crate::secret_files::SecretFiles;
use crate::secret_files::SecretRule;
use haft_files::paths;
use haft_files::workspace::Workspace;
use haft_types::spec::{ToolClass, ToolSpec};

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
    pub(crate) profile: Profile,
    pub(crate) rules: RuleSet,
    pub(crate) places: PolicyContext,
    pub(crate) hidden: Arc<[PathBuf]>,
    pub(crate) secrets: SecretRule,
    pub(crate) guards: Vec<Arc<dyn Guard>>,
    pub(crate) tools: Option<Vec<Arc<ToolSpec>>>,
    pub(crate) commands: CommandPolicy,
    pub(crate) workspace: Option<Workspace>,
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

    /// Sets whether a run that reads files of the workspace, or runs a command there, counts as one that has read untrusted content.
    pub fn distrust_workspace(mut self, distrusts: bool) -> Self {
        self.places.distrusts_workspace = distrusts;
        self
    }

    /// Sets whether commands in the jail share the machine's network, so that their connections are not judged separately and a command
    /// itself could send something out.
    pub fn commands_reach_out(mut self, they_do: bool) -> Self {
        self.places.commands_reach_out = they_do;
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

/// Returns the guards that every policy has.
pub(crate) fn standard_guards(places: &PolicyContext) -> Vec<Arc<dyn Guard>> {
    vec![
        Arc::new(WorkspaceEdge),
        Arc::new(ProtectedPaths),
        Arc::new(AgentInstructions),
        Arc::new(CommandChanges),
        Arc::new(UnknownNames),
        Arc::new(PrivateAddresses),
        Arc::new(RuleProposals),
        Arc::new(CommandLines::new(places.clone())),
        Arc::new(OwnCommands),
    ]
}
