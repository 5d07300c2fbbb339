//! The guard for the Rule of Two: a run that holds two of the three needs approval for the third.

use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use crate::rule_of_two::RuleOfTwoState;
use haft_types::permission::{Effect, Permission, Verdict};

/// Asks for approval of, or denies, calls by which a run would have read untrusted content, seen private data and been able to send, in any
/// order (`policy.rule_of_two`).
#[derive(Debug, Clone, Copy)]
pub struct RuleOfTwo {
    verdict: Verdict,
    commands_reach_out: bool,
}

impl RuleOfTwo {
    /// Creates a guard with this verdict.
    pub fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            commands_reach_out: false,
        }
    }

    /// Sets whether commands in the jail share the machine's network, so that their connections are not judged separately.
    pub fn commands_reach_out(mut self, they_do: bool) -> Self {
        self.commands_reach_out = they_do;
        self
    }
}

impl Guard for RuleOfTwo {
    fn name(&self) -> &'static str {
        "rule-of-two"
    }

    fn depends_on_run(&self) -> bool {
        true
    }

    fn safeguards(&self) -> Vec<String> {
        let asks = format!("the guard {}", self.name());
        match self.verdict {
            Verdict::Allow => Vec::new(),
            Verdict::Ask => vec![asks],
            Verdict::Deny => vec![asks, "denying the third of the Rule of Two".to_owned()],
        }
    }

    fn concerns(&self, effect: &Effect) -> bool {
        !matches!(
            effect,
            Effect::Apply { .. } | Effect::Remember { .. } | Effect::Question
        )
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let whole = RuleOfTwoState::of(call, self.commands_reach_out);
        let Some(why) = whole.sentence() else {
            return Ok(MinimumVerdict::NONE);
        };
        // The effect by itself has to add something: a write beside a connection is not the reason.
        let alone = [permission.clone()];
        let alone = JudgedCall::new(call.spec, call.arguments, &alone, call.run);
        let adds = RuleOfTwoState::of(&alone, self.commands_reach_out).adds;
        if adds.is_none() {
            return Ok(MinimumVerdict::NONE);
        }
        let reason = format!("the Rule of Two: {why}");
        let floor = match self.verdict {
            Verdict::Allow => return Ok(MinimumVerdict::NONE),
            Verdict::Ask => MinimumVerdict::ask(reason),
            Verdict::Deny => MinimumVerdict::deny(reason)
                .advise("continue without it, or ask the user to do it in a separate run"),
        };
        Ok(floor.for_operator(
            "policy.rule_of_two sets whether the third is asked about, denied or left to the rules",
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run_history::RunHistory;
    use crate::untrusted::UntrustedSource;
    use haft_types::permission::PathClaim;
    use haft_types::spec::{Risk, ToolClass, ToolName, ToolSpec};

    fn verdict(read: bool, private: bool, sent: bool, permission: &Permission) -> Verdict {
        let untrusted = read.then(|| UntrustedSource::recorded("host evil.example: a page"));
        let run = RunHistory {
            untrusted: untrusted.into_iter().collect(),
            private,
            sent,
            ..RunHistory::none()
        };
        let spec = ToolSpec {
            class: matches!(permission.effect, Effect::Connect { .. })
                .then_some(ToolClass::WebFetch),
            ..ToolSpec::new(
                ToolName::new("x").unwrap(),
                "Do it.",
                json!({"type": "object"}),
            )
        };
        let permissions = [permission.clone()];
        let call = JudgedCall::new(&spec, "{}", &permissions, &run);
        let floor = RuleOfTwo::new(Verdict::Ask).floor(&call, permission);
        floor.unwrap().verdict()
    }

    #[test]
    fn third_of_the_three_when_the_run_holds_two_is_asked_about_in_any_order() {
        let file = Permission::read(PathClaim::plain("notes.md"));
        let page = Permission {
            effect: Effect::connect("https://a.example/x", "a.example"),
            risk: Risk::High,
        };
        let unjailed = Permission {
            effect: Effect::Run {
                command: "curl x".to_owned(),
                argv: None,
                jailed: false,
                on_copy: false,
            },
            risk: Risk::High,
        };
        let write = Permission::write(PathClaim::plain("src/a"));
        let (ask, allow) = (Verdict::Ask, Verdict::Allow);
        for (held, permission, expect) in [
            ((false, false, false), &file, allow),
            ((false, false, false), &page, allow),
            ((true, false, false), &page, allow),
            ((true, false, false), &file, allow),
            ((true, true, false), &file, allow),
            ((true, true, false), &page, ask),
            // It reads a page, and its address may hold what the run has seen.
            ((false, true, false), &page, ask),
            ((false, true, true), &page, ask),
            ((true, false, true), &file, ask),
            ((true, true, true), &file, allow),
            ((true, true, true), &page, ask),
            ((true, false, false), &unjailed, ask),
            ((false, false, false), &unjailed, allow),
            ((true, true, true), &write, allow),
            ((true, true, false), &write, allow),
        ] {
            let (read, private, sent) = held;
            let found = verdict(read, private, sent, permission);
            assert_eq!(found, expect, "{held:?}: {permission:?}");
        }
    }
}
