//! Pages of the tool list, assembled from the tools' prepared JSON.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::json::amend::Amended;
use haft::spec::{Declaration, Exposure};
use haft::toolset::{ToolEntry, ToolsetSnapshot};

use crate::era::Era;
use crate::wire::RpcError;
use crate::wire::reply;

/// How to list tools for a client.
pub(crate) struct ListOptions<'a> {
    pub(crate) era: Era,
    /// Whether calls of one of the host's own tools are tasks from the start.
    pub(crate) is_only_task: &'a dyn Fn(&str) -> bool,
}

/// Writes `"tools":[…]` with at most `size` tools after the cursor, and `nextCursor` if more follow.
///
/// Tools are in order of their names, and a cursor is the name that it follows, so it survives every change of the list.
pub(crate) fn write_page(
    out: &mut Vec<u8>,
    tools: &ToolsetSnapshot,
    cursor: Option<&str>,
    size: usize,
    options: &ListOptions<'_>,
) -> Result<(), RpcError> {
    let entries = tools.entries();
    let first = match cursor {
        None => 0,
        Some(cursor) => {
            let after = name_in(cursor)?;
            entries.partition_point(|entry| entry.spec().name.as_str() <= after.as_str())
        }
    };
    let mut rest = entries[first..].iter().filter(|entry| is_shown(entry));
    let mut last = None;
    out.extend_from_slice(b"\"tools\":[");
    for entry in rest.by_ref().take(size.max(1)) {
        if last.is_some() {
            out.push(b',');
        }
        write_tool(out, entry, options);
        last = Some(entry);
    }
    out.push(b']');
    if let Some(last) = last
        && rest.next().is_some()
    {
        out.extend_from_slice(b",\"nextCursor\":");
        let name = last.spec().name.as_str();
        reply::json(out, &URL_SAFE_NO_PAD.encode(name));
    }
    Ok(())
}

/// Writes a tool. Until 2025-11-25 an output schema must be of an object, and clients refuse a whole list because of another one,
/// which a server of the stateless era may send.
fn write_tool(out: &mut Vec<u8>, entry: &ToolEntry, options: &ListOptions<'_>) {
    let (spec, era) = (entry.spec(), options.era);
    let only =
        era.is_modern() && spec.listing.is_none() && (options.is_only_task)(spec.name.as_str());
    if only
        && let Ok(text) = std::str::from_utf8(entry.mcp())
        && let Ok(mut tool) = Amended::read(text)
    {
        tool.add("execution")
            .extend_from_slice(br#"{"taskSupport":"required"}"#);
        return tool.write(out);
    }
    let schema = spec
        .output_schema
        .as_deref()
        .filter(|_| spec.listing.is_some());
    let is_other = schema.is_some_and(|schema| schema["type"] != "object");
    if era.is_modern() || !is_other {
        return out.extend_from_slice(entry.mcp());
    }
    let text = std::str::from_utf8(entry.mcp()).unwrap_or_default();
    if let Ok(mut tool) = Amended::read(text) {
        tool.retain(|member| !member.is("outputSchema"));
        tool.write(out);
    }
}

/// Returns whether MCP clients see the tool: they could not call one that only a provider can declare.
fn is_shown(entry: &ToolEntry) -> bool {
    let spec = entry.spec();
    spec.exposure == Exposure::Listed && spec.declaration == Declaration::Schema
}

fn name_in(cursor: &str) -> Result<String, RpcError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| RpcError::invalid_params("params.cursor was not issued by this server"))
}

#[cfg(test)]
mod tests;
