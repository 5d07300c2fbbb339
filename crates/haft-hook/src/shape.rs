//! `EventLayout`: the layout of an event that Claude Code set and most agents follow, with flat members for the tool, its input and its response.

use std::path::PathBuf;

use crate::action::CallAction;
use crate::agent::Agent;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{CallReport, CallStatus, HookCall, HookEvent, HookEventKind, ReplyDialect};
use crate::input::ScannedJson;
use crate::stage::EventStage;

/// States what a call would do, from the tool's name, its input, and the event with whatever else it says.
pub(crate) type ActionReader = fn(&str, &ScannedJson<'_>, &Envelope<'_>) -> Vec<CallAction>;

/// An agent's variant of the layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventLayout {
    pub(crate) agent: Agent,
    pub(crate) dialect: ReplyDialect,
    pub(crate) actions: ActionReader,
    /// The member with the event's name.
    pub(crate) name: &'static str,
    /// The member with the tool's name.
    pub(crate) tool: &'static str,
    /// The member with the tool's input.
    pub(crate) input: &'static str,
    /// The members that may have the call's id.
    pub(crate) id: &'static [&'static str],
    /// The members that may have the result of a call.
    pub(crate) result: &'static [&'static str],
}

impl EventLayout {
    /// The layout with Claude Code's names.
    pub(crate) const fn new(agent: Agent, dialect: ReplyDialect, actions: ActionReader) -> Self {
        Self {
            agent,
            dialect,
            actions,
            name: "hook_event_name",
            tool: "tool_name",
            input: "tool_input",
            id: &["tool_use_id"],
            result: &["tool_response"],
        }
    }

    /// Reads an event whose name tells its stage.
    pub(crate) fn read(&self, event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
        let name = event.needs(self.name)?;
        let stage = match EventStage::of(&name) {
            // Whatever a version calls it, an event with a tool and its input but no result comes before a tool.
            EventStage::Other if self.is_about_to_run(event) => EventStage::Before,
            stage => stage,
        };
        self.read_as(event, stage, name)
    }

    fn is_about_to_run(&self, event: &Envelope<'_>) -> bool {
        let has_result = self.result.iter().any(|name| event.has(name));
        event.has(self.tool) && event.has(self.input) && !has_result
    }

    /// Reads an event of a known stage.
    pub(crate) fn read_as(
        &self,
        event: &Envelope<'_>,
        stage: EventStage,
        name: String,
    ) -> Result<HookEvent, ReadError> {
        let kind = match stage {
            EventStage::Before => HookEventKind::Before(self.call(event)?),
            EventStage::Permission => HookEventKind::Permission(self.call(event)?),
            EventStage::After => HookEventKind::After(self.report(event, CallStatus::Ok)?),
            EventStage::Failed => HookEventKind::After(self.report(event, CallStatus::Failed)?),
            EventStage::Refused => HookEventKind::After(self.report(event, CallStatus::Refused)?),
            EventStage::SessionStart => HookEventKind::SessionStart,
            EventStage::SessionEnd => HookEventKind::SessionEnd,
            EventStage::Prompt => HookEventKind::Prompt,
            EventStage::Verdict | EventStage::Other => HookEventKind::Other(name.clone()),
        };
        Ok(self.event(event, name, kind))
    }

    /// Builds an event with the members that every kind has.
    pub(crate) fn event(
        &self,
        event: &Envelope<'_>,
        name: String,
        kind: HookEventKind,
    ) -> HookEvent {
        const SESSION: [&str; 5] = [
            "session_id",
            "sessionId",
            "conversation_id",
            "trajectory_id",
            "taskId",
        ];
        let mode = event.any_text(&["permission_mode"]);
        HookEvent {
            agent: self.agent,
            dialect: self.dialect,
            name,
            session: event.any_text(&SESSION).unwrap_or_default(),
            cwd: event.any_text(&["cwd", "working_dir"]).map(PathBuf::from),
            workspace_roots: event.folders("workspace_roots"),
            model: event.any_text(&["model"]),
            headless: (mode.as_deref() == Some("dontAsk")).then_some(true),
            mode,
            subagent: event.any_text(&["agent_id", "agentId", "agent_type"]),
            kind,
        }
    }

    fn call(&self, event: &Envelope<'_>) -> Result<HookCall, ReadError> {
        let tool = event.needs(self.tool)?;
        let input = event.unpacked_input(self.input)?;
        Ok(HookCall {
            id: event.any_text(self.id),
            actions: (self.actions)(&tool, &input, event),
            input: input.to_raw(),
            tool,
        })
    }

    fn report(&self, event: &Envelope<'_>, status: CallStatus) -> Result<CallReport, ReadError> {
        let stopped = event.flag("is_interrupt").unwrap_or_default();
        let results = self.result.iter();
        Ok(CallReport {
            id: event.any_text(self.id),
            tool: event.needs(self.tool)?,
            // The call ran. An input that cannot be read is no reason to lose how it ended.
            input: event
                .unpacked_input(self.input)
                .ok()
                .map(|input| input.to_raw()),
            status: if stopped {
                CallStatus::Interrupted
            } else {
                status
            },
            duration_ms: event.milliseconds(&["duration_ms", "duration"]),
            result: results
                .filter_map(|name| event.raw(name))
                .map(ToOwned::to_owned)
                .next(),
            error: event.any_text(&["error", "error_message", "reason"]),
        })
    }
}
