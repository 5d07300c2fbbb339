//! Resolves a call of `call_tool` to the tool that its arguments name, and a call of a stand-in to the tool behind it. This happens
//! before anything else looks at the call, so it is admitted, judged, recorded and answered as a call of that tool.

use std::borrow::Cow;
use std::sync::Arc;

use crate::arguments::Arguments;
use crate::call::ToolCall;
use crate::json::scan::scan_object;
use crate::json::schema::Violation;
use crate::json::view::View;
use crate::session::Session;
use crate::spec::Exposure;
use crate::toolset::lazy::CALL_TOOL;
use crate::toolset::{ToolBackend, ToolEntry};

/// Returns the call that this one represents; the call itself if it names no other tool, or does so incorrectly ([`fault`] says why).
pub(super) fn resolve(session: &Session, call: ToolCall) -> ToolCall {
    let call = if call.name == CALL_TOOL && is_there(session) {
        match read(&call.arguments) {
            Some((tool, arguments)) => renamed(&call, tool, arguments),
            None => return call,
        }
    } else {
        call
    };
    match other(session, &call) {
        Some((tool, arguments)) => renamed(&call, tool, arguments),
        None => call,
    }
}

fn renamed(call: &ToolCall, tool: impl Into<String>, arguments: impl Into<String>) -> ToolCall {
    ToolCall {
        id: call.id.clone(),
        ..ToolCall::new(tool, arguments).from_origin(call.origin)
    }
}

/// Returns the other tool and its arguments, if the call is to a stand-in that this session may call and its arguments fit.
fn other(session: &Session, call: &ToolCall) -> Option<(String, String)> {
    let reach = session.reach();
    let entry = reach.entry(&call.name)?;
    let stand_in = entry.tool()?.stand_in()?;
    let exposure = entry.spec().exposure;
    if entry.bound.is_some() || matches!(exposure, Exposure::Hidden | Exposure::Deferred) {
        return None;
    }
    let fitting = entry.input.admit(&call.arguments, true).ok()?;
    Some(stand_in.stands_for(&Arguments::new(fitting.text.into_owned())))
}

/// Why a call of `call_tool` could not be resolved.
pub(super) enum ResolveError {
    /// Its arguments are not a tool name with arguments.
    Arguments(Arc<ToolEntry>, Vec<Violation>),
    /// It names no other tool.
    Itself,
}

/// Returns why a call of `call_tool` could not be resolved; `None` for any other call.
pub(super) fn fault(session: &Session, name: &str, arguments: &str) -> Option<ResolveError> {
    if name != CALL_TOOL {
        return None;
    }
    let reach = session.reach();
    let entry = reach.entry(CALL_TOOL)?;
    if !matches!(entry.run, ToolBackend::Named) {
        return None;
    }
    let arguments = if arguments.is_empty() {
        "{}"
    } else {
        arguments
    };
    Some(match entry.input.admit(arguments, false) {
        Err(violations) => ResolveError::Arguments(Arc::clone(entry), violations),
        Ok(_) => ResolveError::Itself,
    })
}

fn is_there(session: &Session) -> bool {
    let reach = session.reach();
    let entry = reach.entry(CALL_TOOL);
    entry.is_some_and(|entry| matches!(entry.run, ToolBackend::Named))
}

/// Returns the tool's name, and its arguments as the original bytes. Arguments given as JSON within a string are decoded.
fn read(text: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    scan_object(text).ok()?;
    let (mut tool, mut arguments) = (None, Cow::Borrowed(""));
    for (name, value) in View::of(text).members() {
        match &*name {
            "tool" => tool = Some(value.as_str()?),
            "arguments" => {
                arguments = value.as_str().unwrap_or(Cow::Borrowed(value.text()));
                scan_object(&arguments).ok()?;
            }
            _ => return None,
        }
    }
    let tool = tool.filter(|tool| !tool.is_empty() && tool != CALL_TOOL)?;
    Some((tool, arguments))
}
