//! `JailedCall`: an agent's command in the form in which haft runs it in its jail.

use std::path::Path;
use std::time::Duration;

use haft::call::ToolCall;
use haft_hook::{CallAction, HookCall, HookEvent, rewrite_line};
use serde_json::value::RawValue;

use crate::hook::exec_line::{AgentShell, ExecLine};
use crate::hook::exec_session::ExecSession;
use crate::hook::folder::AgentFolder;
use crate::hook::preapproval;
use crate::own_program::own_program;
use crate::problem::Problem;

/// A call whose command haft runs in the jail.
#[derive(Debug)]
pub(super) struct JailedCall {
    /// The input that the agent is to use instead of its own; `None` if its own runs `haft exec` already.
    pub(super) input: Option<Box<RawValue>>,
    /// The call that `haft exec` makes.
    call: ToolCall,
    session: ExecSession,
}

impl JailedCall {
    /// Returns the jailed form of an event's call that starts in the folder `start`, in the agent's session of this name. `None` if the call
    /// is anything but one command line below the workspace, or the agent cannot change its input.
    ///
    /// # Errors
    /// haft's program file was removed.
    pub(super) fn of(
        folder: &AgentFolder,
        event: &HookEvent,
        call: &HookCall,
        start: &Path,
        session: &str,
    ) -> Result<Option<Self>, Problem> {
        let Some(OnlyLine { line, background }) = only_line(call) else {
            return Ok(None);
        };
        let program = own_program().and_then(|path| path.to_str().map(str::to_owned));
        let program = program.ok_or_else(|| {
            Problem::failed(
                "haft's program was removed while it ran, so no command can be run in the jail",
            )
            .advise("install haft again, and end the old server: haft console --stop")
        })?;
        let keeps = folder.settings().shell_state.is_kept(event.agent);
        let exec_session = ExecSession::find(&folder.app, session, keeps)?;
        let state = exec_session.shell_state()?;
        let exec = command_folder(folder, call, start).and_then(|folder_below| {
            let shell = AgentShell {
                app: &folder.app,
                program: &program,
                session,
                folder: folder_below,
                background,
                state,
            };
            ExecLine::of(shell, line)
        });
        let Some(ExecLine { line, call }) = exec else {
            return Ok(None);
        };
        let input = match line.map(|line| rewrite_line(event, &line)) {
            Some(None) => return Ok(None),
            Some(input) => input,
            None => None,
        };
        Ok(Some(Self {
            input,
            call,
            session: exec_session,
        }))
    }

    /// Returns whether the policy asks a user about the call that `haft exec` will make.
    pub(super) fn is_asked(&self, folder: &AgentFolder) -> bool {
        preapproval::is_asked(&folder.app, &self.call)
    }

    /// Settles what the policy and the user say about the call that `haft exec` will make. Returns why the agent must not run it, or
    /// `None` if it may.
    pub(super) async fn refusal(
        &self,
        folder: &AgentFolder,
        within: Duration,
    ) -> Result<Option<String>, Problem> {
        preapproval::refusal(&folder.app, self.call.clone(), &self.session, within).await
    }
}

/// A command line, and whether the agent goes on while it runs.
struct OnlyLine<'a> {
    line: &'a str,
    background: bool,
}

/// The line of a call that is one command line and nothing else.
fn only_line(call: &HookCall) -> Option<OnlyLine<'_>> {
    match call.actions.as_slice() {
        [CallAction::Command(command)] if command.why_unknown.is_none() => Some(OnlyLine {
            line: command.line.as_deref()?,
            background: command.background,
        }),
        _ => None,
    }
}

/// The folder below the workspace in which a call's command starts: the one that the call names, else `start`. `None` if it is elsewhere or
/// unknown, since `haft exec` works in the workspace alone.
fn command_folder(folder: &AgentFolder, call: &HookCall, start: &Path) -> Option<String> {
    let own = call.actions.iter().find_map(|action| match action {
        CallAction::Command(command) => command.cwd.as_deref(),
        _ => None,
    });
    if own.is_some_and(|own| own.starts_with('~')) {
        return None;
    }
    let start = own.map_or_else(|| start.to_owned(), |own| start.join(own));
    let cwd = folder.within(&start).ok()?;
    (!cwd.starts_with('/') && !cwd.starts_with("..")).then_some(cwd)
}
