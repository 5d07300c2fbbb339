//! `Denials`: the paths that deny rules and secret names keep from every program, for code that hides files before a program starts.

use std::path::Path;

use crate::Policy;
pub use crate::paths::name_progress::NameProgress;
use crate::paths::name_progress::is_protected_part;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier};
use crate::secret_files::HiddenSecrets;
use haft_files::paths::{PathPattern, PathView};
use haft_types::spec::ToolClass;

/// The paths that deny rules of the classes `Read` and `Edit` name, and secret files by name. Rules for a single tool do not count,
/// since a program is not a tool; ask rules do not count either. Paths have the form of a
/// [`PathClaim`](haft_types::permission::PathClaim).
#[derive(Debug, Clone, Default)]
pub struct Denials {
    read: Vec<PathPattern>,
    edit: Vec<PathPattern>,
    /// The patterns of all other deny and ask rules. They keep nothing from programs, but what they name has other names too.
    others: Vec<PathPattern>,
    secrets: Option<HiddenSecrets>,
    workspace: Option<String>,
}

impl Denials {
    /// Whether no path is denied.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.edit.is_empty() && self.secrets.is_none()
    }

    /// Whether reading anything is denied.
    pub fn deny_reading(&self) -> bool {
        !self.read.is_empty() || self.secrets.is_some()
    }

    /// Whether reading this path is denied: a deny rule covers it or a folder above it, or it is a secret file.
    pub fn denies_reading(&self, path: &str) -> bool {
        self.forbid(&self.read, path) || self.is_secret(path)
    }

    /// Whether reading the folder at this path is denied, with everything in it.
    pub fn denies_reading_folder(&self, path: &str) -> bool {
        self.forbid(&self.read, path) || self.is_secret_folder(path)
    }

    /// Whether the file at this path is a secret that no rule and no approval permits to read.
    pub fn is_secret(&self, path: &str) -> bool {
        self.secrets.as_ref().is_some_and(|secrets| {
            let opens = |view: &PathView<'_>| {
                let mut patterns = secrets.opened.iter().filter(|p| p.allows(view)).peekable();
                // Most secrets lie where no rule looks.
                patterns.peek().is_some() && {
                    let causes = secrets.names.causes(path);
                    patterns.any(|pattern| causes.are_named_by(pattern))
                }
            };
            secrets.names.covers(path)
                && !secrets.is_released(path)
                && !opens(&PathView::new(path, self.workspace.as_deref()))
        })
    }

    fn is_secret_folder(&self, path: &str) -> bool {
        self.secrets.as_ref().is_some_and(|secrets| {
            let opens = || {
                let folder = PathView::new(path, self.workspace.as_deref());
                let causes = secrets.names.causes_of_folder(path);
                let mut patterns = secrets.opened.iter();
                patterns.any(|one| one.may_lie_below(&folder) && causes.are_named_by(one))
            };
            secrets.names.covers_folder(path) && !secrets.releases_below(path) && !opens()
        })
    }

    /// Whether a rule denies changing this path or a folder above it. Paths that rules deny reading may not be changed
    /// either.
    pub fn denies_changing(&self, path: &str) -> bool {
        self.forbid(&self.edit, path) || self.forbid(&self.read, path)
    }

    /// Whether reading something below this folder may be denied.
    pub fn may_deny_reading_below(&self, folder: &str) -> bool {
        let secret = |secrets: &HiddenSecrets| secrets.names.may_lie_below(folder);
        self.may_lie_below(&self.read, folder) || self.secrets.as_ref().is_some_and(secret)
    }

    /// Whether a rule may deny changing something below this folder.
    pub fn may_deny_changing_below(&self, folder: &str) -> bool {
        self.may_lie_below(&self.edit, folder) || self.may_lie_below(&self.read, folder)
    }

    /// Whether a rule may name something below this folder by a path through it, rather than by a name that counts in every
    /// folder: then a link to another folder gives its content a second name.
    pub fn may_name_below(&self, folder: &str) -> bool {
        let folder = PathView::new(folder, self.workspace.as_deref());
        let mut patterns = self.read.iter().chain(&self.edit);
        patterns.any(|pattern| !pattern.is_any_depth() && pattern.may_lie_below(&folder))
    }

    /// The same for a folder outside of the workspace, where a rule on paths in it names nothing: the names that it writes out
    /// ([`exact_names`](Self::exact_names)) lead there only over links.
    pub fn may_name_elsewhere(&self, folder: &str) -> bool {
        let root = self.workspace.as_deref().map(Path::new);
        let is_apart = |root: &Path| {
            let folder = Path::new(folder);
            folder.is_absolute() && !folder.starts_with(root) && !root.starts_with(folder)
        };
        if !root.is_some_and(is_apart) {
            return self.may_name_below(folder);
        }
        let folder = PathView::new(folder, self.workspace.as_deref());
        let patterns = self.read.iter().chain(&self.edit);
        let mut open = patterns.filter(|one| !one.is_any_depth() && one.exact_path().is_none());
        open.any(|pattern| pattern.may_lie_below(&folder))
    }

    /// Returns the paths in the workspace that rules name without wildcards, relative to its root.
    pub fn exact_names(&self) -> impl Iterator<Item = String> {
        let patterns = self.read.iter().chain(&self.edit);
        patterns.filter_map(PathPattern::exact_path)
    }

    /// Whether no rule, secret or protected name matches a path because of this part of it. A path with only such parts is judged
    /// like any other.
    pub(crate) fn is_plain(&self, part: &str) -> bool {
        let mut patterns = self.patterns();
        let secret = |secrets: &HiddenSecrets| secrets.names.concern(part);
        !is_protected_part(part)
            && !patterns.any(|pattern| pattern.concerns(part))
            && !self.secrets.as_ref().is_some_and(secret)
    }

    /// Returns texts of which every part of a path has one that may make it secret.
    pub(crate) fn secret_texts(&self) -> Vec<String> {
        let secrets = self.secrets.iter();
        secrets.flat_map(|secrets| secrets.names.texts()).collect()
    }

    /// Returns the patterns of all rules.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &PathPattern> {
        self.read.iter().chain(&self.edit).chain(&self.others)
    }

    /// Returns how far a path matches what rules name, secrets and protected names.
    pub fn progress(&self, path: &str) -> NameProgress {
        let view = PathView::new(path, self.workspace.as_deref());
        let patterns = self.patterns();
        let secret = self.is_secret(path) || self.is_secret_folder(path);
        let each = patterns.map(|pattern| pattern.progress(&view));
        NameProgress::new(each, secret, path)
    }

    fn forbid(&self, patterns: &[PathPattern], path: &str) -> bool {
        if patterns.is_empty() {
            return false;
        }
        let path = PathView::new(path, self.workspace.as_deref());
        patterns.iter().any(|pattern| pattern.forbids(&path))
    }

    fn may_lie_below(&self, patterns: &[PathPattern], folder: &str) -> bool {
        let folder = PathView::new(folder, self.workspace.as_deref());
        patterns
            .iter()
            .any(|pattern| pattern.may_lie_below(&folder))
    }
}

impl Policy {
    /// Returns the paths that the deny rules keep from every program, and the secrets.
    pub fn denials(&self) -> Denials {
        self.denials_after(&[])
    }

    /// Returns these paths in a run in which reading the `released` secrets was approved: programs see those.
    pub fn denials_after(&self, released: &[String]) -> Denials {
        let of = |list: RuleList, class: ToolClass| {
            let rules = self.rules.all().iter();
            let patterns = rules.filter_map(move |rule| pattern_of(rule, list, class));
            patterns.cloned()
        };
        Denials {
            read: of(RuleList::Deny, ToolClass::Read).collect(),
            edit: of(RuleList::Deny, ToolClass::Edit).collect(),
            others: self
                .rules
                .all()
                .iter()
                .filter_map(other_pattern)
                .cloned()
                .collect(),
            secrets: self.hidden_secrets(released),
            workspace: self.places.workspace.clone(),
        }
    }
}

/// Returns the path pattern of a rule if it is in this list and of this class.
fn pattern_of(rule: &Rule, list: RuleList, class: ToolClass) -> Option<&PathPattern> {
    let is_of = rule.list == list && rule.selector == Selector::Class(class);
    match &rule.specifier {
        Specifier::Path(pattern) if is_of => Some(pattern),
        _ => None,
    }
}

/// Returns the path pattern of a deny or ask rule that keeps nothing from programs: one for a single tool, or one that asks.
fn other_pattern(rule: &Rule) -> Option<&PathPattern> {
    let denies_programs =
        rule.list == RuleList::Deny && matches!(rule.selector, Selector::Class(_));
    match &rule.specifier {
        Specifier::Path(pattern) if rule.list != RuleList::Allow && !denies_programs => {
            Some(pattern)
        }
        _ => None,
    }
}
