//! Skills as MCP prompts: one for each skill that a user may choose.
//!
//! Getting a prompt is a user's action: it activates the skill with `invoke_skill`, through the executor like every call.

use std::collections::{BTreeMap, BTreeSet};

use haft::call::{Origin, ToolCall};
use haft::error::ErrorKind;
use haft::policy::join_words;
use haft::result::{Content, Outcome};
use haft::skill::Skill;
use serde::Serialize;
use serde_json::json;

use crate::offer::OfferEntry;
use crate::offered;
use crate::run::ClientRun;
use crate::wire::RpcError;
use crate::wire::reply;
use haft::text::clip;

/// The tool that loads a skill for a user. If the host disables it, there are no prompts.
const INVOKE_TOOL: &str = "invoke_skill";
/// The argument of a skill that names none.
const ARGUMENTS: &str = "arguments";

#[derive(Serialize)]
struct PromptEntry<'a> {
    name: &'a str,
    description: &'a str,
    arguments: Vec<PromptArgument<'a>>,
}

#[derive(Serialize)]
struct PromptArgument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    required: bool,
}

impl<'a> From<&'a Skill> for PromptEntry<'a> {
    fn from(skill: &'a Skill) -> Self {
        let front = skill.front();
        let named = front.arguments.iter().map(String::as_str);
        let mut names: Vec<&str> = named.collect();
        if names.is_empty() {
            names.push(ARGUMENTS);
        }
        let hint = front.argument_hint.as_deref();
        let argument = |name| PromptArgument {
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

/// Returns the skills that are prompts of this run.
async fn prompts(run: &ClientRun) -> Result<Vec<Skill>, RpcError> {
    let mut skills = run.skills().await?;
    if run.session.tools().entry(INVOKE_TOOL).is_none() {
        skills.clear();
    }
    skills.retain(|skill| skill.front().user_invocable);
    Ok(skills)
}

/// Returns whether there are any prompts.
pub(crate) async fn any(run: &ClientRun) -> bool {
    offered::kinds(run).prompts || prompts(run).await.is_ok_and(|found| !found.is_empty())
}

/// Returns the skills that are prompts, for a client that was told of prompts or could be. For any other, the methods are
/// unknown, as on a server without prompts.
async fn known(run: &ClientRun) -> Result<Vec<Skill>, RpcError> {
    let found = prompts(run).await?;
    if found.is_empty() && !run.has_announced_prompts() && !offered::kinds(run).prompts {
        let message = "this server has no prompts";
        return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
    }
    Ok(found)
}

/// Writes `"prompts":[…]`: the skills and then the host's prompts, with at most `size` after the cursor, and `nextCursor` if more
/// follow.
pub(crate) async fn write_page(
    out: &mut Vec<u8>,
    run: &ClientRun,
    cursor: Option<&str>,
    size: usize,
) -> Result<(), RpcError> {
    let own = known(run).await?;
    let own: Vec<OfferEntry> = own
        .iter()
        .map(|skill| offered::entry(skill.name(), &PromptEntry::from(skill)))
        .collect();
    let offered = match run.offer() {
        Some(offer) => offer.prompts(&run.session).await,
        None => Ok(Vec::new()),
    };
    let names: BTreeSet<String> = own.iter().map(|entry| entry.key.clone()).collect();
    let all = offered::join(own, offered, |name| names.contains(name))?;
    offered::write_page(out, "prompts", &all, cursor, size)
}

/// Returns the skill whose prompt has this name; `None` if there is none.
pub(crate) async fn find(run: &ClientRun, name: &str) -> Result<Option<Skill>, RpcError> {
    let all = known(run).await?;
    Ok(all.into_iter().find(|skill| skill.name() == name))
}

/// Writes `"description":…,"messages":[…]`: the skill's text with the user's arguments filled in.
pub(crate) async fn write(
    out: &mut Vec<u8>,
    run: &ClientRun,
    skill: &Skill,
    arguments: &str,
) -> Result<(), RpcError> {
    let given = line(skill, arguments)?;
    run.begin().await?;
    let call = json!({"skill": skill.name(), "arguments": given}).to_string();
    let call = ToolCall::new(INVOKE_TOOL, call).from_origin(Origin::Prompt);
    let outcome = run.executor.execute(&run.session, call).await;
    let text = text(&outcome)?;
    out.extend_from_slice(b"\"description\":");
    reply::json(out, skill.description());
    out.extend_from_slice(b",\"messages\":");
    let content = json!({"type": "text", "text": text});
    reply::json(out, &[json!({"role": "user", "content": content})]);
    Ok(())
}

/// Returns the arguments as a user would write them after the skill's name.
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

/// Returns the call's text; a denied or failed call is the request's error.
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
