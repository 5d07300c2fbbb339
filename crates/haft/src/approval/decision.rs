//! `Decision`: what a person said about a request, and who, when and from where.

use serde::{Deserialize, Serialize};

use crate::clock;

/// How long an approval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldFor {
    /// For this call.
    #[default]
    Once,
    /// For the same effects of the same tool, until the session ends.
    Session,
    /// For good: a rule is kept.
    Always,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum Choice {
    /// Run it.
    Approve {
        /// For how long.
        #[serde(default)]
        scope: HoldFor,
        /// Other arguments, which are checked and judged again; a guard's deny stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<String>,
        /// The rule to keep, where it is for good.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// Do not run it.
    Deny {
        /// A word for the caller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// End the whole session, too.
        #[serde(default)]
        stop: bool,
    },
    /// The answers to a question, by their ids as a JSON object; of a call, `{"text": "…"}`: what the caller is told in
    /// place of what the tool would have said.
    Answer {
        /// The JSON object.
        answers: String,
    },
}

impl Choice {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Deny { .. } => "deny",
            Self::Answer { .. } => "answer",
        }
    }
}

/// A choice with who made it. Who, when and from where are set by whoever takes the choice in, never by its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was said.
    #[serde(flatten)]
    pub choice: Choice,
    /// Who decided, as the approver knows it.
    pub by: String,
    /// From where: `terminal`, `console 127.0.0.1`, `webhook`.
    pub from: String,
    /// When, in nanoseconds since 1970.
    #[serde(with = "nanoseconds")]
    pub at: i128,
}

/// Times inside a flattened struct: a buffer of serde holds no 128 bits.
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
    /// This choice, made now.
    pub fn new(choice: Choice, by: impl Into<String>, from: impl Into<String>) -> Self {
        Self {
            choice,
            by: by.into(),
            from: from.into(),
            at: clock::now(),
        }
    }

    /// Run it, once, as it is.
    pub fn approve(by: impl Into<String>, from: impl Into<String>) -> Self {
        let choice = Choice::Approve {
            scope: HoldFor::Once,
            edited: None,
            rule: None,
        };
        Self::new(choice, by, from)
    }

    /// Do not run it.
    pub fn deny(by: impl Into<String>, from: impl Into<String>) -> Self {
        let choice = Choice::Deny {
            message: None,
            stop: false,
        };
        Self::new(choice, by, from)
    }

    /// An approval for longer than once.
    pub fn hold_for(mut self, longer: HoldFor) -> Self {
        if let Choice::Approve { scope, .. } = &mut self.choice {
            *scope = longer;
        }
        self
    }

    /// An approval for good, by this rule.
    pub fn with_rule(mut self, text: impl Into<String>) -> Self {
        if let Choice::Approve { rule, .. } = &mut self.choice {
            *rule = Some(text.into());
        }
        self
    }

    /// An approval of these arguments instead.
    pub fn with_arguments(mut self, arguments: impl Into<String>) -> Self {
        if let Choice::Approve { edited, .. } = &mut self.choice {
            *edited = Some(arguments.into());
        }
        self
    }

    /// A denial with a word for the caller.
    pub fn with_message(mut self, word: impl Into<String>) -> Self {
        if let Choice::Deny { message, .. } = &mut self.choice {
            *message = Some(word.into());
        }
        self
    }

    /// A denial that ends the session.
    pub fn end_run(mut self) -> Self {
        if let Choice::Deny { stop, .. } = &mut self.choice {
            *stop = true;
        }
        self
    }
}
