//! A server's tools: listed page by page, called by name.

use std::collections::HashSet;

use haft::json::depth;
use haft::json::members::members;
use haft::progress::Progress;
use haft::text::clip;
use serde_json::value::RawValue;

use crate::client::call_reply::CallReply;
use crate::client::cursor::{ListCursor, PageEnd};
use crate::client::error::ClientError;
use crate::client::marks::{marks, mirrored_headers};
use crate::client::respond::Responder;
use crate::client::{Client, ClientRequest, ToolListExtras};
use crate::wire::params::text;
use crate::wire::{MAX_DEPTH, reply};

/// A tool as its server describes it.
#[derive(Debug, Clone)]
pub struct ToolRecord {
    /// Its name on the server.
    pub name: String,
    /// The server's whole description of it: one JSON object, byte for byte.
    pub raw: Box<RawValue>,
}

impl Client {
    /// Returns all tools in the server's order; a repeated name counts once.
    ///
    /// # Errors
    /// The server does not respond, or has more tools than [`ClientLimits::tools`](crate::client::ClientLimits::tools).
    pub async fn tools(&self) -> Result<Vec<ToolRecord>, ClientError> {
        if !self.server.has_tools && !self.server.is_silent {
            return Ok(Vec::new());
        }
        let mut list = ToolListReader::default();
        let mut cursor = ListCursor::default();
        loop {
            let params = cursor.params();
            let question = ClientRequest::new("tools/list", &params, self.limits.list);
            let page = match self.ask(question).await {
                // A server that does not say what it has is asked for tools, and need not have any.
                Err(ClientError::Refused { .. }) if !self.server.has_tools => return Ok(Vec::new()),
                answer => answer?,
            };
            let before = list.names.len();
            list.read(&page)?;
            if list.names.len() > self.limits.tools {
                let most = self.limits.tools;
                return Err(ClientError::Malformed(format!(
                    "it lists over {most} tools"
                )));
            }
            match cursor.follow(&page, list.names.len() - before) {
                PageEnd::More => {}
                PageEnd::End => break,
                PageEnd::Odd(why) => {
                    let why = format!("what follows in its list of tools: {why}");
                    list.listed.left_out.push(why);
                    break;
                }
            }
        }
        *self.listed.lock() = list.listed;
        Ok(list.found)
    }

    /// Returns what was left out of the last list of tools, each with the reason.
    pub fn left_out(&self) -> Vec<String> {
        self.listed.lock().left_out.clone()
    }

    /// Calls a tool with these arguments, which reach the server byte for byte.
    ///
    /// # Errors
    /// The arguments are not a JSON object, or the server does not respond or refuses. A tool's failure is a reply that says so.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &str,
        progress: Option<Progress>,
    ) -> Result<CallReply, ClientError> {
        self.call_tool_with(name, arguments, progress, None).await
    }

    /// Like [`call_tool`](Self::call_tool), with a responder for what the server asks meanwhile.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool), and if the server asks for something that was not offered, or endlessly.
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: &str,
        progress: Option<Progress>,
        responder: Option<Responder>,
    ) -> Result<CallReply, ClientError> {
        let arguments = object(arguments)?;
        let params = format!("{},\"arguments\":{arguments}", member("name", name));
        let marks = self.listed.lock().marks.get(name).cloned();
        let mirrored = marks.map_or_else(Vec::new, |marks| mirrored_headers(&marks, arguments));
        let question = ClientRequest {
            name: Some(name),
            mirrored,
            progress,
            log: responder.as_ref().and_then(|responder| responder.by.log()),
            responder,
            tasks: true,
            ..ClientRequest::new("tools/call", &params, self.limits.call)
        };
        let answer = self.ask_in_rounds(&question).await?;
        Ok(CallReply::read(answer))
    }
}

/// The tools of a list, from its pages.
#[derive(Default)]
struct ToolListReader {
    found: Vec<ToolRecord>,
    names: HashSet<String>,
    listed: ToolListExtras,
}

impl ToolListReader {
    /// Reads a page. A tool that cannot be read is left out alone, with the reason.
    ///
    /// # Errors
    /// It has no list of tools.
    fn read(&mut self, page: &RawValue) -> Result<(), ClientError> {
        let malformed = |why: String| ClientError::Malformed(format!("its list of tools: {why}"));
        let all = members(page.get()).map_err(|e| malformed(e.to_string()))?;
        let Some(tools) = all.iter().find(|member| member.is("tools")) else {
            return Ok(());
        };
        let tools: Vec<&RawValue> =
            serde_json::from_str(tools.value().get()).map_err(|e| malformed(e.to_string()))?;
        for (nth, tool) in tools.into_iter().enumerate() {
            let read = self.tool(tool);
            if let Err((name, why)) = read {
                let name = name.unwrap_or_else(|| format!("entry {} of its page", nth + 1));
                self.listed.left_out.push(format!("{name}: {why}"));
            }
        }
        Ok(())
    }

    /// Reads a tool.
    ///
    /// # Errors
    /// It is not one: its name, if it has one, and why.
    fn tool(&mut self, tool: &RawValue) -> Result<(), (Option<String>, String)> {
        let all = members(tool.get()).map_err(|_| (None, "it is no object".to_owned()))?;
        let name = all.iter().find(|member| member.is("name"));
        let name = name.and_then(|member| text(member.value()));
        let Some(name) = name.filter(|name| !name.trim().is_empty()) else {
            return Err((None, "it has no name".to_owned()));
        };
        if !self.names.insert(name.clone().into_owned()) {
            return Ok(());
        }
        let marks = marks(tool).map_err(|why| (Some(clip(&name, 100).into_owned()), why))?;
        self.listed
            .marks
            .insert(name.clone().into_owned(), marks.into());
        self.found.push(ToolRecord {
            name: name.into_owned(),
            raw: tool.to_owned(),
        });
        Ok(())
    }
}

/// Checks that the arguments are one JSON object, so that nothing in them can become part of the surrounding message.
fn object(arguments: &str) -> Result<&str, ClientError> {
    let wrong = |why: &str| ClientError::Arguments(why.to_owned());
    if arguments.trim_ascii().is_empty() {
        return Ok("{}");
    }
    if depth::exceeds(arguments.as_bytes(), MAX_DEPTH - 2) {
        return Err(wrong("they are nested too deep"));
    }
    let raw: &RawValue = serde_json::from_str(arguments).map_err(|e| wrong(&e.to_string()))?;
    if !raw.get().starts_with('{') {
        return Err(wrong("they are another value"));
    }
    Ok(raw.get())
}

/// Returns a text member of `params`.
fn member(name: &str, value: &str) -> String {
    let mut out = format!("\"{name}\":").into_bytes();
    reply::json(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}
