//! `RequestStatus`: the states of a request, and how one ends without its call.

use serde::{Deserialize, Serialize};

/// How a request ends that no call runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestEnding {
    /// The request was pending and its time is over.
    Expired,
    /// The request was pending and the client no longer needs it.
    Withdrawn,
    /// The request was approved and not claimed, but the call would no longer do what was shown; the client was told so. Stored as
    /// withdrawn.
    Void,
}

impl RequestEnding {
    /// Returns the status of a request after this ending.
    pub fn status(self) -> RequestStatus {
        match self {
            Self::Expired => RequestStatus::Expired,
            Self::Withdrawn | Self::Void => RequestStatus::Withdrawn,
        }
    }

    /// Returns the status that a request must have for this ending.
    pub fn applies_to(self) -> RequestStatus {
        match self {
            Self::Expired | Self::Withdrawn => RequestStatus::Pending,
            Self::Void => RequestStatus::Approved,
        }
    }
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// It waits for a decision.
    Pending,
    /// It was approved and its call has not run yet.
    Approved,
    /// It was denied.
    Denied,
    /// It was answered; for a call, in place of the tool.
    Answered,
    /// Its call is running.
    Running,
    /// Its call has run.
    Done,
    /// It was not decided in time.
    Expired,
    /// The client went away, or the call of an approved request would no longer do what was shown ([`RequestEnding::Void`]).
    Withdrawn,
    /// It was claimed by a process that exited: the call may have run.
    InDoubt,
}

impl RequestStatus {
    /// All statuses.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Answered,
        Self::Running,
        Self::Done,
        Self::Expired,
        Self::Withdrawn,
        Self::InDoubt,
    ];

    /// Returns the name of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Answered => "answered",
            Self::Running => "running",
            Self::Done => "done",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::InDoubt => "in_doubt",
        }
    }

    /// Returns the status of this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl std::fmt::Display for RequestStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
