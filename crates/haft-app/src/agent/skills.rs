//! Skills of an agent's run: those that the user names are loaded before the first prompt, those of an earlier process again.

use haft::call::RunId;
use haft::result::{Outcome, Status};
use haft_agent::Agent;
use serde_json::{Value, json};

use crate::agent::{host_call, problem};
use crate::app::App;
use crate::problem::{Problem, ProblemKind};
use crate::run::RunHandle;
use crate::view::timeline;

/// What loads a skill.
const LOAD: &str = "load_skill";
/// All tools that do, by `skill`.
const LOADERS: [&str; 2] = [LOAD, "invoke_skill"];
/// What stands before the name of a skill that is a tool of its own.
const AS_TOOL: &str = "skill.";

/// Loads a skill, and tells the model its text. A sentence for people: what the skill asks for, and what it forbids.
pub(super) async fn load(
    run: &RunHandle,
    agent: &mut Agent,
    skill: &str,
) -> Result<String, Problem> {
    let outcome = make(run, skill).await?;
    agent
        .tell(outcome.to_model())
        .map_err(|error| problem(&error))?;
    let data = outcome.data.as_ref().map(|data| data.get());
    let data: Value = serde_json::from_str(data.unwrap_or_default()).unwrap_or_default();
    Ok(notice(skill, &data))
}

/// Loads the skills again that were loaded in an earlier run or process, in their order, so that their limits hold. The model has
/// their texts.
pub(super) async fn load_again(app: &App, earlier: &RunId, run: &RunHandle) -> Result<(), Problem> {
    let calls = timeline::calls(app, earlier.as_str()).await?;
    let mut names: Vec<String> = Vec::new();
    for call in calls {
        if let Some(name) = loaded(&call)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    for name in names {
        make(run, &name).await.map_err(|problem| {
            Problem::new(problem.kind(), problem.what())
                .advise("the run had it in force: without it, its limits would not hold; bring the skill back, or begin a new run")
        })?;
    }
    Ok(())
}

async fn make(run: &RunHandle, skill: &str) -> Result<Outcome, Problem> {
    let arguments = json!({"skill": skill}).to_string();
    let outcome = run.call(host_call(LOAD, arguments)).await;
    if outcome.is_ok() {
        return Ok(outcome);
    }
    let failure = outcome.error.as_ref();
    let why = failure.map_or(outcome.summary.as_str(), |failure| &failure.message);
    let kind = match outcome.status {
        Status::Denied => ProblemKind::Denied,
        _ => ProblemKind::Usage,
    };
    Err(Problem::new(kind, format!("load the skill {skill}: {why}"))
        .advise("`haft skills` lists the skills"))
}

/// The skill that a call of the record loaded.
fn loaded(call: &Value) -> Option<String> {
    if call["status"] != "ok" {
        return None;
    }
    let tool = call["tool"].as_str()?;
    if let Some(name) = tool.strip_prefix(AS_TOOL) {
        return Some(name.to_owned());
    }
    let arguments: Value = serde_json::from_str(call["arguments"].as_str()?).ok()?;
    let loads = LOADERS.contains(&tool) && arguments["resource"].is_null();
    let name = arguments["skill"].as_str()?;
    loads.then(|| name.to_owned())
}

fn notice(skill: &str, data: &Value) -> String {
    let list = |name: &str| {
        let rules = data[name].as_array().into_iter().flatten();
        let rules: Vec<&str> = rules.filter_map(Value::as_str).collect();
        (!rules.is_empty()).then(|| rules.join(", "))
    };
    let mut text = format!("the skill {skill} is active");
    for (name, before, after) in [
        ("requests", "; it asks for ", ", which grants nothing"),
        ("restricts_to", "; only these calls are left: ", ""),
        ("excludes", "; no call may be ", ""),
    ] {
        if let Some(rules) = list(name) {
            text.push_str(before);
            text.push_str(&rules);
            text.push_str(after);
        }
    }
    text
}
