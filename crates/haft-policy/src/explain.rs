//! What a policy reports about itself: why it judges a call as it does, what it contains, whether its rules match their examples.

pub(crate) mod dead;
pub(crate) mod instead;
pub(crate) mod proposal;
pub(crate) mod remedy;
pub(crate) mod suggest;

use std::sync::Arc;

use haft_command::meaning;
use haft_shell::inner_command;
use serde::{Serialize, Serializer};

use crate::Policy;
use crate::budget::BUDGET_RULE;
use crate::commands::remembered::parse_line;
use crate::guards::MinimumVerdict;
use crate::judge::{SECRETS, floor, judge_by_profile, own_permission};
use crate::judged_call::JudgedCall;
use crate::places::PolicyContext;
use crate::profile::Profile;
use crate::rules::names::UnknownName;
use crate::rules::rule::RuleList;
use crate::rules::subject::Subject;
use crate::rules::{RuleFinding, RuleSet, RulesError, ToolRuleIndex, finding, read};
use crate::ruling::Label;
use crate::secret_files::SecretFiles;
use haft_types::permission::{Effect, Permission, Verdict};

/// Explains why a call is allowed, needs approval or is denied: `haft policy explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The name of the tool.
    pub tool: String,
    /// The call's verdict.
    pub verdict: Verdict,
    /// The call itself and each of its effects.
    pub parts: Vec<EffectExplanation>,
    /// What each layer of settings, each guard and the profile say on their own.
    pub layers: Vec<LayerVerdict>,
    /// `Some(false)` for a tool that nothing enables; set by the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// One effect of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectExplanation {
    /// `call`, `read`, `write`, `run`, `connect`, …
    pub kind: String,
    /// The object of the effect; the tool's name for the call itself.
    pub value: String,
    /// The verdict on this effect.
    pub verdict: Verdict,
    /// The rule, guard, profile or setting for secret files that decided.
    pub rule: Label,
    /// The layer of that rule.
    pub layer: Label,
    /// What a command does, as far as its words show; `None` for other effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub does: Option<String>,
}

/// What one layer says about the whole call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerVerdict {
    /// A layer of settings, `secrets`, `guard` or `profile`.
    pub layer: Label,
    /// The strictest verdict of this layer; serialized as `none` where it has none.
    #[serde(serialize_with = "verdict_or_none")]
    pub verdict: Option<Verdict>,
    /// The rule that gives this verdict; for another layer `guard NAME`, `profile NAME` or the setting for secret
    /// files.
    pub rule: Label,
    /// The reason, or how much of the budgets is used; empty where there is nothing to say.
    pub reason: Label,
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a field over by reference"
)]
fn verdict_or_none<S: Serializer>(
    verdict: &Option<Verdict>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.map_or("none", Verdict::as_str))
}

/// The outcome of `haft policy check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Whether all rules and examples are right.
    pub ok: bool,
    /// All wrong rules and examples.
    pub failures: Vec<RuleFailure>,
}

/// One wrong rule or example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleFailure {
    /// The rule as written.
    pub rule: String,
    /// The example; empty where the rule itself is wrong.
    pub example: String,
    /// What was expected: `match` or `no_match` for an example, a form that works for a rule.
    pub expected: String,
    /// What was found instead.
    pub got: String,
}

/// The effective policy: `haft policy show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyView {
    /// The profile, which decides where no rule matches.
    pub profile: Profile,
    /// Every rule, in the order they are checked.
    pub rules: Vec<RuleView>,
    /// The guards, which override the rules.
    pub guards: Vec<GuardView>,
    /// How calls on secret files are treated.
    pub secret_files: SecretFiles,
    /// The patterns for names of secret files; the last one that matches decides.
    pub secret_names: Vec<String>,
    /// Rules that have no effect.
    pub findings: Vec<RuleFinding>,
}

/// A rule as displayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleView {
    /// Its list.
    pub list: RuleList,
    /// The rule as written.
    pub rule: String,
    /// The layer that it comes from.
    pub layer: String,
    /// The reason given to callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A guard as displayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardView {
    /// Its name, as rulings show it: `guard NAME`.
    pub name: String,
}

/// Returns what a command does, from the same meaning that it is judged by. `None` for other effects, and for a line that is not one
/// command.
fn what_it_does(effect: &Effect) -> Option<String> {
    let Effect::Run { command, argv, .. } = effect else {
        return None;
    };
    if let Some(words) = argv {
        return Some(meaning(inner_command(words)).summary());
    }
    let read = parse_line(command).ok()?;
    match &read.commands[..] {
        [part] => Some(meaning(inner_command(&part.words)).summary()),
        _ => None,
    }
}

impl Policy {
    /// Explains why a call is judged as it is, with every part and every layer.
    pub fn explain(&self, call: &JudgedCall<'_>) -> Explanation {
        let own = own_permission(call);
        let permissions: Vec<&Permission> = std::iter::once(&own).chain(call.permissions).collect();
        let naming = self.rules.naming(call.spec);
        let parts: Vec<EffectExplanation> = permissions
            .iter()
            .map(|permission| {
                let judged = self.judge_effect(call, &naming, permission);
                let value = match permission.effect.value() {
                    "" => call.spec.name.as_str(),
                    value => value,
                };
                EffectExplanation {
                    kind: permission.effect.kind().to_owned(),
                    value: value.to_owned(),
                    verdict: judged.verdict,
                    rule: judged.rule(self.profile),
                    layer: judged.layer(),
                    does: what_it_does(&permission.effect),
                }
            })
            .collect();
        let settings = self.rules.layers();
        let mut layers: Vec<LayerVerdict> = settings
            .iter()
            .map(|layer| self.settings_layer(layer, call, &permissions))
            .collect();
        layers.extend(self.secret_layer(call, &naming, &permissions));
        layers.extend(self.guard_layers(call, &permissions));
        layers.push(self.profile_layer(call, &permissions));
        Explanation {
            tool: call.spec.name.as_str().to_owned(),
            verdict: parts
                .iter()
                .map(|part| part.verdict)
                .max()
                .unwrap_or(Verdict::Deny),
            parts,
            layers,
            enabled: None,
        }
    }

    /// Returns what the rules of one layer alone say.
    fn settings_layer(
        &self,
        layer: &Arc<str>,
        call: &JudgedCall<'_>,
        permissions: &[&Permission],
    ) -> LayerVerdict {
        let naming = self.rules.naming(call.spec);
        let rule = permissions
            .iter()
            .filter_map(|permission| {
                let subject = Subject::new(call, permission, &self.places);
                self.rules
                    .decide(&naming, &subject, &|rule| rule.layer == *layer)
            })
            .min_by_key(|(_, verdict)| std::cmp::Reverse(*verdict));
        LayerVerdict {
            layer: Label::Shared(Arc::clone(layer)),
            verdict: rule.map(|(_, verdict)| verdict),
            rule: rule.map_or(Label::EMPTY, |(rule, _)| Label::Shared(rule.text.clone())),
            reason: match rule {
                Some((rule, _)) => rule.reason.clone().map_or(Label::EMPTY, Label::Shared),
                None => "no rule of this layer covers the call".into(),
            },
        }
    }

    /// Returns the layer for secrets if the call touches a secret that no rule and no approval opens.
    fn secret_layer(
        &self,
        call: &JudgedCall<'_>,
        naming: &ToolRuleIndex<'_>,
        permissions: &[&Permission],
    ) -> Option<LayerVerdict> {
        let closed = permissions
            .iter()
            .filter_map(|permission| self.closed_secret(call, naming, permission));
        let secret = closed.max_by_key(|secret| secret.verdict)?;
        Some(LayerVerdict {
            layer: SECRETS.into(),
            verdict: Some(secret.verdict),
            rule: self.secret_files().as_rule().into(),
            reason: self.reason_of_secrets(call, &secret),
        })
    }

    fn guard_layers(
        &self,
        call: &JudgedCall<'_>,
        permissions: &[&Permission],
    ) -> Vec<LayerVerdict> {
        let one = |guard: &Arc<dyn crate::Guard>| {
            let floors = permissions
                .iter()
                .map(|permission| floor(&**guard, call, permission));
            let highest = floors.max_by_key(MinimumVerdict::verdict);
            let verdict = highest.as_ref().map(MinimumVerdict::verdict);
            let rule = format!("guard {}", guard.name());
            let passing = || match &self.budgets {
                Some(budgets) if rule == BUDGET_RULE => budgets.counts(call).into(),
                _ => Label::EMPTY,
            };
            let reason = match verdict {
                Some(Verdict::Allow) => passing(),
                _ => highest.map_or(Label::EMPTY, |floor| floor.reason()),
            };
            LayerVerdict {
                layer: "guard".into(),
                verdict,
                rule: rule.into(),
                reason,
            }
        };
        self.guards.iter().map(one).collect()
    }

    fn profile_layer(&self, call: &JudgedCall<'_>, permissions: &[&Permission]) -> LayerVerdict {
        let verdicts = permissions
            .iter()
            .map(|permission| judge_by_profile(self.profile, call, permission));
        LayerVerdict {
            layer: "profile".into(),
            verdict: verdicts.max(),
            rule: self.profile.as_rule().into(),
            reason: match self.profile {
                Profile::ReadOnly => "safe tools run; all else is denied",
                Profile::Workspace => "safe tools run, high and critical are asked about",
                Profile::Trusted => {
                    "writes in the workspace and jailed commands run; network and critical are asked about"
                }
            }
            .into(),
        }
    }

    /// Returns everything in this policy, for display.
    pub fn view(&self) -> PolicyView {
        let rules = self.rules.all().iter().map(|rule| RuleView {
            list: rule.list,
            rule: rule.text.to_string(),
            layer: rule.layer.to_string(),
            reason: rule.reason.as_ref().map(ToString::to_string),
        });
        let guards = self.guards.iter().map(|guard| GuardView {
            name: guard.name().to_owned(),
        });
        PolicyView {
            profile: self.profile,
            rules: rules.collect(),
            guards: guards.collect(),
            secret_files: self.secret_files(),
            secret_names: self.secret_names().entries().map(str::to_owned).collect(),
            findings: self.findings(),
        }
    }

    /// Runs the examples of every rule, and reports rules that can never match.
    pub fn check(&self) -> CheckReport {
        self.written.check(&self.places)
    }
}

impl RuleSet {
    /// Parses every rule and runs its examples; unlike `PolicyBuilder::build`, it continues after the first failure.
    pub fn check(&self, places: &PolicyContext) -> CheckReport {
        let failures: Vec<RuleFailure> = self
            .all()
            .flat_map(|(list, text)| match read(list, text, places) {
                Ok(rule) => finding(&rule).map(RuleFailure::from).into_iter().collect(),
                Err(wrong) => wrong.into_iter().map(RuleFailure::from).collect::<Vec<_>>(),
            })
            .collect();
        CheckReport {
            ok: failures.is_empty(),
            failures,
        }
    }
}

impl From<RulesError> for RuleFailure {
    fn from(error: RulesError) -> Self {
        match error {
            RulesError::Unreadable {
                rule,
                problem,
                form,
                ..
            } => Self {
                rule,
                example: String::new(),
                expected: form,
                got: problem,
            },
            RulesError::Example {
                rule,
                example,
                expected,
                got,
                ..
            } => Self {
                rule,
                example,
                expected: expected.to_owned(),
                got: got.to_owned(),
            },
            RulesError::Unknown(unknown) => (*unknown).into(),
            RulesError::NeverMatches(finding) => (*finding).into(),
        }
    }
}

impl From<RuleFinding> for RuleFailure {
    fn from(finding: RuleFinding) -> Self {
        Self {
            rule: finding.rule,
            example: String::new(),
            expected: finding.advice,
            got: format!("it never matches: {}", finding.problem),
        }
    }
}

impl From<UnknownName> for RuleFailure {
    fn from(unknown: UnknownName) -> Self {
        let got = unknown.to_string();
        let near = unknown.near.map(|near| format!("`{near}`"));
        Self {
            rule: unknown.rule,
            example: String::new(),
            expected: near.unwrap_or_else(|| "write a name that a tool has".to_owned()),
            got,
        }
    }
}
