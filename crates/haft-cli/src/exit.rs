//! `Exit`: the exit codes of contract §1.

use std::process::ExitCode;

use haft::error::ErrorKind;
use haft::result::{Outcome, Status};
use haft_app::problem::{Problem, ProblemKind};
use serde_json::Value;

/// How the command ended, for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// The tool failed or timed out, or `runs verify` found a break.
    Failed,
    /// Wrong usage, an unknown tool, invalid arguments.
    Usage,
    /// A rule, a guard or the operator denied it.
    Denied,
    /// It waits for an approval.
    Suspended,
    /// The settings or the policy are invalid.
    Settings,
    /// Interrupted or cancelled: 128 plus the number of SIGINT.
    Interrupted,
    /// The exit code of the command that `haft exec` ran.
    Command(u8),
}

impl Exit {
    /// Returns the code for how a call ended. `known` tells whether there is a tool with that name: a tool that did not find its file
    /// has failed, but an unknown tool name is wrong usage.
    pub(crate) fn of(outcome: &Outcome, known: bool) -> Self {
        match outcome.status {
            Status::Ok => Self::Done,
            Status::Denied => Self::Denied,
            Status::Suspended => Self::Suspended,
            Status::Cancelled => Self::Interrupted,
            Status::Timeout => Self::Failed,
            Status::Error => match outcome.error.as_ref().map(|failure| failure.kind) {
                Some(ErrorKind::InvalidArguments) => Self::Usage,
                Some(ErrorKind::NotFound) if !known => Self::Usage,
                Some(ErrorKind::Denied) => Self::Denied,
                Some(ErrorKind::Cancelled) => Self::Interrupted,
                Some(_) | None => Self::Failed,
            },
        }
    }
}

impl Exit {
    /// Returns the code for a stored outcome.
    pub(crate) fn of_stored(outcome: &Value) -> Self {
        match outcome["status"].as_str().unwrap_or_default() {
            "ok" => Self::Done,
            "denied" => Self::Denied,
            "suspended" => Self::Suspended,
            "cancelled" => Self::Interrupted,
            _ if outcome["error"]["kind"] == "invalid_arguments" => Self::Usage,
            _ => Self::Failed,
        }
    }
}

impl From<&Problem> for Exit {
    /// Returns the code for a problem of this kind.
    fn from(problem: &Problem) -> Self {
        match problem.kind() {
            ProblemKind::Usage => Self::Usage,
            ProblemKind::Settings => Self::Settings,
            ProblemKind::Denied => Self::Denied,
            _ => Self::Failed,
        }
    }
}

impl Exit {
    /// Returns the code as the system has it.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Denied => 3,
            Self::Suspended => 4,
            Self::Settings => 5,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}
