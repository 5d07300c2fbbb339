//! `CurrentRules`: the policy's verdicts on what a call does beyond what it was cleared for, also after it has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{CallContext, NestedExecutor};
use crate::budget::{BudgetRequest, Reservation};
use crate::json::canonical::args_digest;
use crate::permission::{Effect, Permission, Verdict};
use crate::policy::{EffectVerdict, JudgedCall, MinimumVerdict, RunHistory};
use crate::session::Session;
use crate::spec::{Risk, ToolClass};
use crate::untrusted::{COMMAND, ConnectionContent, UntrustedSource};

/// The current policy as it judges calls of one run, for work that outlives its call. It knows what the run has done, at the moment of
/// each verdict.
#[derive(Clone)]
pub struct CurrentRules {
    host: Arc<dyn NestedExecutor>,
    session: Session,
}

impl CurrentRules {
    /// Returns the policy's verdict on each permission by itself, as if one of the host's internal tools had it; deny if there is no
    /// such tool.
    pub fn verdicts(&self, name: &str, permissions: &[Permission]) -> Vec<EffectVerdict> {
        self.verdicts_on_connections(name, permissions, ConnectionContent::Anything)
    }

    /// Returns the same for connections of a command; `carries` is what each of them can carry.
    pub fn verdicts_on_connections(
        &self,
        name: &str,
        permissions: &[Permission],
        carries: ConnectionContent,
    ) -> Vec<EffectVerdict> {
        let tools = self.host.internal_tools();
        let Some(entry) = tools.entry(name) else {
            let reason = format!("this host has no tool {name:?} of its own");
            let denied = EffectVerdict::new(Verdict::Deny, reason);
            return vec![denied; permissions.len()];
        };
        // A call without arguments leaves nothing unstated, so a rule kept for such calls covers it.
        let unstated = args_digest("{}");
        let run = self.session.history();
        let call = JudgedCall::new(entry.spec(), arguments(carries), permissions, &run)
            .with_unstated(unstated.as_str());
        self.host.policy().effect_verdicts(&call)
    }

    /// Returns true if someone can be asked about what the policy asks about, now or by the inbox.
    pub fn can_ask(&self) -> bool {
        self.host.can_get_decision(&self.session)
    }

    /// Returns the allow rules that would let one of the host's internal tools do this without asking: see [`Policy::suggest`].
    ///
    /// [`Policy::suggest`]: crate::policy::Policy::suggest
    pub fn rules_for(&self, name: &str, permissions: &[Permission]) -> Vec<String> {
        let tools = self.host.internal_tools();
        let unstated = args_digest("{}");
        let run = self.session.history();
        let suggest = |spec| {
            let call =
                JudgedCall::new(spec, "{}", permissions, &run).with_unstated(unstated.as_str());
            self.host.policy().suggest(&call)
        };
        let entry = tools.entry(name);
        entry.map_or_else(Vec::new, |entry| suggest(entry.spec()))
    }

    /// Returns the ports of hosts elsewhere that rules for the connections of commands name, except deny rules.
    pub fn named_ports(&self) -> BTreeSet<u16> {
        self.host.policy().named_ports()
    }

    /// Returns the first rule because of which a tool of this class has each of its requests at this host and port judged, if there is one.
    pub fn rule_on_requests(&self, class: ToolClass, host: &str, port: u16) -> Option<String> {
        let policy = self.host.policy();
        let rule = policy.rule_on_requests(class, host, Some(port));
        rule.map(str::to_owned)
    }

    /// Whether rules judge requests of commands at some hosts.
    pub fn judges_requests_of_commands(&self) -> bool {
        self.host.policy().judges_requests_of_commands()
    }

    /// Counts effects for the budgets that an earlier decision covers, as one of the host's internal tools had them.
    pub async fn count(&self, name: &str, permissions: &[Permission]) {
        let tools = self.host.internal_tools();
        let policy = self.host.policy();
        let (Some(entry), Some(budgets)) = (tools.entry(name), policy.budgets()) else {
            return;
        };
        let want = BudgetRequest {
            call: budgets.wanted(entry.spec(), permissions),
            run: self.session.run_uses(),
            budgets: Some(budgets),
            agreed: true,
        };
        if let Ok(counted) = Reservation::take(want).await {
            counted.spend();
        }
    }

    /// Notes that the run has connected to this host on behalf of a tool: what the host answers may be written by strangers.
    pub fn note_connected(&self, tool: &str, url: &str, host: &str) {
        let source = UntrustedSource::of_host(host, url, tool);
        self.session.note_untrusted(vec![source]);
    }

    /// Notes that a command has connected to this host where settings, not the policy, choose the hosts that commands reach. What it
    /// read may go to these hosts again, by commands, and nowhere else.
    pub fn note_command_connected(&self, host: &str) {
        self.session
            .note_untrusted(vec![UntrustedSource::of_command(host)]);
    }
}

/// Returns the arguments of an internal tool's call as far as guards look at them.
fn arguments(carries: ConnectionContent) -> &'static str {
    match carries {
        ConnectionContent::Anything => "{}",
        ConnectionContent::NothingBack => r#"{"carries":"nothing_back"}"#,
        ConnectionContent::Nothing => r#"{"carries":"nothing"}"#,
    }
}

impl std::fmt::Debug for CurrentRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentRules").finish_non_exhaustive()
    }
}

impl CallContext {
    /// Returns access to the policy that outlives the call. It holds the session.
    pub fn rules(&self) -> CurrentRules {
        CurrentRules {
            host: Arc::clone(&self.host),
            session: self.session.clone(),
        }
    }

    /// Returns the policy's verdict on each permission by itself, as if one of the host's internal tools had it; deny if there is no
    /// such tool.
    pub fn verdicts(&self, name: &str, permissions: &[Permission]) -> Vec<EffectVerdict> {
        self.rules().verdicts(name, permissions)
    }

    /// Returns whether the policy allows these permissions to this call's tool without approval.
    pub fn allows(&self, permissions: &[Permission]) -> bool {
        let run = self.session.history();
        let call = JudgedCall::new(self.entry.spec(), "{}", permissions, &run);
        self.host.policy().judge(&call).verdict == Verdict::Allow
    }

    /// Returns the verdict on getting a page beyond those that this call was cleared for, such as the target of a redirect, as the policy
    /// judges it in this run now.
    pub fn verdict_on_connection(&self, url: &str, host: &str) -> EffectVerdict {
        let wanted = Permission {
            effect: Effect::get(url, host),
            risk: Risk::High,
        };
        let arguments = serde_json::json!({ "url": url }).to_string();
        // The server itself says where to go, so the address holds nothing that it has not.
        self.session.links().note(url);
        let run = self.session.history();
        let permissions = [wanted];
        let call = JudgedCall::new(self.entry.spec(), &arguments, &permissions, &run);
        let ruling = self.host.policy().judge(&call);
        EffectVerdict {
            asks_each_time: ruling.causes.iter().any(|cause| cause.each_time),
            ..EffectVerdict::new(ruling.verdict, ruling.reason.to_string())
        }
    }

    /// Returns what guards require, because of what the run has done by now, of a connection that a command of this call makes to a host
    /// that settings let all commands reach. No rule and no profile counts, and neither does what commands read: it may go to these
    /// hosts again (see [`CurrentRules::note_command_connected`]). It is judged as that internal tool's; `carries` as in
    /// [`CurrentRules::verdicts_on_connections`].
    pub fn required_of_listed_connection(
        &self,
        name: &str,
        wanted: &Permission,
        carries: ConnectionContent,
    ) -> MinimumVerdict {
        let tools = self.host.internal_tools();
        let Some(entry) = tools.entry(name) else {
            return MinimumVerdict::deny(format!("this host has no tool {name:?} of its own"));
        };
        let run = self.session.history();
        let others = run.untrusted.iter().filter(|source| !source.is_of(COMMAND));
        let run = RunHistory {
            untrusted: others.cloned().collect(),
            // Settings allow the connection: it is not counted.
            used: None,
            ..run
        };
        let permissions = [wanted.clone()];
        let call = JudgedCall::new(entry.spec(), arguments(carries), &permissions, &run);
        self.host.policy().required_by_run(&call, wanted)
    }

    /// Notes that this call has connected to this host: what the host answers may be written by strangers.
    pub fn note_connected(&self, url: &str, host: &str) {
        self.rules()
            .note_connected(self.entry.spec().name.as_str(), url, host);
    }
}
