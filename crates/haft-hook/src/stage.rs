//! When in the life of a call or a session an event comes, from its name.

/// What an event's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Before,
    Permission,
    After,
    Failed,
    Refused,
    SessionStart,
    SessionEnd,
    Prompt,
    /// What came of the hooks themselves: nothing is decided or ended by it.
    Verdict,
    Other,
}

impl Stage {
    /// The stage of an event. Agents that run each other's hooks keep their own spelling of a name, so case and `_` do not count.
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
