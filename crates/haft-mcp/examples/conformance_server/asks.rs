//! Tools that send requests to their client while they run.

use std::sync::Arc;

use haft::caller::{CallerRequest, RequestKind};
use haft::context::CallerHandle;
use haft::spec::NameError;
use haft::{CallContext, Tool, ToolError, TypedTool, tool};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Returns the tools.
pub(crate) fn tools() -> Result<Vec<Arc<dyn Tool>>, NameError> {
    Ok(vec![
        test_sampling {}.into_tool()?,
        test_elicitation {}.into_tool()?,
        test_elicitation_sep1034_defaults {}.into_tool()?,
        test_elicitation_sep1330_enums {}.into_tool()?,
        test_missing_capability {}.into_tool()?,
        test_streaming_elicitation {}.into_tool()?,
        test_input_required_result_elicitation {}.into_tool()?,
        test_input_required_result_sampling {}.into_tool()?,
        test_input_required_result_list_roots {}.into_tool()?,
        test_input_required_result_request_state {}.into_tool()?,
        test_input_required_result_multiple_inputs {}.into_tool()?,
        test_input_required_result_multi_round {}.into_tool()?,
        test_input_required_result_tampered_state {}.into_tool()?,
        test_input_required_result_capabilities {}.into_tool()?,
    ])
}

/// Returns the client behind the call.
pub(crate) fn caller(context: &CallContext) -> haft::Result<CallerHandle> {
    let missing = || ToolError::unavailable("nobody can be asked here");
    context.caller().ok_or_else(missing)
}

/// Sends a request to the client and returns its answer.
pub(crate) async fn ask(
    caller: &CallerHandle,
    name: &str,
    kind: RequestKind,
    params: Value,
) -> haft::Result<Value> {
    let params = serde_json::value::to_raw_value(&params)
        .map_err(|e| ToolError::failed("the request is not JSON").with_source(e))?;
    let answer: Box<RawValue> = caller
        .ask(CallerRequest::new(kind, params).named(name))
        .await?;
    serde_json::from_str(answer.get())
        .map_err(|e| ToolError::failed("the answer is not JSON").with_source(e))
}

/// Returns a form with these fields.
pub(crate) fn form(message: &str, properties: &Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"message": message, "requestedSchema": schema})
}

/// Returns a prompt for the client's model.
fn prompt(text: &str, most: u32) -> Value {
    let content = json!({"type": "text", "text": text});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": most})
}

/// Returns the text of a model's answer.
fn completion(answer: &Value) -> &str {
    answer["content"]["text"].as_str().unwrap_or_default()
}

/// Returns what a user did with a form.
fn filled(answer: &Value) -> String {
    format!(
        "action={}, content={}",
        answer["action"].as_str().unwrap_or_default(),
        answer["content"]
    )
}

/// Have the caller's model answer a prompt.
#[tool(concurrency_safe)]
async fn test_sampling(prompt: String, context: &CallContext) -> haft::Result<String> {
    let caller = caller(context)?;
    let answer = ask(
        &caller,
        "answer",
        RequestKind::Sampling,
        self::prompt(&prompt, 100),
    )
    .await?;
    Ok(format!("LLM response: {}", completion(&answer)))
}

/// Have the caller's user fill in a form.
#[tool(concurrency_safe)]
async fn test_elicitation(message: String, context: &CallContext) -> haft::Result<String> {
    let fields = json!({
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    });
    let caller = caller(context)?;
    let answer = ask(&caller, "user", RequestKind::Form, form(&message, &fields)).await?;
    Ok(format!("User response: {}", filled(&answer)))
}

/// Ask with defaults for every kind of field.
#[tool(concurrency_safe)]
async fn test_elicitation_sep1034_defaults(context: &CallContext) -> haft::Result<String> {
    let schema = json!({"type": "object", "required": [], "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }});
    let params = json!({"message": "Look through these values", "requestedSchema": schema});
    let answer = ask(&caller(context)?, "values", RequestKind::Form, params).await?;
    Ok(format!("Elicitation completed: {}", filled(&answer)))
}

/// Ask with every kind of choice.
#[tool(concurrency_safe)]
async fn test_elicitation_sep1330_enums(context: &CallContext) -> haft::Result<String> {
    let plain = ["option1", "option2", "option3"];
    let titled = |word: &str| {
        let numbers = [
            ("value1", "First"),
            ("value2", "Second"),
            ("value3", "Third"),
        ];
        json!(
            numbers
                .map(|(value, title)| json!({"const": value, "title": format!("{title} {word}")}))
        )
    };
    let schema = json!({"type": "object", "required": [], "properties": {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }});
    let params = json!({"message": "Choose", "requestedSchema": schema});
    let answer = ask(&caller(context)?, "choices", RequestKind::Form, params).await?;
    Ok(format!("Elicitation completed: {}", filled(&answer)))
}

/// Need the caller's model.
#[tool(concurrency_safe)]
async fn test_missing_capability(context: &CallContext) -> haft::Result<String> {
    let answer = ask(
        &caller(context)?,
        "answer",
        RequestKind::Sampling,
        prompt("Say yes", 10),
    )
    .await?;
    Ok(completion(&answer).to_owned())
}

/// Need the caller's user.
#[tool(concurrency_safe)]
async fn test_streaming_elicitation(context: &CallContext) -> haft::Result<String> {
    let fields = json!({"ok": {"type": "boolean"}});
    let answer = ask(
        &caller(context)?,
        "confirm",
        RequestKind::Form,
        form("Go on?", &fields),
    )
    .await?;
    Ok(filled(&answer))
}

async fn name(context: &CallContext) -> haft::Result<Value> {
    let fields = json!({"name": {"type": "string"}});
    ask(
        &caller(context)?,
        "user_name",
        RequestKind::Form,
        form("What is your name?", &fields),
    )
    .await
}

/// Ask for a name.
#[tool(concurrency_safe)]
async fn test_input_required_result_elicitation(context: &CallContext) -> haft::Result<String> {
    let answer = name(context).await?;
    Ok(format!(
        "Hello, {}!",
        answer["content"]["name"].as_str().unwrap_or("stranger")
    ))
}

/// Ask the caller's model for a capital.
#[tool(concurrency_safe)]
async fn test_input_required_result_sampling(context: &CallContext) -> haft::Result<String> {
    let question = prompt("What is the capital of France?", 100);
    let answer = ask(
        &caller(context)?,
        "capital_question",
        RequestKind::Sampling,
        question,
    )
    .await?;
    Ok(completion(&answer).to_owned())
}

/// Ask which folders the caller works in.
#[tool(concurrency_safe)]
async fn test_input_required_result_list_roots(context: &CallContext) -> haft::Result<String> {
    let answer = ask(
        &caller(context)?,
        "client_roots",
        RequestKind::Roots,
        json!({}),
    )
    .await?;
    Ok(format!("Roots: {}", answer["roots"]))
}

async fn confirmed(context: &CallContext) -> haft::Result<Value> {
    let fields = json!({"ok": {"type": "boolean"}});
    ask(
        &caller(context)?,
        "confirm",
        RequestKind::Form,
        form("Please confirm", &fields),
    )
    .await
}

/// Ask for a yes.
#[tool(concurrency_safe)]
async fn test_input_required_result_request_state(context: &CallContext) -> haft::Result<String> {
    let answer = confirmed(context).await?;
    Ok(format!("state-ok: {}", filled(&answer)))
}

/// Ask for a yes that nobody may forge.
#[tool(concurrency_safe)]
async fn test_input_required_result_tampered_state(context: &CallContext) -> haft::Result<String> {
    Ok(filled(&confirmed(context).await?))
}

/// Ask three things at once.
#[tool(concurrency_safe)]
async fn test_input_required_result_multiple_inputs(context: &CallContext) -> haft::Result<String> {
    let caller = caller(context)?;
    let (name, greeting, roots) = tokio::join!(
        name(context),
        ask(
            &caller,
            "greeting",
            RequestKind::Sampling,
            prompt("Generate a greeting", 50)
        ),
        ask(&caller, "client_roots", RequestKind::Roots, json!({})),
    );
    let (name, greeting, roots) = (name?, greeting?, roots?);
    Ok(format!(
        "{} {} {}",
        filled(&name),
        completion(&greeting),
        roots["roots"]
    ))
}

/// Ask twice, the second time with what came of the first.
#[tool(concurrency_safe)]
async fn test_input_required_result_multi_round(context: &CallContext) -> haft::Result<String> {
    let caller = caller(context)?;
    let first = form(
        "Step 1: What is your name?",
        &json!({"name": {"type": "string"}}),
    );
    let first = ask(&caller, "step1", RequestKind::Form, first).await?;
    let second = form(
        "Step 2: What is your favorite color?",
        &json!({"color": {"type": "string"}}),
    );
    let second = ask(&caller, "step2", RequestKind::Form, second).await?;
    Ok(format!("{}; {}", filled(&first), filled(&second)))
}

/// Ask only what the caller can be asked.
#[tool(concurrency_safe)]
async fn test_input_required_result_capabilities(context: &CallContext) -> haft::Result<String> {
    let caller = caller(context)?;
    let mut said = Vec::new();
    if caller.can(RequestKind::Form) {
        said.push(filled(&name(context).await?));
    }
    if caller.can(RequestKind::Sampling) {
        let answer = ask(
            &caller,
            "greeting",
            RequestKind::Sampling,
            prompt("Generate a greeting", 50),
        )
        .await?;
        said.push(completion(&answer).to_owned());
    }
    Ok(said.join(" "))
}
