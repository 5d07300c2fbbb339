//! Skills as MCP prompts: one for each that a person may choose.
//!
//! Getting a prompt is a person's act: it puts the skill in force, through the executor like every call, by `invoke_skill`.

use std::collections::BTreeMap;

use haft::call::{Origin, ToolCall};
use haft::error::ErrorKind;
use haft::policy::join_words;
use haft::result::{Content, Outcome};
use haft::skill::Skill;
use serde::Serialize;
use serde_json::json;

use crate::resource::page;
use crate::run::Run;
use crate::wire::RpcError;
use crate::wire::reply;
use haft::text::clip;

/// The tool that loads a skill for a person. Where the host has switched it off there are no prompts.
const TOOL: &str = "invoke_skill";
/// The argument of a skill that names none.
const ARGUMENTS: &str = "arguments";

#[derive(Serialize)]
struct Prompt<'a> {
    name: &'a str,
    description: &'a str,
    arguments: Vec<Argument<'a>>,
}

#[derive(Serialize)]
struct Argument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    required: bool,
}

impl<'a> From<&'a Skill> for Prompt<'a> {
    fn from(skill: &'a Skill) -> Self {
        let front = skill.front();
        let named = front.arguments.iter().map(String::as_str);
        let mut names: Vec<&str> = named.collect();
        if names.is_empty() {
            names.push(ARGUMENTS);
        }
        let hint = front.argument_hint.as_deref();
        let argument = |name| Argument {
            name,
            description: hint,
            required: false,
        };
        Self {
            name: skill.name(),
            description: skill.description(),
            arguments: names.into_iter().map(argument).collect(),
        }
    }
}

/// The skills that are prompts of this run.
async fn prompts(run: &Run) -> Result<Vec<Skill>, RpcError> {
    let mut skills = run.skills().await?;
    if run.session.tools().entry(TOOL).is_none() {
        skills.clear();
    }
    skills.retain(|skill| skill.front().user_invocable);
    Ok(skills)
}

/// Whether there is a prompt.
pub(crate) async fn any(run: &Run) -> bool {
    prompts(run).await.is_ok_and(|found| !found.is_empty())
}

/// The prompts, for a client that was told of them or could be; to any other the methods are unknown, as to a server without.
async fn offered(run: &Run) -> Result<Vec<Skill>, RpcError> {
    let found = prompts(run).await?;
    if found.is_empty() && !run.has_told_prompts() {
        let message = "this server has no prompts";
        return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
    }
    Ok(found)
}

/// Writes `"prompts":[…]` with at most `size` prompts after the cursor, and `nextCursor` where more follow.
pub(crate) async fn write_page(
    out: &mut Vec<u8>,
    run: &Run,
    cursor: Option<&str>,
    size: usize,
) -> Result<(), RpcError> {
    let all = offered(run).await?;
    let page = page(&all, cursor, size, Skill::name)?;
    let shown: Vec<Prompt<'_>> = page.items.iter().map(Prompt::from).collect();
    out.extend_from_slice(b"\"prompts\":");
    reply::json(out, &shown);
    page.write_next(out);
    Ok(())
}

/// Writes `"description":…,"messages":[…]`: the skill's text with what the person gave in its place.
pub(crate) async fn write(
    out: &mut Vec<u8>,
    run: &Run,
    name: &str,
    arguments: &str,
) -> Result<(), RpcError> {
    let all = offered(run).await?;
    let skill = all.iter().find(|skill| skill.name() == name);
    let skill = skill.ok_or_else(|| {
        let shown = clip(name, 64);
        RpcError::invalid_params(format!("no prompt {shown:?}"))
    })?;
    let given = line(skill, arguments)?;
    run.begin().await?;
    let call = json!({"skill": name, "arguments": given}).to_string();
    let call = ToolCall::new(TOOL, call).from_origin(Origin::Prompt);
    let outcome = run.executor.execute(&run.session, call).await;
    let text = text(&outcome)?;
    out.extend_from_slice(b"\"description\":");
    reply::json(out, skill.description());
    out.extend_from_slice(b",\"messages\":");
    let content = json!({"type": "text", "text": text});
    reply::json(out, &[json!({"role": "user", "content": content})]);
    Ok(())
}

/// The arguments as a person would have written them behind the skill's name.
fn line(skill: &Skill, arguments: &str) -> Result<String, RpcError> {
    let arguments = if arguments.is_empty() {
        "{}"
    } else {
        arguments
    };
    let mut given: BTreeMap<String, String> = serde_json::from_str(arguments)
        .map_err(|_| RpcError::invalid_params("params.arguments is not an object of strings"))?;
    let names = &skill.front().arguments;
    let line = if names.is_empty() {
        given.remove(ARGUMENTS).unwrap_or_default()
    } else {
        let mut words: Vec<String> = names
            .iter()
            .map(|name| given.remove(name).unwrap_or_default())
            .collect();
        while words.last().is_some_and(String::is_empty) {
            words.pop();
        }
        join_words(&words)
    };
    match given.keys().next() {
        None => Ok(line),
        Some(unknown) => {
            let shown = clip(unknown, 64);
            Err(RpcError::invalid_params(format!(
                "this prompt has no argument {shown:?}"
            )))
        }
    }
}

/// What the call gave; one that was denied or failed is the request's error.
fn text(outcome: &Outcome) -> Result<String, RpcError> {
    if let Some(error) = &outcome.error {
        let code = match error.kind {
            ErrorKind::NotFound | ErrorKind::InvalidArguments => RpcError::INVALID_PARAMS,
            _ => RpcError::INTERNAL,
        };
        let status = outcome.status.as_str();
        return Err(RpcError::new(code, error.message.clone())
            .with_data(json!({"status": status, "advice": error.advice}).to_string()));
    }
    let texts = outcome.content.iter().filter_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    Ok(texts.collect::<Vec<_>>().join("\n"))
}
