//! `Guard`: overrides every rule and can only make a verdict stricter; with the standard guards.

pub(crate) mod agent_instructions;
pub(crate) mod command_lines;
pub(crate) mod effect_budgets;
pub(crate) mod own_commands;
pub(crate) mod own_program;
pub(crate) mod rule_of_two;
pub(crate) mod untrusted_content;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_shell::{Word, fragments, plain_words};

use crate::address::port_of;
use crate::address::{address_can_be_opened, can_be_opened, check_address, check_host, refusal};
use crate::commands::remembered::parse_line;
use crate::judged_call::JudgedCall;
use crate::protected::{GIT, protected, read_only_for_commands};
use crate::rules::network_pattern::rule_for;
use crate::ruling::Label;
use haft_files::paths::clean;
use haft_files::workspace::makes_repository;
use haft_types::opaque_debug;
use haft_types::permission::{Effect, PathClaim, Permission, Verdict};
use haft_types::spec::{Risk, ToolClass};
use haft_types::text::visible;

/// A guard's minimum verdict for one effect. Small, since most guards have nothing to say about most effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinimumVerdict {
    verdict: Verdict,
    wording: Option<Box<Wording>>,
}

/// The reason, and the advice for the caller and the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wording {
    reason: Label,
    advice: Label,
    operator: Label,
    /// The allow rule that may lift the verdict.
    proposed: Option<String>,
}

impl MinimumVerdict {
    /// No objection.
    pub const NONE: Self = Self {
        verdict: Verdict::Allow,
        wording: None,
    };

    /// Requires at least an approval; `reason` is one sentence.
    pub fn ask(reason: impl Into<Label>) -> Self {
        Self::of(Verdict::Ask, reason.into())
    }

    /// Denies; `reason` is one sentence.
    pub fn deny(reason: impl Into<Label>) -> Self {
        Self::of(Verdict::Deny, reason.into())
    }

    fn of(verdict: Verdict, reason: Label) -> Self {
        Self {
            verdict,
            wording: Some(Box::new(Wording {
                reason,
                advice: Label::EMPTY,
                operator: Label::EMPTY,
                proposed: None,
            })),
        }
    }

    /// Adds what the operator can do about it; never shown to a model.
    pub fn for_operator(mut self, advice: impl Into<Label>) -> Self {
        if let Some(wording) = &mut self.wording {
            wording.operator = advice.into();
        }
        self
    }

    /// Proposes an allow rule to the operator. The policy tries it on the call, and names it only if the call would then run.
    pub fn propose(mut self, rule: impl Into<String>) -> Self {
        if let Some(wording) = &mut self.wording {
            wording.proposed = Some(rule.into());
        }
        self
    }

    /// Adds what the caller can do instead.
    pub fn advise(mut self, advice: impl Into<Label>) -> Self {
        if let Some(wording) = &mut self.wording {
            wording.advice = advice.into();
        }
        self
    }

    /// Returns the minimum verdict.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns the reason; empty for an allow.
    pub fn reason(&self) -> Label {
        self.wording
            .as_ref()
            .map_or(Label::EMPTY, |said| said.reason.clone())
    }

    /// Returns what the caller can do instead; may be empty.
    pub fn advice(&self) -> Label {
        self.wording
            .as_ref()
            .map_or(Label::EMPTY, |said| said.advice.clone())
    }

    /// Returns the allow rule that may lift the verdict.
    pub(crate) fn proposed(&self) -> Option<&str> {
        self.wording.as_ref()?.proposed.as_deref()
    }

    /// Returns what the operator can do about it; may be empty.
    pub fn operator(&self) -> Label {
        self.wording
            .as_ref()
            .map_or(Label::EMPTY, |said| said.operator.clone())
    }
}

/// A minimum verdict that no rule, approval or edited argument can lower.
///
/// The policy consults it for each effect of a call, and for the call itself (`Effect::Call`). If it fails, the call is denied.
pub trait Guard: Send + Sync {
    /// Returns its name: a word, or two joined by `-`.
    fn name(&self) -> &'static str;

    /// Returns the minimum verdict for this effect. It must be fast and have no side effects.
    ///
    /// # Errors
    /// Why the effect cannot be judged: the call is denied, and the operator sees the text.
    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String>;

    /// Whether its verdict depends on what the run has done ([`JudgedCall::run`]): then an approval answers its question for one call
    /// only, and no grant of the session covers another.
    fn depends_on_run(&self) -> bool {
        false
    }

    /// Returns what it adds to the restrictions of a policy, each in a few words: a stricter configuration has more of them. A request
    /// is only decided where none of its restrictions is missing.
    fn safeguards(&self) -> Vec<String> {
        vec![format!("the guard {}", self.name())]
    }

    /// Whether it may have anything to say about effects of this kind: a quick check that saves the full one.
    fn concerns(&self, effect: &Effect) -> bool {
        let _ = effect;
        true
    }

    /// Whether a rule that names the exact host and port of this connection overrides this guard.
    fn yields_to_exact_host(&self, effect: &Effect) -> bool {
        let _ = effect;
        false
    }
}

opaque_debug!(Guard);

impl<G: Guard + ?Sized> Guard for Arc<G> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        (**self).floor(call, permission)
    }

    fn depends_on_run(&self) -> bool {
        (**self).depends_on_run()
    }

    fn safeguards(&self) -> Vec<String> {
        (**self).safeguards()
    }

    fn concerns(&self, effect: &Effect) -> bool {
        (**self).concerns(effect)
    }

    fn yields_to_exact_host(&self, effect: &Effect) -> bool {
        (**self).yields_to_exact_host(effect)
    }
}

/// Returns the paths of a claim: as written, and where links lead.
pub(crate) fn both_paths(claim: &PathClaim) -> impl Iterator<Item = &str> {
    std::iter::once(claim.path.as_str()).chain(claim.target.as_deref())
}

/// Whether the effects are ones that no file tool of haft has: those of a command that it runs or ran, or of another program's tool.
/// They need approval where a file tool would be refused.
fn is_of_command(call: &JudgedCall<'_>) -> bool {
    call.permissions.iter().any(applies) || call.runs_command() || call.spec.is_foreign()
}

/// Keeps every path inside the workspace. The file tools enforce this with descriptors; this guard reports it before they run.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceEdge;

impl Guard for WorkspaceEdge {
    fn name(&self) -> &'static str {
        "workspace-edge"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        effect.path().is_some()
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let Some(claim) = permission.effect.path() else {
            return Ok(MinimumVerdict::NONE);
        };
        let outside = |path: &str| path.starts_with('/') || path == ".." || path.starts_with("../");
        let Some(path) = both_paths(claim).find(|path| outside(path)) else {
            return Ok(MinimumVerdict::NONE);
        };
        let reason = format!("{} lies outside the workspace", visible::path(path));
        if is_of_command(call) {
            return Ok(MinimumVerdict::ask(reason));
        }
        Ok(MinimumVerdict::deny(reason)
            .advise("name a path in the workspace")
            .for_operator("start haft with --workspace DIR"))
    }
}

/// Requires approval of a command's changes that the tool rates critical, even where rules allow the files or the tool.
#[derive(Debug, Clone, Copy)]
pub struct CommandChanges;

impl Guard for CommandChanges {
    fn name(&self) -> &'static str {
        "command-changes"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        effect.changed_path().is_some() || matches!(effect, Effect::Apply { .. })
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        if permission.risk < Risk::Critical || !call.permissions.iter().any(applies) {
            return Ok(MinimumVerdict::NONE);
        }
        Ok(MinimumVerdict::ask(
            match permission.effect.changed_path() {
                Some(claim) => {
                    format!("programs take settings from {}", visible::path(&claim.path))
                }
                None => "all that commands change is reviewed here".to_owned(),
            },
        ))
    }
}

fn applies(permission: &Permission) -> bool {
    matches!(permission.effect, Effect::Apply { .. })
}

/// Makes protected paths read-only. In a `.git` folder a command may change what is only data; a file tool may change nothing.
#[derive(Debug, Clone, Copy)]
pub struct ProtectedPaths;

impl Guard for ProtectedPaths {
    fn name(&self) -> &'static str {
        "protected-paths"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        effect.changed_path().is_some()
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let Some(claim) = permission.effect.changed_path() else {
            return Ok(MinimumVerdict::NONE);
        };
        let by_command = is_of_command(call);
        let found = if by_command {
            both_paths(claim).find_map(read_only_for_commands)
        } else {
            both_paths(claim).find_map(protected)
        };
        let Some(entry) = found else {
            return Ok(MinimumVerdict::NONE);
        };
        let subject = match repository_of(claim) {
            Some((target, folder)) => format!(
                "{} is protected like {GIT}, for git takes the folder {} as a repository",
                visible::path(target),
                visible::path(folder)
            ),
            None => match settings_naming(claim) {
                Some(target) => format!(
                    "{} is protected like {GIT}, for git's settings in {} name it",
                    visible::path(target),
                    visible::path(&claim.path)
                ),
                None => format!("{} is protected", visible::path(&claim.path)),
            },
        };
        if by_command && entry == GIT {
            let reason = "git takes settings from it, which can name programs to run";
            return Ok(MinimumVerdict::ask(format!("{subject}: {reason}")));
        }
        let reason = format!("{subject}: {entry} may be read, not written");
        if by_command {
            return Ok(MinimumVerdict::ask(reason));
        }
        Ok(MinimumVerdict::deny(reason).advise("ask the user to change that file"))
    }
}

/// Returns where a claim leads, if it states by the name of a repository's settings that these name the file.
fn settings_naming(claim: &PathClaim) -> Option<&str> {
    let is_settings = Path::new(&claim.path).ends_with("config") && claim.path.contains(GIT);
    claim.target.as_deref().filter(|_| is_settings)
}

/// Returns where a claim leads, and the folder, if it states by the name `.git` that git treats a folder as a repository.
fn repository_of(claim: &PathClaim) -> Option<(&str, &str)> {
    let target = claim.target.as_deref()?;
    let parts: Vec<&str> = claim.path.split('/').collect();
    let at = parts.iter().position(|part| *part == GIT)?;
    let (above, within) = (parts.get(..at)?, parts.get(at + 1..)?);
    let rest = match above.join("/") {
        folder if folder.is_empty() => Some(target),
        folder => target.strip_prefix(&*folder),
    };
    let rest = rest?.trim_start_matches('/');
    // Else the claim is about a link of that name.
    let is_same = match rest {
        "" => within.is_empty(),
        rest if within.is_empty() => makes_repository(Path::new(rest)),
        rest => rest == within.join("/"),
    };
    if !is_same {
        return None;
    }
    let folder = target.strip_suffix(rest)?.trim_end_matches('/');
    Some((target, if folder.is_empty() { "." } else { folder }))
}

/// Denies connections to this machine and to private networks. A command may connect if the user approves: its connection
/// is held until then. The addresses that a name resolves to are checked again when connecting.
#[derive(Debug, Clone, Copy)]
pub struct PrivateAddresses;

impl Guard for PrivateAddresses {
    fn name(&self) -> &'static str {
        "private-addresses"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        matches!(effect, Effect::Connect { .. })
    }

    fn yields_to_exact_host(&self, effect: &Effect) -> bool {
        let Effect::Connect { host, leads_to, .. } = effect else {
            return false;
        };
        can_be_opened(host) && leads_to.iter().all(|to| address_can_be_opened(*to))
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let Effect::Connect {
            url,
            host,
            leads_to,
            ..
        } = &permission.effect
        else {
            return Ok(MinimumVerdict::NONE);
        };
        let private = check_host(host).err().map(|why| (host.clone(), why));
        let private = private.or_else(|| {
            let mut each = leads_to.iter();
            each.find_map(|to| Some((format!("{host} at {to}"), check_address(*to).err()?)))
        });
        let Some((what, why)) = private else {
            return Ok(MinimumVerdict::NONE);
        };
        // A call of another program's tool needs approval before it runs: haft cannot hold its connection.
        let is_asked = call.spec.class == Some(ToolClass::Network) || call.spec.is_foreign();
        if !is_asked || !self.yields_to_exact_host(&permission.effect) {
            return Ok(MinimumVerdict::deny(refusal(what, why)).advise("use a public address"));
        }
        let rule = rule_for(host, port_of(url), leads_to);
        Ok(MinimumVerdict::ask(format!(
            "{what} is private ({why}): services there may trust every program on this machine"
        ))
        .propose(rule))
    }
}

/// Keeps tools from reading, listing, searching or writing haft's own state folder, settings and secret files.
#[derive(Debug, Clone, Default)]
pub struct OwnFiles {
    paths: Vec<String>,
}

impl OwnFiles {
    /// Creates a guard for these paths, absolute or relative to the workspace's root.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths = paths
            .into_iter()
            .map(|path| clean(&path.to_string_lossy()))
            .collect();
        Self { paths }
    }

    /// Sets the workspace's root, so that the guard also matches the relative form of a path within it.
    pub fn in_workspace(mut self, root: &Path) -> Self {
        let root = clean(&root.to_string_lossy());
        let relative: Vec<String> = self
            .paths
            .iter()
            .filter_map(|path| {
                under(path, &root).map(|rest| if rest.is_empty() { "." } else { rest })
            })
            .map(str::to_owned)
            .collect();
        self.paths.extend(relative);
        self
    }

    /// Whether it covers no path.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether this path, cleaned and in the form of a `PathClaim`, is one of them or within one.
    pub fn covers(&self, path: &str) -> bool {
        self.paths
            .iter()
            .any(|own| own == "." && !path.starts_with('/') || under(path, own).is_some())
    }

    /// Whether one of them lies within this folder.
    pub(crate) fn lies_in(&self, folder: &str) -> bool {
        self.paths
            .iter()
            .any(|own| folder == "." && !own.starts_with('/') || under(own, folder).is_some())
    }

    /// Returns the word of a command that names one of them, also as `--option=PATH`.
    fn named<'a>(&self, words: &'a [String]) -> Option<&'a str> {
        words
            .iter()
            .flat_map(|word| {
                [
                    Some(word.as_str()),
                    word.split_once('=').map(|(_, value)| value),
                ]
            })
            .flatten()
            .find(|word| self.covers(&clean(word)))
    }
}

impl OwnFiles {
    /// Whether a command line without argv names one of them, as far as its text shows.
    fn in_line(&self, line: &str) -> bool {
        let written = self.paths.iter();
        let plainly = written.filter(|own| own.starts_with('/') || own.contains(['/', '.']));
        if plainly
            .clone()
            .any(|own| *own != "." && line.contains(own.as_str()))
        {
            return true;
        }
        if let Some(words) = plain_words(line) {
            return self.named(&words).is_some();
        }
        let texts = |words: &[Word]| -> Vec<String> {
            words.iter().map(|word| word.text.clone()).collect()
        };
        match parse_line(line) {
            Ok(read) => {
                let parts = read.commands.iter().map(|part| texts(&part.words));
                parts
                    .chain([texts(&read.writes), texts(&read.reads)])
                    .any(|words| self.named(&words).is_some())
            }
            Err(_) => fragments(line)
                .commands
                .iter()
                .any(|words| self.named(words).is_some()),
        }
    }
}

/// Returns the rest of the path below the folder, empty for the folder itself.
fn under<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('/')
    }
}

impl Guard for OwnFiles {
    fn name(&self) -> &'static str {
        "own-files"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        effect.path().is_some() || matches!(effect, Effect::Run { .. })
    }

    fn floor(
        &self,
        _call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let name = match &permission.effect {
            Effect::Read(claim) => both_paths(claim).find(|path| self.covers(path)),
            Effect::Write(claim) | Effect::Remove(claim) => {
                both_paths(claim).find(|path| self.covers(path) || self.lies_in(path))
            }
            Effect::Run {
                argv: Some(words), ..
            } => self.named(words),
            Effect::Run {
                command,
                argv: None,
                ..
            } => self.in_line(command).then_some(command.as_str()),
            _ => None,
        };
        Ok(name.map_or(MinimumVerdict::NONE, |name| {
            let name = match &permission.effect {
                Effect::Run { .. } => visible::line(name),
                _ => visible::path(name),
            };
            MinimumVerdict::deny(format!("{name} belongs to haft itself"))
        }))
    }
}
