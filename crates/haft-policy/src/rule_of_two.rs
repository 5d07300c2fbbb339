//! The Rule of Two: a run that reads what strangers wrote, sees private data and can send is one that a page can have take your data. Which of
//! the three a run holds, and which a call adds, is computed here alone.

use serde::{Deserialize, Serialize};

use crate::judged_call::JudgedCall;
use crate::untrusted::{SERVER_EFFECT, destination, reads_untrusted};
use haft_types::permission::{Effect, Permission};

/// Which of the three a run holds, or a call adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunProperties {
    /// It has read what strangers may have written.
    pub untrusted: bool,
    /// It has seen private data: files, what a command can see, memories, answers of servers that reach nobody else.
    pub private: bool,
    /// It could have sent something out after it had seen private data.
    pub sends: bool,
}

impl RunProperties {
    /// None of them.
    pub const NONE: Self = Self {
        untrusted: false,
        private: false,
        sends: false,
    };

    /// Returns what either has.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            untrusted: self.untrusted || other.untrusted,
            private: self.private || other.private,
            sends: self.sends || other.sends,
        }
    }

    /// Whether it has all three.
    pub fn is_all(self) -> bool {
        self.untrusted && self.private && self.sends
    }

    /// Whether it has none.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Returns what it has, in the words of screens.
    pub fn words(self) -> Vec<&'static str> {
        let all = [
            (self.untrusted, "read untrusted content"),
            (self.private, "seen private data"),
            (self.sends, "sent"),
        ];
        let held = all.into_iter().filter(|(has, _)| *has);
        held.map(|(_, words)| words).collect()
    }
}

/// What a run held when a call was asked about, and what the call adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RuleOfTwoState {
    /// What the run holds.
    pub held: RunProperties,
    /// What the call adds, which may be held already.
    pub adds: RunProperties,
}

impl RuleOfTwoState {
    /// Returns the state of a call.
    pub fn of(call: &JudgedCall<'_>, commands_reach_out: bool) -> Self {
        Self {
            held: call.run.properties(),
            adds: call.properties(commands_reach_out),
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
pub(crate) fn of_call(call: &JudgedCall<'_>, commands_reach_out: bool) -> RunProperties {
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
