//! Who may do what: a profile, the user's rules, and guards that can only make a verdict stricter.
//!
//! ```text
//! JudgedCall { spec, arguments, permissions, history } ──► Policy ──► Ruling { verdict, what decided, why }
//!     rules/     what the user wrote: parsed, matched, narrowed by a skill
//!     guards/    what no rule overrides: own files and commands, private addresses, budgets, untrusted content
//!     commands/  the parts of a command line; what a command does says `haft-command`
//!     paths/     protected and denied files, and the further names by which links reach them
//!     explain/   why, what would let a call run, which rules can be offered
//! ```
//!
//! It judges a call that somebody else has parsed, and runs nothing. What it counts ([`budget`]) and what a run has read from strangers
//! ([`untrusted`]) is kept by the run's session in `haft`, which re-exports this crate as `haft::policy`.

pub mod address;
pub mod budget;
pub mod untrusted;

mod commands;
mod explain;
mod guards;
mod judge;
mod judged_call;
mod network_bundle;
mod paths;
mod policy;
mod rules;
mod ruling;
mod run_history;
mod secret_files;
#[cfg(test)]
mod tests;

pub use crate::commands::parts::{CommandLine, CommandPart, RedirectTarget, line_risk};
pub use crate::commands::risk::command_risk;
pub use crate::explain::cause::{Cause, CauseKind};
pub use crate::explain::proposal::{PROPOSED_RULE, RuleProposals, refuse_proposal, rule_coverage};
pub use crate::explain::{
    CheckReport, EffectExplanation, Explanation, GuardView, LayerVerdict, PolicyView, RuleFailure,
    RuleView,
};
pub use crate::guards::command_lines::CommandLines;
pub use crate::guards::effect_budgets::EffectBudgets;
pub use crate::guards::own_commands::OwnCommands;
pub use crate::guards::own_program::OwnProgram;
pub use crate::guards::safeguards::{Safeguard, Safeguards};
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
pub use crate::paths::places::PolicyContext;
pub use crate::paths::protected::{
    ProtectedName, is_git_setting, protected, protected_from_commands, protected_names,
};
pub use crate::rules::classes::Classes;
pub use crate::rules::dead::{DeadCause, DeadRule};
pub use crate::rules::names::UnknownName;
pub use crate::rules::restriction::{OutsideEffect, Restriction};
pub use crate::rules::rule::RuleList;
pub use crate::rules::{RuleFinding, RuleSet, RuleText, RulesError};
pub use crate::ruling::{Label, Ruling};
pub use crate::run_history::RunHistory;
pub use crate::secret_files::SecretFiles;
pub use haft_command::{CommandUses, PathAccess, PathCertainty, PathUse};
pub use haft_files::secret_names::{SECRET_NAMES, SecretNameError, SecretNames};
pub use haft_shell::{join_words, plain_words, reads_alike};

pub use crate::policy::{CommandPolicy, Policy, PolicyBuilder, PolicyParts, Profile};
