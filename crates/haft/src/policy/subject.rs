//! `Subject`: one effect of a call as rules look at it, taken apart at most once.

use std::cell::OnceCell;

use haft_shell::alters_shell;

use super::JudgedCall;
use super::command::sets_variables;
use super::folders::{folders, goes_anywhere, goes_elsewhere, moves, named};
use super::network::{port_of, unusual_port};
use super::paths::{PathPattern, PathView, clean};
use super::places::Places;
use super::remembered::take_apart;
use super::rule::{List, Rule, Selector, Specifier, parameters};
use super::view::{CommandView, Reach};
use crate::permission::{Effect, PathClaim, Permission};
use crate::spec::{Risk, ToolClass};

/// One effect of a call.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    call: &'a JudgedCall<'a>,
    effect: &'a Effect,
    /// A critical call or change of files: no allow rule for a class covers it, only one that names the tool.
    needs_name: bool,
    places: &'a Places,
    paths: OnceCell<Vec<PathView<'a>>>,
    command: OnceCell<CommandView>,
}

/// Which of a claim's two paths an allow looks at; deny and ask look at both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Path,
    Target,
}

impl<'a> Subject<'a> {
    /// An effect as the policy's rules judge it.
    pub(crate) fn new(
        call: &'a JudgedCall<'a>,
        permission: &'a Permission,
        places: &'a Places,
    ) -> Self {
        Self {
            needs_name: permission.risk == Risk::Critical
                && (permission.effect == Effect::Call
                    || permission.effect.changed_path().is_some()),
            ..Self::narrowed(call, &permission.effect, places)
        }
    }

    /// An effect as rules that only narrow see it, whatever its risk.
    pub(crate) fn narrowed(
        call: &'a JudgedCall<'a>,
        effect: &'a Effect,
        places: &'a Places,
    ) -> Self {
        Self {
            call,
            effect,
            needs_name: false,
            places,
            paths: OnceCell::new(),
            command: OnceCell::new(),
        }
    }

    pub(crate) fn tool(&self) -> &'a str {
        self.call.spec.name.as_str()
    }

    pub(crate) fn effect(&self) -> &'a Effect {
        self.effect
    }

    fn claim(&self) -> Option<&'a PathClaim> {
        self.effect.path()
    }

    fn changes_file(&self) -> bool {
        self.effect.changed_path().is_some()
    }

    /// Whether an allow must also cover where links lead.
    pub(crate) fn has_target(&self) -> bool {
        self.claim().is_some_and(|claim| claim.target.is_some())
    }

    fn paths(&self) -> &[PathView<'a>] {
        self.paths.get_or_init(|| {
            let workspace = self.places.workspace.as_deref();
            let claim = self.claim();
            claim
                .map(|claim| claim.path.as_str())
                .into_iter()
                .chain(claim.and_then(|claim| claim.target.as_deref()))
                .map(|path| PathView::new(path, workspace))
                .collect()
        })
    }

    fn command(&self) -> Option<&CommandView> {
        let Effect::Run { command, argv, .. } = self.effect else {
            return None;
        };
        Some(self.command.get_or_init(|| {
            let view = CommandView::new(command, argv.as_deref());
            // The settings of another folder can make git run anything: clause 4.
            let elsewhere = || view.runs("git") && goes_elsewhere(self.call);
            if sets_variables(self.call.value()) || elsewhere() || self.is_unsettled() {
                view.out_of_reach()
            } else {
                view
            }
        }))
    }

    /// Is the call one that the rule was kept for, where it was kept for some? Such a rule covers no removal, and as a bare
    /// name nothing that another kind of rule speaks of.
    pub(crate) fn is_kept_by(&self, rule: &Rule) -> bool {
        let Some(kept) = &rule.kept_for else {
            return true;
        };
        let covers = match self.effect {
            Effect::Remove(_) => false,
            Effect::Read(_) | Effect::Write(_) | Effect::Run { .. } | Effect::Connect { .. } => {
                rule.specifier != Specifier::All
            }
            Effect::Call
            | Effect::Apply { .. }
            | Effect::Remember { .. }
            | Effect::Question
            | Effect::Other { .. } => true,
        };
        covers && *kept.tool == *self.tool() && self.call.unstated == Some(&*kept.arguments)
    }

    /// Does the rule, whose selector fits the tool or the kind of effect, cover this effect?
    pub(crate) fn covered_by(&self, rule: &Rule, side: Side) -> bool {
        if rule.list == List::Allow {
            return self.allowed_by(rule, side);
        }
        self.forbidden_by(rule)
    }

    fn allowed_by(&self, rule: &Rule, side: Side) -> bool {
        if let Selector::Class(class) = rule.selector
            && (self.needs_name || !self.is_of(class, &rule.specifier))
        {
            return false;
        }
        match &rule.specifier {
            // Clause 13: no rule for commands covers what a redirection writes.
            Specifier::All if self.changes_file() => {
                self.call.spec.class != Some(ToolClass::Bash)
                    || !matches!(rule.selector, Selector::Named(_))
            }
            Specifier::All => self
                .command()
                .is_none_or(|command| command.reach() == Reach::Pattern),
            Specifier::Command(pattern) => self.command().is_some_and(|c| pattern.allows(c)),
            Specifier::Path(pattern) => {
                let paths = self.paths();
                paths
                    .get(usize::from(side == Side::Target))
                    .is_some_and(|path| pattern.allows(path))
            }
            // A host without a port is meant as addresses of pages name it.
            Specifier::Domain(pattern) => {
                self.host().is_some_and(|host| pattern.matches(host)) && !self.has_unusual_port()
            }
            Specifier::Network(pattern) => self
                .address()
                .is_some_and(|(host, port)| pattern.allows(host, port)),
            Specifier::Param(pattern) => pattern.matches(self.call.value()),
            Specifier::Nothing => false,
        }
    }

    fn forbidden_by(&self, rule: &Rule) -> bool {
        if let Selector::Class(class) = rule.selector
            && !self.is_of(class, &rule.specifier)
        {
            return self.touched_by(class, &rule.specifier)
                || (class == ToolClass::Read
                    && rule.list == List::Deny
                    && self.written_by(&rule.specifier));
        }
        match &rule.specifier {
            Specifier::All => true,
            Specifier::Command(pattern) => self.command().is_some_and(|c| pattern.forbids(c)),
            Specifier::Path(pattern) => {
                let writes = self.changes_file();
                let covers = |path: &PathView<'_>| {
                    pattern.forbids(path) || (writes && pattern.lies_below(path))
                };
                self.paths().iter().any(covers) || self.elsewhere(&covers)
            }
            Specifier::Domain(pattern) => self.host().is_some_and(|host| pattern.matches(host)),
            Specifier::Network(pattern) => self
                .address()
                .is_some_and(|(host, port)| pattern.forbids(host, port)),
            Specifier::Param(pattern) => {
                pattern.matches(self.call.value()) || self.is_misread(rule)
            }
            Specifier::Nothing => self.is_misread(rule),
        }
    }

    /// Was the class of the tool that the rule names not known when the rule was read, and could its specifier mean more than it was
    /// read as? Such a rule forbids every call: it could be a deny that lets through what it names.
    fn is_misread(&self, rule: &Rule) -> bool {
        let Some(class) = self.call.spec.class else {
            return false;
        };
        let plain = match &rule.specifier {
            Specifier::Param(pattern) => {
                let first = pattern.path.split('.').next().unwrap_or_default();
                parameters(class).contains(&first)
            }
            _ => false,
        };
        matches!(rule.selector, Selector::Named(_)) && rule.class.is_none() && !plain
    }

    /// Does this hold of a redirection's target, taken from a folder that the command goes to?
    fn elsewhere(&self, covers: &dyn Fn(&PathView<'_>) -> bool) -> bool {
        let Some(claim) = self.claim() else {
            return false;
        };
        if claim.path.starts_with('/') || !self.call.permissions.iter().any(|p| moves(p).is_some())
        {
            return false;
        }
        let workspace = self.places.workspace.as_deref();
        let mut folders = folders(self.call).into_iter().skip(1);
        folders.any(|folder| {
            let path = named(&folder, &claim.path, workspace);
            covers(&PathView::new(&path, workspace))
        })
    }

    fn host(&self) -> Option<&'a str> {
        match self.effect {
            Effect::Connect { host, .. } => Some(host),
            _ => None,
        }
    }

    fn has_unusual_port(&self) -> bool {
        match self.effect {
            Effect::Connect { url, .. } => unusual_port(url).is_some(),
            _ => false,
        }
    }

    /// The host and port of a connection of a command.
    fn address(&self) -> Option<(&'a str, Option<u16>)> {
        match self.effect {
            Effect::Connect { url, host, .. } => Some((host, port_of(url))),
            _ => None,
        }
    }

    /// Is the effect of the class? The bare call of the class's own tools is, for a rule without specifier.
    fn is_of(&self, class: ToolClass, specifier: &Specifier) -> bool {
        match self.effect {
            Effect::Call => *specifier == Specifier::All && self.call.spec.class == Some(class),
            Effect::Read(_) => class == ToolClass::Read,
            Effect::Write(_) | Effect::Remove(_) => class == ToolClass::Edit,
            Effect::Run { .. } => class == ToolClass::Bash,
            Effect::Connect { .. } if self.call.spec.class == Some(ToolClass::Network) => {
                class == ToolClass::Network
            }
            Effect::Connect { .. } => class == ToolClass::WebFetch,
            Effect::Apply { .. }
            | Effect::Remember { .. }
            | Effect::Question
            | Effect::Other { .. } => false,
        }
    }

    /// A deny of reading a path denies writing it, too.
    fn written_by(&self, specifier: &Specifier) -> bool {
        match specifier {
            Specifier::Path(pattern) => {
                self.changes_file() && self.paths().iter().any(|path| pattern.forbids(path))
            }
            _ => false,
        }
    }

    /// Clause 14: rules on files speak of commands that name the file.
    fn touched_by(&self, class: ToolClass, specifier: &Specifier) -> bool {
        let Some(command) = self.command() else {
            return false;
        };
        let files: Vec<&String> = match class {
            ToolClass::Read => command.touched.reads.iter().collect(),
            ToolClass::Edit => command
                .touched
                .edits
                .iter()
                .chain(&command.targets)
                .collect(),
            ToolClass::Bash | ToolClass::WebFetch | ToolClass::Network => return false,
        };
        if files.is_empty() {
            return false;
        }
        let folders = folders(self.call);
        let workspace = self.places.workspace.as_deref();
        files
            .into_iter()
            .filter(|file| *file != "/dev/null")
            .flat_map(|file| {
                folders
                    .iter()
                    .map(move |folder| named(folder, file, workspace))
            })
            .any(|path| match specifier {
                Specifier::All => true,
                Specifier::Path(pattern) => pattern.forbids(&PathView::new(&path, workspace)),
                _ => false,
            })
    }

    /// May a file that the pattern names lie in a folder that the command goes through?
    fn may_read_below(&self, command: &CommandView, pattern: &PathPattern) -> bool {
        let below = &command.touched.below;
        if below.is_empty() {
            return false;
        }
        let workspace = self.places.workspace.as_deref();
        let lies = |path: String| pattern.may_lie_below(&PathView::new(&path, workspace));
        goes_anywhere(self.call)
            || folders(self.call).iter().any(|folder| {
                below
                    .iter()
                    .any(|path| lies(named(folder, path, workspace)))
            })
    }

    /// May another command of the line set a variable, or change what a name stands for?
    fn is_unsettled(&self) -> bool {
        let others = self.call.permissions.iter();
        let mut others = others.filter(|other| !std::ptr::eq(&raw const other.effect, self.effect));
        others.any(|other| match &other.effect {
            Effect::Run {
                argv: Some(words), ..
            } => alters_shell(words),
            Effect::Run { command, .. } => take_apart(command).map_or(true, |read| {
                read.commands.iter().any(|part| alters_shell(&part.words))
            }),
            _ => false,
        })
    }

    /// Is part of what it does only known at run time?
    pub(crate) fn is_doubtful(&self) -> bool {
        self.command().is_some_and(CommandView::is_doubtful)
    }

    /// Could this deny or ask rule cover the effect, once it is known what the shell makes of the command?
    pub(crate) fn could_be_covered_by(&self, rule: &Rule) -> bool {
        let Some(command) = self.command() else {
            return false;
        };
        match (&rule.specifier, &rule.selector) {
            (Specifier::Command(pattern), _) => pattern.could_forbid(command),
            (Specifier::Path(pattern), Selector::Class(ToolClass::Read)) => {
                command.touched.unknown || self.may_read_below(command, pattern)
            }
            (Specifier::Path(_), Selector::Class(ToolClass::Edit)) => command.touched.unknown,
            _ => false,
        }
    }
}

/// Does the rule, taken alone, match an example from settings?
pub(crate) fn matches_example(rule: &Rule, example: &str, places: &Places) -> bool {
    let allow = rule.list == List::Allow;
    let command = || CommandView::new(example, None);
    match &rule.specifier {
        Specifier::All => match rule.selector {
            Selector::Class(ToolClass::Bash) if allow => command().reach() == Reach::Pattern,
            Selector::Class(_) => true,
            _ => rule.selector.names(example.trim()),
        },
        Specifier::Command(pattern) if allow => pattern.allows(&command()),
        Specifier::Command(pattern) => pattern.forbids(&command()),
        Specifier::Path(pattern) => {
            let path = clean(example);
            let view = PathView::new(&path, places.workspace.as_deref());
            if allow {
                pattern.allows(&view)
            } else {
                pattern.forbids(&view)
            }
        }
        Specifier::Domain(pattern) => {
            let usual = || !allow || unusual_port(example).is_none();
            pattern.matches(host_of(example)) && usual()
        }
        Specifier::Network(pattern) => {
            let host = host_of(example);
            let port = port_of(example);
            if allow {
                pattern.allows(host, port.or(Some(443)))
            } else {
                pattern.forbids(host, port)
            }
        }
        Specifier::Param(pattern) => pattern.matches_example(example),
        Specifier::Nothing => false,
    }
}

/// The host of a URL, or the text itself where it is none.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if host.starts_with('[') {
        return host.split_inclusive(']').next().unwrap_or(host);
    }
    host.split(':').next().unwrap_or(host)
}
