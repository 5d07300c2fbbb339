//! `Policy`: a profile, the rules a user writes, and guards that only raise the verdict.

pub mod address;
mod builtin;
mod command;
mod command_lines;
mod explain;
mod find;
mod folders;
mod fragments;
mod git;
mod glob;
mod guard;
mod judge;
mod options;
mod names;
mod parts;
mod paths;
mod pattern;
mod readers;
mod removal;
mod restriction;
mod rule;
mod rules;
mod ruling;
mod shell;
mod subject;
mod suggest;
#[cfg(test)]
mod tests;
mod view;
mod words;
mod wrapper;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::permission::{Effect, Permission, Verdict};
use crate::spec::{Risk, ToolSpec};
use crate::toolset::{Snapshot, Toolset};

pub use command::{Places, command_risk};
pub use command_lines::CommandLines;
pub use explain::{
    CheckReport, Explanation, Failure, GuardView, Layer, Part, PolicyView, RuleView,
};
pub use guard::{
    Floor, Guard, OwnFiles, PROTECTED, PrivateAddresses, ProtectedPaths, WorkspaceEdge, protected,
};
pub use names::UnknownName;
pub use parts::{CommandLine, CommandPart, Target, line_risk};
pub use restriction::{Outside, Restriction};
pub use rule::List;
pub use rules::{Finding, RuleSet, RuleText, RulesError};
pub use ruling::{Label, Ruling};
pub use words::{join_words, plain_words};

/// The verdict where no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Safe tools run; all else is denied, and no rule lifts that.
    ReadOnly,
    /// Safe tools run, the rest is asked about.
    #[default]
    Workspace,
    /// Writes in the workspace, jailed commands and the host's own tools run; network, servers' tools and critical are asked about.
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
    /// The digest of the arguments that the permissions do not state; a rule that was kept for one call compares it, and
    /// covers nothing where it is absent.
    pub unstated: Option<&'a str>,
}

impl<'a> JudgedCall<'a> {
    /// A call that no rule kept for one call covers.
    pub fn new(
        spec: &'a ToolSpec,
        arguments: &'a Arguments,
        permissions: &'a [Permission],
    ) -> Self {
        Self {
            spec,
            arguments,
            permissions,
            unstated: None,
        }
    }
}

/// Who rules on calls. Copies share everything.
#[derive(Debug, Clone)]
pub struct Policy {
    profile: Profile,
    rules: Arc<rules::Rules>,
    written: Arc<RuleSet>,
    guards: Arc<[Arc<dyn Guard>]>,
    places: Arc<Places>,
    own: Arc<OwnFiles>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

impl Policy {
    /// No rules, this profile, the standard guards.
    pub fn new(profile: Profile) -> Self {
        let places = Places::default();
        Self {
            profile,
            rules: Arc::default(),
            written: Arc::default(),
            guards: standard_guards(&places).into(),
            places: Arc::new(places),
            own: Arc::default(),
        }
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

    /// A policy with rules and places, step by step.
    pub fn builder(profile: Profile) -> PolicyBuilder {
        PolicyBuilder {
            profile,
            rules: RuleSet::default(),
            places: Places::default(),
            own: Vec::new(),
            guards: Vec::new(),
            tools: None,
        }
    }

    /// The same policy with these rules instead of its own.
    pub fn with_rules(mut self, rules: RuleSet) -> Result<Self, RulesError> {
        self.rules = Arc::new(rules::Rules::new(&rules, &self.places)?);
        self.written = Arc::new(rules);
        Ok(self)
    }

    /// The same policy with more allow rules, after those it has.
    pub fn allowing(&self, more: impl IntoIterator<Item = RuleText>) -> Result<Self, RulesError> {
        let mut rules = RuleSet::clone(&self.written);
        rules.allow.extend(more);
        self.clone().with_rules(rules)
    }

    /// Whether there is any rule.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.all().is_empty()
    }

    /// Whether a rule was kept for one call of this tool: only then the digest of the unstated arguments matters.
    pub(crate) fn keeps_calls_of(&self, tool: &str) -> bool {
        self.rules.keeps_calls_of(tool)
    }

    /// The same policy with one more guard.
    pub fn with_guard(mut self, guard: impl Guard + 'static) -> Self {
        let one: Arc<dyn Guard> = Arc::new(guard);
        self.guards = self.guards.iter().cloned().chain([one]).collect();
        self
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The verdict on a connection that a running call of this tool would open beside those it was cleared for: where
    /// a redirect leads.
    pub fn connects(&self, spec: &ToolSpec, url: &str, host: &str) -> Verdict {
        let permissions = [Permission {
            effect: Effect::Connect {
                url: url.to_owned(),
                host: host.to_owned(),
            },
            risk: Risk::High,
        }];
        let arguments = Arguments::new(serde_json::json!({ "url": url }).to_string());
        let call = JudgedCall::new(spec, &arguments, &permissions);
        self.judge(&call).verdict
    }

    /// The verdict on a call of this tool that has no effects beside being made: what a caller can expect of it.
    pub fn usual(&self, spec: &ToolSpec) -> Verdict {
        let arguments = Arguments::new("{}".to_owned());
        self.judge(&JudgedCall::new(spec, &arguments, &[])).verdict
    }

    /// May a tool that walks folders show what lies at this path (in the form of a `PathClaim`)? False for haft's own files and for
    /// paths that a deny or ask rule on reading names: the call was judged by the folder alone.
    pub fn may_show(&self, tool: &str, path: &str) -> bool {
        let view = || paths::PathView::new(path, self.places.workspace.as_deref());
        !self.own.covers(path)
            && (self.rules.all().is_empty() || !self.rules.withholds(tool, &view()))
    }

    /// The deny rule without specifier that takes this tool out of every list, if there is one.
    pub fn removes(&self, tool: &str) -> Option<&str> {
        self.rules.removal(tool).map(|rule| &*rule.text)
    }

    /// Rules that can never match, with the form that works: to be reported when settings are loaded.
    pub fn findings(&self) -> Vec<Finding> {
        self.rules.findings()
    }
}

fn standard_guards(places: &Places) -> Vec<Arc<dyn Guard>> {
    vec![
        Arc::new(WorkspaceEdge),
        Arc::new(ProtectedPaths),
        Arc::new(PrivateAddresses),
        Arc::new(CommandLines::new(places.clone())),
    ]
}

/// Collects the parts of a policy.
#[derive(Debug)]
#[must_use]
pub struct PolicyBuilder {
    profile: Profile,
    rules: RuleSet,
    places: Places,
    own: Vec<PathBuf>,
    guards: Vec<Arc<dyn Guard>>,
    tools: Option<Arc<Snapshot>>,
}

impl PolicyBuilder {
    /// Adds rules after those already there; layers are added in the order of their strength for people to read, it does not matter
    /// for the verdict.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.rules.extend(rules);
        self
    }

    /// The workspace's root: where `//` rules and critical paths meet relative ones.
    pub fn workspace(mut self, root: &Path) -> Self {
        self.places.workspace = Some(paths::clean(&root.to_string_lossy()));
        self
    }

    /// The user's home folder: what `~/` means at the start of a rule. In a call `~` stands for itself.
    pub fn home(mut self, home: &Path) -> Self {
        self.places.home = Some(paths::clean(&home.to_string_lossy()));
        self
    }

    /// haft's own state folder, settings and secret files.
    pub fn own_files(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.own.extend(paths);
        self
    }

    /// One more guard.
    pub fn guard(mut self, guard: impl Guard + 'static) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    /// The tools that the rules are about: a rule that names none of them is an error. One for `server.tool` is none, for servers
    /// come and go.
    pub fn for_tools(mut self, tools: &dyn Toolset) -> Self {
        self.tools = Some(tools.snapshot());
        self
    }

    /// Reads the rules and proves their examples.
    ///
    /// # Errors
    ///
    /// The first rule that cannot be read, breaks its own example, or names no tool.
    pub fn build(self) -> Result<Policy, RulesError> {
        let rules = rules::Rules::new(&self.rules, &self.places)?;
        let mut guards = standard_guards(&self.places);
        let own = OwnFiles::new(self.own);
        let own = Arc::new(match &self.places.workspace {
            Some(root) => own.in_workspace(Path::new(root)),
            None => own,
        });
        if !own.is_empty() {
            guards.push(Arc::clone(&own) as Arc<dyn Guard>);
        }
        guards.extend(self.guards);
        let policy = Policy {
            profile: self.profile,
            rules: Arc::new(rules),
            written: Arc::new(self.rules),
            guards: guards.into(),
            places: Arc::new(self.places),
            own,
        };
        let unknown = self.tools.map(|tools| policy.unknown_names(&tools, &[]));
        let unknown = unknown.into_iter().flatten().find(|name| !name.of_server);
        match unknown {
            Some(unknown) => Err(RulesError::Unknown(Box::new(unknown))),
            None => Ok(policy),
        }
    }
}
