//! Chooses which of many tools are declared: a baseline, and those that match what the user says; a search finds the others.

use std::fmt::Write as _;
use std::sync::Arc;

use haft::spec::Exposure;
use haft::text::clip;
use haft::toolset::view::{DerivedToolset, ToolsetExt};
use haft::toolset::{ToolEntry, Toolset, ToolsetSnapshot};
use haft_wire::{ContentPart, Declarations, Message, Usage};
use serde::Deserialize;

use crate::model::{Model, ModelError, ModelRequest};

/// Maximum number of tools that are declared without deferring any.
pub const DIRECT: usize = 15;
/// Maximum number of tools that one prompt adds.
pub const SUGGESTED: usize = 10;
/// Maximum number of tools that a model chooses from.
const CANDIDATES: usize = 200;
/// Maximum number of characters of a tool's description shown for the choice.
const DESCRIPTION: usize = 50;
/// The number of latest prompts used to look for tools, and the maximum number of characters of each.
const PROMPTS: usize = 5;
const PROMPT: usize = 2000;
/// How often to ask a model that gives an unusable answer.
const TRIES: u32 = 2;

/// Tools that are always declared, if the session has them.
pub const BASELINE: [&str; 20] = [
    "ask_user",
    "await_command",
    "command_input",
    "edit_file",
    "glob_files",
    "grep_files",
    "kill_command",
    "list_files",
    "load_skill",
    "read_artifact",
    "read_file",
    "recall_memory",
    "run_command",
    "todo_read",
    "todo_write",
    "tool_chain",
    "tool_expand_tools",
    "tool_search",
    "write_file",
    "write_memory",
];

/// Returns the tools of a session whose agent suggests: above [`DIRECT`], all but the [`BASELINE`] are deferred, and the agent expands
/// those that match each prompt. A model finds the others with `tool_search` and declares them with `tool_expand_tools`; a call of an
/// undeclared tool is refused with the call to make.
pub fn view(tools: impl Toolset + 'static) -> DerivedToolset {
    tools.deferring(DIRECT, |name| BASELINE.contains(&name))
}

/// Returns the user's last messages, as a search query.
pub(crate) fn query(messages: &[Message]) -> String {
    let said = messages.iter().rev().filter_map(|message| match message {
        Message::User(parts) => Some(parts),
        _ => None,
    });
    let mut query = String::new();
    for part in said.take(PROMPTS).flatten() {
        if let ContentPart::Text(text) = part {
            let _ = writeln!(query, "{}", clip(text, PROMPT));
        }
    }
    query
}

/// Returns the deferred tools that best match a query, best first: at most `most`.
pub fn ranked(tools: &ToolsetSnapshot, query: &str, most: usize) -> Vec<String> {
    let is_deferred = |entry: &ToolEntry| entry.spec().exposure == Exposure::Deferred;
    let hits = tools.search_among(query, most, is_deferred);
    let names = hits
        .into_iter()
        .map(|hit| hit.entry.spec().name.to_string());
    names.collect()
}

/// Returns the tools that a model chose, and the cost; nothing if its answer is unusable.
pub(crate) async fn chosen(
    model: &Arc<dyn Model>,
    tools: &ToolsetSnapshot,
    query: &str,
) -> Result<(Vec<String>, Usage), ModelError> {
    let mut names = ranked(tools, query, CANDIDATES);
    let rest = tools.entries().iter().map(|entry| entry.spec());
    let rest = rest.filter(|spec| spec.exposure == Exposure::Deferred);
    let rest: Vec<String> = rest
        .map(|spec| spec.name.to_string())
        .filter(|name| !names.contains(name))
        .collect();
    names.extend(rest);
    names.truncate(CANDIDATES);
    let messages = [Message::user(question(tools, &names, query))];
    let declarations = Declarations::none(model.dialect());
    let request = ModelRequest {
        system: "You choose tools for an assistant. Answer with JSON alone.",
        messages: &messages,
        tools: &declarations,
        choice: &haft_wire::request::ToolChoice::Auto,
        parallel: false,
        max_tokens: Some(500),
        extra: &[],
    };
    let mut usage = Usage::default();
    for _ in 0..TRIES {
        let reply = model.reply(request, &mut |_| {}).await?;
        usage.input += reply.usage.input;
        usage.cached += reply.usage.cached;
        usage.output += reply.usage.output;
        if let Some(places) = places_in(&reply.turn.text()) {
            let chosen = places
                .into_iter()
                .filter_map(|n| names.get(n.checked_sub(1)?));
            return Ok((chosen.take(SUGGESTED).cloned().collect(), usage));
        }
    }
    Ok((Vec::new(), usage))
}

fn question(tools: &ToolsetSnapshot, names: &[String], query: &str) -> String {
    let mut text = String::from("Tools:\n");
    for (number, name) in names.iter().enumerate() {
        let about = tools
            .entry(name)
            .map(|entry| clip(&entry.spec().description, DESCRIPTION));
        let about = about.unwrap_or_default().replace('\n', " ");
        let _ = writeln!(text, "{}. {name}: {about}", number + 1);
    }
    let _ = write!(
        text,
        "\nThe user says:\n{query}\nWhich of the tools will be needed? At most {SUGGESTED}, as {{\"tool_ids\": [NUMBER, ...]}}."
    );
    text
}

#[derive(Deserialize)]
struct ToolSuggestion {
    tool_ids: Vec<usize>,
}

/// Returns the numbers in an answer: those of its JSON object, whatever surrounds it.
fn places_in(text: &str) -> Option<Vec<usize>> {
    let object = text.get(text.find('{')?..=text.rfind('}')?)?;
    let choice: ToolSuggestion = serde_json::from_str(object).ok()?;
    Some(choice.tool_ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_of_answers_with_words_around_them() {
        for (text, numbers) in [
            (r#"{"tool_ids": [1, 3]}"#, Some(vec![1, 3])),
            ("```json\n{\"tool_ids\": []}\n```", Some(vec![])),
            ("none of them", None),
            (r#"{"tools": [1]}"#, None),
            ("}{", None),
        ] {
            assert_eq!(places_in(text), numbers, "{text}");
        }
    }
}
