//! Tools in the shape of contract §9.

use haft::spec::ToolSpec;
use haft::toolset::{Snapshot, ToolEntry};
use serde_json::{Value, json};

use crate::app::App;
use crate::problem::Problem;

/// All tools that callers may be told of, deferred ones too, in the shape of contract §9.
pub fn describe_all(tools: &Snapshot) -> Vec<Value> {
    tools
        .findable()
        .map(|entry| describe(entry.spec()))
        .collect()
}

/// One tool in the shape of contract §9.
pub fn describe(spec: &ToolSpec) -> Value {
    let mut shown = json!({
        "name": spec.name,
        "title": spec.title.as_deref().unwrap_or(spec.name.as_str()),
        "description": spec.description,
        "category": spec.category.as_deref().unwrap_or("other"),
        "risk": spec.risk,
        "exposure": spec.exposure,
        "source": spec.source,
        "input_schema": *spec.input_schema,
    });
    if let (Value::Object(map), Some(output)) = (&mut shown, &spec.output_schema) {
        map.insert("output_schema".into(), Value::clone(output));
    }
    shown
}

/// Finds a tool by its name.
///
/// # Errors
/// There is no such tool, or it is off; the advice says what to do.
pub fn find<'a>(app: &App, tools: &'a Snapshot, name: &str) -> Result<&'a ToolEntry, Problem> {
    if let Some(entry) = tools.entry(name) {
        return Ok(entry);
    }
    let problem = Problem::usage(format!("no tool `{name}`"));
    if let Some(advice) = app.how_to_enable(name) {
        return Err(problem.advise(advice));
    }
    Err(match tools.nearest(name).first() {
        Some(near) => problem.advise(format!("did you mean `{near}`?")),
        None => problem.advise("`haft tools` lists them"),
    })
}
