//! `ReviewPowers`: what a reviewer's verdicts decide. Whatever they hold, some requests are always a person's.

use crate::approval::ApprovalRequest;
use crate::approval::meaning::Meaning;
use crate::approval::preview::FileChange;
use crate::approval::review::ReviewVerdict;
use crate::permission::{Condition, Effect, PathClaim, Permission, Verdict};
use crate::policy::CauseKind;
use crate::spec::{Risk, ToolClass};

/// The classes of effects that a reviewer can be given. Logins are a person's, and so is what lies outside of the workspace, which is
/// all that is ever asked about reading.
const CLASSES: [ToolClass; 4] = [
    ToolClass::Edit,
    ToolClass::Bash,
    ToolClass::WebFetch,
    ToolClass::Network,
];

/// The tool that asks for a command's connection.
const CONNECT: &str = "connect";

/// The tool that runs commands.
const RUN_COMMAND: &str = "run_command";

/// What a reviewer may decide: whether its deny counts, and of which classes of effects its allow counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewPowers {
    deny: bool,
    allow: Vec<ToolClass>,
}

/// The error for a word that names no power.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{word:?} is nothing that a reviewer may: expected opinion, deny, allow:Edit, allow:Bash, allow:WebFetch or allow:Network"
)]
pub struct PowersError {
    word: String,
}

impl ReviewPowers {
    /// The powers of a reviewer whose every word is an opinion.
    pub const NONE: Self = Self {
        deny: false,
        allow: Vec::new(),
    };

    /// Reads powers: `deny`, `allow:CLASS`, or `opinion` for none.
    ///
    /// # Errors
    /// A word names no power.
    pub fn parse<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Self, PowersError> {
        let mut powers = Self::default();
        for word in words {
            let class = word
                .strip_prefix("allow:")
                .and_then(|name| CLASSES.into_iter().find(|class| class.as_str() == name));
            match (word, class) {
                ("opinion", _) => {}
                ("deny", _) => powers.deny = true,
                (_, Some(class)) if powers.allow.contains(&class) => {}
                (_, Some(class)) => powers.allow.push(class),
                (_, None) => {
                    let word = word.chars().take(60).collect();
                    return Err(PowersError { word });
                }
            }
        }
        Ok(powers)
    }

    /// Returns the powers as words, for people.
    pub fn words(&self) -> Vec<String> {
        let deny = self.deny.then(|| "deny".to_owned());
        let allow = self.allow.iter();
        let allow = allow.map(|class| format!("allow:{}", class.as_str()));
        let words: Vec<String> = deny.into_iter().chain(allow).collect();
        if words.is_empty() {
            return vec!["opinion".to_owned()];
        }
        words
    }

    /// Checks whether a verdict decides a request.
    ///
    /// # Errors
    /// Why it is only an opinion, as the end of a sentence.
    pub(crate) fn why_not(
        &self,
        request: &ApprovalRequest,
        verdict: ReviewVerdict,
    ) -> Result<(), String> {
        match verdict {
            ReviewVerdict::Pass => Err("it leaves the decision to a person".to_owned()),
            ReviewVerdict::Deny if self.deny => Ok(()),
            ReviewVerdict::Deny => Err("policy.reviewer.may does not hold deny".to_owned()),
            ReviewVerdict::Allow if self.allow.is_empty() => {
                Err("policy.reviewer.may holds no allow".to_owned())
            }
            ReviewVerdict::Allow => {
                is_persons(request)?;
                self.covers_effects(request)
            }
        }
    }

    /// Checks that every effect that is asked about is of a class that it may allow.
    fn covers_effects(&self, request: &ApprovalRequest) -> Result<(), String> {
        let permissions = &request.snapshot.permissions;
        // Also where a part of a line is not asked about: what such a command changes is no effect of the request, and nobody judges it later.
        let mut effects = permissions.iter().map(|one| &one.effect);
        if effects.any(|effect| matches!(effect, Effect::Run { .. })) && !is_judged_later(request) {
            return Err("what the command changes is not judged when it has ended".to_owned());
        }
        let judged = permissions.iter().zip(&request.verdicts);
        let mut asked = judged
            .filter(|(_, verdict)| **verdict != Verdict::Allow)
            .peekable();
        if asked.peek().is_none() {
            return Err("no effect by itself is what is asked about".to_owned());
        }
        for (permission, _) in asked {
            let class = allowed_class(request, &permission.effect)?;
            if !self.allow.contains(&class) {
                let class = class.as_str();
                return Err(format!("policy.reviewer.may does not hold allow:{class}"));
            }
        }
        Ok(())
    }
}

/// Checks that a request is not one that only a person allows, whatever a reviewer may.
fn is_persons(request: &ApprovalRequest) -> Result<(), String> {
    let refuse = |why: &str| Err(why.to_owned());
    if request.is_question() || request.proposal().is_some() {
        return refuse("it is a question to a person");
    }
    if request.risk >= Risk::Critical {
        return refuse("the call is critical");
    }
    let other = request.causes.iter();
    let other = other.map(|cause| (cause.kind, &cause.name));
    for (kind, name) in other {
        match kind {
            CauseKind::Profile => {}
            CauseKind::Rule => return Err(format!("your rule {name} asks about it")),
            CauseKind::Guard => return Err(format!("the guard {name} asks about it")),
            CauseKind::Budget => return refuse("a budget is used up"),
            CauseKind::Secret => return refuse("it touches a file that may hold secrets"),
            CauseKind::RiskLimit | CauseKind::Other => {
                return Err(format!("the setting {name} asks about it"));
            }
        }
    }
    if request.needs_person() || request.is_decided_each_time() {
        return refuse("only a person decides about it");
    }
    if !is_whole(request) {
        return refuse("not all that it would do is shown as text");
    }
    Ok(())
}

/// Returns whether a command works on a copy, so that its changes are judged when it has ended: one in the jail that does not state otherwise.
fn is_judged_later(request: &ApprovalRequest) -> bool {
    let snapshot = &request.snapshot;
    let mut effects = snapshot.permissions.iter().map(|one| &one.effect);
    request.tool.as_str() == RUN_COMMAND
        && !effects.any(|effect| matches!(effect, Effect::Run { jailed: false, .. }))
        && !snapshot.conditions.iter().any(Condition::is_unjudged)
}

/// Returns whether a request shows all that it is about as text: each file that it writes, and nothing that is shown in part.
fn is_whole(request: &ApprovalRequest) -> bool {
    let snapshot = &request.snapshot;
    let has = |path: &str, file: &FileChange| file.path == path || file.to.as_deref() == Some(path);
    let is_previewed = |wanted: &Permission| match &wanted.effect {
        Effect::Write(claim) => {
            let path = claim.path.trim_end_matches('/');
            snapshot.preview.iter().any(|file| has(path, file))
                || snapshot.meanings.iter().any(|part| names(part, path))
        }
        _ => true,
    };
    snapshot.more_permissions.is_none()
        && request.verdicts.len() == snapshot.permissions.len()
        && snapshot.preview.iter().all(is_shown)
        && snapshot.meanings.iter().all(is_explained)
        && snapshot.permissions.iter().all(is_previewed)
}

/// Returns whether one of the files that part of the changes amounts to has this path.
fn names(meaning: &Meaning, path: &str) -> bool {
    meaning.files.iter().any(|file| file.path == path)
        || meaning.parts.iter().any(|part| names(part, path))
}

fn is_shown(file: &FileChange) -> bool {
    !file.binary && !file.clipped && !file.escaped && file.folded.is_none() && file.files.is_none()
}

/// Returns whether what part of the changes amounts to is whole in text. What git keeps for itself is not: hooks and objects are bytes.
fn is_explained(meaning: &Meaning) -> bool {
    meaning.pictures.is_none()
        && meaning.warnings.is_empty()
        && meaning.files.iter().all(is_shown)
        && meaning.parts.iter().all(is_explained)
}

/// Returns the class of an effect that a reviewer can be given.
///
/// # Errors
/// Why it is always a person's.
fn allowed_class(request: &ApprovalRequest, effect: &Effect) -> Result<ToolClass, String> {
    let never = match effect {
        Effect::Write(claim) if is_inside(claim) => None,
        Effect::Run { jailed: true, .. } => None,
        Effect::Connect { leads_to, .. } if leads_to.is_empty() => None,
        Effect::Write(_) => Some("it reaches outside of the workspace"),
        Effect::Run { .. } => Some("the command runs without the jail"),
        Effect::Connect { .. } => Some("it leads to a private address"),
        Effect::Remove(_) => Some("it removes a file"),
        Effect::Read(_) => Some("it reads what lies outside of the workspace"),
        Effect::Sign { .. } => Some("it uses a login"),
        Effect::Call
        | Effect::Apply { .. }
        | Effect::Remember { .. }
        | Effect::Question
        | Effect::Other { .. } => Some("no class covers the effect"),
    };
    let class = class_of(request, effect).filter(|_| never.is_none());
    class.ok_or_else(|| never.unwrap_or("no class covers the effect").to_owned())
}

/// Returns the class of an effect, as rules name it.
fn class_of(request: &ApprovalRequest, effect: &Effect) -> Option<ToolClass> {
    match effect {
        Effect::Read(_) => Some(ToolClass::Read),
        Effect::Write(_) | Effect::Remove(_) => Some(ToolClass::Edit),
        Effect::Run { .. } => Some(ToolClass::Bash),
        Effect::Connect { .. } if request.tool.as_str() == CONNECT => Some(ToolClass::Network),
        Effect::Connect { .. } => Some(ToolClass::WebFetch),
        Effect::Sign { .. } => Some(ToolClass::Sign),
        Effect::Call
        | Effect::Apply { .. }
        | Effect::Remember { .. }
        | Effect::Question
        | Effect::Other { .. } => None,
    }
}

/// Returns the classes of the effects that a request asks about, for figures: `Edit`, `Bash+Edit`; `other` if they have none.
pub fn asked_classes(request: &ApprovalRequest) -> String {
    let judged = request.snapshot.permissions.iter().zip(&request.verdicts);
    let asked = judged.filter(|(_, verdict)| **verdict != Verdict::Allow);
    let mut classes: Vec<&str> = asked
        .filter_map(|(one, _)| class_of(request, &one.effect))
        .map(ToolClass::as_str)
        .collect();
    classes.sort_unstable();
    classes.dedup();
    if classes.is_empty() {
        return "other".to_owned();
    }
    classes.join("+")
}

fn is_inside(claim: &PathClaim) -> bool {
    let inside =
        |path: &str| !path.starts_with(['/', '~']) && path.split('/').all(|part| part != "..");
    inside(&claim.path) && claim.target.as_deref().is_none_or(inside)
}
