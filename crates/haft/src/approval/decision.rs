//! `Decision`: the choice made about a request, with who made it, when and from where.

use serde::{Deserialize, Serialize};

use crate::clock;

/// How long an approval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// For this call only.
    #[default]
    Once,
    /// For the same effects of the same tool, until the session ends.
    Session,
    /// For good: a rule is kept.
    Always,
}

/// The choice made about a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum Choice {
    /// Run it.
    Approve {
        /// How long the approval holds.
        #[serde(default)]
        scope: ApprovalScope,
        /// Edited arguments, which are checked and judged again; a guard's deny still applies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<String>,
        /// The rule to keep, if the approval is for good.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// Do not run it.
    Deny {
        /// A message for the caller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Whether to end the whole session, too.
        #[serde(default)]
        stop: bool,
    },
    /// The answers to a question, as a JSON object keyed by question id. For a call, `{"text": "…"}`: what the caller receives in
    /// place of the tool's result.
    Answer {
        /// The answers, as the text of one JSON object.
        answers: String,
    },
}

impl Choice {
    /// Returns the name of the choice.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Deny { .. } => "deny",
            Self::Answer { .. } => "answer",
        }
    }
}

/// A choice with its author. The code that receives the choice sets who, when and from where, never its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The choice.
    #[serde(flatten)]
    pub choice: Choice,
    /// Who decided, as the approver identifies them.
    pub by: String,
    /// Where the decision was made: `terminal`, `console 127.0.0.1`, `webhook`.
    pub from: String,
    /// When it was made, in nanoseconds since 1970.
    #[serde(with = "nanoseconds")]
    pub at: i128,
}

/// Times inside a flattened struct, where serde's buffer cannot hold 128 bits.
mod nanoseconds {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &i128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(i64::try_from(*at).unwrap_or(i64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i128, D::Error> {
        i64::deserialize(from).map(i128::from)
    }
}

impl Decision {
    /// Creates a decision with this choice, made now.
    pub fn new(choice: Choice, by: impl Into<String>, from: impl Into<String>) -> Self {
        Self {
            choice,
            by: by.into(),
            from: from.into(),
            at: clock::now(),
        }
    }

    /// Creates an approval of this call only, unedited.
    pub fn approve(by: impl Into<String>, from: impl Into<String>) -> Self {
        let choice = Choice::Approve {
            scope: ApprovalScope::Once,
            edited: None,
            rule: None,
        };
        Self::new(choice, by, from)
    }

    /// Creates a denial without a message, after which the session continues.
    pub fn deny(by: impl Into<String>, from: impl Into<String>) -> Self {
        let choice = Choice::Deny {
            message: None,
            stop: false,
        };
        Self::new(choice, by, from)
    }

    /// Sets how long an approval holds.
    pub fn hold_for(mut self, longer: ApprovalScope) -> Self {
        if let Choice::Approve { scope, .. } = &mut self.choice {
            *scope = longer;
        }
        self
    }

    /// Sets the rule that an approval for good keeps.
    pub fn with_rule(mut self, text: impl Into<String>) -> Self {
        if let Choice::Approve { rule, .. } = &mut self.choice {
            *rule = Some(text.into());
        }
        self
    }

    /// Replaces the arguments of an approved call.
    pub fn with_arguments(mut self, arguments: impl Into<String>) -> Self {
        if let Choice::Approve { edited, .. } = &mut self.choice {
            *edited = Some(arguments.into());
        }
        self
    }

    /// Sets the message of a denial for the caller.
    pub fn with_message(mut self, word: impl Into<String>) -> Self {
        if let Choice::Deny { message, .. } = &mut self.choice {
            *message = Some(word.into());
        }
        self
    }

    /// Makes a denial end the session.
    pub fn end_run(mut self) -> Self {
        if let Choice::Deny { stop, .. } = &mut self.choice {
            *stop = true;
        }
        self
    }
}
