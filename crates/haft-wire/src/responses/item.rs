//! Converts output items of Responses to the neutral format.

use serde_json::value::RawValue;

use crate::loose::{LooseText, Members, list, owned};
use crate::reply::{Call, CallKind, TurnItem};

/// Items that the provider ran itself, or their results.
const HOSTED: [&str; 8] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
];

type Result<T> = std::result::Result<T, serde_json::Error>;

/// Converts a list of output items.
pub(crate) fn items(output: &RawValue) -> Result<Vec<TurnItem>> {
    let all = list(output)?;
    let read: Vec<Members<'_>> = all
        .iter()
        .map(|raw| Members::of(raw))
        .collect::<Result<_>>()?;
    // The provider ran a call whose result is next to it.
    let mut answered = Vec::new();
    for members in &read {
        if members.loose("type")?.text().ends_with("_output") {
            answered.push(members.loose("call_id")?);
        }
    }
    let mut items = Vec::new();
    for (raw, members) in all.into_iter().zip(&read) {
        let id = members.loose("call_id")?;
        let is_answered =
            !id.text().is_empty() && answered.iter().any(|one| one.text() == id.text());
        item(raw, members, is_answered, &mut items)?;
    }
    Ok(items)
}

fn item(
    raw: &RawValue,
    members: &Members<'_>,
    is_answered: bool,
    items: &mut Vec<TurnItem>,
) -> Result<()> {
    let kind = members.loose("type")?;
    match kind.text() {
        "message" => return message(members, items),
        "reasoning" => {
            let text = thoughts(members)?;
            if !text.is_empty() {
                items.push(TurnItem::Thinking(text));
            }
        }
        "mcp_approval_request" => items.push(TurnItem::Approval {
            id: members.loose("id")?.text().to_owned(),
            server: members.loose("server_label")?.text().to_owned(),
            name: members.loose("name")?.text().to_owned(),
            arguments: members.loose("arguments")?.words().to_owned(),
        }),
        kind if HOSTED.contains(&kind) || kind.ends_with("_output") || is_answered => {
            items.push(TurnItem::Hosted {
                kind: kind.to_owned(),
                name: members.loose("name")?.some(),
                raw: owned(raw),
            });
        }
        kind => items.push(match call(raw, members)? {
            Some(call) => TurnItem::Call(call),
            None if is_call(kind) => TurnItem::Hosted {
                kind: kind.to_owned(),
                name: members.loose("name")?.some(),
                raw: owned(raw),
            },
            None => TurnItem::Unknown {
                kind: kind.to_owned(),
                raw: owned(raw),
            },
        }),
    }
    Ok(())
}

/// Returns whether items of this type are calls that the host may have to answer.
fn is_call(kind: &str) -> bool {
    matches!(
        kind,
        "function_call"
            | "custom_tool_call"
            | "tool_search_call"
            | "shell_call"
            | "local_shell_call"
            | "apply_patch_call"
            | "computer_call"
    )
}

/// Returns a call that the host must answer; `None` for one that the provider runs, and for other items.
pub(crate) fn call(raw: &RawValue, members: &Members<'_>) -> Result<Option<Call>> {
    let kind = members.loose("type")?;
    let kind = kind.text();
    if !is_call(kind) || is_hosted(kind, members)? {
        return Ok(None);
    }
    let item = members.loose("id")?.some();
    let id = members.loose("call_id")?.some().or_else(|| item.clone());
    let Some(id) = id else {
        return Err(serde::de::Error::custom(
            "a call without an id, which its result cannot name",
        ));
    };
    let name = members.loose("name")?.some();
    let of_kind = || kind.trim_end_matches("_call").to_owned();
    let caller = members.get("caller").filter(|raw| !is_direct(raw));
    let (sort, arguments) = match kind {
        "function_call" => (CallKind::Function, arguments(members)?),
        "custom_tool_call" => (
            CallKind::Freeform,
            members.loose("input")?.words().to_owned(),
        ),
        "tool_search_call" => (CallKind::ToolSearch, arguments(members)?),
        kind => (
            CallKind::Provider(kind.to_owned()),
            owned(raw).get().to_owned(),
        ),
    };
    Ok(Some(Call {
        id,
        item,
        kind: sort,
        name: name.unwrap_or_else(of_kind),
        namespace: members.loose("namespace")?.some(),
        toolset: None,
        caller: caller.map(owned),
        arguments,
    }))
}

/// Returns the arguments as text; a function without parameters may be called without any.
fn arguments(members: &Members<'_>) -> Result<String> {
    let arguments = members.loose("arguments")?;
    let words = Some(arguments.words()).filter(|words| !words.is_empty());
    Ok(words.unwrap_or("{}").to_owned())
}

/// Returns whether the provider runs a call: a search, unless it says `client`; a shell, if it has a container.
fn is_hosted(kind: &str, members: &Members<'_>) -> Result<bool> {
    match kind {
        "tool_search_call" => Ok(members.loose("execution")?.text() != "client"),
        "shell_call" => {
            let environment = members.get("environment").map(Members::of).transpose()?;
            let sort = environment.unwrap_or_default().loose("type")?;
            Ok(sort.text().starts_with("container"))
        }
        _ => Ok(false),
    }
}

/// Returns whether the model itself makes the call.
fn is_direct(caller: &RawValue) -> bool {
    let members = Members::of(caller).unwrap_or_default();
    let sort = members.loose("type").unwrap_or_default();
    matches!(sort, LooseText::None) || sort.text() == "direct"
}

fn message(members: &Members<'_>, items: &mut Vec<TurnItem>) -> Result<()> {
    let Some(content) = members.get("content") else {
        return Ok(());
    };
    for part in list(content)? {
        let members = Members::of(part)?;
        let kind = members.loose("type")?;
        items.push(match kind.text() {
            "output_text" => TurnItem::Text(members.loose("text")?.text().to_owned()),
            "refusal" => TurnItem::Refusal(members.loose("refusal")?.text().to_owned()),
            kind => TurnItem::Unknown {
                kind: kind.to_owned(),
                raw: owned(part),
            },
        });
    }
    Ok(())
}

/// Returns the thinking itself if it is shown, else its summary.
fn thoughts(members: &Members<'_>) -> Result<String> {
    for name in ["content", "summary"] {
        let mut texts = Vec::new();
        for part in members.get(name).map(list).transpose()?.unwrap_or_default() {
            texts.push(Members::of(part)?.loose("text")?.text().to_owned());
        }
        let text = texts.join("\n\n");
        if !text.is_empty() {
            return Ok(text);
        }
    }
    Ok(String::new())
}
