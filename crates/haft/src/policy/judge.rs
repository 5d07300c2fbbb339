//! Judging: each effect takes the first matching list, else the profile; guards can raise it; the call takes the strictest.

use super::command_lines::is_critical_removal;
use super::guard::{Guard, MinimumVerdict};
use super::phrase::{clip, phrase};
use super::remembered::remember;
use super::rule::Rule;
use super::rules::Naming;
use super::ruling::{Label, Ruling};
use super::secret_files::{Secret, SecretFiles};
use super::subject::Subject;
use super::{Commands, JudgedCall, Policy, Profile};
use crate::arguments::Arguments;
use crate::permission::{Effect, PathClaim, Permission, Verdict};
use crate::spec::{Risk, ToolSpec};

/// The layer that verdicts on secrets come from.
pub(super) const SECRETS: &str = "secrets";

/// What decided the verdict on an effect.
#[derive(Debug, Clone)]
pub(super) enum Source<'a> {
    Profile,
    Rule(&'a Rule),
    Secret(SecretFiles, Secret),
    Guard(&'static str, MinimumVerdict),
}

/// The policy's verdict on one effect of a call, on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason if it is not allowed; otherwise empty.
    pub reason: String,
    /// Whether a rule decided that names the host and port of a connection: then a private address may be connected to.
    pub names_place: bool,
}

/// The verdict on one effect.
#[derive(Debug, Clone)]
pub(super) struct Judged<'a> {
    pub(super) verdict: Verdict,
    pub(super) source: Source<'a>,
}

impl Judged<'_> {
    /// Returns the rule as written, `guard NAME` or `profile NAME`.
    pub(super) fn rule(&self, profile: Profile) -> Label {
        match &self.source {
            Source::Profile => profile.as_rule().into(),
            Source::Rule(rule) => Label::Shared(rule.text.clone()),
            Source::Secret(files, _) => files.as_rule().into(),
            Source::Guard(name, _) => format!("guard {name}").into(),
        }
    }

    /// Returns the layer that the verdict comes from.
    pub(super) fn layer(&self) -> Label {
        match &self.source {
            Source::Profile => "profile".into(),
            Source::Rule(rule) => Label::Shared(rule.layer.clone()),
            Source::Secret(..) => SECRETS.into(),
            Source::Guard(..) => "guard".into(),
        }
    }
}

/// Returns the effect that every call has. It carries the spec's risk unless a stated effect has at least that risk: then what the
/// tool says it will do is judged there.
pub(super) fn own_permission(call: &JudgedCall<'_>) -> Permission {
    let stated = call.permissions.iter().map(|p| p.risk).max();
    let carried = stated.is_some_and(|risk| risk >= call.spec.risk);
    Permission {
        effect: Effect::Call,
        risk: if carried { Risk::Safe } else { call.spec.risk },
    }
}

impl Policy {
    /// Judges a call.
    pub fn judge(&self, call: &JudgedCall<'_>) -> Ruling {
        let _judgement = remember();
        let own = own_permission(call);
        let naming = self.rules.naming(call.spec);
        let (mut decisive, mut top) = (&own, self.judge_effect(call, &naming, &own));
        let mut risk = call.spec.risk;
        for permission in call.permissions {
            risk = risk.max(permission.risk);
            if is_critical_removal(call, permission, &self.places) {
                risk = Risk::Critical;
            }
            let judged = self.judge_effect(call, &naming, permission);
            let named = matches!(
                (&top.source, &judged.source),
                (Source::Profile, Source::Rule(_))
            );
            if judged.verdict > top.verdict || (judged.verdict == top.verdict && named) {
                (decisive, top) = (permission, judged);
            }
        }
        let stopped = top.verdict > Verdict::Allow;
        let label = |say: &dyn Fn() -> Label| if stopped { say() } else { Label::EMPTY };
        Ruling {
            verdict: top.verdict,
            risk,
            rule: top.rule(self.profile),
            layer: top.layer(),
            reason: label(&|| match &top.source {
                Source::Secret(_, secret) => self.reason_of_secrets(call, secret),
                _ => self.reason(call, decisive, &top),
            }),
            advice: label(&|| self.advice_for(call, decisive, &top)),
            operator: label(&|| self.what_would_allow(call, &top)),
        }
    }

    /// Returns the verdict on a call that is not made yet: of this tool, with these arguments and effects.
    pub fn verdict(&self, spec: &ToolSpec, arguments: &str, wanted: &[Permission]) -> Verdict {
        let arguments = Arguments::new(arguments.to_owned());
        self.judge(&JudgedCall::new(spec, &arguments, wanted))
            .verdict
    }

    /// Returns the verdict on each permission on its own, in order.
    pub(crate) fn verdicts(&self, call: &JudgedCall<'_>) -> Vec<Verdict> {
        let _judgement = remember();
        let naming = self.rules.naming(call.spec);
        let each = call.permissions.iter();
        each.map(|one| self.judge_effect(call, &naming, one).verdict)
            .collect()
    }

    /// Does the same, with reasons.
    pub(crate) fn effect_verdicts(&self, call: &JudgedCall<'_>) -> Vec<EffectVerdict> {
        let _judgement = remember();
        let naming = self.rules.naming(call.spec);
        let judge = |permission| {
            let judged = self.judge_effect(call, &naming, permission);
            let verdict = judged.verdict;
            let reason = match verdict {
                Verdict::Allow => String::new(),
                Verdict::Ask | Verdict::Deny => self.reason(call, permission, &judged).to_string(),
            };
            let names_place = matches!(judged.source, Source::Rule(rule) if rule.names_place());
            EffectVerdict {
                verdict,
                reason,
                names_place,
            }
        };
        call.permissions.iter().map(judge).collect()
    }

    /// Returns the verdict on one effect, and what decided it.
    pub(super) fn judge_effect(
        &self,
        call: &JudgedCall<'_>,
        naming: &Naming<'_>,
        permission: &Permission,
    ) -> Judged<'_> {
        let mut judged = self
            .judge_by_rules(call, naming, permission)
            .unwrap_or_else(|| Judged {
                verdict: self.judge_by_profile(call, permission),
                source: Source::Profile,
            });
        let lifted = self.profile == Profile::ReadOnly && permission.risk > Risk::Safe;
        if lifted && judged.verdict < Verdict::Deny {
            judged = Judged {
                verdict: Verdict::Deny,
                source: Source::Profile,
            };
        }
        judged = self.with_secret(judged, call, naming, permission);
        for guard in &*self.guards {
            if !guard.concerns(&permission.effect) {
                continue;
            }
            if matches!(judged.source, Source::Rule(rule) if rule.names_place())
                && guard.yields_to_named_place(&permission.effect)
            {
                continue;
            }
            // Where both ask or both deny, the guard is named: a different profile would not lift the verdict.
            let by_profile = matches!(judged.source, Source::Profile | Source::Secret(..));
            if judged.verdict == Verdict::Deny && !by_profile {
                break;
            }
            let floor = floor(&**guard, call, permission);
            let as_high =
                by_profile && floor.verdict() > Verdict::Allow && floor.verdict() == judged.verdict;
            if floor.verdict() > judged.verdict || as_high {
                judged = Judged {
                    verdict: floor.verdict(),
                    source: Source::Guard(guard.name(), floor),
                };
            }
        }
        judged
    }

    /// Raises the verdict if the effect touches a secret that no rule and no approval opens.
    fn with_secret<'a>(
        &self,
        judged: Judged<'a>,
        call: &JudgedCall<'_>,
        naming: &Naming<'_>,
        permission: &Permission,
    ) -> Judged<'a> {
        let Some(secret) = self.closed_secret(call, naming, permission) else {
            return judged;
        };
        let verdict = secret.verdict;
        // Where both ask, the secret is named: a rule that allows the path among others would not lift the verdict.
        let as_high = matches!(judged.source, Source::Profile) && judged.verdict == verdict;
        if judged.verdict < verdict || as_high {
            let source = Source::Secret(self.secret_files(), secret);
            return Judged { verdict, source };
        }
        judged
    }

    fn judge_by_profile(&self, call: &JudgedCall<'_>, permission: &Permission) -> Verdict {
        let on_copy = matches!(permission.effect, Effect::Run { on_copy: true, .. });
        match (self.profile, self.commands, permission.risk) {
            // The changes of the command need approval instead.
            (Profile::Workspace, Commands::Copy, Risk::High) if on_copy => Verdict::Allow,
            _ => judge_by_profile(self.profile, call, permission),
        }
    }

    fn judge_by_rules(
        &self,
        call: &JudgedCall<'_>,
        naming: &Naming<'_>,
        permission: &Permission,
    ) -> Option<Judged<'_>> {
        if !self.rules.may_apply(naming, &permission.effect) {
            return None;
        }
        let subject = Subject::new(call, permission, &self.places);
        let (rule, verdict) = self.rules.decide(naming, &subject, &|_| true)?;
        Some(Judged {
            verdict,
            source: Source::Rule(rule),
        })
    }

    fn reason(&self, call: &JudgedCall<'_>, permission: &Permission, judged: &Judged<'_>) -> Label {
        let what = phrase(call, &permission.effect);
        match &judged.source {
            Source::Secret(_, secret) => secret.reason(call.spec, 0),
            Source::Guard(_, floor) if !floor.reason().is_empty() => floor.reason(),
            Source::Guard(name, _) => format!("the guard {name} applies to {what}").into(),
            Source::Rule(Rule {
                reason: Some(reason),
                ..
            }) => Label::Shared(reason.clone()),
            Source::Rule(rule) => {
                let (list, text, layer) = (rule.list, clip(&rule.text), &rule.layer);
                format!("the {list} rule {text} of {layer} covers {what}").into()
            }
            Source::Profile => {
                let denied = judged.verdict == Verdict::Deny;
                let says = if denied { "denies" } else { "asks about" };
                format!(
                    "the profile {} {says} {what} (risk {})",
                    self.profile, permission.risk
                )
                .into()
            }
        }
    }

    /// Returns what the caller can do instead.
    fn advice_for(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
        judged: &Judged<'_>,
    ) -> Label {
        match &judged.source {
            Source::Guard(_, floor) if !floor.advice().is_empty() => floor.advice(),
            Source::Secret(..) => Secret::advice(),
            _ => {
                let other = "do it another way, or tell the user that it is not permitted here";
                match self.describe_allowed(call, &permission.effect) {
                    Some(allowed) => format!("{other}; {allowed}").into(),
                    None => other.into(),
                }
            }
        }
    }
}

/// Returns a guard's minimum verdict; a guard that fails denies.
pub(super) fn floor(
    guard: &dyn Guard,
    call: &JudgedCall<'_>,
    permission: &Permission,
) -> MinimumVerdict {
    guard.floor(call, permission).unwrap_or_else(|problem| {
        MinimumVerdict::deny(format!("the guard {} failed: {problem}", guard.name()))
    })
}

/// Returns the verdict where no rule matches.
pub(super) fn judge_by_profile(
    profile: Profile,
    call: &JudgedCall<'_>,
    permission: &Permission,
) -> Verdict {
    match (profile, permission.risk) {
        (_, Risk::Safe) => Verdict::Allow,
        (Profile::ReadOnly, _) => Verdict::Deny,
        (Profile::Trusted, Risk::High) if is_trusted(call, &permission.effect) => Verdict::Allow,
        (Profile::Workspace | Profile::Trusted, _) => Verdict::Ask,
    }
}

/// Whether the profile `trusted` allows the effect. A server's tool is third-party code behind a connection: it needs approval.
fn is_trusted(call: &JudgedCall<'_>, effect: &Effect) -> bool {
    let inside = |path: &str| !path.starts_with('/') && path != ".." && !path.starts_with("../");
    match effect {
        Effect::Write(PathClaim { path, target }) | Effect::Remove(PathClaim { path, target }) => {
            inside(path) && target.as_deref().is_none_or(inside)
        }
        Effect::Run { jailed, .. } => *jailed,
        Effect::Call | Effect::Other { .. } => matches!(&*call.spec.source, "builtin" | "host"),
        Effect::Read(_)
        | Effect::Apply { .. }
        | Effect::Connect { .. }
        | Effect::Remember { .. }
        | Effect::Question => false,
    }
}
