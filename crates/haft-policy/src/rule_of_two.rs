//! The Rule of Two: a run that reads what strangers wrote, sees private data and can send is one that a page can have take your data. Which of
//! the three a run holds, and which a call adds, is computed here alone.

use serde::{Deserialize, Serialize};

use crate::destination;
use crate::judged_call::JudgedCall;
use crate::run_properties::RunProperties;
use crate::untrusted::{SERVER_EFFECT, reads_untrusted};
use haft_types::permission::{Effect, Permission};

/// What a run held when a call was asked about, and what the call adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RuleOfTwoState {
    /// What the run holds.
    pub held: RunProperties,
    /// What the call adds, which may be held already.
    pub adds: RunProperties,
}

impl RuleOfTwoState {
    /// Returns the state of a call; `commands_reach_out` is whether the connections of commands in the jail are not judged by themselves.
    pub fn of(call: &JudgedCall<'_>, commands_reach_out: bool) -> Self {
        Self {
            held: call.run.properties(),
            adds: *call
                .properties
                .get_or_init(|| of_call(call, commands_reach_out)),
        }
    }

    /// Whether the run would hold all three with this call, and the call is one that matters: it adds one, or sends again.
    pub fn is_third(self) -> bool {
        let adds = if self.held.is_all() {
            self.adds.sends
        } else {
            !self.adds.is_none()
        };
        adds && self.held.or(self.adds).is_all()
    }

    /// Returns a sentence for the person who decides: which two the run holds and what this call would do. `None` if it would not be the
    /// third.
    pub fn sentence(self) -> Option<String> {
        if !self.is_third() {
            return None;
        }
        let held = self.held.words().join(" and ");
        let new = [
            (
                self.adds.untrusted && !self.held.untrusted,
                "read untrusted content",
            ),
            (self.adds.private && !self.held.private, "see private data"),
            (self.adds.sends, "send"),
        ];
        let new: Vec<&str> = new
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, words)| words)
            .collect();
        let new = new.join(" and ");
        let run = if held.is_empty() {
            String::new()
        } else {
            format!("the run has {held}; ")
        };
        Some(format!(
            "{run}this call could {new}: whoever wrote the content could have your data sent"
        ))
    }
}

/// Returns what a call adds to the properties of its run.
fn of_call(call: &JudgedCall<'_>, commands_reach_out: bool) -> RunProperties {
    let private = call.permissions.iter().any(|one| sees_private(call, one));
    let knows = private || call.run.private;
    // The call itself may send, if it states nothing.
    let itself = Permission {
        effect: Effect::Call,
        risk: call.spec.risk,
    };
    let mut effects = call.permissions.iter().chain([&itself]);
    let sends = effects.any(|one| sends(call, one, knows, commands_reach_out));
    RunProperties {
        untrusted: reads_untrusted(call.spec, call.permissions),
        private,
        sends,
    }
}

fn sees_private(call: &JudgedCall<'_>, permission: &Permission) -> bool {
    match &permission.effect {
        Effect::Read(_) | Effect::Run { .. } => true,
        Effect::Other { kind, .. } => kind == SERVER_EFFECT && !call.spec.open_world,
        _ => false,
    }
}

/// Whether an effect could carry out what the run knows. Where it has seen nothing private, it sends nothing of it.
fn sends(
    call: &JudgedCall<'_>,
    permission: &Permission,
    knows: bool,
    commands_reach_out: bool,
) -> bool {
    let to = || destination::of_effect(call, permission, commands_reach_out);
    knows && to().is_some_and(|to| !to.is_free)
}
