//! `Ruling`: the policy's decision on a call, cheap to create and clone.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::cause::Cause;
use haft_types::permission::Verdict;
use haft_types::spec::Risk;

/// A short text that needs no allocation if known in advance: static, or shared with the policy.
#[derive(Clone)]
pub enum Label {
    /// A text in the program.
    Static(&'static str),
    /// A text of a policy, or made for this call.
    Shared(Arc<str>),
}

impl Label {
    /// The empty text.
    pub const EMPTY: Self = Self::Static("");

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl Default for Label {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Label {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Label {}

impl PartialEq<str> for Label {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Label {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl From<&'static str> for Label {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl From<Arc<str>> for Label {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.as_str().to_owned()
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The ruling on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ruling {
    /// The strictest verdict of all parts.
    pub verdict: Verdict,
    /// The highest risk of the spec and the permissions.
    pub risk: Risk,
    /// The rule that decided, as written; otherwise `guard NAME`, `profile NAME` or the setting for secret files.
    pub rule: Label,
    /// The layer it comes from: `profile`, `guard`, `secrets`, or a layer of settings.
    pub layer: Label,
    /// The reason, in one sentence; empty for an allow.
    pub reason: Label,
    /// What the caller can do instead; may be empty.
    pub advice: Label,
    /// What would allow it, for the operator. Never shown to a model.
    pub operator: Label,
    /// Everything that asks about the call, if it needs approval: the deciding rule is only the first of them.
    #[serde(skip)]
    pub causes: Vec<Cause>,
}

impl Ruling {
    /// Adds a cause, once.
    pub fn add_cause(&mut self, cause: Cause) {
        if !self.causes.contains(&cause) {
            self.causes.push(cause);
        }
    }
}
