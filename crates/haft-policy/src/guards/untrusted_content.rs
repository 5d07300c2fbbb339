//! The guard against exfiltration: sending data out needs approval once a run has read untrusted content.

use crate::destination::of_effect;
use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use haft_types::permission::{Effect, Permission, Verdict};

/// Asks for approval of, or denies, calls that could carry data out of the workspace and the jail after the run has read untrusted content,
/// even where a rule allows them (`policy.untrusted_content`). To the place that it came from, a call may return that carries nothing new
/// there: it follows a link that stood in what was read, or only looks something up.
#[derive(Debug, Clone, Copy)]
pub struct UntrustedContent {
    verdict: Verdict,
    commands_reach_out: bool,
}

impl UntrustedContent {
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

impl Guard for UntrustedContent {
    fn name(&self) -> &'static str {
        "untrusted-content"
    }

    fn depends_on_run(&self) -> bool {
        true
    }

    fn safeguards(&self) -> Vec<String> {
        let asks = format!("the guard {}", self.name());
        match self.verdict {
            Verdict::Allow => Vec::new(),
            Verdict::Ask => vec![asks],
            Verdict::Deny => vec![
                asks,
                "denying what may follow from untrusted content".to_owned(),
            ],
        }
    }

    fn concerns(&self, effect: &Effect) -> bool {
        !matches!(
            effect,
            Effect::Read(_) | Effect::Apply { .. } | Effect::Remember { .. } | Effect::Question
        )
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        if call.run.untrusted.is_empty() {
            return Ok(MinimumVerdict::NONE);
        }
        let Some(destination) = of_effect(call, permission, self.commands_reach_out) else {
            return Ok(MinimumVerdict::NONE);
        };
        if destination.carries_nothing {
            return Ok(MinimumVerdict::NONE);
        }
        let (to, may_return) = (destination.to, destination.is_free);
        let others = call.run.untrusted.iter();
        let mut others = others.filter(|source| !(may_return && source.is_of(&to)));
        let Some(first) = others.next() else {
            return Ok(MinimumVerdict::NONE);
        };
        let all_there = call.run.untrusted.iter().all(|source| source.is_of(&to));
        let more = match others.count() {
            0 => String::new(),
            1 => " and one other source".to_owned(),
            more => format!(" and {more} other sources"),
        };
        let reason = format!(
            "the run has read {}{more}, and whoever wrote that may have caused this call{}",
            first.label(),
            if all_there {
                ", which could carry something new back there"
            } else {
                ""
            }
        );
        let floor = match self.verdict {
            Verdict::Allow => return Ok(MinimumVerdict::NONE),
            Verdict::Ask => MinimumVerdict::ask(reason),
            Verdict::Deny => MinimumVerdict::deny(reason)
                .advise("continue without it, or ask the user to do it in a separate run"),
        };
        Ok(floor.for_operator(
            "policy.untrusted_content sets whether such calls are asked about, denied or left to the rules",
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

    #[test]
    fn connection_of_a_command_when_it_only_fetches_carries_nothing_anywhere() {
        let read = RunHistory {
            untrusted: [UntrustedSource::recorded("host evil.example: a page")].into(),
            private: true,
            ..RunHistory::none()
        };
        let spec = ToolSpec {
            class: Some(ToolClass::Network),
            ..ToolSpec::new(
                ToolName::new("connect").unwrap(),
                "Connect.",
                json!({"type": "object"}),
            )
        };
        let (ask, allow) = (Verdict::Ask, Verdict::Allow);
        for (host, arguments, expect) in [
            ("forge.example", r#"{"carries":"nothing"}"#, allow),
            ("forge.example", r#"{"carries":"nothing_back"}"#, ask),
            ("evil.example", r#"{"carries":"nothing_back"}"#, allow),
            ("evil.example", r#"{"carries":"anything"}"#, ask),
            ("evil.example", r#"{"carries":"what"}"#, ask),
            ("evil.example", "{}", ask),
        ] {
            let permission = Permission {
                effect: Effect::connect(format!("{host}:443"), host),
                risk: Risk::High,
            };
            let permissions = [permission.clone()];
            let call = JudgedCall::new(&spec, arguments, &permissions, &read);
            let floor = UntrustedContent::new(Verdict::Ask).floor(&call, &permission);
            let found = floor.map(|floor| floor.verdict());
            assert_eq!(found, Ok(expect), "{host} {arguments}");
        }
    }

    #[test]
    fn a_file_outside_the_workspace_is_a_way_out() {
        let name = ToolName::new("edit").unwrap();
        let spec = ToolSpec::new(name, "Edit a file.", json!({"type": "object"}));
        let read = RunHistory {
            untrusted: [UntrustedSource::recorded("host evil.example: a page")].into(),
            ..RunHistory::none()
        };
        let linked = PathClaim {
            path: "link".to_owned(),
            target: Some("/home/ann/.profile".to_owned()),
        };
        let rows = [
            (PathClaim::plain("src/a"), Verdict::Allow),
            (PathClaim::plain("/etc/a"), Verdict::Ask),
            (PathClaim::plain("../a"), Verdict::Ask),
            (linked, Verdict::Ask),
        ];
        for (path, verdict) in rows {
            let permission = Permission::write(path);
            let permissions = [permission.clone()];
            let call = JudgedCall::new(&spec, "{}", &permissions, &read);
            let floor = UntrustedContent::new(Verdict::Ask).floor(&call, &permission);
            assert_eq!(
                floor.map(|floor| floor.verdict()),
                Ok(verdict),
                "{permission:?}"
            );
        }
    }
}
