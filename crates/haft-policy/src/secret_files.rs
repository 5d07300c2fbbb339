//! Secret files: how a policy treats files whose names mark them as secret, where no rule names them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Policy;
use crate::guards::both_paths;
use crate::judged_call::JudgedCall;
use crate::rules::ToolRuleIndex;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier};
use crate::rules::subject::{ClaimSide, Subject};
use crate::ruling::Label;
use crate::run_history::RunHistory;
use haft_files::paths::{PathPattern, clean, escape_path};
use haft_files::secret_names::SecretNames;
use haft_types::permission::{Effect, PathClaim, Permission, Verdict};
use haft_types::spec::{ToolClass, ToolSpec};
use haft_types::text::visible;

/// How calls on secret files are treated (`policy.secret_files`), from the most permissive to the strictest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum SecretFiles {
    /// Secret files are treated like other files.
    Allow,
    /// Calls need approval, and commands do not see the files, until the user approves reading them in the run or a rule names them.
    #[default]
    Ask,
    /// No call may touch them and no command sees them, whatever rules allow.
    Deny,
}

impl SecretFiles {
    /// Returns the name used in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    fn verdict(self) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Ask => Verdict::Ask,
            Self::Deny => Verdict::Deny,
        }
    }

    /// Returns the text that a ruling shows when this setting decided.
    pub(crate) fn as_rule(self) -> &'static str {
        match self {
            Self::Allow => "policy.secret_files = allow",
            Self::Ask => "policy.secret_files = ask",
            Self::Deny => "policy.secret_files = deny",
        }
    }
}

/// How a policy treats secrets.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretRule {
    pub(crate) files: SecretFiles,
    pub(crate) names: SecretNames,
}

/// A secret path that an effect must not touch without approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretPath {
    pub(crate) path: String,
    pub(crate) verdict: Verdict,
    reads: bool,
}

/// One of the two paths of an effect, which is secret.
#[derive(Clone, Copy)]
struct SecretSide<'p> {
    path: &'p str,
    side: ClaimSide,
}

impl SecretPath {
    /// Says why a call is stopped that touches this secret and `others` more.
    pub(crate) fn reason(&self, spec: &ToolSpec, others: usize) -> Label {
        let path = visible::path(&self.path);
        let (what, it) = match others {
            0 => (
                format!("{path} may hold secrets, judging by its name"),
                "it",
            ),
            1 => (
                format!("{path} and 1 other file may hold secrets, judging by their names"),
                "them",
            ),
            more => (
                format!("{path} and {more} other files may hold secrets, judging by their names"),
                "them",
            ),
        };
        match (self.verdict, self.reads) {
            (Verdict::Deny, _) => format!("{what}, and no call may touch {it}"),
            (_, true) if spec.is_foreign() => {
                format!("{what}; an approval lets only this call read {it}")
            }
            (_, true) => format!(
                "{what}; once reading {it} is approved, this run and its commands can read {it}"
            ),
            (_, false) => what,
        }
        .into()
    }

    /// Returns what the caller can do instead.
    pub(crate) fn advice() -> Label {
        "continue without the file, or use an example of it without secrets".into()
    }

    /// Returns the allow rule that names it.
    pub(crate) fn rule(&self) -> String {
        let class = if self.reads { "Read" } else { "Edit" };
        format!("{class}({})", escape_path(&self.path))
    }
}

impl Policy {
    /// Returns how it treats secret files.
    pub fn secret_files(&self) -> SecretFiles {
        self.secrets.files
    }

    /// Returns the names of secret files.
    pub fn secret_names(&self) -> &SecretNames {
        &self.secrets.names
    }

    /// Returns the secret that an effect touches, if no rule names it and, for reading, it was not approved in this run.
    pub(crate) fn closed_secret(
        &self,
        call: &JudgedCall<'_>,
        naming: &ToolRuleIndex<'_>,
        permission: &Permission,
    ) -> Option<SecretPath> {
        let SecretRule { files, names } = &self.secrets;
        if *files == SecretFiles::Allow {
            return None;
        }
        let claim = permission.effect.path()?;
        let reads = matches!(permission.effect, Effect::Read(_));
        let sides = both_paths(claim).zip([ClaimSide::Path, ClaimSide::Target]);
        let sides = sides.map(|(path, side)| SecretSide { path, side });
        let mut closed = sides.filter(|one| {
            names.covers(one.path)
                && !(reads && call.is_released(one.path))
                && !self.opens(call, naming, permission, *one)
        });
        let SecretSide { path, .. } = closed.next()?;
        Some(SecretPath {
            path: path.to_owned(),
            verdict: files.verdict(),
            reads,
        })
    }

    /// Says why secrets stop a call: names the one that decides, and counts the others.
    pub(crate) fn reason_of_secrets(&self, call: &JudgedCall<'_>, secret: &SecretPath) -> Label {
        let naming = self.rules.naming(call.spec);
        let each = call.permissions.iter();
        let closed = each.filter_map(|one| self.closed_secret(call, &naming, one));
        let alike = closed.filter(|one| (one.verdict, one.reads) == (secret.verdict, secret.reads));
        let mut paths: Vec<String> = alike.map(|one| one.path).collect();
        paths.sort_unstable();
        paths.dedup();
        secret.reason(call.spec, paths.len().saturating_sub(1))
    }

    /// Whether an allow rule covers the effect and names every cause for which this side of it is secret.
    fn opens(
        &self,
        call: &JudgedCall<'_>,
        naming: &ToolRuleIndex<'_>,
        permission: &Permission,
        secret: SecretSide<'_>,
    ) -> bool {
        let by_rule = self.secrets.files == SecretFiles::Ask && !self.rules.all().is_empty();
        by_rule && {
            let subject = Subject::new(call, permission, &self.places);
            let causes = self.secrets.names.causes(secret.path);
            let opens = |rule: &Rule| match &rule.specifier {
                Specifier::Path(pattern) => causes.are_named_by(pattern),
                _ => false,
            };
            self.rules.allows(naming, &subject, secret.side, &opens)
        }
    }

    /// Returns the pattern of a rule that names secrets, if not all that it covers.
    pub(crate) fn names_secrets<'r>(&self, rule: &'r Rule) -> Option<&'r PathPattern> {
        match &rule.specifier {
            Specifier::Path(pattern) if self.secrets.names.are_named_by(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Whether a call of this tool may not read a file that it discovers at this path, because its name marks it as secret.
    /// `released` are the secrets whose reading was approved in the run.
    pub fn withholds_secret(&self, spec: &ToolSpec, path: &str, released: &[String]) -> bool {
        if self.secrets.files == SecretFiles::Allow || !self.secrets.names.covers(path) {
            return false;
        }
        let permission = Permission::read(PathClaim::plain(path));
        let run = RunHistory {
            released: released.into(),
            ..RunHistory::none()
        };
        let call = JudgedCall::new(spec, "{}", &[], &run);
        let naming = self.rules.naming(spec);
        self.closed_secret(&call, &naming, &permission).is_some()
    }

    /// Returns the secrets that these effects read: once the call is approved, the run may read them.
    pub fn secrets_read(&self, permissions: &[Permission]) -> Vec<String> {
        if self.secrets.files != SecretFiles::Ask {
            return Vec::new();
        }
        let claims = permissions
            .iter()
            .filter_map(|wanted| match &wanted.effect {
                Effect::Read(claim) => Some(claim),
                _ => None,
            });
        let paths = claims.flat_map(both_paths);
        let secret = paths.filter(|path| self.secrets.names.covers(path));
        secret.map(str::to_owned).collect()
    }

    /// Returns the secrets that are hidden from programs because of their names.
    pub(crate) fn hidden_secrets(&self, released: &[String]) -> Option<HiddenSecrets> {
        let SecretRule { files, names } = &self.secrets;
        let ask = match files {
            SecretFiles::Allow => return None,
            SecretFiles::Ask => true,
            SecretFiles::Deny => false,
        };
        let of_class = self.rules.all().iter().filter(|rule| {
            let class = rule.selector == Selector::Class(ToolClass::Read);
            ask && class && rule.list == RuleList::Allow && rule.kept_for.is_none()
        });
        let opened = of_class.filter_map(|rule| self.names_secrets(rule));
        Some(HiddenSecrets {
            names: names.clone(),
            opened: opened.cloned().collect(),
            released: if ask { released.into() } else { Arc::default() },
        })
    }
}

/// The secrets hidden from programs.
#[derive(Debug, Clone)]
pub(crate) struct HiddenSecrets {
    pub(crate) names: SecretNames,
    /// Patterns of allow rules that open secrets: those whose causes they all name.
    pub(crate) opened: Vec<PathPattern>,
    /// Secrets whose reading was approved in the run.
    released: Arc<[String]>,
}

impl HiddenSecrets {
    /// Whether reading exactly this path was approved in the run.
    pub(crate) fn is_released(&self, path: &str) -> bool {
        let path = clean(path);
        self.released.contains(&path)
    }

    /// Whether reading something below this folder was approved in the run.
    pub(crate) fn releases_below(&self, folder: &str) -> bool {
        let folder = clean(folder);
        let below = |path: &String| {
            let rest = path.strip_prefix(&folder);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.released.iter().any(below)
    }
}
