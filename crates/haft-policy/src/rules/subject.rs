//! `Subject`: one effect of a call as rules see it, parsed at most once.

use std::cell::OnceCell;

use haft_shell::alters_shell;

use crate::address::port_of;
use crate::commands::folders::{RunFolders, changes_folder, may_change_folder};
use crate::commands::remembered::parse_line;
use crate::commands::risk::sets_variables;
use crate::judged_call::JudgedCall;
use crate::places::PolicyContext;
use crate::rules::network_pattern::{ConnectionView, NetworkPattern, unusual_port};
use crate::rules::pattern::canonical_host;
use crate::rules::request_pattern::RequestView;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier, parameters};
use crate::rules::view::{CommandView, CoverageKind};
use haft_files::paths::{PathPattern, PathView, clean};
use haft_types::permission::{Effect, PathClaim, Permission};
use haft_types::spec::{Risk, ToolClass};

/// Signs in a path that a shell expands.
const UNKNOWN_SIGNS: [char; 7] = ['$', '*', '?', '[', '{', '`', '('];

/// One effect of a call.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    call: &'a JudgedCall<'a>,
    effect: &'a Effect,
    /// Whether this is a critical call or file change: no allow rule for a class covers it, only one that names the tool.
    needs_name: bool,
    places: &'a PolicyContext,
    paths: OnceCell<Vec<PathView<'a>>>,
    command: OnceCell<CommandView>,
    folders: OnceCell<RunFolders>,
    request: OnceCell<Option<RequestView<'a>>>,
    /// The host in the form in which rules compare it.
    canonical: OnceCell<String>,
}

/// Which of a claim's two paths an allow rule checks; deny and ask check both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimSide {
    Path,
    Target,
}

impl<'a> Subject<'a> {
    /// Creates an effect as the policy's rules judge it.
    pub(crate) fn new(
        call: &'a JudgedCall<'a>,
        permission: &'a Permission,
        places: &'a PolicyContext,
    ) -> Self {
        Self {
            needs_name: permission.risk == Risk::Critical
                && (permission.effect == Effect::Call
                    || permission.effect.changed_path().is_some()),
            ..Self::narrowed(call, &permission.effect, places)
        }
    }

    /// Creates an effect as the rules of a restriction see it, whatever its risk.
    pub(crate) fn narrowed(
        call: &'a JudgedCall<'a>,
        effect: &'a Effect,
        places: &'a PolicyContext,
    ) -> Self {
        Self {
            call,
            effect,
            needs_name: false,
            places,
            paths: OnceCell::new(),
            command: OnceCell::new(),
            folders: OnceCell::new(),
            request: OnceCell::new(),
            canonical: OnceCell::new(),
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

    /// Whether an allow rule must also cover where links lead.
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
            let view = CommandView::new(command, argv.as_deref())
                .with_variables(self.call.value().get("env"));
            // The settings of another folder can make git run anything: clause 4.
            let elsewhere = || view.runs("git") && may_change_folder(self.call);
            if sets_variables(self.call.value()) || elsewhere() || self.is_unsettled() {
                view.with_hidden_variables()
            } else {
                view
            }
        }))
    }

    /// Whether the rule may apply to this call. A rule limited to approved calls covers only those, no removal, and as a bare
    /// name nothing that another kind of rule covers.
    pub(crate) fn is_kept_by(&self, rule: &Rule) -> bool {
        let Some(kept) = &rule.kept_for else {
            return true;
        };
        let covers = match self.effect {
            Effect::Remove(_) => false,
            Effect::Read(_)
            | Effect::Write(_)
            | Effect::Run { .. }
            | Effect::Connect { .. }
            | Effect::Sign { .. } => rule.specifier != Specifier::All,
            Effect::Call
            | Effect::Apply { .. }
            | Effect::Remember { .. }
            | Effect::Question
            | Effect::Other { .. } => true,
        };
        covers && *kept.tool == *self.tool() && self.call.unstated == Some(&*kept.arguments)
    }

    /// Whether the rule, whose selector matches the tool or the kind of effect, covers this effect.
    pub(crate) fn covered_by(&self, rule: &Rule, side: ClaimSide) -> bool {
        if rule.list == RuleList::Allow {
            return self.allowed_by(rule, side);
        }
        self.forbidden_by(rule)
    }

    fn allowed_by(&self, rule: &Rule, side: ClaimSide) -> bool {
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
                .is_none_or(|command| command.reach() == CoverageKind::Pattern),
            Specifier::Command(pattern) => self.command().is_some_and(|c| pattern.allows(c)),
            Specifier::Path(pattern) => {
                let paths = self.paths();
                paths
                    .get(usize::from(side == ClaimSide::Target))
                    .is_some_and(|path| pattern.allows(path))
            }
            // A host without a port means the usual ports of web addresses.
            Specifier::Domain(pattern) => {
                self.host().is_some_and(|host| pattern.matches(host)) && !self.has_unusual_port()
            }
            Specifier::Network(pattern) => {
                self.connection(pattern)
                    .is_some_and(|at| pattern.allows(at))
                    && (pattern.has_port() || !self.has_unusual_port())
            }
            Specifier::Sign(pattern) => self.purpose().is_some_and(|one| pattern.allows(one)),
            Specifier::Param(pattern) => pattern.allows(self.call.value()),
            Specifier::Nothing => false,
        }
    }

    fn forbidden_by(&self, rule: &Rule) -> bool {
        if let Selector::Class(class) = rule.selector
            && !self.is_of(class, &rule.specifier)
        {
            return self.touched_by(class, &rule.specifier)
                || (class == ToolClass::Read
                    && rule.list == RuleList::Deny
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
                .connection(pattern)
                .is_some_and(|at| pattern.forbids(at)),
            Specifier::Sign(pattern) => self.purpose().is_some_and(|one| pattern.forbids(one)),
            Specifier::Param(pattern) => {
                pattern.forbids(self.call.value()) || self.is_misread(rule)
            }
            Specifier::Nothing => self.is_misread(rule),
        }
    }

    /// Whether the tool's class was unknown when the rule was parsed, and its specifier could mean more than was assumed. Such a rule
    /// forbids every call: it could be a deny rule that would let through what it names.
    fn is_misread(&self, rule: &Rule) -> bool {
        let Some(class) = self.call.spec.class else {
            return false;
        };
        let plain = match &rule.specifier {
            Specifier::Param(pattern) => {
                let mut names = pattern.names();
                names.all(|name| parameters(class).contains(&name))
            }
            _ => false,
        };
        matches!(rule.selector, Selector::Named(_)) && rule.class.is_none() && !plain
    }

    /// Whether this holds for a redirection's target, resolved against a folder that the command changes to.
    fn elsewhere(&self, covers: &dyn Fn(&PathView<'_>) -> bool) -> bool {
        let Some(claim) = self.claim() else {
            return false;
        };
        if claim.path.starts_with('/') || !changes_folder(self.call) {
            return false;
        }
        let workspace = self.places.workspace.as_deref();
        let (paths, _) = self.folders().paths_of(&claim.path, workspace);
        paths
            .iter()
            .skip(1)
            .any(|path| covers(&PathView::new(path, workspace)))
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

    /// Returns the connection as a rule with this pattern is compared with it: with the request only where the rule judges requests.
    fn connection(&self, pattern: &NetworkPattern) -> Option<ConnectionView<'_>> {
        let Effect::Connect {
            url, host, method, ..
        } = self.effect
        else {
            return None;
        };
        let read = || RequestView::of(url, method.as_deref());
        let known = pattern.judges_requests();
        let request = known.then(|| self.request.get_or_init(read).as_ref());
        Some(ConnectionView {
            host: self.canonical.get_or_init(|| canonical_host(host)),
            port: port_of(url),
            request: request.flatten(),
        })
    }

    /// Whether the tool may fill in arguments that the call leaves out: what a server does then is not known here.
    fn may_fill_in(&self) -> bool {
        self.call.spec.source.starts_with("mcp:")
    }

    /// Returns what a login is used for.
    fn purpose(&self) -> Option<&'a str> {
        match self.effect {
            Effect::Sign { purpose, .. } => Some(purpose),
            _ => None,
        }
    }

    /// Whether the effect belongs to the class. For a rule without specifier, so does the bare call of the class's own tools.
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
            Effect::Sign { .. } => class == ToolClass::Sign,
            Effect::Apply { .. }
            | Effect::Remember { .. }
            | Effect::Question
            | Effect::Other { .. } => false,
        }
    }

    /// Whether the effect changes a path that this deny rule on reading covers: what may not be read may not be written
    /// either.
    fn written_by(&self, specifier: &Specifier) -> bool {
        match specifier {
            Specifier::Path(pattern) => {
                self.changes_file() && self.paths().iter().any(|path| pattern.forbids(path))
            }
            _ => false,
        }
    }

    /// Clause 14: rules on files also cover commands that name the file.
    fn touched_by(&self, class: ToolClass, specifier: &Specifier) -> bool {
        let workspace = self.places.workspace.as_deref();
        self.any_touched(class, |folders, file| {
            let (paths, _) = folders.paths_of(file, workspace);
            paths.iter().any(|path| match specifier {
                Specifier::All => true,
                Specifier::Path(pattern) => pattern.forbids(&PathView::new(path, workspace)),
                _ => false,
            })
        })
    }

    /// Whether the command may run in a folder that is not known, and there uses a file of this class by a relative path.
    fn touches_somewhere(&self, class: ToolClass) -> bool {
        let workspace = self.places.workspace.as_deref();
        self.any_touched(class, |folders, file| folders.paths_of(file, workspace).1)
    }

    /// Returns the folders in which the command may run. What it changes itself is only for those after it: `source a`.
    fn folders(&self) -> &RunFolders {
        self.folders.get_or_init(|| {
            let is_single = matches!(self.effect, Effect::Run { argv: Some(_), .. });
            let own = |effect: &Effect| is_single && std::ptr::eq(effect, self.effect);
            RunFolders::beside(self.call, own)
        })
    }

    /// Whether this holds for a file that the command reads or edits, and the folders in which it does.
    fn any_touched(&self, class: ToolClass, holds: impl Fn(&RunFolders, &str) -> bool) -> bool {
        let Some(command) = self.command() else {
            return false;
        };
        command.touched.iter().any(|one| {
            let files = match class {
                ToolClass::Read => &one.files.reads,
                ToolClass::Edit => &one.files.edits,
                ToolClass::Bash | ToolClass::WebFetch | ToolClass::Network | ToolClass::Sign => {
                    return false;
                }
            };
            let mut files = files.iter().filter(|file| *file != "/dev/null").peekable();
            if files.peek().is_none() {
                return false;
            }
            let folders = one.folders.below(self.folders());
            files.any(|file| holds(&folders, file))
        })
    }

    /// Whether a file that the pattern names may lie in a folder that the command walks.
    fn may_read_below(&self, command: &CommandView, pattern: &PathPattern) -> bool {
        let workspace = self.places.workspace.as_deref();
        let lies = |path: &String| pattern.may_lie_below(&PathView::new(path, workspace));
        command.touched.iter().any(|one| {
            let below = &one.files.below;
            !below.is_empty() && {
                let folders = one.folders.below(self.folders());
                below.iter().any(|path| {
                    let (paths, more) = folders.paths_of(path, workspace);
                    more || paths.iter().any(lies)
                })
            }
        })
    }

    /// Whether a redirection of the call reads a file that is only known when it is read.
    fn reads_unknown(&self) -> bool {
        let Effect::Read(claim) = self.effect else {
            return false;
        };
        if !self.call.runs_command() {
            return false;
        }
        let open = |path: &str| path.starts_with('~') || path.contains(UNKNOWN_SIGNS);
        open(&claim.path) || (!claim.path.starts_with('/') && self.folders().anywhere)
    }

    /// Whether another command of the line may set a variable or redefine a name.
    fn is_unsettled(&self) -> bool {
        let all = self.call.permissions;
        let altering = self.call.altering.get_or_init(|| {
            let alters = |at: &usize| all.get(*at).is_some_and(|one| may_alter(&one.effect));
            (0..all.len()).filter(alters).collect()
        });
        let mut altering = altering.iter().filter_map(|at| all.get(*at));
        altering.any(|one| !std::ptr::eq(&raw const one.effect, self.effect))
    }

    /// Whether part of what it does is only known at run time.
    pub(crate) fn is_doubtful(&self) -> bool {
        match self.command() {
            Some(command) => command.is_doubtful() || changes_folder(self.call),
            None => self.reads_unknown() || self.may_fill_in(),
        }
    }

    /// Whether this deny or ask rule could cover the effect, once it is known how the shell expands the command.
    pub(crate) fn could_be_covered_by(&self, rule: &Rule) -> bool {
        if let Specifier::Param(pattern) = &rule.specifier {
            return self.may_fill_in() && pattern.could_forbid(self.call.value(), self.call.spec);
        }
        let Some(command) = self.command() else {
            let of_files = matches!(rule.selector, Selector::Class(ToolClass::Read));
            return of_files
                && matches!(rule.specifier, Specifier::Path(_))
                && self.reads_unknown();
        };
        let unknown = || command.touched.iter().any(|one| one.files.unknown);
        match (&rule.specifier, &rule.selector) {
            (Specifier::Command(pattern), _) => pattern.could_forbid(command),
            (Specifier::Path(pattern), Selector::Class(ToolClass::Read)) => {
                unknown()
                    || self.touches_somewhere(ToolClass::Read)
                    || self.may_read_below(command, pattern)
            }
            (Specifier::Path(_), Selector::Class(ToolClass::Edit)) => {
                unknown() || self.touches_somewhere(ToolClass::Edit)
            }
            _ => false,
        }
    }
}

/// Whether the effect runs a command that may set a variable or redefine a name. One that cannot be parsed may.
fn may_alter(effect: &Effect) -> bool {
    match effect {
        Effect::Run {
            argv: Some(words), ..
        } => alters_shell(words),
        Effect::Run { command, .. } => parse_line(command).map_or(true, |read| {
            read.commands.iter().any(|part| alters_shell(&part.words))
        }),
        _ => false,
    }
}

/// Whether the rule, on its own, matches an example from settings.
pub(crate) fn matches_example(rule: &Rule, example: &str, places: &PolicyContext) -> bool {
    let allow = rule.list == RuleList::Allow;
    let command = || CommandView::new(example, None);
    match &rule.specifier {
        Specifier::All => match rule.selector {
            Selector::Class(ToolClass::Bash) if allow => command().reach() == CoverageKind::Pattern,
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
            let (method, url) = match example.trim().split_once(char::is_whitespace) {
                Some((method, url)) => (Some(method), url.trim_start()),
                None => (None, example),
            };
            let request = RequestView::of(url, method);
            let host = canonical_host(host_of(url));
            let at = |port| ConnectionView {
                host: &host,
                port,
                request: request.as_ref(),
            };
            if allow {
                pattern.allows(at(port_of(url).or(Some(443))))
            } else {
                pattern.forbids(at(port_of(url)))
            }
        }
        Specifier::Sign(pattern) if allow => pattern.allows(example),
        Specifier::Sign(pattern) => pattern.forbids(example),
        Specifier::Param(pattern) => pattern.matches_example(example),
        Specifier::Nothing => false,
    }
}

/// Returns the host of a URL, or the text itself if it is not a URL.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if host.starts_with('[') {
        return host.split_inclusive(']').next().unwrap_or(host);
    }
    host.split(':').next().unwrap_or(host)
}
