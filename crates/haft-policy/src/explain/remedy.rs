//! What would let a call run, for the operator: each change of the settings is tried on the call, and one that leaves the verdict is not named.

use crate::Policy;
use crate::commands::phrase::clip;
use crate::judge::{EffectRuling, VerdictSource, own_permission};
use crate::judged_call::JudgedCall;
use crate::profile::Profile;
use crate::rules::RuleSet;
use crate::rules::RuleText;
use crate::rules::rule::{Rule, RuleList};
use crate::ruling::Label;
use crate::secret_files::{SecretFiles, SecretPath};
use haft_types::permission::Verdict;

/// What helps where no rule and no profile does.
const EACH_TIME: &str =
    "no rule can allow it: it needs approval each time, so make it where a user can approve it";
/// The end of a call that nothing permits.
const NOTHING: &str = "no rule can override this";

/// Maximum number of rules that are named together.
const MAX_RULES: usize = 3;

/// A change of the settings.
#[derive(Debug, Clone, Copy, Default)]
struct SettingsChange<'a> {
    /// Another profile.
    profile: Option<Profile>,
    /// More allow rules.
    allow: &'a [String],
    /// Another treatment of secret files.
    secrets: Option<SecretFiles>,
}

impl Policy {
    /// Returns what would let the call run, or at least be asked about: only the operator can change that.
    pub(crate) fn what_would_allow(
        &self,
        call: &JudgedCall<'_>,
        judged: &EffectRuling<'_>,
    ) -> Label {
        match &judged.source {
            VerdictSource::Secret(_, secret) => self.remedy_for_secret(call, judged, secret),
            VerdictSource::Guard(_, floor) if floor.proposed().is_some() => {
                let rules: Vec<String> = floor.proposed().into_iter().map(Into::into).collect();
                let change = SettingsChange {
                    allow: &rules,
                    ..SettingsChange::default()
                };
                if self.verdict_after(call, change) == Verdict::Allow {
                    format!("allow it with {}", with_rules(&rules)).into()
                } else {
                    otherwise(judged)
                }
            }
            VerdictSource::Guard(_, floor) if !floor.operator().is_empty() => floor.operator(),
            VerdictSource::Guard(..) => otherwise(judged),
            VerdictSource::Rule(rule) => self.remedy_for_rule(call, judged, rule),
            VerdictSource::Profile => self.remedy_for_profile(call, judged),
        }
    }

    /// Returns the verdict on the call after a change; a deny if the change is not possible.
    fn verdict_after(&self, call: &JudgedCall<'_>, change: SettingsChange<'_>) -> Verdict {
        let rules = change.allow.iter().map(RuleText::new);
        let changed = if change.allow.is_empty() {
            Ok(self.clone())
        } else {
            self.allowing(rules)
        };
        let Ok(mut changed) = changed else {
            return Verdict::Deny;
        };
        changed.profile = change.profile.unwrap_or(changed.profile);
        changed.secrets.files = change.secrets.unwrap_or(changed.secrets.files);
        changed.strictest(call)
    }

    /// Returns the verdict on a call, without words.
    pub(crate) fn strictest(&self, call: &JudgedCall<'_>) -> Verdict {
        let naming = self.rules.naming(call.spec);
        let own = own_permission(call);
        let all = std::iter::once(&own).chain(call.permissions);
        let verdicts = all.map(|permission| self.judge_effect(call, &naming, permission).verdict);
        verdicts.max().unwrap_or(Verdict::Allow)
    }

    fn remedy_for_secret(
        &self,
        call: &JudgedCall<'_>,
        judged: &EffectRuling<'_>,
        secret: &SecretPath,
    ) -> Label {
        if secret.verdict == Verdict::Deny {
            let change = SettingsChange {
                secrets: Some(SecretFiles::Ask),
                ..SettingsChange::default()
            };
            return if self.verdict_after(call, change) < Verdict::Deny {
                "set policy.secret_files = \"ask\" to be asked about it".into()
            } else {
                otherwise(judged)
            };
        }
        let rules = [secret.rule()];
        let change = SettingsChange {
            allow: &rules,
            ..SettingsChange::default()
        };
        let name = "policy.secret_names = [\"!NAME\"] removes a name";
        if self.verdict_after(call, change) == Verdict::Allow {
            format!(
                "approve it, or allow it with {}; {name}",
                with_rules(&rules)
            )
            .into()
        } else {
            format!("approve it each time; {name}").into()
        }
    }

    /// Names the rule that stops the call, and those that would stop it next.
    fn remedy_for_rule(
        &self,
        call: &JudgedCall<'_>,
        judged: &EffectRuling<'_>,
        first: &Rule,
    ) -> Label {
        let mut written = RuleSet::clone(&self.written);
        let mut named = Vec::new();
        let (mut list, mut text, mut layer) =
            (first.list, first.text.to_string(), first.layer.to_string());
        while named.len() < MAX_RULES {
            named.push(format!("the {list} rule {} of {layer}", clip(&text)));
            let rules = match list {
                RuleList::Deny => &mut written.deny,
                RuleList::Ask => &mut written.ask,
                RuleList::Allow => &mut written.allow,
            };
            rules.retain(|rule| rule.rule != text || rule.layer != layer);
            let Ok(without) = self.clone().with_rules(written.clone()) else {
                break;
            };
            let Some(next) = without
                .decisive(call)
                .filter(|next| next.verdict >= judged.verdict)
            else {
                break;
            };
            let VerdictSource::Rule(rule) = next.source else {
                // Something else than a rule says the same.
                return match next.verdict {
                    Verdict::Deny if matches!(next.source, VerdictSource::Guard(..)) => {
                        NOTHING.into()
                    }
                    _ => remove(&named),
                };
            };
            let next = (rule.list, rule.text.to_string(), rule.layer.to_string());
            if next == (list, text.clone(), layer.clone()) {
                break;
            }
            (list, text, layer) = next;
        }
        remove(&named)
    }

    /// Returns the strictest verdict on an effect of the call, with its source.
    fn decisive(&self, call: &JudgedCall<'_>) -> Option<EffectRuling<'_>> {
        let naming = self.rules.naming(call.spec);
        let own = own_permission(call);
        let all = std::iter::once(&own).chain(call.permissions);
        let judged = all.map(|permission| self.judge_effect(call, &naming, permission));
        judged.max_by_key(|judged| judged.verdict)
    }

    /// Returns the rules or the profile that would allow what the current profile does not.
    fn remedy_for_profile(&self, call: &JudgedCall<'_>, judged: &EffectRuling<'_>) -> Label {
        let rules = self.suggest_for(Profile::Workspace, call);
        let after = |profile: Option<Profile>, allow: &[String]| {
            let change = SettingsChange {
                profile,
                allow,
                secrets: None,
            };
            self.verdict_after(call, change)
        };
        let allows = |profile, allow: &[String]| after(profile, allow) == Verdict::Allow;
        let trusted = self.profile != Profile::Trusted && allows(Some(Profile::Trusted), &[]);
        if self.profile == Profile::ReadOnly {
            let workspace = Some(Profile::Workspace);
            return if trusted {
                "allow it with --profile trusted".into()
            } else if !rules.is_empty() && allows(workspace, &rules) {
                format!(
                    "allow it with --profile workspace and {}",
                    with_rules(&rules)
                )
                .into()
            } else if after(workspace, &[]) < Verdict::Deny {
                "use --profile workspace to be asked about it".into()
            } else {
                NOTHING.into()
            };
        }
        let by_rules = !rules.is_empty() && allows(None, &rules);
        match (by_rules, trusted) {
            (true, true) => {
                format!("allow it with {} or --profile trusted", with_rules(&rules)).into()
            }
            (true, false) => format!("allow it with {}", with_rules(&rules)).into(),
            (false, true) => "allow it with --profile trusted".into(),
            (false, false) => otherwise(judged),
        }
    }
}

/// Returns what is left where no change of the settings helps.
fn otherwise(judged: &EffectRuling<'_>) -> Label {
    match judged.verdict {
        Verdict::Deny => NOTHING.into(),
        Verdict::Ask | Verdict::Allow => EACH_TIME.into(),
    }
}

fn remove(rules: &[String]) -> Label {
    format!("remove or narrow {}", rules.join(" and ")).into()
}

fn with_rules(rules: &[String]) -> String {
    let words = if rules.len() == 1 {
        "the rule"
    } else {
        "the rules"
    };
    let rules: Vec<String> = rules.iter().map(|rule| clip(rule)).collect();
    format!("{words} {}", rules.join(" and "))
}
