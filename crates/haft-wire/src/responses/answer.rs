//! Answers to calls, in the Responses format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::body::inexpressible;
use crate::declarations::Declarations;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::loose::compact;
use crate::message::{ContentPart, ToolOutput};
use crate::reply::{Call, CallKind};
use crate::responses::content;

/// Writes the item that answers a call.
///
/// # Errors
/// If it answers a provider-defined call, and has neither the item nor what is needed to build it.
pub(crate) fn answer(
    out: &mut Vec<u8>,
    answer: &ToolOutput,
    tools: &Declarations,
) -> Result<(), WireError> {
    if let Some(item) = &answer.item {
        out.extend_from_slice(compact(item.get()).as_bytes());
        return Ok(());
    }
    match &answer.call.kind {
        CallKind::Function => output(out, "function_call_output", answer),
        CallKind::Freeform => output(out, "custom_tool_call_output", answer),
        CallKind::ToolSearch => search(out, answer, tools),
        CallKind::Provider(kind) => return provider(out, kind, answer),
    }
    Ok(())
}

fn begin<'o>(out: &'o mut Vec<u8>, kind: &str, call: &Call) -> Writer<'o> {
    let mut member = Writer::begin(out);
    string(member.key("type"), kind);
    string(member.key("call_id"), &call.id);
    member
}

/// Ends the item; if a program of the provider made the call, the answer goes to the program.
fn end(mut member: Writer<'_>, call: &Call) {
    if let Some(caller) = &call.caller {
        member
            .key("caller")
            .extend_from_slice(compact(caller.get()).as_bytes());
    }
    member.end();
}

fn output(out: &mut Vec<u8>, kind: &str, answer: &ToolOutput) {
    let mut member = begin(out, kind, &answer.call);
    if answer.parts.is_empty() && !answer.loads.is_empty() {
        string(member.key("output"), &answer.loads.join("\n"));
    } else {
        content::result(member.key("output"), &answer.parts);
    }
    end(member, &answer.call);
}

/// Writes the tools that a search found, as declared: tools that are no longer declared are not loaded.
fn search(out: &mut Vec<u8>, answer: &ToolOutput, tools: &Declarations) {
    let mut member = begin(out, "tool_search_output", &answer.call);
    string(member.key("execution"), "client");
    string(member.key("status"), "completed");
    let list = member.key("tools");
    list.push(b'[');
    let mut loaded: Vec<&[u8]> = Vec::new();
    for name in &answer.loads {
        let declared = tools.of(name).and_then(|one| one.fragment.as_ref());
        let Some(json) = declared.map(|fragment| fragment.json.as_slice()) else {
            continue;
        };
        // A namespace is loaded as a whole, and only once.
        if json.is_empty() || loaded.iter().any(|one| std::ptr::eq(*one, json)) {
            continue;
        }
        if !loaded.is_empty() {
            list.push(b',');
        }
        list.extend_from_slice(json);
        loaded.push(json);
    }
    list.push(b']');
    end(member, &answer.call);
}

/// Writes a text answer, such as a refusal of the host, in the format that a provider-defined call requires.
fn provider(out: &mut Vec<u8>, kind: &str, answer: &ToolOutput) -> Result<(), WireError> {
    let call = &answer.call;
    let text = answer.texts();
    match kind {
        "apply_patch_call" => {
            let mut member = begin(out, "apply_patch_call_output", call);
            string(
                member.key("status"),
                if answer.is_error {
                    "failed"
                } else {
                    "completed"
                },
            );
            string(member.key("output"), &text);
            end(member, call);
        }
        "shell_call" => {
            let mut member = begin(out, "shell_call_output", call);
            let list = member.key("output");
            list.push(b'[');
            let mut one = Writer::begin(list);
            let (stdout, stderr) = if answer.is_error {
                ("", text.as_str())
            } else {
                (text.as_str(), "")
            };
            string(one.key("stdout"), stdout);
            string(one.key("stderr"), stderr);
            let mut outcome = Writer::begin(one.key("outcome"));
            string(outcome.key("type"), "exit");
            let code: &[u8] = if answer.is_error { b"1" } else { b"0" };
            outcome.key("exit_code").extend_from_slice(code);
            outcome.end();
            one.end();
            list.push(b']');
            end(member, call);
        }
        "local_shell_call" => {
            let mut member = Writer::begin(out);
            string(member.key("type"), "local_shell_call_output");
            string(member.key("id"), call.item.as_deref().unwrap_or(&call.id));
            string(member.key("output"), &text);
            member.end();
        }
        "computer_call" => return screenshot(out, answer),
        _ => {
            let what = format!("an answer to the {kind} {} without its item", call.id);
            return Err(inexpressible(Dialect::OpenAiResponses, what));
        }
    }
    Ok(())
}

/// Writes the screenshot after the actions of a computer call.
fn screenshot(out: &mut Vec<u8>, answer: &ToolOutput) -> Result<(), WireError> {
    let picture = answer.parts.iter().find_map(|part| match part {
        ContentPart::Image { media_type, data } => Some(format!("data:{media_type};base64,{data}")),
        _ => None,
    });
    let Some(url) = picture else {
        let what = format!(
            "an answer to the computer_call {} without a picture",
            answer.call.id
        );
        return Err(inexpressible(Dialect::OpenAiResponses, what));
    };
    let mut member = begin(out, "computer_call_output", &answer.call);
    let mut shown = Writer::begin(member.key("output"));
    string(shown.key("type"), "computer_screenshot");
    string(shown.key("image_url"), &url);
    shown.end();
    end(member, &answer.call);
    Ok(())
}
