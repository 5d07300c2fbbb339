//! A server's tools: listed page by page, called by name.

use std::collections::HashSet;

use haft::json::depth;
use haft::progress::Progress;
use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::error::ClientError;
use crate::client::marks::{marks, mirrored_headers};
use crate::client::respond::Responder;
use crate::client::{Client, ClientRequest, ToolListExtras};
use crate::wire::{MAX_DEPTH, reply};

/// Maximum number of pages to read of a list.
const MAX_PAGES: usize = 1000;

/// A tool as its server describes it.
#[derive(Debug, Clone)]
pub struct ToolRecord {
    /// Its name on the server.
    pub name: String,
    /// The server's whole description of it: one JSON object, byte for byte.
    pub raw: Box<RawValue>,
}

/// The result of calling a server's tool.
#[derive(Debug, Clone)]
pub struct CallReply {
    /// The content blocks, byte for byte.
    pub content: Vec<Box<RawValue>>,
    /// The structured content, byte for byte.
    pub structured: Option<Box<RawValue>>,
    /// Whether the tool reports failure.
    pub is_error: bool,
    /// The whole result, byte for byte.
    pub result: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolListPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct ToolNameMember {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallToolResult {
    #[serde(default)]
    content: Vec<Box<RawValue>>,
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
}

impl Client {
    /// Returns all tools in the server's order; a repeated name counts once.
    ///
    /// # Errors
    /// The server does not respond, or has more tools than [`ClientLimits::tools`](crate::client::ClientLimits::tools).
    pub async fn tools(&self) -> Result<Vec<ToolRecord>, ClientError> {
        if !self.server.has_tools {
            return Ok(Vec::new());
        }
        let (mut found, mut names, mut cursors) = (Vec::new(), HashSet::new(), HashSet::new());
        let mut listed = ToolListExtras::default();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor
                .as_deref()
                .map_or_else(String::new, |cursor| member("cursor", cursor));
            let raw = self
                .ask(ClientRequest::new("tools/list", &params, self.limits.list))
                .await?;
            let page: ToolListPage<'_> = serde_json::from_str(raw.get())
                .map_err(|e| ClientError::Malformed(format!("its list of tools: {e}")))?;
            for tool in page.tools {
                let named: ToolNameMember = serde_json::from_str(tool.get())
                    .map_err(|e| ClientError::Malformed(format!("a tool in its list: {e}")))?;
                if !names.insert(named.name.clone()) {
                    continue;
                }
                match marks(tool) {
                    Ok(marks) => {
                        listed.marks.insert(named.name.clone(), marks.into());
                        found.push(ToolRecord {
                            name: named.name,
                            raw: tool.to_owned(),
                        });
                    }
                    Err(why) => listed
                        .left_out
                        .push(format!("{}: {why}", clip(&named.name, 100))),
                }
            }
            if names.len() > self.limits.tools {
                let most = self.limits.tools;
                return Err(ClientError::Malformed(format!(
                    "it lists over {most} tools"
                )));
            }
            match page.next_cursor {
                Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
                Some(_) => {
                    return Err(ClientError::Malformed(
                        "its list of tools has no end".into(),
                    ));
                }
                None => {
                    *self.listed.lock() = listed;
                    return Ok(found);
                }
            }
        }
        Err(ClientError::Malformed(format!(
            "its list of tools is over {MAX_PAGES} pages"
        )))
    }

    /// Returns the reasons for the tools of the last list that were left out.
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
        let raw = self.ask_in_rounds(&question).await?;
        let called: CallToolResult = serde_json::from_str(raw.get())
            .map_err(|e| ClientError::Malformed(format!("the result of {name}: {e}")))?;
        Ok(CallReply {
            content: called.content,
            structured: called.structured_content,
            is_error: called.is_error,
            result: raw,
        })
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
