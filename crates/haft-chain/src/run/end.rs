//! `ScriptEnd`: how a script ended, and the chain's result that follows from it.

use std::time::Duration;

use haft::context::ChildRun;
use haft::error::{ErrorKind, ToolError};
use haft::result::{Status, ToolResult};

use crate::bridge::BridgeError;
use crate::bridge::message::{ScriptError, ScriptReport};
use haft::text::clip;

/// How a script ended.
pub(super) enum ScriptEnd {
    /// The script reported its end.
    Done(ScriptReport),
    /// The script ended without a report: killed, crashed, out of memory, or by its own doing.
    Silent,
    /// The script violated the protocol.
    Broken(BridgeError),
    /// The host stopped it because of an error.
    Stopped(ToolError),
    /// The script took too long.
    Late(Duration),
    /// The session was cancelled.
    Cancelled,
    /// One of its calls waits for an approval, but no client waits here: the chain resumes once that is decided.
    Suspended(Box<ToolError>),
}

impl ScriptEnd {
    /// Returns the status that reports this end honestly.
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Done(ScriptReport { error: None, .. }) => Status::Ok,
            Self::Late(_) => Status::Timeout,
            Self::Cancelled => Status::Cancelled,
            Self::Suspended(_) => Status::Suspended,
            Self::Done(_) | Self::Silent | Self::Broken(_) | Self::Stopped(_) => Status::Error,
        }
    }

    /// Returns the end for a cancelled session: an error becomes a cancellation; any other end stays.
    pub(super) fn of_cancelled(self) -> Self {
        match self.status() {
            Status::Error => Self::Cancelled,
            _ => self,
        }
    }

    /// Returns the chain's result, and the text to add after what the script printed.
    pub(super) fn result(
        self,
        scope: &ChildRun,
        printed: u64,
        left_out: Option<String>,
    ) -> (ToolResult, String) {
        let summary = summary(scope, printed);
        let mut said = String::new();
        let (mut data, mut error) = (None, None);
        match self {
            Self::Done(ScriptReport { value, error: None }) => data = value,
            Self::Done(ScriptReport {
                error: Some(failed),
                ..
            }) => {
                said.clone_from(&failed.traceback);
                error = Some(of_script(&failed));
            }
            Self::Silent => error = Some(silent()),
            Self::Broken(why) => error = Some(broken(&why)),
            Self::Stopped(why) => error = Some(why),
            Self::Late(limit) => error = Some(late(limit)),
            Self::Suspended(waits) => error = Some(*waits),
            Self::Cancelled => {
                error = Some(ToolError::new(
                    ErrorKind::Cancelled,
                    "the session was cancelled",
                ));
            }
        }
        if let Some(why) = left_out {
            let line = ["[not all of /workspace was kept: ", &why, "]\n"];
            said.extend(line);
        }
        let failed = error.is_some();
        let result = ToolResult {
            data,
            error,
            // A failure's own message says more.
            summary: Some(summary).filter(|_| !failed),
            ..ToolResult::default()
        };
        (result, said)
    }
}

/// Returns one line for the user: the calls and how they ended, and how much was printed.
fn summary(scope: &ChildRun, printed: u64) -> String {
    let trace = scope.trace();
    let count = |status: Status| trace.iter().filter(|call| call.status == status).count();
    let mut words = vec![match trace.len() {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    }];
    for status in [
        Status::Error,
        Status::Denied,
        Status::Timeout,
        Status::Cancelled,
    ] {
        match count(status) {
            0 => {}
            n => words.push(format!("{n} {}", status.as_str())),
        }
    }
    if printed > 0 {
        words.push(format!("{printed} bytes printed"));
    }
    words.join(", ")
}

fn of_script(failed: &ScriptError) -> ToolError {
    let shown = clip(&failed.message, 1000);
    if failed.class == "Refused" {
        return ToolError::failed(shown)
            .with_advice("nothing ran; correct the script and run it again");
    }
    let line = failed
        .line
        .map_or_else(String::new, |n| format!(" (line {n})"));
    let class: String = failed.class.chars().take(100).collect();
    let message = match class.as_str() {
        "SystemExit" => shown.into_owned(),
        "SyntaxError" | "IndentationError" | "TabError" => format!("{class}: {shown}"),
        _ if shown.is_empty() => format!("{class}{line}"),
        _ => format!("{class}: {shown}{line}"),
    };
    ToolError::failed(message)
}

fn silent() -> ToolError {
    ToolError::failed("the interpreter ended without a word").with_advice(
        "it crashed, ended itself (os._exit) or was ended by a limit of memory or processor time; \
         the trace says which calls were made",
    )
}

fn broken(why: &BridgeError) -> ToolError {
    ToolError::failed(format!("the script was ended: {why}")).with_advice(
        "call tools only by `tools`, print less, and put large data into files or artifacts",
    )
}

fn late(limit: Duration) -> ToolError {
    let message = format!("the script did not end within {} s", limit.as_secs_f64());
    ToolError::new(ErrorKind::Timeout, message)
        .with_advice("do less in one script, or raise timeout_s")
        .for_operator("raise chain.total_timeout_s or limits.call_timeout_s")
}
