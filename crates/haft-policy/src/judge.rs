//! Judging: each effect takes the first matching list, else the profile; guards can raise it; the call takes the strictest.

use crate::Policy;
use crate::cause::{Cause, CauseKind};
use crate::commands::phrase::{aim, by_link, clip, phrase};
use crate::commands::remembered::remember;
use crate::guards::command_lines::is_critical_removal;
use crate::guards::effect_budgets::EffectBudgets;
use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use crate::profile::CommandPolicy;
use crate::profile::Profile;
use crate::rules::ToolRuleIndex;
use crate::rules::rule::Rule;
use crate::rules::subject::{ClaimSide, Subject};
use crate::ruling::{Label, Ruling};
use crate::run_history::RunHistory;
use crate::secret_files::{SecretFiles, SecretPath};
use haft_types::permission::{Effect, PathClaim, Permission, Verdict};
use haft_types::spec::{Risk, ToolSpec};

/// Maximum number of causes that are listed beside guards and budgets.
const MAX_CAUSES: usize = 16;
/// The layer that verdicts on secrets come from.
pub(crate) const SECRETS: &str = "secrets";

/// The layer of the user's own rules.
const USER_LAYER: &str = "user";

/// What decided the verdict on an effect.
#[derive(Debug, Clone)]
pub(crate) enum VerdictSource<'a> {
    Profile,
    Rule(&'a Rule),
    Secret(SecretFiles, SecretPath),
    Guard(&'static str, MinimumVerdict),
}

/// The policy's verdict on one effect of a call, on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason if it is not allowed; otherwise empty.
    pub reason: String,
    /// Whether a rule decided that names the host and port of a connection: then a private address may be connected to.
    pub names_place: bool,
    /// Whether a guard asks about it because of what the run has done: an earlier answer does not count then.
    pub asks_each_time: bool,
    /// Whether a guard requires it because of the effect itself, or the list of secret files does; not because of what the run has done or
    /// used up.
    pub guarded: bool,
}

impl EffectVerdict {
    /// Creates a verdict with this reason, which no rule names and no guard asks about each time.
    pub fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            reason: reason.into(),
            names_place: false,
            asks_each_time: false,
            guarded: false,
        }
    }
}

/// The verdict on one effect, and what decided it.
#[derive(Debug, Clone)]
pub(crate) struct EffectRuling<'a> {
    pub(crate) verdict: Verdict,
    pub(crate) source: VerdictSource<'a>,
    /// Whether the rule that decided only may turn out to match: `[ -f $f ]` runs a command if `$f` is several words.
    could_match: bool,
    /// The guards that ask about it, whatever decided.
    guards: Vec<Cause>,
}

impl<'a> EffectRuling<'a> {
    fn by(verdict: Verdict, source: VerdictSource<'a>) -> Self {
        Self {
            verdict,
            source,
            could_match: false,
            guards: Vec::new(),
        }
    }

    /// Adds what asks about the effect to the causes of its call: all guards and budgets, and the first rules.
    fn add_causes(&self, causes: &mut Vec<Cause>, profile: Profile) {
        if self.verdict != Verdict::Ask {
            return;
        }
        let named = match &self.source {
            VerdictSource::Profile => Some(Cause::new(CauseKind::Profile, profile.as_str())),
            VerdictSource::Rule(rule) => Some(Cause::new(CauseKind::Rule, clip(&rule.text))),
            VerdictSource::Secret(files, _) => Some(Cause::new(CauseKind::Secret, files.as_rule())),
            // It is among the guards.
            VerdictSource::Guard(..) => None,
        };
        for cause in named.into_iter().chain(self.guards.iter().cloned()) {
            let fits = cause.needs_person() || causes.len() < MAX_CAUSES;
            if fits && !causes.contains(&cause) {
                causes.push(cause);
            }
        }
    }
}

/// How much a ruling on an effect says about its call: of several, the first that says most gives the reason. Fields are compared in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    verdict: Verdict,
    /// Whether more than the profile decided.
    named: bool,
    risk: Risk,
}

impl Weight {
    fn of(ruling: &EffectRuling<'_>, risk: Risk) -> Self {
        Self {
            verdict: ruling.verdict,
            named: !matches!(ruling.source, VerdictSource::Profile),
            risk,
        }
    }
}

impl EffectRuling<'_> {
    /// Returns the rule as written, `guard NAME`, `profile NAME`, or the setting for secret files.
    pub(crate) fn rule(&self, profile: Profile) -> Label {
        match &self.source {
            VerdictSource::Profile => profile.as_rule().into(),
            VerdictSource::Rule(rule) => Label::Shared(rule.text.clone()),
            VerdictSource::Secret(files, _) => files.as_rule().into(),
            VerdictSource::Guard(name, _) => format!("guard {name}").into(),
        }
    }

    fn is_guarded(&self) -> bool {
        let by_effect = |cause: &Cause| cause.kind == CauseKind::Guard && !cause.each_time;
        let secret = matches!(self.source, VerdictSource::Secret(..));
        self.verdict != Verdict::Allow && (secret || self.guards.iter().any(by_effect))
    }

    /// Returns the layer that the verdict comes from.
    pub(crate) fn layer(&self) -> Label {
        match &self.source {
            VerdictSource::Profile => "profile".into(),
            VerdictSource::Rule(rule) => Label::Shared(rule.layer.clone()),
            VerdictSource::Secret(..) => SECRETS.into(),
            VerdictSource::Guard(..) => "guard".into(),
        }
    }
}

/// Returns the effect that every call has. It carries the spec's risk unless a stated effect has at least that risk: then what the
/// tool says it will do is judged there.
pub(crate) fn own_permission(call: &JudgedCall<'_>) -> Permission {
    let stated = call.permissions.iter().map(|p| p.risk).max();
    let carried = stated.is_some_and(|risk| risk >= call.spec.risk);
    Permission {
        effect: Effect::Call,
        risk: if carried { Risk::Safe } else { call.spec.risk },
    }
}

impl Policy {
    /// Judges a call: the call itself and each effect that it states. The strictest verdict counts.
    pub fn judge(&self, call: &JudgedCall<'_>) -> Ruling {
        let _judgement = remember();
        let own = own_permission(call);
        let naming = self.rules.naming(call.spec);
        let (mut decisive, mut top) = (&own, self.judge_effect(call, &naming, &own));
        let mut causes = Vec::new();
        top.add_causes(&mut causes, self.profile);
        let mut risk = call.spec.risk;
        let mut weight = Weight::of(&top, own.risk);
        for permission in call.permissions {
            let removes = is_critical_removal(call, permission, &self.places);
            let of_effect = if removes {
                Risk::Critical
            } else {
                permission.risk
            };
            risk = risk.max(of_effect);
            let judged = self.judge_effect(call, &naming, permission);
            judged.add_causes(&mut causes, self.profile);
            let of_judged = Weight::of(&judged, of_effect);
            if of_judged > weight {
                (decisive, top, weight) = (permission, judged, of_judged);
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
                VerdictSource::Secret(_, secret) => self.reason_of_secrets(call, secret),
                _ => self.reason(call, decisive, &top),
            }),
            advice: label(&|| self.advice_for(call, decisive, &top)),
            operator: label(&|| self.what_would_allow(call, &top)),
            causes: match top.verdict {
                Verdict::Ask => causes,
                Verdict::Allow | Verdict::Deny => Vec::new(),
            },
        }
    }

    /// Returns the verdict on a call that is not made yet: of this tool, with these arguments and effects, in a run with this history.
    pub fn verdict(
        &self,
        spec: &ToolSpec,
        arguments: &str,
        wanted: &[Permission],
        run: &RunHistory,
    ) -> Verdict {
        self.judge(&JudgedCall::new(spec, arguments, wanted, run))
            .verdict
    }

    /// Returns the verdict on each permission on its own, in order.
    pub fn verdicts(&self, call: &JudgedCall<'_>) -> Vec<Verdict> {
        let _judgement = remember();
        let naming = self.rules.naming(call.spec);
        let each = call.permissions.iter();
        each.map(|one| self.judge_effect(call, &naming, one).verdict)
            .collect()
    }

    /// Returns the verdict on each permission on its own, in order, with its reason.
    pub fn effect_verdicts(&self, call: &JudgedCall<'_>) -> Vec<EffectVerdict> {
        let _judgement = remember();
        let naming = self.rules.naming(call.spec);
        let judge = |permission| {
            let judged = self.judge_effect(call, &naming, permission);
            let verdict = judged.verdict;
            let reason = match verdict {
                Verdict::Allow => String::new(),
                Verdict::Ask | Verdict::Deny => self.reason(call, permission, &judged).to_string(),
            };
            let names_place =
                matches!(judged.source, VerdictSource::Rule(rule) if rule.names_place());
            EffectVerdict {
                verdict,
                reason,
                names_place,
                asks_each_time: judged.guards.iter().any(|guard| guard.each_time),
                guarded: judged.is_guarded(),
            }
        };
        call.permissions.iter().map(judge).collect()
    }

    /// Returns the strictest of what guards require of an effect because of what the run has done, whatever else allows it.
    pub fn required_by_run(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> MinimumVerdict {
        let guards = self.guards.iter();
        let guards = guards.filter(|one| one.depends_on_run() && one.concerns(&permission.effect));
        let floors = guards.map(|guard| floor(&**guard, call, permission));
        floors
            .max_by_key(MinimumVerdict::verdict)
            .unwrap_or(MinimumVerdict::NONE)
    }

    /// Returns the verdict on one effect, and what decided it.
    pub(crate) fn judge_effect(
        &self,
        call: &JudgedCall<'_>,
        naming: &ToolRuleIndex<'_>,
        permission: &Permission,
    ) -> EffectRuling<'_> {
        let mut judged = self
            .judge_by_rules(call, naming, permission)
            .unwrap_or_else(|| {
                EffectRuling::by(
                    self.judge_by_profile(call, permission),
                    VerdictSource::Profile,
                )
            });
        let lifted = self.profile == Profile::ReadOnly && permission.risk > Risk::Safe;
        if lifted && judged.verdict < Verdict::Deny {
            judged = EffectRuling::by(Verdict::Deny, VerdictSource::Profile);
        }
        judged = self.with_secret(judged, call, naming, permission);
        for guard in &*self.guards {
            if !guard.concerns(&permission.effect) {
                continue;
            }
            if matches!(judged.source, VerdictSource::Rule(rule) if rule.names_place())
                && guard.yields_to_exact_host(&permission.effect)
            {
                continue;
            }
            // Where both ask or both deny, the guard is named: a different profile would not lift the verdict.
            let by_profile = matches!(
                judged.source,
                VerdictSource::Profile | VerdictSource::Secret(..)
            );
            if judged.verdict == Verdict::Deny && !by_profile {
                break;
            }
            let floor = floor(&**guard, call, permission);
            if floor.verdict() == Verdict::Allow {
                continue;
            }
            judged.guards.push(cause_of(&**guard));
            let as_high = by_profile && floor.verdict() == judged.verdict;
            if floor.verdict() > judged.verdict || as_high {
                judged.verdict = floor.verdict();
                judged.source = VerdictSource::Guard(guard.name(), floor);
            }
        }
        judged
    }

    /// Raises the verdict if the effect touches a secret that no rule and no approval opens.
    fn with_secret<'a>(
        &self,
        judged: EffectRuling<'a>,
        call: &JudgedCall<'_>,
        naming: &ToolRuleIndex<'_>,
        permission: &Permission,
    ) -> EffectRuling<'a> {
        let Some(secret) = self.closed_secret(call, naming, permission) else {
            return judged;
        };
        let verdict = secret.verdict;
        // Where both ask, the secret is named: a rule that allows the path among others would not lift the verdict.
        let as_high = matches!(judged.source, VerdictSource::Profile) && judged.verdict == verdict;
        if judged.verdict < verdict || as_high {
            return EffectRuling::by(verdict, VerdictSource::Secret(self.secret_files(), secret));
        }
        judged
    }

    fn judge_by_profile(&self, call: &JudgedCall<'_>, permission: &Permission) -> Verdict {
        let on_copy = matches!(permission.effect, Effect::Run { on_copy: true, .. });
        match (self.profile, self.commands, permission.risk) {
            // The changes of the command need approval instead.
            (Profile::Workspace, CommandPolicy::Copy, Risk::High) if on_copy => Verdict::Allow,
            _ => judge_by_profile(self.profile, call, permission),
        }
    }

    fn judge_by_rules(
        &self,
        call: &JudgedCall<'_>,
        naming: &ToolRuleIndex<'_>,
        permission: &Permission,
    ) -> Option<EffectRuling<'_>> {
        if !self.rules.may_apply(naming, &permission.effect) {
            return None;
        }
        let subject = Subject::new(call, permission, &self.places);
        let (mut rule, verdict) = self.rules.decide(naming, &subject, &|_| true)?;
        let is_connection = matches!(permission.effect, Effect::Connect { .. });
        // The rule that names a private place decides before a wider one, which does not open it.
        if is_connection
            && verdict == Verdict::Allow
            && let Some((place, Verdict::Allow)) =
                self.rules.decide(naming, &subject, &Rule::names_place)
        {
            rule = place;
        }
        Some(EffectRuling {
            could_match: verdict == Verdict::Ask && !subject.covered_by(rule, ClaimSide::Path),
            ..EffectRuling::by(verdict, VerdictSource::Rule(rule))
        })
    }

    fn reason(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
        judged: &EffectRuling<'_>,
    ) -> Label {
        let effect = &permission.effect;
        match &judged.source {
            VerdictSource::Secret(_, secret) => secret.reason(call.spec, 0),
            VerdictSource::Guard(_, floor) if !floor.reason().is_empty() => floor.reason(),
            VerdictSource::Guard(name, _) => {
                format!("the guard {name} applies to {}", phrase(call, effect)).into()
            }
            VerdictSource::Rule(Rule {
                reason: Some(reason),
                ..
            }) => Label::Shared(reason.clone()),
            VerdictSource::Rule(rule) => {
                let (list, text) = (rule.list, clip(&rule.text));
                let what = phrase(call, effect) + &by_link(effect);
                let (verb, why) = if judged.could_match {
                    ("could match", ": not all of it is known before it runs")
                } else {
                    ("matches", "")
                };
                match &*rule.layer {
                    USER_LAYER => format!("Your {list} rule {text} {verb} {what}{why}").into(),
                    layer => format!("The {list} rule {text} of {layer} {verb} {what}{why}").into(),
                }
            }
            VerdictSource::Profile => {
                let says = match judged.verdict {
                    Verdict::Deny => format!("denies {}", phrase(call, effect)),
                    _ => format!("requires approval {}", aim(call, effect)),
                };
                let (profile, risk) = (self.profile, permission.risk);
                format!("Profile `{profile}` {says} ({risk} risk)").into()
            }
        }
    }

    /// Returns what the caller can do instead.
    fn advice_for(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
        judged: &EffectRuling<'_>,
    ) -> Label {
        match &judged.source {
            VerdictSource::Guard(_, floor) if !floor.advice().is_empty() => floor.advice(),
            VerdictSource::Secret(..) => SecretPath::advice(),
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

/// Returns a guard as the cause of a question.
fn cause_of(guard: &dyn Guard) -> Cause {
    let kind = match guard.name() {
        EffectBudgets::NAME => CauseKind::Budget,
        _ => CauseKind::Guard,
    };
    Cause::new(kind, guard.name()).each_time(guard.depends_on_run())
}

/// Returns a guard's minimum verdict; a guard that fails denies.
pub(crate) fn floor(
    guard: &dyn Guard,
    call: &JudgedCall<'_>,
    permission: &Permission,
) -> MinimumVerdict {
    guard.floor(call, permission).unwrap_or_else(|problem| {
        MinimumVerdict::deny(format!("the guard {} failed: {problem}", guard.name()))
    })
}

/// Returns the verdict where no rule matches.
pub(crate) fn judge_by_profile(
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
        | Effect::Sign { .. }
        | Effect::Remember { .. }
        | Effect::Question => false,
    }
}
