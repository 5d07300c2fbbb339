//! `EventStage`: the point in a call or a session at which an event comes, from the event's name.

/// The point at which an event comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventStage {
    Before,
    Permission,
    After,
    Failed,
    Refused,
    SessionStart,
    SessionEnd,
    Prompt,
    /// The result of the hooks themselves. It decides and ends nothing.
    Verdict,
    Other,
}

impl EventStage {
    /// Returns the stage of an event. Agents that run each other's hooks keep their own spelling of names, so case, `_`, `-` and `.` are
    /// ignored.
    pub(crate) fn of(name: &str) -> Self {
        let name: String = name
            .chars()
            .filter(|c| !matches!(c, '_' | '-' | '.'))
            .map(|c| c.to_ascii_lowercase())
            .collect();
        match name.as_str() {
            "pretooluse"
            | "beforetool"
            | "beforeshellexecution"
            | "beforemcpexecution"
            | "beforereadfile"
            | "beforetabfileread" => Self::Before,
            "permissionrequest" => Self::Permission,
            "posttooluse"
            | "aftertool"
            | "aftershellexecution"
            | "aftermcpexecution"
            | "afterfileedit" => Self::After,
            "posttoolusefailure" => Self::Failed,
            "permissiondenied" => Self::Refused,
            "pretooluseresult" => Self::Verdict,
            "sessionstart" => Self::SessionStart,
            "sessionend" => Self::SessionEnd,
            "userpromptsubmit" | "userpromptsubmitted" | "beforeagent" | "beforesubmitprompt" => {
                Self::Prompt
            }
            _ => Self::Other,
        }
    }
}
